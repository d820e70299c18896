"""`manul mcp`, spoken to by the client of the official SDK over standard input and output."""

import asyncio
import json
import sys

import pytest
from mcp import Client, StdioServerParameters

import manul
from tests.service.processes import Process

pytestmark = pytest.mark.whole
OF_LOOPS = {"loops", "loop_status", "loop_report", "rollout_evidence"}
READ = {*OF_LOOPS, "inspect_file", "check_log", "evaluate_policy", "compare_policies"}
WRITE = {"pause_loop", "resume_loop", "pause_rollout", "abort_rollout"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A log and two policies in a folder, and a file outside of it."""
    path = tmp_path_factory.mktemp("mcp") / "files"
    path.mkdir()
    for seed, name in enumerate(("one", "two")):
        agent = manul.Auto(epsilon=0.2, seed=seed)
        manul.simulate(agent, manul.worlds.linear(rounds=400, seed=seed)).log.write(path / f"{name}.parquet")
        agent.save(path / f"{name}.manul")
    (path.parent / "outside.parquet").write_bytes((path / "one.parquet").read_bytes())
    return path


def session(folder, *calls, options=(), url="http://127.0.0.1:9"):
    """What the tools answer to calls: the names of the tools first."""

    async def talk():
        words = ["-m", "manul", "mcp", "--folder", str(folder), "--url", url, *options]
        async with Client(StdioServerParameters(command=sys.executable, args=words)) as client:
            tools = (await client.list_tools()).tools
            return tools, [await client.call_tool(name, given) for name, given in calls]

    return asyncio.run(talk())


def read(result):
    assert not result.is_error, result.content
    return json.loads(result.content[0].text)


def test_only_tools_that_read_are_offered_unless_the_owner_asks_for_others(folder):
    tools, _ = session(folder)
    assert {each.name for each in tools} == READ
    assert all(each.annotations.read_only_hint for each in tools)
    assert all(each.description.strip().endswith(".") for each in tools)
    tools, _ = session(folder, options=["--write"])
    assert {each.name for each in tools} == READ | WRITE
    assert {each.name for each in tools if not each.annotations.read_only_hint} == WRITE


def test_files_are_inspected_checked_evaluated_and_compared_as_in_python(folder):
    log, policy = manul.Log.read(folder / "one.parquet"), manul.load(folder / "one.manul")
    context = log.contexts[0].tolist()
    _, answers = session(
        folder,
        ("inspect_file", {"file": "one.manul", "contexts": [context]}),
        ("check_log", {"log": "one.parquet", "policy": "one.manul"}),
        ("evaluate_policy", {"policy": "one.manul", "logs": ["one.parquet"]}),
        ("compare_policies", {"policies": ["one.manul", "two.manul"], "logs": ["one.parquet"]}),
    )
    inspected, checked, evaluated, compared = map(read, answers)
    assert inspected["kind"] == "Auto"
    assert isinstance(checked["fit"], bool)
    (estimate,) = evaluated["estimates"]
    assert estimate["value"] == pytest.approx(manul.evaluate(policy, log).value)
    assert {row["policy"] for row in compared["comparisons"]} >= {"one", "two"}


def test_what_is_wrong_is_one_sentence_and_files_outside_the_folder_are_not_read(folder):
    (folder / "self.parquet").symlink_to(folder / "self.parquet")
    _, answers = session(
        folder,
        ("check_log", {"log": "../outside.parquet"}),
        ("check_log", {"log": str(folder.parent / "outside.parquet")}),
        ("check_log", {"log": "none.parquet"}),
        ("inspect_file", {"file": "one.parquet"}),
        ("compare_policies", {"policies": [], "logs": ["one.parquet"]}),
        ("loops", {}),
        ("check_log", {"log": "a\0b.parquet"}),
        ("check_log", {"log": "x" * 300 + ".parquet"}),
        ("check_log", {"log": "self.parquet"}),
    )
    assert all(each.is_error for each in answers)
    said = [each.content[0].text for each in answers]
    assert all("is not the name of a file" in each for each in said[6:])
    assert "is outside the folder of this server" in said[0]
    assert "is outside the folder of this server" in said[1]
    assert "no such file" in said[2]
    assert "must end with .manul" in said[3]
    assert "policies must be" in said[4]
    assert "cannot be reached" in said[5]
    assert not any("Traceback" in each for each in said)


@pytest.fixture
def heating(tmp_path):
    """A service with a loop and its rollout."""
    process = Process(tmp_path)
    url = f"http://127.0.0.1:{process.port}"
    with manul.Client(url) as client:
        client.create("heating", actions=(20, 70))
        client.report_loss("heating", client.decide("heating", [0.5]), 0.25)
        client.start_rollout("heating", baseline=45.0)
        yield url, client
    process.kill()


def test_loops_and_rollouts_of_a_service_are_shown(folder, heating):
    url, _ = heating
    calls = [
        ("loops", {}),
        *((name, {"loop": "heating"}) for name in ("loop_status", "loop_report", "rollout_evidence")),
    ]
    _, answers = session(folder, *calls, ("loop_status", {"loop": "none"}), url=url)
    listed, status, report, rollout = map(read, answers[:4])
    assert [each["name"] for each in listed["loops"]] == ["heating"]
    assert status["decisions"] == 1
    assert report["beliefs"]
    assert rollout["baseline"] == 45.0
    assert answers[4].is_error
    assert "does not exist" in answers[4].content[0].text


def test_a_rollout_is_aborted_only_by_a_server_that_may_write(folder, heating):
    url, client = heating
    _, (refused,) = session(folder, ("abort_rollout", {"loop": "heating"}), url=url)
    assert refused.is_error
    assert client.rollout("heating").status != "aborted"
    _, (aborted,) = session(folder, ("abort_rollout", {"loop": "heating"}), url=url, options=["--write"])
    assert read(aborted)["status"] == client.rollout("heating").status == "aborted"
