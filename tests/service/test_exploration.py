"""Loops whose exploration fades, and what their reports say that it cost."""

import msgspec
import pytest

import manul
from manul.service.engine.loop_agent import make_agent
from manul.service.loop_settings import NewLoop
from tests.service.conftest import run
from tests.service.test_recovery import play, replayed

FADING = {"first": 0.2, "last": 0.01, "rounds": 5}
TREE = {"kind": "cats", "leaves": 32, "bandwidth": 2.0}


def heat(**agent):
    return {"name": "heat", "actions": [20, 70], "agent": agent}


@run
async def test_a_loop_fades_and_goes_on_fading_after_a_restart(service):
    async with service.running():
        status = await service.post("", 201, **heat(**TREE, epsilon=FADING))
        assert status["agent"]["epsilon"] == FADING
        await play(service, 10)
        await service.learned("heat", 10)
        assert service.engine.loop("heat").model.agent.current_epsilon == 0.2 / 3
    async with service.running():
        assert service.engine.loop("heat").model.agent.current_epsilon == 0.2 / 3
        await play(service, 5)
        await service.learned("heat", 15)
        model = (await service.client.get("/v1/loops/heat/model")).content
        assert replayed(service.engine, "heat")[0] == model
        assert manul.loads(model).current_epsilon == 0.2 / 4


@pytest.mark.parametrize(
    ("epsilon", "shown"), [(None, "auto"), ("auto", "auto"), (0.05, 0.05), ({}, manul.schedules.Fading())]
)
def test_the_epsilon_of_auto_is_a_number_a_schedule_or_auto(epsilon, shown):
    agent = {"kind": "auto"} if epsilon is None else {"kind": "auto", "epsilon": epsilon}
    loop = msgspec.convert({"name": "heat", "actions": [20, 70], "agent": agent}, NewLoop)
    assert make_agent(loop).epsilon == shown


@pytest.mark.parametrize(
    ("agent", "field", "message"),
    [
        ({"kind": "auto", "epsilon": 1.5}, "agent.epsilon", "agent.epsilon must be a number <= 1.0"),
        ({"kind": "auto", "epsilon": "fast"}, "agent.epsilon", "fast"),
        ({"kind": "auto", "epsilon": {"first": 0}}, "agent.epsilon.first", "> 0.0"),
        ({"kind": "auto", "epsilon": {"from": 0.1}}, "from", "agent.epsilon has an unknown field, 'from'."),
        ({"kind": "auto", "epsilon": {"first": 0.001}}, "agent", "last must be at most first, 0.001, got 0.002."),
        ({**TREE, "epsilon": "auto"}, "agent.epsilon", "agent.epsilon"),
    ],
)
@run
async def test_an_epsilon_that_cannot_be_is_refused(service, agent, field, message):
    async with service.running():
        await service.post("", 201, **heat(kind="auto"))
        assert message in await service.refused(422, "/v1/loops", {**heat(**agent), "name": "other"}, field=field)


@run
async def test_the_report_says_what_exploration_cost(service):
    async with service.running():
        await service.post("", 201, **heat(**TREE, epsilon=0.5))
        assert (await service.get("/heat/report"))["exploration"] is None
        await play(service, 200)
        await service.learned("heat", 200)
        report = await service.get("/heat/report")
        assert report["beliefs"]["epsilon"] == 0.5
        assert 60 < report["exploration"]["explored"] < 140
        assert 0 < report["exploration"]["share"] < 1


@run
async def test_the_cost_is_unknown_if_the_caller_decides(service):
    async with service.running():
        await service.post("", 201, **heat(**TREE), apprentice=True)
        for place in range(5):
            await service.post("/heat/observations", context=[1], action=30 + place, density=5.0, loss=0.5)
        await service.learned("heat", 5)
        assert (await service.get("/heat/report"))["exploration"] is None
