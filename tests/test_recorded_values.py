"""Saved agents, logs and estimates are, bit for bit, those that were recorded at commit 2728813."""

import json
from pathlib import Path

import pytest

from tests.recorded_values import recorded

EXPECTED = json.loads(Path(__file__).with_name("recorded_values.json").read_text())


@pytest.fixture(scope="module")
def found():
    return recorded()


@pytest.mark.parametrize("name", EXPECTED)
def test_it_is_what_it_was(found, name):
    assert found[name] == EXPECTED[name]


def test_every_kind_is_recorded(found):
    assert set(found) == set(EXPECTED)
