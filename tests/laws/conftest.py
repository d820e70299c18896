"""The kind of knob of the laws is registered while they are tried."""

import pytest

from manul.actions.kinds.knob import KINDS
from tests.laws.spaces import LogSpan

KINDS.remove("log")  # the laws register it again, so that other tests do not meet it


@pytest.fixture(scope="module", autouse=True)
def log_span():
    KINDS.add("log", LogSpan, module="tests.laws.log_span")
    yield
    KINDS.remove("log")
