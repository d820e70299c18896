"""A replica that starts beside a busy one: together they stay within the budget of a rollout."""

from contextlib import asynccontextmanager

import pytest

from manul.service.store import postgres_election, replica_count
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


@pytest.fixture
def quick_counts(monkeypatch):
    """Replicas are counted often, and no count becomes too old on a busy machine: the learner would get no traffic."""
    monkeypatch.setattr(postgres_election, "RENEWAL_SECONDS", 0.05)
    monkeypatch.setattr(replica_count, "SETTLE_SECONDS", 0.5)
    monkeypatch.setattr(replica_count, "COUNT_SECONDS", 60.0)


@asynccontextmanager
async def busy_and_new(postgres):
    store = postgres.database()
    busy, new = Service(store), Service(store)
    async with busy.running():
        await busy.post("", 201, **LOOP)
        await put(busy, **QUICK, budget=BUDGET)
        await decide(busy, 20)
        async with new.running():
            yield busy, new


@run
async def test_the_budget_is_not_exceeded_while_the_busy_one_does_not_know_the_new_one(postgres, monkeypatch):
    monkeypatch.setattr(postgres_election, "RENEWAL_SECONDS", 3600.0)
    async with busy_and_new(postgres) as (busy, new):
        for _ in range(3):
            await decide(busy, 500)
            await decide(new, 500)
        assert given(busy) <= BUDGET


@run
@pytest.mark.usefixtures("quick_counts")
async def test_the_new_one_gets_traffic_once_it_has_read_the_decisions_of_the_busy_one(postgres):
    async with busy_and_new(postgres) as (busy, new):
        known = len(new.engine.loop("a").model.rollout.in_flight.tickets)
        await decide(busy, 50)
        loop = new.engine.loop("a")
        await until(
            lambda: (
                loop.model.membership() == (2, loop.model.generation)
                and len(loop.model.rollout.in_flight.tickets) > known
            )
        )
        await until(lambda: busy.engine.loop("a").model.membership().replicas == 2)
        made = await decide(new, 100)
        for _ in range(3):
            await decide(new, 500)
            await decide(busy, 500)
        assert given(busy) <= BUDGET
        assert {each["arm"] for each in made["decisions"]} == set(GOOD)


@run
@pytest.mark.usefixtures("quick_counts")
async def test_decisions_of_a_replica_that_has_left_are_read_from_the_store(postgres):
    store = postgres.database()
    idle, busy = Service(store), Service(store)
    async with idle.running():
        await idle.post("", 201, **LOOP)
        await put(idle, **QUICK, budget=BUDGET)
        async with busy.running():
            await until(lambda: busy.engine.loop("a").model.membership().replicas == 2)
            await until(
                lambda: busy.engine.loop("a").model.generation == busy.engine.loop("a").model.membership().generation
            )
            await decide(busy, 1000)
            assert given(busy) > 0.4 * BUDGET
        loop = idle.engine.loop("a")
        await until(lambda: loop.model.membership() == (1, loop.model.generation) and loop.model.generation > 0)
        await decide(idle, 1000)
        assert given(idle) <= BUDGET
