"""Thousands of operations in random order, with stops and kills in between: no answer is a 500, and every start succeeds."""

import http.client
import json
import os
import random
from contextlib import suppress

import pytest

from manul.service.engine.engine import Engine
from tests.service.processes import Process
from tests.service.test_crash import leading
from tests.service.test_recovery import model_of, replayed

pytestmark = pytest.mark.whole

SOAK = bool(os.environ.get("MANUL_SOAK"))
OPERATIONS, RESTART_EVERY = (10_000, 80) if SOAK else (300, 60)
AGENTS = (
    "auto",
    {"kind": "cats", "leaves": 16, "bandwidth": 0.1},
    {"kind": "cats", "leaves": 64, "bandwidth": 0.01, "half_life": 50},
    {"kind": "adaptive", "leaves": 16},
)
TEXTS = ("", "grey", "\ud83d\ude00", "a b", "x" * 300, "null")


def value(rng, depth=0):
    kinds = [lambda: rng.choice(TEXTS), lambda: rng.gauss(0, 10.0 ** rng.randint(-3, 6)), lambda: rng.random() < 0.5]
    kinds += [lambda: None, lambda: rng.randint(-5, 5)]
    if depth < 3:
        kinds += [lambda: [value(rng, depth + 1) for _ in range(rng.randint(0, 3))], lambda: fields(rng, depth + 1)]
    return rng.choice(kinds)()


def fields(rng, depth=0):
    return {rng.choice("abcdef"): value(rng, depth) for _ in range(rng.randint(0, 4))}


def context(rng):
    """Mostly what a loop would see, and sometimes anything at all."""
    rows = [lambda: [rng.random(), rng.random()]] * 4 + [lambda: [rng.random()] * rng.randint(0, 5)]
    named = [lambda: {"a": rng.random(), "b": rng.choice(TEXTS)}] * 3 + [lambda: fields(rng)]
    return rng.choice([*rows, *named, lambda: None, list, dict])()


class Player:
    """Sends random requests to whatever loops there are."""

    def __init__(self, seed, folder, store):
        self.rng, self.folder, self.store = random.Random(seed), folder, store
        self.ids = []
        self.models = [b"nonsense"]
        self.start()

    def start(self):
        self.service = Process(self.folder, self.store, "--snapshot-seconds", "0.1")
        self.connection = self.service.connection()
        assert self.ask("GET", "/readyz")[0] == 200

    def restart(self):
        self.connection.close()
        self.service.kill() if self.rng.random() < 0.7 else self.service.stop()
        self.start()

    def ask(self, method, path, body=None):
        raw = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        self.connection.request(method, path, raw)
        answer = self.connection.getresponse()
        said = answer.read()
        assert answer.status < 500, (method, path, body, answer.status, said[:500])
        return answer.status, said

    def name(self):
        return self.rng.choice("abcd")

    def act(self):
        kind = self.rng.choices(*zip(*KINDS.items(), strict=True))[0]
        getattr(self, kind)(f"/v1/loops/{self.name()}")

    def create(self, path):
        body = {"name": path[-1], "actions": [0, 1], "agent": self.rng.choice(AGENTS)}
        if self.rng.random() < 0.4:
            body |= {"wait": self.rng.choice([0.05, 100]), "default_loss": 1.0}
            body |= {"combine": self.rng.choice(["first", "last", "sum", "mean"])}
        self.ask("POST", "/v1/loops", body | {"apprentice": self.rng.random() < 0.1})

    def question(self):
        asked = {"context": context(self.rng)} if self.rng.random() < 0.9 else {}
        if self.rng.random() < 0.2:
            asked["within"] = sorted([self.rng.random(), self.rng.random()])
        asked |= {"action": self.rng.choice([0.25, 0.5, 3])} if self.rng.random() < 0.8 else {}
        return asked | ({"id": f"id-{self.rng.randint(0, 500)}"} if self.rng.random() < 0.3 else {})

    def decide(self, path):
        status, said = self.ask("POST", f"{path}/decisions", self.question())
        if status == 200:
            self.ids.append((path, json.loads(said)["id"]))

    def decide_many(self, path):
        batch = [self.question() for _ in range(self.rng.randint(1, 5))]
        status, said = self.ask("POST", f"{path}/decisions/batch", {"decisions": batch})
        if status == 200:
            self.ids += [(path, each["id"]) for each in json.loads(said)["decisions"]]

    def lose(self, path):
        path, given = self.rng.choice(self.ids[-50:] or [(path, "~1")])
        self.ask(
            "POST", f"{path}/decisions/{given}/loss", {"loss": self.rng.choice([0.0, 0.5, 1.0, self.rng.random()])}
        )

    def lose_many(self, path):
        losses = [{"id": given, "loss": self.rng.random()} for place, given in self.ids[-9:] if place == path]
        self.ask("POST", f"{path}/losses", {"losses": losses})

    def observe(self, path):
        seen = {"action": self.rng.random(), "loss": self.rng.random(), "context": context(self.rng)}
        self.ask("POST", f"{path}/observations", seen | ({"density": 1.0} if self.rng.random() < 0.7 else {}))

    def change(self, path):
        self.ask("POST", f"{path}/{self.rng.choice(['pause', 'resume', 'resume', 'promote'])}")

    def look(self, path):
        self.ask("GET", f"{path}{self.rng.choice(['', '/summary', '/policy', '/report', '/log'])}")
        self.ask("GET", self.rng.choice(["/metrics", "/v1/loops", "/healthz"]))

    def export(self, path):
        status, model = self.ask("GET", f"{path}/model")
        self.models += [model] if status == 200 else []

    def replace(self, path):
        self.ask("PUT", f"{path}/model", self.rng.choice(self.models[-5:]))

    def roll(self, path):
        settings = {"baseline": self.rng.choice([0.5, "caller", 7]), "steps": [0.5, 1], "tolerance": 0.9}
        settings |= {"patience": 20, "least_decisions": 20}
        kind = self.rng.choice(["start", "start", "pause", "resume", "abort", ""])
        given = ("PUT", f"{path}/rollout", settings) if kind == "start" else ("POST", f"{path}/rollout/{kind}")
        self.ask(*(given if kind else ("GET", f"{path}/rollout")))

    def erase(self, path):
        self.ask(*self.rng.choice([("DELETE", path), ("POST", f"{path}/reset")]))


KINDS = {"create": 3, "decide": 40, "decide_many": 6, "lose": 30, "lose_many": 4, "observe": 6, "change": 2, "look": 4}
KINDS |= {"export": 1, "replace": 2, "erase": 1, "roll": 4}


def models_equal_their_replay(place):
    store = leading(place)
    engine = Engine(store)
    for row in store.loops():
        loop = engine.recover(row)
        if store.first_decision(row.number) is not None and not row.paused:
            assert replayed(engine, row.name) == (model_of(loop), loop.model.learned, loop.model.event)
    store.close()


@pytest.mark.parametrize("seed", range(4 if SOAK else 1))
def test_any_operations_in_any_order_leave_a_service_that_starts(tmp_path, store, seed):
    player = Player(seed, tmp_path, store)
    for number in range(OPERATIONS):
        if number % RESTART_EVERY == RESTART_EVERY - 1:
            player.restart()
        player.act()
    player.connection.close()
    with suppress(http.client.HTTPException):
        assert player.service.stop() == 0
    models_equal_their_replay(player.service.store)
