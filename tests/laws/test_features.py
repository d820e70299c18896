"""What the other laws do not try with every space of actions: it works, or is refused in one sentence."""

import json
from contextlib import nullcontext

import numpy as np
import pytest
from click.testing import CliRunner

import manul
from manul.cli import main
from manul.errors import ManulError
from tests.laws.spaces import CONTEXTS, SPACES, loss_of, trained

ROWS = np.tile(CONTEXTS, (8, 1))
SEVERAL = ("several", "limited")


@pytest.fixture(scope="module", params=SPACES)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def agent(name):
    return trained(SPACES[name])


@pytest.fixture(scope="module")
def log(agent):
    """A log of the agent."""
    decisions = agent.decide_many(ROWS)
    losses = [loss_of(agent.space, decision.action) for decision in decisions]
    rest = {"floors": decisions.floors, "densities_by_knob": decisions.densities_by_knob, "loss_range": (0, 1)}
    return manul.Log(ROWS, decisions.actions, decisions.densities, losses, knobs=agent.space, **rest)


@pytest.fixture(scope="module")
def files(agent, log, tmp_path_factory):
    """The agent and its log in files."""
    folder = tmp_path_factory.mktemp("files")
    agent.save(folder / "agent.manul")
    log.write(folder / "log.parquet")
    log.write(folder / "log.csv")
    return folder


def said(*arguments):
    """What a command prints; it must not fail."""
    result = CliRunner().invoke(main, [*map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.parametrize("suffix", [".vw", ".dsjson"])
def test_the_formats_of_vowpal_wabbit_keep_one_number(name, log, suffix, tmp_path):
    if name == "span":
        with pytest.warns(UserWarning, match="omits floor") if suffix == ".vw" else nullcontext():
            log.write(tmp_path / f"log{suffix}")
        assert manul.Log.read(tmp_path / f"log{suffix}").actions == pytest.approx(log.actions)
    else:
        with pytest.raises(ManulError, match=r"Vowpal Wabbit has one number per action and cannot store .*\.$"):
            log.write(tmp_path / f"log{suffix}")


@pytest.mark.parametrize("interval", ["clopper-pearson", "bernstein"])
def test_intervals_with_a_bound_take_one_knob_or_a_given_bound(name, agent, log, interval):
    if name in SEVERAL:
        with pytest.raises(ManulError, match="needs an upper bound of the weights: largest_weight"):
            manul.evaluate(agent, log, "ips", interval)
    bound = {"largest_weight": 10.0} if name in SEVERAL else {}
    estimate = manul.evaluate(agent, log, "ips", interval, **bound)
    assert estimate.low <= log.losses.mean() <= estimate.high


def test_a_policy_is_compared_with_the_logged_one(agent, log):
    (row,) = manul.compare({"agent": agent}, log)
    assert row.low <= 0 <= row.high


def test_an_interrupted_optimisation_is_resumed(log, tmp_path):
    one, two = (manul.optimize(log, candidates=["auto"], resume=tmp_path / "run", progress=False) for _ in range(2))
    assert manul.dumps(one.policy) == manul.dumps(two.policy)
    assert one.policy.space == log.space


def test_trees_and_estimated_densities_take_one_number(name, log):
    for ask in (
        lambda: manul.optimize(log, candidates=["cats"], progress=False),
        lambda: manul.policies.train_tree(log, leaves=4, bandwidth=4.0, actions=(10, 50)),
        lambda: manul.offpolicy.estimate_densities(log),
    ):
        if name == "span":
            ask()
        else:
            with pytest.raises(ManulError, match=r"^[^\n]*(one knob|\(low, high\)|one number)[^\n]*\.$"):
                ask()


def test_a_feature_map_changes_nothing_of_the_space(agent):
    mapped = manul.Mapped(agent=manul.Auto(actions=agent.space, epsilon=0.5, seed=7), features=manul.maps.Crosses())
    for context in CONTEXTS[:10]:
        decision = mapped.decide(context)
        mapped.learn(context, decision, loss_of(agent.space, decision.action))
    assert mapped.space == agent.space
    assert list(manul.loads(manul.dumps(mapped)).decide_many(CONTEXTS)) == list(mapped.decide_many(CONTEXTS))


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_commands_evaluate_a_policy_on_its_log(files, log, suffix):
    command = "evaluate", files / "agent.manul", files / f"log{suffix}", "--estimator", "ips"
    (estimate,) = json.loads(said(*command, "--json"))["estimates"]
    assert estimate["value"] == pytest.approx(log.losses.mean())


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_commands_check_a_log(name, files, suffix):
    stated = ["--policy", files / "agent.manul"] if suffix == ".csv" else []
    stated += ["--actions", 10, 50] if stated and name == "span" else []
    said("check", files / f"log{suffix}", *stated)


def test_commands_convert_inspect_and_optimise(files, agent, tmp_path):
    said("convert", files / "log.parquet", tmp_path / "log.jsonl")
    assert len(manul.Log.read(tmp_path / "log.jsonl", like=agent)) == len(ROWS)
    inspect = "inspect", files / "agent.manul", "--context", json.dumps(CONTEXTS[0].tolist())
    assert "predicted loss" in said(*inspect, "--plot", tmp_path / "policy.png")
    (played,) = json.loads(said(*inspect, "--json"))["played"]
    for title, (_, knob) in zip(agent.space.titles, agent.space.knobs, strict=True):
        shown = played if agent.space.is_number else played["knobs"][title]
        assert (shown.get("window") is None) == knob.is_option
    CliRunner().invoke(
        main, ["optimize", str(files / "log.parquet"), "--candidate", "auto", "--out", str(tmp_path / "new.manul")]
    )
    assert manul.load(tmp_path / "new.manul").space == agent.space
