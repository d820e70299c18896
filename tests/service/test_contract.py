"""Whatever schemathesis thinks of, no answer is a 5xx or outside of the description."""

import asyncio
import threading

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from starlette.applications import Starlette
from starlette.routing import Mount

from manul.service.app import Application
from manul.service.contract import OPERATIONS
from manul.service.engine import Engine
from manul.service.openapi import document
from manul.service.schema import NewLoop
from manul.service.store.sqlite import SqliteStore

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
