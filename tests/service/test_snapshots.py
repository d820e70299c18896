"""Snapshots of large models: written in pieces while decisions and losses go on, visible once they are complete."""

import asyncio
import threading
import time

import msgspec
import numpy as np
import pytest

import manul
from manul.service.engine import learner as learners
from manul.service.engine.learner import Learner
from manul.service.engine.loop import Loop
from manul.service.engine.model import Model
from manul.service.errors import Unavailable
from manul.service.loop_settings import NewLoop
from manul.service.store import Event
from manul.service.store.blocks import DecisionRow
from manul.utils import model_files
from tests.service.conftest import on_postgres, run, until

CATS = {"kind": "cats", "leaves": 8, "bandwidth": 2.0}


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    """A small model has several pieces, too."""
    monkeypatch.setattr(model_files, "PIECE", 4096)


def facts(first, count):
    """Outcomes with named contexts, as the learner gets them."""
    rng = np.random.default_rng(first)
    for number in range(first, first + count):
        row = DecisionRow(number, None, {"user": f"u{rng.integers(99)}"}, None, rng.uniform(20, 70), 0.02, 1.0, 0)
        yield Event(number, number, "loss", rng.random(), 2.0), row


def model_with(agent, count):
    model = Model(msgspec.convert({"name": "heat", "actions": [20, 70], "agent": agent}, NewLoop))
    model.learn(list(facts(1, count)), lambda _: b"")
    return model


async def play(service, rounds):
    rng = np.random.default_rng(rounds)
    for _ in range(rounds):
        made = await service.post("/heat/decisions", context={"user": f"u{rng.integers(99)}", "age": rng.random()})
        await service.post(f"/heat/decisions/{made['id']}/loss", loss=abs(made["action"] - 40) / 50)


async def begin(service, rounds):
    """Makes the loop, and waits until it has learned some rounds."""
    await service.post("", 201, name="heat", actions=[20, 70], agent="auto")
    await play(service, rounds)
    await service.learned("heat", rounds)


def replayed(engine, through):
    """The model of the loop after some events, from nothing but the store."""
    row = engine.store.loops()[0]
    loop = Loop(row, engine.store)
    loop.model.set_first(engine.store.first_decision(row.number).context)
    loop.learn(engine.store.events(row.number, 0, through), lambda event: engine.store.model(row.number, event))
    return manul.dumps(loop.model.agent)


@pytest.mark.parametrize("agent", ["auto", CATS], ids=["auto", "cats"])
def test_a_decision_is_drawn_between_any_two_pieces_and_changes_none(agent):
    model = model_with(agent, 40)
    before, expected = model.draw([1], [1], [{"user": "u1"}], [None], [None]), manul.dumps(model.agent)
    snapshot, pieces = model.begin_snapshot()
    kept = []
    for piece in pieces:
        assert model.draw([1], [1], [{"user": "u1"}], [None], [None]) == before
        model.draw([2], [2], [{"user": "never learned", "new": {"field": None}}], [None], [None])
        kept.append(piece)
    assert len(kept) > 5
    assert b"".join(kept) == expected
    assert snapshot.event == 40


def test_a_download_holds_up_learning_but_no_decision(monkeypatch):
    model = model_with("auto", 40)
    join, waits = model_files.join, []

    def deciding(pieces):
        model.draw([1], [1], [{"user": "u1"}], [None], [None])
        learner.start()
        learner.join(0.05)
        waits.append(learner.is_alive())
        return join(pieces)

    learner = threading.Thread(target=lambda: model.learn(list(facts(41, 5)), lambda _: b""))
    expected = manul.dumps(model.agent)
    monkeypatch.setattr(model_files, "join", deciding)
    snapshot = model.snapshot()
    learner.join()
    assert (snapshot.event, snapshot.model, waits) == (40, expected, [True])
    assert model.event == 45


def test_slow_learning_holds_up_decisions_for_fewer_events_at_a_time(monkeypatch):
    model, sizes, seconds = model_with("auto", 0), [], [0.0]

    def learn_slowly(_, facts):
        sizes.append(len(facts))
        seconds[0] += 0.0009 * len(facts)

    monkeypatch.setattr(Model, "_learn_batch", learn_slowly)
    monkeypatch.setattr(time, "thread_time", lambda: seconds[0])
    model.learn(list(facts(1, 70)), lambda _: b"")
    assert sizes == [64, 2, 2, 2]


