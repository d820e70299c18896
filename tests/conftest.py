"""Shared by the tests."""

import hypothesis
import numpy as np
import pytest

# No example has to be made or to end in a given time: on a busy machine any may take long.
hypothesis.settings.register_profile("patient", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("patient")

# Plugins, which test_extension.py imports: collecting them would register them for all tests.
collect_ignore = ["answer_example.py", "extension_example.py", "laws/log_span.py", "schedule_example.py"]


@pytest.fixture
def rng():
    return np.random.default_rng(0)
