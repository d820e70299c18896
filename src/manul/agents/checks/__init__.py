"""What any agent and any policy must satisfy; run it on your own with `check_agent(make)` or `check_policy(make)`.

`make(seed)` gives a fresh agent, or a policy made from the seed.
"""

from manul.agents.checks.agents_checks import CHECKS, Checkable, check_agent, discover
from manul.agents.checks.policies_checks import (
    POLICIES,
    POLICY_CHECKS,
    CheckablePolicy,
    check_policy,
    discover_policies,
)

__all__ = [
    "CHECKS",
    "POLICIES",
    "POLICY_CHECKS",
    "Checkable",
    "CheckablePolicy",
    "check_agent",
    "check_policy",
    "discover",
    "discover_policies",
]
