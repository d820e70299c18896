"""`manul rollout` against a real service."""

import json

import pytest
from click.testing import CliRunner

from manul.cli import main
from tests.cli.test_commands import one_sentence
from tests.service.processes import Process
from tests.service.rollout_states import BETTER, LOOP, live, live_until, wait_until_learned

pytestmark = pytest.mark.whole

START = ["--baseline", "0.5", "--steps", "1/4,1/2,1", "--least-decisions", "50"]


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    service = Process(tmp_path_factory.mktemp("service"), "decisions.db", "--webhook-host", "127.0.0.1")
    yield service
    assert service.stop() == 0


@pytest.fixture
def loop(service, request):
    """A loop of its own for each test."""
    name = request.node.name[:60].replace("[", "-").replace("]", "")
    assert service.ask("POST", "/v1/loops", {"name": name, **LOOP})[0] == 201
    return name


def invoke(service, *words, **settings):
    return CliRunner().invoke(main, ["rollout", *words, "--url", f"http://127.0.0.1:{service.port}"], **settings)


def printed(service, *words):
    result = invoke(service, *words)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_rollout_is_started_paused_resumed_and_aborted(service, loop):
    assert printed(service, "start", loop, *START).startswith(f"{loop}: waiting\nStep 1 of 3: 25 % of the traffic.")
    assert printed(service, "pause", loop).startswith(f"{loop}: paused\n")
    assert printed(service, "resume", loop).startswith(f"{loop}: waiting\n")
    lines = printed(service, "abort", loop).splitlines()
    assert lines[:2] == [f"{loop}: aborted", "Aborted by its owner. The baseline makes all decisions."]
    wait_until_learned(service, loop)  # the answer hardly waits for the learner, who adds the move
    lines = printed(service, "status", loop).splitlines()
    assert [line.split()[3:5] for line in lines[-4:]] == [
        [reason, "owner"] for reason in ("started", "paused", "resumed", "aborted")
    ]


def test_guards_are_rules_about_parts(service, loop):
    body = {"name": f"{loop}-parts", **LOOP, "parts": {"returned": "yes/no", "latency": "amount"}}
    assert service.ask("POST", "/v1/loops", body)[0] == 201
    rules = ["--guard", "returned<=1.02", "--guard", "latency >= 0.9 in 0,5"]
    text = printed(service, "start", body["name"], *START, *rules)
    assert "\nguard       latency: not proven yet (at least 0.9 times the baseline's)\n" in text
    assert "\nguard       returned: not proven yet (at most 1.02 times the baseline's)\n" in text
    refused = invoke(service, "start", loop, *START, "--guard", "returned < 1")
    assert one_sentence(refused).startswith("--guard must be a rule such as 'returned <= 1.02'")


def test_the_status_has_traffic_evidence_and_moves(service, loop):
    printed(service, "start", loop, *START)
    live_until(service, loop, BETTER, lambda rollout: rollout["step"] == 2)
    live(service, loop, BETTER, 50, report=False)
    text = printed(service, "status", loop)
    assert "\ntraffic     learner 50 %, baseline 50 %\n" in text
    assert "50 not judged yet\n" in text
    assert "(learner's loss minus the most that is tolerated)\n" in text
    assert text.splitlines()[-1].split()[2:6] == ["2", "not", "worse", "evidence"]


def test_json_is_the_response_of_the_service(service, loop):
    started = json.loads(printed(service, "start", loop, *START, "--json"))
    assert json.loads(printed(service, "status", loop, "--json")) == started
    assert (started["loop"], started["steps"]) == (loop, [0.25, 0.5, 1])


def test_rewards_are_printed_as_rewards(service):
    service.ask("POST", "/v1/loops", {"name": "shop", **LOOP, "rewards": [0, 10]})
    printed(service, "start", "shop", *START[:-1], "1000")
    live(service, "shop", {"learner": 8, "baseline": 6}, 150, kind="reward")
    text = printed(service, "status", "shop")
    assert "mean reward 8 against 6" in text
    assert "loss" not in text


def test_what_the_service_refuses_is_one_sentence_and_exit_code_1(service, loop):
    result = invoke(service, "status", loop)
    assert (result.exit_code, result.stdout) == (1, "")
    assert one_sentence(result) == f"loop {loop!r} has no rollout. Start one first."
    result = invoke(service, "start", loop, "--baseline", "7")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "baseline" in one_sentence(result)
    assert invoke(service, "status", loop).exit_code == 1


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["start", "heat"], "missing argument --baseline. See manul rollout start --help."),
        (["start", "heat", "--baseline", "warm"], "--baseline must be a number or a fraction such as 1/16, got 'warm'"),
        (["start", "heat", "--baseline", "1", "--webhook", "http://x/"], "--webhook needs --webhook-secret"),
        (["status"], "missing argument LOOP. See manul rollout status --help."),
        (["statos", "heat"], "No such command 'statos'"),
    ],
)
def test_wrong_usage_is_one_sentence_and_exit_code_2(words, sentence):
    result = CliRunner().invoke(main, ["rollout", *words], prog_name="manul")
    assert (result.exit_code, result.stdout) == (2, "")
    assert one_sentence(result).startswith(sentence)


def test_a_service_that_is_not_there_is_one_sentence():
    result = CliRunner().invoke(main, ["rollout", "status", "heat", "--url", "http://127.0.0.1:9"])
    assert result.exit_code == 1
    assert one_sentence(result).startswith("The service cannot be reached")


def test_the_secret_of_a_webhook_comes_from_the_environment_and_is_not_printed(service, loop):
    webhook = ["--webhook", "http://127.0.0.1:9/moves"]
    result = invoke(service, "start", loop, *START, *webhook, env={"MANUL_WEBHOOK_SECRET": "a secret of mine"})
    assert "webhook     http://127.0.0.1:9/moves, moves not received yet: 1" in result.stdout
    assert "a secret" not in result.output


def test_many_moves_are_printed_as_the_newest_ones(service, loop):
    printed(service, "start", loop, *START)
    for _ in range(15):
        for verb in ("pause", "resume"):
            assert service.ask("POST", f"/v1/loops/{loop}/rollout/{verb}")[0] == 200
    lines = printed(service, "status", loop).splitlines()
    assert len([line for line in lines if "owner" in line]) == 20
