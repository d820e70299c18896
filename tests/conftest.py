"""Shared by the tests."""

import numpy as np
import pytest

# A plugin, which test_extension.py imports: collecting it would register it for all tests.
collect_ignore = ["extension_example.py"]


@pytest.fixture
def rng():
    return np.random.default_rng(0)
