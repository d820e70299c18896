"""Replicas that do not know of each other's latest decisions stay within the budget of a rollout together."""

from contextlib import asynccontextmanager

import psycopg
import pytest

from manul.service.engine.write_operations import own_number
from tests.service.conftest import Service, run, until
from tests.service.test_rollouts import GOOD, LOOP, QUICK, put

pytestmark = [pytest.mark.whole, pytest.mark.usefixtures("replicated")]

BUDGET = 100


async def decide(service, count):
    return await service.post("/a/decisions/batch", decisions=[{"context": [0.25, 0.5]}] * count)


def given(service):
    """The sum of the learner's shares in all stored decisions: what they cost if they are the worst possible."""
    blocks = service.engine.store.blocks(1, 0, 10_000)
    tickets = [each.ticket for block in blocks for each in block.decisions()]
    return sum(ticket.share for ticket in tickets if ticket is not None)


def in_flight(service, loop="a"):
    return service.engine.loop(loop).model.rollout.in_flight


async def know_all(service):
    """Waits until a replica knows the rollout and all decisions that were made so far."""
    loop = service.engine.loop("a")
    await until(lambda: loop.model.rollout is not None)
    await until(lambda: in_flight(service).known_to >= service.engine.store.counts(loop.number).numbers)


@asynccontextmanager
async def busy_and_new(postgres):
    """A replica with a rollout, and one that starts later."""
    store = postgres.database()
    busy, new = Service(store), Service(store)
    async with busy.running():
        await busy.post("", 201, **LOOP)
        await put(busy, **QUICK, budget=BUDGET)
        await know_all(busy)
        await decide(busy, 20)
        async with new.running():
            await until(lambda: new.engine.loop("a").model.rollout is not None)  # from a snapshot, which comes soon
            yield busy, new


@run
async def test_a_new_replica_gets_traffic_at_once_and_both_use_the_budget_up_together(postgres):
    async with busy_and_new(postgres) as (busy, new):
        made = await decide(new, 20)
        assert {each["arm"] for each in made["decisions"]} == set(GOOD)
        for _ in range(60):  # how soon depends on the numbers that each has at hand
            for each in (busy, new):
                await decide(each, 250)
                await know_all(busy)
                await know_all(new)
            if given(busy) > 0.9 * BUDGET:
                break
        assert 0.9 * BUDGET < given(busy) <= BUDGET


@run
async def test_replicas_that_never_read_what_others_did_stay_within_the_budget(postgres, monkeypatch):
    async with busy_and_new(postgres) as (busy, new):
        await know_all(new)
        before = given(busy)
        for each in (busy, new):
            monkeypatch.setattr(each.engine.loop("a"), "read_others", lambda _: None)
        for _ in range(30):
            await decide(busy, 20)
            await decide(new, 20)
        assert before < given(busy) <= BUDGET
        assert in_flight(busy).share(in_flight_progress(busy), 10_000) == 0


def in_flight_progress(service):
    return service.engine.loop("a").model.rollout.progress


@run
async def test_numbers_that_a_killed_replica_has_reserved_count_until_they_are_given_up(postgres):
    async with busy_and_new(postgres) as (busy, new):
        await know_all(busy)
        known, store = in_flight(busy).known_to, new.engine.store
        store.refill(1, 200)
        assert store.reserve(1, 200) == known + 1
        made = (await decide(busy, 10))["decisions"]
        assert {each["arm"] for each in made} == {
            "baseline"
        }  # 200 decisions of the largest share would use the budget up
        assert in_flight(busy).known_to == known
        await until(lambda: busy.engine.loop("a")._known_to == known)  # it has looked for them
        busy.engine.loop("a").numbers.void(range(known + 1, own_number(made[0]["id"])))
        await know_all(busy)
        made = (await decide(busy, 20))["decisions"]
        assert {each["arm"] for each in made} == set(GOOD)


@run
async def test_decisions_of_a_replica_that_has_left_stay_part_of_the_guarantee(postgres):
    store = postgres.database()
    idle, busy = Service(store), Service(store)
    async with idle.running():
        await idle.post("", 201, **LOOP)
        await put(idle, **QUICK, budget=BUDGET)
        async with busy.running():
            await know_all(busy)
            await decide(busy, 1000)
            assert given(busy) > 0.9 * BUDGET
        await know_all(idle)
        await decide(idle, 1000)
        assert given(idle) <= BUDGET


@run
async def test_after_a_reset_what_other_replicas_had_in_flight_stays_spent(postgres, monkeypatch):
    async with busy_and_new(postgres) as (busy, new):
        await know_all(new)
        monkeypatch.setattr(busy.engine.loop("a"), "read_others", lambda _: None)
        await decide(new, 100)
        spent = given(new)
        monkeypatch.undo()
        await busy.post("/a/reset")
        owed = in_flight_progress(busy).owed
        assert owed == pytest.approx(spent, rel=0.01)
        assert owed > 20


@run
async def test_a_replica_of_an_earlier_version_cannot_decide_beside_the_others(postgres):
    async with busy_and_new(postgres) as (busy, _):
        with psycopg.connect(busy.store) as connection, pytest.raises(psycopg.errors.UndefinedTable):
            connection.execute("UPDATE reserved SET numbers = numbers + 1 WHERE loop = 1 RETURNING numbers")


@run
async def test_a_guard_that_is_broken_in_decisions_of_two_replicas_ends_the_rollout_at_both(postgres):
    store = postgres.database()
    both = Service(store), Service(store)
    async with both[0].running(), both[1].running():
        await both[0].post("", 201, **LOOP, parts={"returned": "yes/no"})
        await put(both[0], **QUICK, guard={"returned": ["<=", 1.02]})
        await until(
            lambda: both[1].engine.loops.get("a") is not None and both[1].engine.loop("a").model.rollout is not None
        )
        for _ in range(12):
            for service in both:
                await know_all(service)
                made = (await decide(service, 50))["decisions"]
                told = [
                    {"id": each["id"], "loss": GOOD[each["arm"]], "parts": {"returned": each["arm"] == "learner"}}
                    for each in made
                ]
                await service.post("/a/losses", losses=told)
        for service in both:
            await service.learned("a", 1200)
        moves = [service.engine.loop("a").model.rollout.moves for service in both]
        assert moves[0] == moves[1]
        assert (moves[0][-1].reason, moves[0][-1].guard, moves[0][-1].target) == ("worse", "returned", 0)
