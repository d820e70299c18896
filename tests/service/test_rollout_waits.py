"""Decisions of a rollout without losses, and numbers without decisions: what the evidence waits for, and what it does not."""

import asyncio
from itertools import count

import numpy as np
import pytest

from manul.agents.rollout.rollout_progress import COHORT
from manul.service.engine.decision_numbers import LOST_SECONDS
from manul.service.engine.write_operations import own_number
from tests.service.conftest import Service, run, until
from tests.service.test_recovery import model_of, replayed
from tests.service.test_rollouts import GOOD, LOOP, QUICK, play, put


@run
async def test_decisions_without_losses_count_after_a_restart_too(service):
    async with service.running():
        await service.post("", 201, **LOOP)
        await put(service, **QUICK, budget=20)
        requests = [{"context": [0.25, 0.5]}] * 40
        await service.post("/a/decisions/batch", decisions=requests)
        before = await service.get("/a/rollout")
        assert before["limited"]
    async with service.running():
        after = await service.get("/a/rollout")
        assert (after["in_flight"], after["traffic"]) == (40, pytest.approx(before["traffic"]))


@run
async def test_decisions_without_losses_count_after_a_kill_before_the_first_snapshot(service):
    async with service.running():
        await service.post("", 201, **LOOP)
        await put(service, **QUICK)
        await service.post("/a/decisions/batch", decisions=[{"context": [0.25, 0.5]}] * 40)
        recovered = service.engine.recover(service.engine.store.loops()[0])
        assert (recovered.model.rollout.event, len(recovered.model.rollout.in_flight.tickets)) == (1, 40)


@run
async def test_a_repeated_or_refused_request_does_not_hold_up_the_evidence(service):
    async with service.running():
        await service.post("", 201, **LOOP)
        await put(service, **QUICK)
        await service.post("/a/decisions", context=[0.25, 0.5], id="same")
        await service.post("/a/decisions/same/loss", loss=0.5)
        for _ in range(3):
            await service.post("/a/decisions", context=[0.25, 0.5], id="same")
            await service.post("/a/decisions", 422, context=[1, 2, 3])
        await play(service, COHORT, GOOD, batch=5)
        rollout = service.engine.loop("a").model.rollout
        assert rollout.progress.judged == COHORT + 1
        assert not rollout.progress.arrived


@run
async def test_an_observation_without_a_loss_does_not_hold_up_the_evidence(service):
    async with service.running():
        await service.post("", 201, **LOOP)
        await put(service, **QUICK)
        for _ in range(2):
            await service.post("/a/observations", context=[0.25, 0.5], action=0.5)
            await play(service, 10, GOOD, batch=10)
        assert service.engine.loop("a").model.rollout.progress.judged == 20
        await service.caught_up("a")
        assert replayed(service.engine, "a")[0] == model_of(service.engine.loop("a"))


@run
async def test_a_refused_request_does_not_hold_up_the_evidence_if_no_decision_follows(service):
    async with service.running():
        await service.post("", 201, **LOOP)
        await put(service, **QUICK)
        await play(service, 10, GOOD, batch=10)
        await service.post("/a/decisions", 422, context=[1, 2, 3])
        number = service.engine.store.counts(1).numbers
        progress = service.engine.loop("a").model.rollout.progress
        await until(lambda: progress.next == number + 1)
        assert not progress.arrived


@run
async def test_numbers_of_a_killed_process_are_not_waited_for_but_decisions_are(service):
    async with service.running():
        await service.post("", 201, **LOOP)
        await put(service, **QUICK)
        store, progress = service.engine.store, service.engine.loop("a").model.rollout.progress
        while (lost := store.reserve(1, 3)) is None:
            store.refill(1, 3)
        unanswered = (await service.post("/a/decisions", context=[0.25, 0.5]))["id"]
        await play(service, COHORT, GOOD)
        assert (progress.judged, len(progress.arrived) >= COHORT) == (0, True)
        numbers = service.engine.loop("a").numbers
        for expected in (lost, own_number(unanswered), own_number(unanswered)):
            await until(lambda expected=expected: numbers._missing == (expected, service.clock.time))
            assert progress.next == expected
            service.clock.time += LOST_SECONDS + 1
        await service.post(f"/a/decisions/{unanswered}/loss", loss=0.5)
        await until(lambda: progress.judged == COHORT + 1)
        await service.caught_up("a")
        assert replayed(service.engine, "a")[0] == model_of(service.engine.loop("a"))


@run
async def test_decisions_without_losses_do_not_fill_the_memory(service):
    async with service.running():
        await service.post("", 201, **LOOP)
        await put(service, **QUICK, budget=20)
        for _ in range(3):
            await service.post("/a/decisions/batch", decisions=[{"context": [0.25, 0.5]}] * 1000)
        said = await service.get("/a/rollout")
        assert (said["traffic"], said["in_flight"] < 1500) == (0.0, True)
    async with service.running():
        assert (await service.get("/a/rollout"))["in_flight"] == said["in_flight"]


