"""The rate limit: a bucket per token, the same on both paths, and nothing is stored for a request over it."""

import json
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import manul
from manul.service.http import tokens
from manul.service.http.rate_limit import Bucket
from tests.service.processes import MANUL, Process
from tests.service.wire import exchanged, request

HEAT = {"name": "heat", "actions": [20, 70], "agent": {"kind": "cats", "leaves": 16, "bandwidth": 5}}
PROGRAMS = {"fast": (MANUL,), "router": (sys.executable, Path(__file__).with_name("router_only.py"))}
# Slow enough that no bucket fills by one request while a test runs, on a busy machine too: the least.
SLOW = 0.1
DECIDE = ("POST", "/v1/loops/heat/decisions", {"context": [1, 2]})


@pytest.fixture(params=PROGRAMS)
def server(request, tmp_path):
    """A loop, an unlimited token, and one that may send one request and hardly more."""
    path = tmp_path / "tokens"
    secrets = {"free": tokens.add(path, ["admin"]), "slow": tokens.add(path, ["admin"], rate=SLOW)}
    running = Process(tmp_path, "decisions.db", "--token-file", path, program=PROGRAMS[request.param])
    running.headers = {name: f"Authorization: Bearer {secret}" for name, secret in secrets.items()}
    assert send(running, "free", "POST", "/v1/loops", HEAT).status == 201
    yield running
    assert running.stop() == 0


def send(server, who, method, path, body=b""):
    return exchanged(server.port, request(method, path, body, server.headers[who]), count=1)[0]


def decisions(server):
    return json.loads(send(server, "free", "GET", "/v1/loops/heat").body)["decisions"]


def test_a_bucket_lets_a_burst_pass_and_then_its_rate():
    now = [0.0]
    bucket = Bucket(10.0, clock=lambda: now[0])
    assert sum(bucket.take() for _ in range(100)) == 20
    passed = 0
    for step in range(1, 1001):
        now[0] = step / 100
        passed += bucket.take()
    assert passed == pytest.approx(100, abs=1)
    now[0] = 1e6
    assert sum(bucket.take() for _ in range(100)) == 20


def test_a_batch_counts_as_its_elements_and_only_one_at_a_time_goes_into_debt():
    now = [0.0]
    bucket = Bucket(10.0, clock=lambda: now[0])
    assert [bucket.take(), bucket.take()] == [True, True]
    assert [bucket.take_more(999), bucket.take_more(999)] == [True, False]
    assert (bucket.take(), bucket.wait_seconds) == (False, 99)
    now[0] = 98.25
    assert [bucket.take(), bucket.take()] == [True, False]


@pytest.mark.whole
def test_a_request_over_the_limit_gets_429_and_stores_nothing(server):
    assert [send(server, "slow", *DECIDE).status for _ in range(3)] == [200, 429, 429]
    answer = send(server, "slow", *DECIDE)
    assert 1 <= int(answer.headers["retry-after"]) <= 10
    assert answer.error["code"] == "too_many_requests"
    assert answer.error["message"].startswith("The token's limit of 0.1 requests per second is exceeded. Nothing")
    assert send(server, "slow", "POST", "/v1/loops/heat/decisions/~1/loss", {"loss": 0.5}).status == 429
    assert send(server, "slow", "GET", "/v1/loops").status == 429
    assert send(server, "slow", "GET", "/readyz").status == 200
    assert decisions(server) == 1


@pytest.mark.whole
def test_requests_without_the_right_count_too(server):
    assert send(server, "slow", "POST", "/v1/loops/nowhere/decisions", {}).status == 404
    assert send(server, "slow", *DECIDE).status == 429


@pytest.mark.whole
def test_connections_and_pipelined_requests_share_the_bucket_of_their_token(server):
    pipelined = request(*DECIDE, server.headers["slow"]) * 5
    with ThreadPoolExecutor(8) as callers:
        found = list(callers.map(lambda _: exchanged(server.port, pipelined, count=5), range(8)))
    statuses = sorted(answer.status for answers in found for answer in answers)
    assert statuses == [200] + [429] * 39
    assert decisions(server) == 1


@pytest.mark.whole
def test_a_batch_takes_the_requests_of_the_next_seconds(server):
    assert (
        send(server, "slow", "POST", "/v1/loops/heat/decisions/batch", {"decisions": [{"context": [1]}] * 50})[0] == 200
    )
    answer = send(server, "slow", *DECIDE)
    assert (answer.status, decisions(server)) == (429, 50)
    assert 400 < int(answer.headers["retry-after"]) <= 500


@pytest.mark.whole
def test_a_reload_of_the_tokens_does_not_fill_the_bucket(server):
    assert send(server, "slow", *DECIDE).status == 200
    server.process.send_signal(signal.SIGHUP)
    log = server.folder / "service.log"
    while b"reloaded the token file" not in log.read_bytes():
        assert server.process.poll() is None
    assert send(server, "slow", *DECIDE).status == 429


@pytest.mark.whole
def test_the_metrics_count_refused_requests_by_token(server):
    for _ in range(3):
        send(server, "slow", *DECIDE)
    text = send(server, "free", "GET", "/metrics").body.decode()
    hashed = server.folder.joinpath("tokens").read_text().splitlines()[1].removeprefix("sha256:")
    assert f'manul_rate_limited_total{{token="{hashed[:8]}"}} 2\n' in text
    assert 'manul_requests_total{route="decide",status="429"} 2\n' in text


@pytest.mark.whole
def test_without_tokens_all_callers_share_one_bucket(tmp_path):
    server = Process(tmp_path, "decisions.db", "--max-rate", SLOW)
    server.headers = {"first": "X-Caller: 1", "second": "X-Caller: 2"}
    assert send(server, "first", "GET", "/v1/loops").status == 200
    refused = send(server, "second", "GET", "/v1/loops")
    assert refused.status == 429
    assert refused.error["message"].startswith("The limit of 0.1 requests per second is exceeded.")
    assert server.stop() == 0


@pytest.mark.whole
def test_a_client_over_its_limit_waits_and_every_decision_is_made_once(tmp_path):
    secret = tokens.add(tmp_path / "tokens", ["admin"], rate=1)
    server = Process(tmp_path, "decisions.db", "--token-file", tmp_path / "tokens")
    with manul.Client(f"http://127.0.0.1:{server.port}", secret) as client:
        client.create("heat", actions=(20, 70))
        assert len({client.decide("heat", [1.0]).id for _ in range(3)}) == 3
        assert client.status("heat").decisions == 3
    assert b'"status": 429' in (tmp_path / "service.log").read_bytes()
    assert server.stop() == 0
