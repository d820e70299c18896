"""Killed at any instant under load, the service has everything that it acknowledged, once, and the same model."""

import http.client
import json
import os
import random
import threading
import time

import pytest

from manul.service.engine.engine import Engine
from manul.service.store import OUTCOMES
from manul.service.store.store_registry import open_store
from tests.service.processes import Process
from tests.service.several_knobs import KNOBS
from tests.service.test_recovery import model_of, replayed

pytestmark = pytest.mark.whole

SOAK = bool(os.environ.get("MANUL_SOAK"))
KILLS = {"sqlite": 200 if SOAK else 10, "postgres": 50 if SOAK else 5}
AGENT = {"kind": "cats", "leaves": 16, "bandwidth": 0.1}
LOOP = {"name": "a", "actions": [0, 1], "wait": 0.4, "default_loss": 1.0, "agent": AGENT}
SEVERAL = {"name": "b", "actions": KNOBS, "wait": 0.4, "default_loss": 1.0}
ROLLING = LOOP | {"name": "c"}
ROLLOUT = {"baseline": "caller", "steps": [0.4, 1.0], "least_decisions": 20, "tolerance": 0.9, "patience": 200}
LOOPS = {"a": LOOP, "b": SEVERAL, "c": ROLLING}


class Caller(threading.Thread):
    """Decides and reports until the service is gone; remembers what was acknowledged."""

    def __init__(self, service, name, known, loop="a"):
        super().__init__()
        self.service, self.name, self.known, self.loop = service, name, known, f"/v1/loops/{loop}"

    def run(self):
        rng = random.Random(self.name)
        connection = self.service.connection()
        try:
            self.restart(rng, connection)
        finally:
            connection.close()

    def restart(self, rng, connection):
        try:
            for number in range(10**9):
                self.once(rng, number, connection)
        except (OSError, http.client.HTTPException, json.JSONDecodeError):
            return

    def once(self, rng, number, connection):
        given = f"{self.name}-{number}" if rng.random() < 0.5 else None
        asked = {"context": [rng.random(), rng.random()], "id": given, "action": 0.5}
        if rng.random() < 0.2:
            status, made = self.service.ask(
                "POST",
                f"{self.loop}/decisions/batch",
                {"decisions": [asked, {"context": [1, 2], "action": 0.5}]},
                connection,
            )
            decided = made["decisions"]
        else:
            status, made = self.service.ask("POST", f"{self.loop}/decisions", asked, connection)
            decided = [made]
        assert status == 200, made
        self.known.decisions.update({each["id"]: (each["action"], each["density"]) for each in decided})
        if rng.random() < 0.8:
            loss = round(rng.random(), 3)
            status, said = self.service.ask(
                "POST", f"{self.loop}/decisions/{decided[0]['id']}/loss", {"loss": loss}, connection
            )
            assert status == 200, said
            self.known.losses[decided[0]["id"]] = (loss, said["status"])


class Known:
    """What the service has acknowledged."""

    def __init__(self):
        self.decisions, self.losses = {}, {}


def stored(store, loop=1):
    """Every decision and every event of a loop."""
    decided, after = {}, 0
    while blocks := store.blocks(loop, after, 1000):
        for each in (each for block in blocks for each in block.decisions()):
            name = each.public_id
            assert name not in decided
            decided[name] = each
        after = blocks[-1].last
    return decided, store.events_of(loop, [each.number for each in decided.values()])


def leading(place):
    """A store whose former leader is gone, with nobody else on it."""
    store = open_store(place)
    while store.replicas is not None and not (store.replicas.leads() and all(map(store.replicas.learns, range(32)))):
        time.sleep(0.01)
    return store


def check_store(place, known, name="a"):
    store = leading(place)
    row = next(row for row in store.loops() if row.name == name)
    decided, events = stored(store, row.number)
    for id_, (action, density) in known.decisions.items():
        assert (decided[id_].action, decided[id_].density) == (action, density)
    for id_, (loss, status) in known.losses.items():
        found = events[decided[id_].number]
        kind = {"waiting": "part", "late": "late"}[status]
        assert [event.loss for event in found if event.kind == kind] == [loss]
        # A decision that was drawn just before a rollout began is void for the rollout, and learned all the same.
        assert {event.kind for event in found} - {kind, "void"} <= {"default" if status == "late" else "combined"}
    for found in events.values():
        assert sum(event.kind in OUTCOMES for event in found) <= 1
    outcomes = sum(event.kind in OUTCOMES for found in events.values() for event in found)
    check_model(store, row, outcomes)
    store.close()


def check_model(store, row, outcomes):
    """What a start recovers is what a replay from nothing gives, and each outcome is in it once."""
    engine = Engine(store)
    loop = engine.recover(row)
    assert replayed(engine, row.name) == (model_of(loop), outcomes, loop.model.event)
    assert (loop.model.learned, loop.model.refused) == (outcomes, 0)


def wait_for_decisions(known, count):
    """Wait until so many decisions are acknowledged; a busy machine makes few in a fixed time."""
    until = time.monotonic() + 60
    while sum(len(each.decisions) for each in known.values()) < count and time.monotonic() < until:
        time.sleep(0.002)


def rollout_moves(place):
    """Why the rollout moved, from a full replay."""
    store = leading(place)
    row = next(row for row in store.loops() if row.name == "c")
    reasons = [move.reason for move in Engine(store).recover(row).model.rollout.moves]
    store.close()
    return reasons


@pytest.mark.parametrize(("store", "kills"), KILLS.items(), indirect=["store"])
def test_nothing_acknowledged_is_lost_or_learned_twice(tmp_path, store, kills):
    known, rng = {name: Known() for name in LOOPS}, random.Random(0)
    for kill in range(kills):
        service = Process(tmp_path, store, "--snapshot-seconds", "0.2")
        for settings in LOOPS.values():
            service.ask("POST", "/v1/loops", settings)
        # The same settings change nothing, so the rollout goes on after each kill.
        service.ask("PUT", "/v1/loops/c/rollout", ROLLOUT)
        callers = [Caller(service, f"k{kill}c{place}", known[loop], loop) for place, loop in enumerate("aabc")]
        for caller in callers:
            caller.start()
        wait_for_decisions(known, sum(len(each.decisions) for each in known.values()) + rng.randint(4, 150))
        service.kill()
        for caller in callers:
            caller.join()
        if kill % 5 == 4 or kill == kills - 1:
            for name in LOOPS:
                check_store(store, known[name], name)
    assert [reason for reason in rollout_moves(store) if "started" in reason] == ["started"]
    assert sum(len(each.decisions) for each in known.values()) > 5 * kills
    assert all(len(each.losses) > kills for each in known.values())


def test_sigterm_finishes_keeps_a_snapshot_and_exits_with_0(tmp_path, store):
    service = Process(tmp_path, store)
    service.ask("POST", "/v1/loops", LOOP)
    _, made = service.ask("POST", "/v1/loops/a/decisions", {"context": [1, 2]})
    service.ask("POST", f"/v1/loops/a/decisions/{made['id']}/loss", {"loss": 0.5})
    assert service.stop() == 0
    kept = open_store(store)
    assert kept.snapshots(1) == [1]
    kept.close()
    lines = [json.loads(line) for line in (tmp_path / "service.log").read_text().splitlines()]
    assert lines[-1]["message"] == "stopped"