def test_a_decision_that_waits_for_learning_goes_before_the_next_batch(monkeypatch):
    model, drawn, done = model_with("auto", 1), [], threading.Event()
    first = 1 + model._learn_batch_size
    learn_many = model.learn_many

    def decide():
        drawn.append(model.draw([1], [1], [{"user": "u1"}], [None], [None]).model)
        done.set()

    def learn(outcomes):
        """Begins a decision in another thread, and lets it wait."""
        if not decider.ident:
            decider.start()
            while not model._wanted:
                pass
        return learn_many(outcomes)

    decider = threading.Thread(target=decide)
    monkeypatch.setattr(model, "learn_many", learn)
    monkeypatch.setattr(time, "sleep", lambda _: done.wait(60))
    model.learn(list(facts(2, 130)), lambda _: b"")
    decider.join()
    assert drawn == [first]
    assert model.event == 131


@run
async def test_a_snapshot_that_is_saved_under_load_is_the_model_at_its_event(service):
    async with service.running(snapshot_events=3):
        await service.post("", 201, name="heat", actions=[20, 70], agent="auto")
        await asyncio.gather(*(play(service, rounds) for rounds in (14, 15, 16)))
        await service.learned("heat", 45)
        store = service.engine.store
        await until(lambda: store.snapshots(1))
        snapshot = await asyncio.to_thread(store.snapshot, 1)
        assert snapshot.model == await asyncio.to_thread(replayed, service.engine, snapshot.event)


@run
async def test_a_kill_between_two_pieces_leaves_the_older_snapshot(service, monkeypatch):
    async with service.running(snapshot_events=10**9):
        await begin(service, 12)
    add, added = learners._add_piece, []

    def die(loop, event, place, piece, transaction):
        if place == 3:
            raise Unavailable("killed")
        added.append(place)
        add(loop, event, place, piece, transaction)

    async with service.running(snapshot_events=10**9):
        await play(service, 5)
        await service.learned("heat", 17)
        monkeypatch.setattr(learners, "_add_piece", die)
    assert added == [0, 1, 2]
    monkeypatch.undo()
    async with service.running(snapshot_events=10**9):
        store, loop = service.engine.store, service.engine.loop("heat")
        assert store.snapshots(1) == [12]
        assert store.snapshot(1).model == replayed(service.engine, 12)
        assert (loop.model.event, manul.dumps(loop.model.agent)) == (17, replayed(service.engine, 17))


def test_a_snapshot_in_pieces_is_rarer_the_longer_it_takes(service, monkeypatch):
    async def test():
        async with service.running(snapshot_events=1):
            await service.post("", 201, name="heat", actions=[20, 70], agent="auto")
            await play(service, 1)
            await until(lambda: service.engine.store.snapshots(1))
            feed = service.engine.loop("heat").feed
            await until(lambda: feed.saved[0] == 1)
            took = (feed.save_after - feed.saved[1]) * learners.SAVING_SHARE
            assert 0 < took < 60
            await play(service, 4)
            await service.learned("heat", 5)
            assert service.engine.store.snapshots(1) == [1]

    monkeypatch.setattr(learners, "SAVING_SHARE", 1e-6)
    asyncio.run(test())


@run
async def test_a_stop_without_time_for_a_snapshot_says_so(service, monkeypatch, caplog):
    async with service.running(snapshot_events=10**9):
        await begin(service, 5)
        monkeypatch.setattr(learners, "STOP_SECONDS", 0.0)
    assert "last snapshots not saved; the next start learns the latest events again: heat" in caplog.text
    monkeypatch.undo()
    async with service.running():
        assert service.engine.loop("heat").model.event == 5


@run
async def test_a_backlog_at_the_stop_does_not_cost_the_snapshot(service, monkeypatch):
    async with service.running(snapshot_events=10**9):
        await begin(service, 5)
        monkeypatch.setattr(learners, "LEARN_SECONDS", 0.0)
        monkeypatch.setattr(Learner, "_round", lambda _: None)  # it learns nothing more
        await play(service, 5)
    monkeypatch.undo()
    async with service.running():
        assert service.engine.loop("heat").model.event == 10
        assert 5 <= service.engine.store.snapshots(1)[0] < 10


@on_postgres
@run
async def test_the_writer_does_not_write_the_pieces(service, monkeypatch):
    written = []
    async with service.running(snapshot_events=1):
        monkeypatch.setattr(service.engine.writer, "call", written.append)
        await service.post("", 201, name="heat", actions=[20, 70], agent="auto")
        await play(service, 1)
        await until(lambda: service.engine.store.snapshots(1))
        assert service.engine.store.snapshot(1).model == replayed(service.engine, 1)
        assert written == []
