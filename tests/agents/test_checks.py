"""Every agent and every policy passes every public check."""

import pytest

from manul.agents import checks

AGENTS = dict(checks.discover())
POLICIES = dict(checks.discover_policies())


@pytest.mark.parametrize("check", checks.CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", AGENTS)
def test_agent_passes(name, check):
    check(AGENTS[name])


@pytest.mark.parametrize("check", checks.POLICY_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", POLICIES)
def test_policy_passes(name, check):
    check(POLICIES[name])
