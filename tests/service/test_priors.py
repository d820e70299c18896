"""Loops that start near an action, or from the model of another loop."""

from manul.service.http import tokens
from tests.service.conftest import Service, run
from tests.service.test_recovery import model_of, play, replayed

SHOP = {"actions": [20, 70], "agent": "auto"}
NEW = {"actions": [20, 70], "agent": {"kind": "auto", "prior": {"loop": "heat"}}}


async def with_prior(service):
    await service.post("", 201, name="heat", **SHOP)
    await play(service, 40)
    await service.learned("heat", 40)
    return await service.post("", 201, name="new", **NEW)


@run
async def test_a_new_loop_starts_from_the_model_of_another(service):
    async with service.running():
        status = await with_prior(service)
        assert status["agent"]["prior"] == {"loop": "heat"}
        assert status["width"] == 3
        assert status["learned"] == 0
        assert service.engine.loop("new").model.agent.report().prior == 1
        made = await service.post("/new/decisions", context=[0.1, 0.2, 0.3])
        assert made["density"] > 1 / 50


@run
async def test_a_restart_and_a_replay_give_the_same_model(service):
    async with service.running(snapshot_events=7):
        await with_prior(service)
        await play(service, 20, loop="new")
        await service.learned("new", 20)
        before = model_of(service.engine.loop("new"))
        assert replayed(service.engine, "new")[0] == before
        await service.client.delete("/v1/loops/heat")
    async with service.running():
        assert model_of(service.engine.loop("new")) == before


@run
async def test_a_reset_starts_from_the_prior_again(service):
    async with service.running():
        await with_prior(service)
        first = model_of(service.engine.loop("new"))
        await play(service, 5, loop="new")
        await play(service, 5)
        await service.post("/new/reset")
        assert model_of(service.engine.loop("new")) == first


@run
async def test_the_same_request_twice_creates_one_loop(service):
    async with service.running():
        await with_prior(service)
        await service.post("", 200, name="new", **NEW)
        assert [each["name"] for each in (await service.get(""))["loops"]].count("new") == 1


@run
async def test_a_prior_must_exist_and_fit(service):
    async with service.running():
        await with_prior(service)
        absent = NEW | {"name": "other", "agent": {"kind": "auto", "prior": {"loop": "absent"}}}
        assert "'absent' does not exist" in await service.refused(404, "/v1/loops", absent)
        wider = NEW | {"name": "other", "actions": [20, 80]}
        message = await service.refused(422, "/v1/loops", wider, field="agent")
        assert message == "prior must have the actions [20.0, 80.0] of the agent, got [20.0, 70.0]."


@run
async def test_a_loop_starts_near_an_action(service):
    async with service.running():
        await service.post("", 201, name="heat", actions=[20, 70], agent={"kind": "auto", "start": 30})
        made = [await service.post("/heat/decisions", context=[0.1]) for _ in range(20)]
        assert sum(29 <= each["action"] <= 31 for each in made) > 15
        knobs = {"price": [20, 70], "template": {"options": ["a", "b"]}}
        await service.post("", 201, name="shop", actions=knobs, agent={"kind": "auto", "start": {"template": "b"}})
        far = {"name": "far", "actions": [20, 70], "agent": {"kind": "auto", "start": 80}}
        assert await service.refused(422, "/v1/loops", far, field="agent") == "start must be in [20, 70], got 80."


@run
async def test_a_token_must_be_for_the_loop_of_the_prior(tmp_path):
    secret = tokens.add(tmp_path / "tokens", ["admin"], ["new"])
    service = Service(tmp_path / "decisions.db", tokens=tokens.read(tmp_path / "tokens"))
    async with service.running():
        headers = {"Authorization": f"Bearer {secret}"}
        answer = await service.client.post("/v1/loops", json={"name": "new", **NEW}, headers=headers)
        assert answer.status_code == 403
        assert "'heat'" in answer.text
