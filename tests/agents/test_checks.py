"""Every agent and every policy passes every public check."""

from itertools import product

import pytest

import manul
from manul import checks
from manul.errors import ParameterError

SPACES = {
    "two numbers": {"price": (10, 50), "discount": (0, 0.3)},
    "steps": {"days": manul.Stepped(1, 14, 1), "share": manul.Stepped(0, 0.3, 0.1)},
    "all kinds": {"price": (10, 50), "days": manul.Stepped(1, 14, 1), "template": manul.Choice(["a", "b", 3])},
}


def mapped(seed):
    return manul.Mapped(agent=manul.Auto(actions=SPACES["two numbers"], seed=seed), features=manul.maps.Crosses())


SEVERAL = {
    **{name: lambda seed, space=space: manul.Auto(actions=space, seed=seed) for name, space in SPACES.items()},
    "rewards": lambda seed: manul.Auto(actions=SPACES["all kinds"], rewards=(-1, 3), epsilon=0.2, seed=seed),
    "mapped": mapped,
}
AGENTS = {**dict(checks.discover()), **SEVERAL}
POLICIES = dict(checks.discover_policies())


def cell(name, check):
    """An agent and a check; in one of them, a rollout makes 10,000 decisions, one by one."""
    is_long = name.startswith("Rollout") and check.__name__ == "inverse_densities_average_to_the_range"
    return pytest.param(name, check, marks=[pytest.mark.whole] * is_long, id=f"{name}-{check.__name__}")


@pytest.mark.parametrize(("name", "check"), [cell(*each) for each in product(AGENTS, checks.CHECKS)])
def test_agent_passes(name, check):
    check(AGENTS[name])


@pytest.mark.parametrize("check", checks.POLICY_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", POLICIES)
def test_policy_passes(name, check):
    check(POLICIES[name])


def test_an_agent_whose_limits_are_a_function_is_refused_in_one_sentence():
    with pytest.raises(ParameterError, match=r"^An agent whose limits are a function cannot be saved"):
        checks.check_agent(lambda _: manul.Auto(actions=SPACES["two numbers"], limits=lambda _: {}))


class WrongDensity(manul.agents.auto_knobs.AutoKnobs):
    """An agent whose decisions carry twice their density."""

    def decide(self, context, within=None):
        decision = super().decide(context, within)
        return decision._replace(density=2 * decision.density)


def test_a_wrong_density_of_several_knobs_is_found():
    with pytest.raises(AssertionError, match="the density of a decision must be that of the distribution"):
        checks.check_agent(lambda seed: WrongDensity(actions=SPACES["two numbers"], seed=seed))