@run
async def test_losses_that_come_in_any_order_are_all_judged(service):
    async with service.running():
        await service.post("", 201, **LOOP)
        await put(service, **QUICK)
        requests = [{"context": [0.25, 0.5]}] * 200
        made = (await service.post("/a/decisions/batch", decisions=requests))["decisions"]
        for each in np.random.default_rng(0).permutation(200):
            await service.post(f"/a/decisions/{made[each]['id']}/loss", loss=GOOD[made[each]["arm"]])
        progress = service.engine.loop("a").model.rollout.progress
        await until(lambda: progress.judged == 200)
        assert (progress.next, progress.arrived) == (service.engine.store.counts(1).numbers + 1, {})


@run
async def test_decisions_at_once_get_numbers_in_order(service):
    async with service.running():
        await service.post("", 201, **LOOP)
        await put(service, **QUICK)
        made = await asyncio.gather(*(service.post("/a/decisions", context=[1, 2]) for _ in range(100)))
        numbers = sorted(own_number(each["id"]) for each in made)
        assert numbers == list(range(numbers[0], numbers[0] + 100))


@pytest.mark.whole
@run
async def test_a_request_that_comes_when_a_refill_has_just_ended_does_not_block_the_others(postgres, monkeypatch):
    service = Service(postgres.database())
    async with service.running():
        await service.post("", 201, **LOOP)
        await put(service, **QUICK)
        reserve, calls = service.engine.store.reserve, count()

        def reserve_seldom(*asked):
            assert next(calls) < 100, "the same numbers are asked for again and again"
            return reserve(*asked)

        monkeypatch.setattr(service.engine.store, "reserve", reserve_seldom)
        ended = asyncio.create_task(asyncio.sleep(0))
        await ended
        service.engine.loop("a").numbers._refill = ended  # its callback comes later
        await service.post("/a/decisions", context=[1, 2])


@run
async def test_with_a_wait_decisions_are_in_flight_until_it_ends_also_if_their_losses_have_come(service):
    async with service.running():
        await service.post("", 201, **LOOP, wait=60, default_loss=0.5)
        await put(service, **QUICK)
        made = (await service.post("/a/decisions/batch", decisions=[{"context": [0.25, 0.5]}] * 40))["decisions"]
        losses = [{"id": each["id"], "loss": GOOD[each["arm"]]} for each in made[::2]]
        await service.post("/a/losses", losses=losses)
        loop = service.engine.loop("a")
        await service.caught_up("a")
        progress = loop.model.rollout.progress
        assert ((await service.get("/a/rollout"))["in_flight"], progress.judged) == (40, 0)
        service.clock.time += 61
        service.engine.end_waits()
        await until(lambda: progress.judged == 40)
        assert (await service.get("/a/rollout"))["in_flight"] == 0
        await service.caught_up("a")
        assert replayed(service.engine, "a")[0] == model_of(service.engine.loop("a"))


async def report_baseline_only(service, rounds, batch=50):
    """Decisions of which only those of the baseline get a loss."""
    for _ in range(0, rounds, batch):
        requests = [{"context": [0.25, 0.5]}] * batch
        made = (await service.post("/a/decisions/batch", decisions=requests))["decisions"]
        losses = [{"id": each["id"], "loss": 1.0} for each in made if each["arm"] == "baseline"]
        await service.post("/a/losses", losses=losses)


@run
async def test_losses_that_are_missing_in_one_arm_hold_the_step_and_are_shown(service):
    async with service.running():
        await service.post("", 201, **LOOP)
        await put(service, **QUICK, patience=30)
        await report_baseline_only(service, 300)
        progress = service.engine.loop("a").model.rollout.progress
        await until(lambda: progress.uneven)
        said = await service.get("/a/rollout")
        assert (said["uneven"], said["learner_left_out"] > 1, said["baseline_left_out"]) == (True, True, 0)
        assert "Held: 100 % of the learner's decisions" in said["sentence"]
        await play(service, 500, GOOD)
        assert (await service.get("/a/rollout"))["step"] == 1
        await service.caught_up("a")
        assert replayed(service.engine, "a")[0] == model_of(service.engine.loop("a"))


@run
async def test_patience_in_seconds_ends_by_the_times_of_stored_events(service):
    async with service.running():
        await service.post("", 201, **LOOP)
        assert (await put(service, **QUICK, patience_seconds=600))["patience_seconds"] == 600
        late = (await service.post("/a/decisions", context=[0.25, 0.5]))["id"]
        await play(service, COHORT, GOOD)
        progress = service.engine.loop("a").model.rollout.progress
        assert progress.judged == 0
        service.clock.time += 601
        await until(lambda: progress.judged == COHORT)
        assert sum(progress.left_out.left_out) == 1
        said = await service.post(f"/a/decisions/{late}/loss", loss=0.5)
        assert said["status"] == "recorded"
        await service.learned("a", COHORT + 1)
        await service.caught_up("a")
        assert replayed(service.engine, "a")[0] == model_of(service.engine.loop("a"))
    async with service.running():
        assert service.engine.loop("a").model.rollout.progress == progress
