"""A token for some loops: both paths refuse all others alike, and nothing tells whether they exist."""

import json
import sys
from pathlib import Path

import pytest

from manul.errors import FileError, ParameterError
from manul.service.http import tokens
from manul.service.http.tokens import Tokens
from tests.service.conftest import Service, run
from tests.service.processes import MANUL, Process
from tests.service.wire import exchanged, request

CATS = {"kind": "cats", "leaves": 16, "bandwidth": 5}
PROGRAMS = {"fast": (MANUL,), "router": (sys.executable, Path(__file__).with_name("router_only.py"))}
GRANTED = {
    "all": (["admin"], []),
    "heat": (["admin"], ["heat"]),
    "price": (["decide", "report"], ["price-*", "dose"]),
}


@pytest.fixture(scope="module", params=PROGRAMS)
def server(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    secrets = {name: tokens.add(folder / "tokens", *granted) for name, granted in GRANTED.items()}
    running = Process(folder, "decisions.db", "--token-file", folder / "tokens", program=PROGRAMS[request.param])
    running.secrets = secrets
    for loop in ("heat", "price-1", "price-2", "other"):
        assert ask(running, "all", "POST", "", {"name": loop, "actions": [20, 70], "agent": CATS})[0] == 201
    yield running
    assert running.stop() == 0


def ask(server, who, method, path, body=b"", root="/v1/loops"):
    """The status and what was answered."""
    bearer = f"Authorization: Bearer {server.secrets[who]}"
    (answer,) = exchanged(server.port, request(method, f"{root}{path}", body, bearer), count=1)
    kind = answer.headers["content-type"]
    return answer.status, json.loads(answer.body) if kind == "application/json" else answer.body


@pytest.mark.whole
@pytest.mark.parametrize(
    "path", ["decisions", "decisions/~1/loss", "pause", "model", "status", "decisions/batch", "rollout/abort"]
)
def test_a_loop_of_others_is_refused_alike_whether_it_exists_or_not(server, path):
    def answer(loop):
        status, said = ask(server, "heat", "POST", f"/{loop}/{path}", {"context": [1]})
        return status, json.dumps(said).replace(loop, "LOOP")

    assert answer("other") == answer("nowhere")
    if path not in ("model", "status"):
        sentence = "The token does not give access to a loop named 'LOOP'."
        assert answer("other") == (403, json.dumps({"error": {"code": "forbidden", "message": sentence}}))


@pytest.mark.whole
def test_a_token_decides_for_the_loops_it_names_and_for_those_with_its_prefix(server):
    decisions = {"heat": 403, "price-1": 200, "price-2": 200, "price": 403, "dose": 404, "other": 403}
    for loop, status in decisions.items():
        assert ask(server, "price", "POST", f"/{loop}/decisions", {"context": [1]})[0] == status, loop
    assert ask(server, "price", "POST", "/price-1/pause")[0] == 403


@pytest.mark.whole
def test_a_token_for_some_loops_reads_or_changes_their_rollouts_only(server):
    plan = {"baseline": 40}
    assert [ask(server, who, "PUT", "/other/rollout", plan)[0] for who in ("heat", "price")] == [403, 403]
    assert ask(server, "price", "PUT", "/price-1/rollout", plan)[0] == 403
    assert ask(server, "all", "PUT", "/price-2/rollout", plan)[0] == 200
    assert [ask(server, who, "GET", "/price-2/rollout")[0] for who in ("price", "heat")] == [200, 403]
    assert ask(server, "price", "POST", "/price-2/rollout/abort")[0] == 403
    assert ask(server, "all", "POST", "/price-2/promote")[0] == 200


@pytest.mark.whole
def test_a_token_lists_its_own_loops(server):
    def names(who):
        return [each["name"] for each in ask(server, who, "GET", "")[1]["loops"]]

    assert names("price") == ["price-1", "price-2"]
    assert names("heat") == ["heat"]
    assert names("all") == ["heat", "other", "price-1", "price-2"]


@pytest.mark.whole
def test_a_token_creates_and_deletes_its_own_loops_only(server):
    def create(name):
        return ask(server, "heat", "POST", "", {"name": name, "actions": [20, 70], "agent": CATS})

    assert ask(server, "heat", "DELETE", "/heat")[0] == 200
    assert create("heat")[0] == 201
    assert create("other") == create("other")
    assert create("other")[0] == create("unheard")[0] == 403
    assert ask(server, "heat", "DELETE", "/other")[0] == 403


@pytest.mark.whole
def test_metrics_need_a_token_for_all_loops(server):
    assert ask(server, "price", "GET", "/metrics", root="") == (
        403,
        {
            "error": {
                "code": "forbidden",
                "message": "The metrics are about all loops, and the token is for some loops only.",
            }
        },
    )
    assert ask(server, "all", "GET", "/metrics", root="")[0] == 200


@run
async def test_a_token_shows_only_its_own_loops_that_are_out_of_service(tmp_path):
    granted = Tokens([tokens.Access(tokens._hash("a"), frozenset(["report"]), ("heat",))])
    async with Service(tmp_path / "decisions.db", tokens=granted).running() as service:
        for name in ("heat", "price"):
            service.engine.broken[name] = None, "it is damaged"
        answer = await service.client.get("/v1/loops", headers={"Authorization": "Bearer a"})
        assert [each["name"] for each in answer.json()["out_of_service"]] == ["heat"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("decide loops=", "loop must be a name, or the beginning of names and a star such as price-*, got ''"),
        ("decide loops=*", "got '*'"),
        ("decide loops=a,,b", "got ''"),
        ("decide loops=a*b", "got 'a*b'"),
        ("decide loop=a", "expected loops= or rate=, each at most once, got 'loop=a'"),
        ("decide heating", "got 'heating'"),
        ("decide loops=a loops=b", "got 'loops=b'"),
        ("decide rate=0", "rate must be a number of at least 0.1 per second, got 0"),
        ("decide rate=nan", "got nan"),
        ("decide rate=many", "rate must be a number, got 'many'"),
        ("loops=a", "expected a hash and rights"),
    ],
)
def test_a_line_that_is_not_understood_never_grants_more(tmp_path, words, expected):
    (tmp_path / "tokens").write_text(f"{tokens.line('a', ['admin'])}\nsha256:{'0' * 64} {words}\n")
    with pytest.raises(FileError, match="line 2: ") as refused:
        tokens.read(tmp_path / "tokens")
    assert expected in str(refused.value)


