"""What a user of an agent sees: the parameters of its constructor, and few names beside them."""

import gc
import inspect
import weakref

import pytest

import manul

DECIDES = "best current_epsilon decide decide_again decide_many decide_many_again distribution distributions parameters plot space"
LEARNS = "from_saved learn learn_many nbytes save schema tells_levels"

NAMES = {*DECIDES.split(), *LEARNS.split()}
AUTO = {"predict_losses", "report", "spending", "kept"}
AGENTS = {
    "one number": (manul.Auto(), NAMES | AUTO),
    "two knobs": (manul.Auto(actions={"price": (1, 9), "days": (1, 3)}), NAMES | AUTO),
    "cats": (manul.Cats(leaves=8, bandwidth=1 / 8), NAMES | {"paper"}),
}


@pytest.mark.parametrize("name", AGENTS)
def test_an_agent_has_at_most_21_names_more_than_its_constructor_has_parameters(name):
    agent, beside = AGENTS[name]
    parameters = inspect.signature(type(agent)).parameters.keys()
    names = {each for each in dir(agent) if not each.startswith("_")}
    assert names == beside | parameters - {"rewards"}
    assert len(names) <= len(parameters) + 21


def test_an_agent_and_its_player_are_freed_as_soon_as_nobody_has_the_agent():
    agent = manul.Auto(actions=(0, 1))
    agent.learn([0.5], agent.decide([0.5]), 0.5)
    freed = weakref.ref(agent)
    gc.disable()
    try:
        del agent
        assert freed() is None
    finally:
        gc.enable()
