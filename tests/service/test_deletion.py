"""Deleting and resetting a loop: everything of it goes, nothing of another does, and nothing brings it back."""

import asyncio

import pytest

from tests.service.conftest import run, until
from tests.service.test_modes import HEAT, model
from tests.service.test_recovery import play, replayed

TABLES = ("blocks", "ids", "events", "models", "snapshots")


async def taught(service, name="heat", rounds=5):
    await service.post("", 201, **HEAT | {"name": name})
    await play(service, rounds, loop=name)
    await service.post(f"/{name}/decisions", context=[1, 2, 3], id="mine")
    await service.learned(name, rounds)


async def erase(service, name="heat"):
    answer = await service.client.delete(f"/v1/loops/{name}")
    assert (answer.status_code, answer.json()) == (200, {"name": name})


def rows(service, loop):
    """How many rows of a loop are left in the store."""
    place = "%s" if "://" in service.store else "?"
    return [service.engine.store._read(f"SELECT count(*) FROM {t} WHERE loop = {place}", loop)[0][0] for t in TABLES]


@run
async def test_a_deleted_loop_is_gone_also_after_a_restart_and_another_one_stays(service):
    async with service.running(snapshot_events=2):
        await taught(service)
        await taught(service, "other")
        await erase(service)
        assert (await service.client.get("/v1/loops/heat")).status_code == 404
        assert (await service.client.delete("/v1/loops/heat")).status_code == 404
        await until(lambda: rows(service, 1) == [0] * 5)
    async with service.running():
        assert [each["name"] for each in (await service.get(""))["loops"]] == ["other"]
        assert (await service.get("/other"))["learned"] == 5


@run
async def test_a_name_is_free_again_and_starts_from_nothing(service):
    async with service.running():
        await taught(service)
        await erase(service)
        await taught(service, rounds=2)
        status = await service.get("/heat")
        assert (status["decisions"], status["learned"]) == (3, 2)
    async with service.running():
        assert replayed(service.engine, "heat")[1:] == (2, 2)


@run
async def test_a_reset_keeps_the_settings_and_forgets_the_rest(service):
    async with service.running():
        await taught(service)
        before = (await service.get("/heat"))["agent"]
        status = await service.post("/heat/reset")
        assert (status["decisions"], status["learned"], status["width"], status["agent"]) == (0, 0, None, before)
        await service.post("/heat/decisions", context={"now": "named"})
    async with service.running():
        assert (await service.get("/heat"))["decisions"] == 1


@run
async def test_a_summary_after_a_reset_shows_nothing_of_what_was(service):
    async with service.running():
        await taught(service)
        await service.get("/heat/summary")
        await until_examined(service)
        await service.post("/heat/reset")
        found = await service.get("/heat/summary")
        assert (found["examined"], found["density"], found["history"]["loss"]) == (None, [], [])


async def until_examined(service):
    async with asyncio.timeout(60):
        while (await service.get("/heat/summary"))["examined"] is None:
            pass


@run
async def test_what_is_under_way_for_a_deleted_loop_gets_404_and_brings_nothing_back(service):
    async with service.running():
        await taught(service)
        asked = [service.client.post("/v1/loops/heat/decisions", json={"context": [1, 2, 3]}) for _ in range(20)]
        losses = [service.client.post(f"/v1/loops/heat/decisions/~{n}/loss", json={"loss": 0.5}) for n in range(1, 6)]
        answers = await asyncio.gather(*asked, *losses, service.client.delete("/v1/loops/heat"))
        assert {each.status_code for each in answers} <= {200, 404, 409}
        await until(lambda: rows(service, 1) == [0] * 5)
        assert await model_is_gone(service)


async def model_is_gone(service):
    return (await service.client.get("/v1/loops/heat/model")).status_code == 404


@pytest.mark.parametrize("verb", ["delete", "reset"])
@run
async def test_a_paused_loop_and_one_that_waits_for_an_import_can_be_erased(service, verb):
    async with service.running():
        await taught(service)
        copy = await model(service)
        await service.post("/heat/pause")
        replacing = asyncio.create_task(service.client.put("/v1/loops/heat/model", content=copy))
        answer = await (erase(service) if verb == "delete" else service.post("/heat/reset"))
        assert (await replacing).status_code == 409
        assert answer is None or answer["paused"] is False


@run
async def test_a_loop_that_is_deleted_during_its_turn_does_not_fail_to_learn(service, monkeypatch, caplog):
    async with service.running():
        await taught(service)
        loop, engine = service.engine.loop("heat"), service.engine
        learn = loop.learn

        def learn_and_drop(*given):
            learn(*given)
            if given[0]:
                engine.drop("heat", loop.number)

        monkeypatch.setattr(loop, "learn", learn_and_drop)
        await play(service, 1)
        await until(lambda: "heat" not in engine.loops)
        await taught(service, "cool")
        assert (engine.trouble(), [each for each in caplog.records if each.exc_info]) == (None, [])