def test_lines_without_loops_stay_valid_and_a_hash_stands_in_one_line_only(tmp_path):
    path = tmp_path / "tokens"
    path.write_text(f"# old\n{tokens.line('a', ['decide'])} # mine\n")
    tokens.read(path).require(b"Bearer a", "decide", "any")
    path.write_text(f"{tokens.line('a', ['decide'])}\n{tokens.line('a', ['admin'])}\n")
    with pytest.raises(FileError, match="line 2: the token of line 1 again"):
        tokens.read(path)


def test_a_token_is_added_on_a_line_of_its_own(tmp_path):
    path = tmp_path / "tokens"
    path.write_text(tokens.line("a", ["decide"], ["heat"]))
    secret = tokens.add(path, ["report"])
    assert not tokens.read(path).find(b"Bearer a").includes("other")
    assert tokens.read(path).require(f"Bearer {secret}".encode(), "report", "other")


def test_bad_loops_are_refused_before_a_token_is_stored(tmp_path):
    with pytest.raises(ParameterError, match="loop must be a name"):
        tokens.add(tmp_path / "tokens", ["decide"], ["a b"])
    assert not (tmp_path / "tokens").exists()


def test_among_ten_thousand_tokens_each_is_found(tmp_path):
    lines = [tokens.line(f"token {number}", ["decide"], [f"loop-{number}"]) for number in range(10_000)]
    (tmp_path / "tokens").write_text("\n".join(lines))
    known = tokens.read(tmp_path / "tokens")
    for number in (0, 5000, 9999):
        access = known.require(f"Bearer token {number}".encode(), "decide", f"loop-{number}")
        assert not access.includes("loop-1")
