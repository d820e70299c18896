"""Apprentices, pauses, promotions, and models that come from outside."""

import manul
from tests.service.conftest import run
from tests.service.test_recovery import play, replayed

HEAT = {"name": "heat", "actions": [20, 70], "agent": {"kind": "cats", "leaves": 32, "bandwidth": 2.0}}


async def model(service):
    answer = await service.client.get("/v1/loops/heat/model")
    assert answer.status_code == 200
    return answer.content


@run
async def test_an_apprentice_learns_from_its_caller_until_it_is_promoted(service):
    async with service.running():
        await service.post("", 201, **HEAT, apprentice=True)
        await service.post("/heat/observations", context=[1, 2], action=30, density=0.02, loss=0.5, id="mine")
        await service.post("/heat/observations", context=[1, 2], action=30, density=0.02, loss=0.5, id="mine")
        seen = await service.post("/heat/observations", context=[1, 3], action=40)
        await service.post(f"/heat/decisions/{seen['id']}/loss", loss=0.25)
        await service.learned("heat", 2)
        await service.refused(409, "/v1/loops/heat/decisions", {"context": [1, 2]}, field="loop")
        conflict = {"context": [1, 2], "action": 31, "density": 0.02, "id": "mine"}
        await service.refused(409, "/v1/loops/heat/observations", conflict, field="id")
        assert (await service.post("/heat/promote"))["apprentice"] is False
        await service.post("/heat/decisions", context=[1, 2])
    async with service.running():
        assert (await service.post("/heat/decisions", context=[1, 2]))["model"] == 2


@run
async def test_a_loop_that_is_served_is_not_replaced_when_it_is_found_in_the_store(service):
    async with service.running():
        await service.post("", 201, **HEAT)
        served = service.engine.loop("heat")
        service.engine.take_up(served.row)  # as the thread that looks for loops of other replicas
        assert service.engine.loop("heat") is served


@run
async def test_a_paused_loop_decides_from_a_frozen_model_and_learns_the_rest_later(service):
    async with service.running():
        await service.post("", 201, **HEAT)
        await play(service, 5)
        await service.learned("heat", 5)
        await service.post("/heat/pause")
        frozen = await model(service)
        await play(service, 5)
        assert await model(service) == frozen
    async with service.running():
        status = await service.get("/heat")
        assert (status["paused"], status["learned"], status["events"]) == (True, 5, 10)
        assert await model(service) == frozen
        await service.post("/heat/resume")
        await service.learned("heat", 10)
        assert replayed(service.engine, "heat")[0] == await model(service)


@run
async def test_an_exported_model_comes_back_and_replays(service, tmp_path):
    async with service.running(snapshot_events=10**9):
        await service.post("", 201, **HEAT)
        await play(service, 10)
        await service.learned("heat", 10)
        early = await model(service)
        (tmp_path / "early.manul").write_bytes(early)
        assert manul.load(tmp_path / "early.manul").schema.width == 3
        await play(service, 10)
        answer = await service.client.put("/v1/loops/heat/model", content=early)
        assert answer.json()["model"] == 21
        assert await model(service) == early
        await play(service, 3)
        await service.learned("heat", 23)
        assert replayed(service.engine, "heat") == (await model(service), 23, 23 + 1)
    async with service.running():
        assert manul.dumps(service.engine.loop("heat").model.agent) == replayed(service.engine, "heat")[0]


@run
async def test_a_model_that_does_not_fit_is_refused(service, tmp_path):
    def saved(agent):
        agent.save(tmp_path / "m.manul")
        return (tmp_path / "m.manul").read_bytes()

    async with service.running():
        await service.post("", 201, **HEAT)
        await play(service, 3)
        await service.learned("heat", 3)
        good = await model(service)
        wider = manul.Cats(actions=(20, 70), leaves=32, bandwidth=2.0)
        wider.decide([1, 2, 3, 4])
        wrong = [
            b"",
            b"nonsense",
            good[:-7],
            good[:200] + b"x" + good[201:],
            (2**62).to_bytes(8, "little") + good[8:],
            saved(manul.Cats(leaves=4, bandwidth=0.1)),
            saved(wider),
        ]
        for each in wrong:
            sentence = await service.refused(422, "/v1/loops/heat/model", each, method="PUT", field="model")
            assert "/" not in sentence
        assert await model(service) == good
        await service.post("/heat/pause")
        await service.refused(409, "/v1/loops/heat/model", good, method="PUT", field="loop")


async def candidate(service):
    return next(each for each in (await service.get("/heat/report"))["candidates"] if each["name"] == "model")


@run
async def test_an_imported_model_is_not_judged_by_the_decisions_of_the_one_before(service):
    async with service.running():
        await service.post("", 201, **HEAT, apprentice=True)
        for action in range(20, 70):
            await service.post("/heat/observations", context=[1, 2], action=action, density=0.02, loss=0.5)
        await service.learned("heat", 50)
        assert (await candidate(service))["effective_size"] > 1
        await service.client.put("/v1/loops/heat/model", content=await model(service))
        await service.post("/heat/observations", context=[1, 2], action=30, density=0.02, loss=0.5)
        await service.learned("heat", 51)
        assert "of 1 decisions match: not enough to say." in (await candidate(service))["note"]


@run
async def test_a_model_is_not_judged_with_wrong_densities(service):
    async with service.running():
        await service.post("", 201, **HEAT | {"agent": {"kind": "cats", "leaves": 2, "bandwidth": 25}}, apprentice=True)
        for action in range(20, 70):
            await service.post("/heat/observations", context=[1, 2], action=action, density=0.0005, loss=0.5)
        await service.learned("heat", 50)
        found = await candidate(service)
        assert (found["loss"], found["objections"][0]["title"]) == (None, "wrong densities")
        assert found["note"].startswith("Weights average 40, not 1. Check that the logged densities are")
