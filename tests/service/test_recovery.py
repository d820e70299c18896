"""A snapshot and the events since give the same bytes as all events from nothing."""

import asyncio

import numpy as np
import pytest

import manul
from manul.service.engine.learner import Learner
from manul.service.engine.loop import Loop
from manul.service.engine.model import Model
from manul.service.loop_settings import NewLoop
from manul.utils import model_files

CATS = {"kind": "cats", "leaves": 32, "bandwidth": 2.0}


def replayed(engine, name):
    """The model of a loop from nothing but the store."""
    row = next(row for row in engine.store.loops() if row.name == name)
    loop = Loop(row, engine.store)
    loop.model.set_first(engine.store.first_decision(row.number).context)
    Learner(engine.store, engine.writer, list, seconds=60, events=10**9).catch_up(loop)
    return model_of(loop), loop.model.learned, loop.model.event


def model_of(loop):
    """What a loop has learned: its agent and its rollout, of one event."""
    with loop.model.hold() as model:
        return manul.dumps(model.agent) + (b"" if model.rollout is None else model.rollout.to_bytes())


async def play(service, rounds, context=lambda rng: rng.normal(size=3).tolist(), loop="heat"):
    rng = np.random.default_rng(rounds)
    for _ in range(rounds):
        made = await service.post(f"/{loop}/decisions", context=context(rng))
        await service.post(f"/{loop}/decisions/{made['id']}/loss", loss=abs(made["action"] - 40) / 50)


def named(rng):
    return {"outdoor": float(rng.normal()), "sky": str(rng.choice(["clear", "grey"])), "open": bool(rng.random() < 0.5)}


@pytest.mark.parametrize("agent", ["auto", CATS], ids=["auto", "cats"])
@pytest.mark.parametrize("context", [lambda rng: rng.normal(size=3).tolist(), named], ids=["row", "named"])
def test_snapshot_and_replay_give_the_bytes_of_a_full_replay(service, agent, context):
    async def run():
        async with service.running(snapshot_events=7):
            await service.post("", 201, name="heat", actions=[20, 70], agent=agent)
            for learned in (10, 20, 30):
                await play(service, 10, context)
                await service.learned("heat", learned)
        async with service.running(snapshot_events=10**9):
            await play(service, 11, context)
            await service.learned("heat", 41)
            loop = service.engine.loop("heat")
            assert replayed(service.engine, "heat") == (manul.dumps(loop.model.agent), 41, 41)
            events = service.engine.store.snapshots(loop.number)
        assert events[0] == 30
        assert len(events) == 2

    asyncio.run(run())


def test_a_loop_that_has_learned_nothing_is_recovered_too(service):
    async def run():
        async with service.running():
            await service.post("", 201, name="heat", actions=[20, 70])
            await service.post("/heat/decisions", context=[1, 2])
            before = manul.dumps(service.engine.loop("heat").model.agent)
        async with service.running():
            assert manul.dumps(service.engine.loop("heat").model.agent) == before
            await service.post("/heat/decisions", 422, context=[1, 2, 3])

    asyncio.run(run())


def test_decisions_do_not_wait_while_a_snapshot_is_encoded(monkeypatch):
    model = Model(NewLoop(name="heat", actions=(20, 70)))
    before, encode = model.draw([1], [1], [[1.0, 2.0]], [None], [None]), model_files.encode
    drawn = []

    def deciding(*contents, **header):
        drawn.append(model.draw([1], [1], [[1.0, 2.0]], [None], [None]))
        return encode(*contents, **header)

    monkeypatch.setattr(model_files, "encode", deciding)
    assert model.snapshot().model == manul.dumps(model.agent)
    assert drawn[0] == before
