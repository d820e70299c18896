"""A new model in a running rollout of the service begins at the first step, whatever brings it."""

import numpy as np
import pytest

import manul
from manul.agents.rollout.rollout_progress import COHORT
from tests.service.conftest import run
from tests.service.test_recovery import model_of, replayed
from tests.service.test_rollouts import BAD, GOOD, LOOP, QUICK, play, put


async def at_full_traffic(service):
    await service.post("", 201, **LOOP)
    await put(service, **QUICK)
    await play(service, 1000, GOOD)
    said = await service.get("/a/rollout")
    assert (said["status"], said["traffic"]) == ("done", 0.98)


@run
async def test_an_uploaded_model_that_was_never_tested_begins_at_the_first_step(service):
    bad = manul.Cats(leaves=16, bandwidth=0.1)
    bad.decide(np.zeros(2))
    async with service.running(snapshot_events=100):
        await at_full_traffic(service)
        uploaded = await service.client.put("/v1/loops/a/model", content=manul.dumps(bad))
        assert uploaded.status_code == 200
        said = await service.get("/a/rollout")
        assert (said["step"], said["traffic"], said["judged"], said["status"]) == (1, 0.4, 0, "waiting")
        move = said["moves"][-1]
        assert (move["reason"], move["origin"], move["target"]) == ("model replaced", 2, 1)
        assert said["spent"] >= 0
        made = (await service.post("/a/decisions/batch", decisions=[{"context": [0.25, 0.5]}] * 900))["decisions"]
        assert sum(each["arm"] == "learner" for each in made) < 0.5 * 900
        await service.post("/a/losses", losses=[{"id": each["id"], "loss": BAD[each["arm"]]} for each in made])
        await service.learned("a", 1900)
        assert (await service.get("/a/rollout"))["status"] == "rolled back"
        await service.caught_up("a")
        assert replayed(service.engine, "a")[0] == model_of(service.engine.loop("a"))


@run
async def test_a_reset_keeps_the_rollout_and_what_it_has_cost(service):
    async with service.running():
        await service.post("", 201, **LOOP)
        await put(service, **QUICK)
        await play(service, COHORT, BAD)
        spent = (await service.get("/a/rollout"))["spent"]
        await service.post("/a/reset")
        said = await service.get("/a/rollout")
        assert (said["step"], said["status"], said["spent"] >= spent > 0) == (1, "waiting", True)
        assert (await service.post("/a/decisions", context=[1, 2, 3]))["arm"] in GOOD
        await service.caught_up("a")
        assert replayed(service.engine, "a")[0] == model_of(service.engine.loop("a"))
    async with service.running():
        assert (await service.get("/a/rollout"))["spent"] == said["spent"]


@pytest.mark.parametrize("how", ["aborted", "rolled back"])
@run
async def test_a_reset_does_not_start_a_rollout_that_has_ended(service, how):
    async with service.running():
        await service.post("", 201, **LOOP)
        await put(service, **QUICK)
        if how == "aborted":
            await service.post("/a/rollout/abort")
        else:
            await play(service, 500, BAD)
        await service.post("/a/reset")
        assert (await put(service, **QUICK))["status"] == how
        assert (await service.post("/a/decisions", context=[1, 2, 3]))["arm"] == "baseline"


@run
async def test_one_step_is_not_done_before_anything_is_proven(service):
    async with service.running():
        await service.post("", 201, **LOOP)
        assert (await put(service, **QUICK | {"steps": [1.0]}))["status"] == "waiting"
        await play(service, 100, GOOD)
        said = await service.get("/a/rollout")
        assert (said["status"], said["traffic"], said["limited"]) == ("waiting", 0.0, True)
