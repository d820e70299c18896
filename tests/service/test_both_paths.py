"""The fast path and the router answer alike, whatever is sent, and change the store alike."""

import os
import random
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.service.odd_requests import pieces
from tests.service.processes import MANUL, Process
from tests.service.several_knobs import OFFERS
from tests.service.wire import exchanged

pytestmark = pytest.mark.whole

HEAT = {"name": "heat", "actions": [20, 70], "agent": {"kind": "cats", "leaves": 16, "bandwidth": 5}}
PROGRAMS = {"fast": (MANUL,), "router": (sys.executable, Path(__file__).with_name("router_only.py"))}
# Requests that never end take the whole time: little for many, more beside other tests on a busy machine.
COUNT, SECONDS = (20_000, 0.5) if os.environ.get("MANUL_SOAK") else (300, 1.5)
QUICK = ("--max-head-seconds", SECONDS, "--max-body-seconds", SECONDS)


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    """The same loop on both, paused so that its decisions do not depend on when it learns."""
    with ExitStack() as running:
        servers = []
        for name, program in PROGRAMS.items():
            servers.append(Process(tmp_path_factory.mktemp(name), "decisions.db", *QUICK, program=program))
            running.callback(servers[-1].stop)
            servers[-1].ask("POST", "/v1/loops", HEAT)
            servers[-1].ask("POST", "/v1/loops/heat/pause")
            servers[-1].ask("POST", "/v1/loops/heat/decisions", {"context": [1, 2], "id": "o1"})
        yield servers


def told(server, sent):
    """What matters of the answers: not times, nor ids of requests, nor epochs, nor how far the learner's thread is."""
    found = exchanged(server.port, *sent)
    passing = rb'"(created|learned|model)":[^,]*,|(?<="~)[^"]*'
    return [(each.status, sorted(each.headers), re.sub(passing, b"", each.body)) for each in found]


def state(server):
    status = server.ask("GET", "/v1/loops/heat")[1]
    return {name: value for name, value in status.items() if name not in ("created", "learned", "model")}


def test_odd_requests_get_the_same_answers_and_leave_the_same_store(servers):
    rng = random.Random(14)
    with ThreadPoolExecutor(2) as both:
        for number in range(COUNT):
            sent = pieces(rng)
            fast, router = both.map(lambda server: told(server, sent), servers)  # noqa: B023 - used at once
            assert fast == router, (number, sent)
            assert all(status < 500 for status, *_ in fast), (number, sent, fast)
            assert fast, (number, sent)
    assert state(servers[0]) == state(servers[1])
    assert state(servers[0])["decisions"] > COUNT / 40


def test_decisions_of_a_rollout_are_answered_alike(servers):
    bodies = [
        {"context": [1, 2], "action": 30, "id": "r1"},
        {"context": [1, 2], "action": 30, "id": "r2", "within": [20, 31]},
        {"context": [1, 2], "action": 80, "id": "r3"},
        {"context": [1, 2], "action": None},
        {"context": [1, 2], "action": "30"},
        {"context": [1, 2], "id": "r1"},
    ]
    for server in servers:
        assert server.ask("POST", "/v1/loops", HEAT | {"name": "rolling"})[0] == 201
        assert server.ask("PUT", "/v1/loops/rolling/rollout", {"baseline": "caller", "steps": [0.5, 1]})[0] == 200
    statuses = []
    for body in bodies:
        fast, router = (server.ask("POST", "/v1/loops/rolling/decisions", body) for server in servers)
        for _, answer in (fast, router):
            answer.pop("model", None)  # tells how far the learner's thread is
        assert fast == router
        statuses.append(fast[0])
    assert statuses == [200, 200, 422, 422, 422, 422]


def test_several_knobs_are_answered_alike(servers):
    bodies = [
        {"context": [0.5], "id": "o1"},
        {"context": [0.5], "id": "o2", "within": {"price": [12, 20], "template": ["bold"]}},
        {"context": [0.5], "within": {"prise": [12, 20]}},
        {"context": [0.5], "within": [12, 20]},
    ]
    for server in servers:
        assert server.ask("POST", "/v1/loops", OFFERS)[0] == 201
        server.ask("POST", "/v1/loops/offers/pause")
    for body in bodies:
        fast, router = (server.ask("POST", "/v1/loops/offers/decisions", body) for server in servers)
        assert fast == router
    fast, router = (server.ask("POST", "/v1/loops/offers/decisions/o1/loss", {"loss": 0.5}) for server in servers)
    assert fast == router == (200, {"id": "o1", "status": "recorded"})


def test_losses_that_wait_are_answered_alike(servers):
    for server in servers:
        assert server.ask("POST", "/v1/loops", HEAT | {"name": "waits", "wait": 3600, "default_loss": 1})[0] in (
            200,
            201,
        )
        assert server.ask("POST", "/v1/loops/waits/decisions", {"context": [1, 2], "id": "o1"})[0] == 200
    said = []
    for loss in (0.5, 0.5, 0.25):
        fast, router = (server.ask("POST", "/v1/loops/waits/decisions/o1/loss", {"loss": loss}) for server in servers)
        assert fast == router
        said.append(fast[1].get("status", fast[0]))
    assert said == ["waiting", "repeated", 409]


def test_own_ids_take_their_losses_on_both_paths(servers):
    for server in servers:
        server.ask("POST", "/v1/loops", HEAT | {"name": "waits", "wait": 3600, "default_loss": 1})
        given = server.ask("POST", "/v1/loops/waits/decisions", {"context": [1, 2]})[1]["id"]
        path = f"/v1/loops/waits/decisions/{given}"
        assert server.ask("POST", f"{path}/loss", {"loss": 0.5}) == (200, {"id": given, "status": "waiting"})
        assert server.ask("POST", f"{path}x/loss", {"loss": 0.5})[0] == 404
