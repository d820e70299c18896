"""The emergency stop: an abort works in every state, does not wait for losses, and stays."""

import pytest

from manul.service.store import StoreFailure
from tests.service.conftest import Service, run, until
from tests.service.test_recovery import model_of, replayed
from tests.service.test_rollouts import BAD, GOOD, LOOP, QUICK, play, put


async def arms(service, count=30):
    requests = [{"context": [0.25, 0.5]}] * count
    return {each["arm"] for each in (await service.post("/a/decisions/batch", decisions=requests))["decisions"]}


@run
async def test_an_abort_does_not_wait_for_the_learner(service, monkeypatch):
    async with service.running():
        await service.post("", 201, **LOOP)
        await put(service, **QUICK)
        assert "learner" in await arms(service)
        loop = service.engine.loop("a")
        with monkeypatch.context() as patched:
            patched.setattr(loop, "learn", lambda *_: None)  # the learner does not come to it
            aborted = await service.post("/a/rollout/abort")
            assert (aborted["status"], aborted["traffic"], aborted["step"]) == ("aborted", 0.0, 0)
            assert loop.model.rollout.progress.level == 0
            assert await arms(service) == {"baseline"}


@run
async def test_a_paused_loop_can_be_aborted_and_a_restart_does_not_forget_it(service):
    async with service.running():
        await service.post("", 201, **LOOP)
        await put(service, **QUICK)
        await service.post("/a/pause")
        assert (await service.post("/a/rollout/abort"))["status"] == "aborted"
        assert await arms(service) == {"baseline"}
    async with service.running():
        assert (await service.get("/a/rollout"))["status"] == "aborted"
        assert await arms(service) == {"baseline"}
        await service.post("/a/resume")
        await until(lambda: service.engine.loop("a").model.rollout.progress.level < 0)
        assert [move["reason"] for move in (await service.get("/a/rollout"))["moves"]] == ["started", "aborted"]
        await service.caught_up("a")
        assert replayed(service.engine, "a")[0] == model_of(service.engine.loop("a"))


@pytest.mark.parametrize("losses", [GOOD, BAD], ids=["done", "rolled back"])
@run
async def test_a_rollout_that_is_done_or_rolled_back_can_be_aborted(service, losses):
    async with service.running():
        await service.post("", 201, **LOOP)
        await put(service, **QUICK)
        await play(service, 1000, losses)
        before = await service.get("/a/rollout")
        assert before["status"] == ("done" if losses is GOOD else "rolled back")
        aborted = await service.post("/a/rollout/abort")
        assert aborted["status"] == ("aborted" if losses is GOOD else "rolled back")
        assert await arms(service) == {"baseline"}


@pytest.mark.parametrize("how", ["aborted", "rolled back"])
@run
async def test_the_same_settings_do_not_start_it_again(service, how):
    async with service.running():
        await service.post("", 201, **LOOP)
        await put(service, **QUICK)
        await play(service, 50, BAD)
        if how == "aborted":
            await service.post("/a/rollout/abort")
        else:
            await play(service, 1000, BAD)
        for _ in range(2):
            again = await put(service, **QUICK)
            assert (again["status"], again["traffic"]) == (how, 0.0)
        sentence = await service.refused(
            409, "/v1/loops/a/rollout", QUICK | {"tolerance": 0.1}, method="PUT", field="restart"
        )
        assert "restart=true" in sentence
        restarted = await put(service, **QUICK, restart=True)
        assert (restarted["status"], restarted["traffic"]) == ("waiting", 0.4)
        assert (await put(service, **QUICK, restart=True))["event"] == restarted["event"]
        await service.caught_up("a")
        assert replayed(service.engine, "a")[0] == model_of(service.engine.loop("a"))


@run
async def test_a_store_that_fails_does_not_keep_the_learner_going(tmp_path, monkeypatch):
    service = Service(tmp_path / "decisions.db")
    async with service.running():
        await service.post("", 201, **LOOP)
        await put(service, **QUICK)

        def fail():
            raise StoreFailure("disk full")

        with monkeypatch.context() as patched:
            patched.setattr(service.engine.store, "transaction", fail)
            answer = await service.client.post("/v1/loops/a/rollout/abort")
        assert answer.status_code == 503
        assert answer.json()["error"]["message"].startswith(
            "The learner gets no more traffic here, but the abort could not"
        )
        assert await arms(service) == {"baseline"}
        assert (await service.post("/a/rollout/abort"))["status"] == "aborted"


@pytest.mark.whole
@pytest.mark.usefixtures("replicated")
@run
async def test_all_replicas_stop(postgres):
    store = postgres.database()
    one, other = Service(store), Service(store)
    async with one.running(), other.running():
        await one.post("", 201, **LOOP)
        await put(one, **QUICK)
        await until(
            lambda: other.engine.loops.get("a") is not None and other.engine.loop("a").model.rollout is not None
        )
        await one.post("/a/pause")
        await one.post("/a/rollout/abort")
        await until(lambda: other.engine.loop("a").model.stopped > 0)
        assert await arms(other) == {"baseline"}
        assert (await other.get("/a/rollout"))["status"] == "aborted"
