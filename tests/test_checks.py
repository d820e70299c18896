"""Every agent passes every public check."""

import pytest

from manul import checks

AGENTS = dict(checks.discover())


@pytest.mark.parametrize("check", checks.CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", AGENTS)
def test_agent_passes(name, check):
    check(AGENTS[name])
