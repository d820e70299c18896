"""Checks that every agent and every policy must pass; run them with `check_agent(make)` or `check_policy(make)`.

`make(seed)` returns a new agent, or a policy trained with the seed.
"""

from manul.checks.agent_checks import CHECKS, check_agent, discover
from manul.checks.policy_checks import POLICIES, POLICY_CHECKS, check_policy, discover_policies

__all__ = ["CHECKS", "POLICIES", "POLICY_CHECKS", "check_agent", "check_policy", "discover", "discover_policies"]
