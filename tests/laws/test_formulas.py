"""Laws of outcomes with a formula, for every space of actions: agents, copies, logs in every format, evaluation, rollouts, commands."""

import copy
import functools
import json
import pickle

import numpy as np
import pytest
from click.testing import CliRunner

import manul
from manul.actions.space import ActionSpace
from manul.cli import main
from manul.errors import ManulError
from manul.utils import model_files
from tests.laws.formulas import (
    CONTEXTS,
    FORMULAS,
    ROUNDS,
    agent_of,
    outcome_of,
    parts_of,
    told,
    value_of,
)
from tests.laws.spaces import SPACES, baseline_of, narrower

WAYS = (".parquet", ".csv", ".jsonl", ".jsonl.gz", "arrow", "pandas", "polars", "rows", "batches")


@pytest.fixture(params=SPACES)
def name(request):
    return request.param


def learned(name, agent=None):
    agent = agent_of(name) if agent is None else agent
    for row, context in enumerate(CONTEXTS):
        agent.learn(context, agent.decide(context), **told(name, row))
    return agent


@functools.cache
def logged(name):
    """An agent that has learned, and the log of its next decisions, of which every other one is narrowed."""
    agent = learned(name)
    within = [None, narrower(agent.space)] * (ROUNDS // 2)
    decisions = agent.decide_many(CONTEXTS, within)
    rest = {"floors": decisions.floors, "densities_by_knob": decisions.densities_by_knob}
    if agent.space.is_number:
        rest = {"floors": decisions.floors, "lows": decisions.lows, "highs": decisions.highs}
    else:
        rest["within"] = within
    given = {"knobs": agent.space, "outcome": agent.outcome, "parts": parts_of(name)}
    return agent, manul.Log(CONTEXTS, decisions.actions, decisions.densities, **given, **rest)


def through(log, way, agent, folder):
    if way in ("arrow", "pandas"):
        return getattr(manul.Log, f"from_{way}")(getattr(log, f"to_{way}")())
    if way == "polars":
        return manul.Log.from_polars(log.to_polars(), like=agent)
    if way == "rows":
        return manul.Log.from_table(log.to_polars().to_dicts(), like=agent)
    path = folder / ("log.csv" if way == "batches" else f"log{way}")
    log.write(path)
    if way == "batches":
        return manul.Log.concat([*manul.Log.batches(path, 7, like=agent)])
    return manul.Log.read(path, like=None if way == ".parquet" else agent)


def test_the_value_is_that_of_python(name):
    agent, log = logged(name)
    actions = agent.space.each(log.actions, ROUNDS)
    expected = [value_of(name, action, row) for row, action in enumerate(actions)]
    assert log.rewards == pytest.approx(expected, rel=1e-15)
    single = [
        agent._reader.value(action, CONTEXTS[row], told(name, row)["parts"]) for row, action in enumerate(actions)
    ]
    assert log.rewards.tolist() == single


def test_batches_and_copies_learn_the_same(name):
    one, many = agent_of(name), agent_of(name)
    decisions = one.decide_many(CONTEXTS)
    for row, decision in enumerate(many.decide_many(CONTEXTS)):
        many.learn(CONTEXTS[row], decision, **told(name, row))
    one.learn_many(CONTEXTS, decisions, parts=parts_of(name))
    assert manul.dumps(one) == manul.dumps(many)
    for other in (manul.loads(manul.dumps(one)), pickle.loads(pickle.dumps(one)), copy.deepcopy(one)):
        assert (other.outcome, repr(other)) == (one.outcome, repr(one))
        assert manul.dumps(learned(name, other)) == manul.dumps(learned(name, manul.loads(manul.dumps(many))))


def test_a_profit_is_learned_as_the_loss_of_the_opposite_formula(name):
    loss = outcome_of(name, name="", better="low", formula=f"0 - ({FORMULAS[name]})")
    one, other = learned(name), learned(name, manul.Auto(actions=SPACES[name], outcome=loss, epsilon=0.5, seed=7))
    assert [bytes(each) for each in model_files.contents(one)[2].values()] == [
        bytes(each) for each in model_files.contents(other)[2].values()
    ]


@pytest.mark.parametrize("way", WAYS)
def test_a_log_keeps_the_parts_and_can_be_priced_again(name, way, tmp_path):
    agent, log = logged(name)
    back = through(log, way, agent, tmp_path)
    assert back.outcome == log.outcome == agent.outcome
    for part, column in log.parts.items():
        np.testing.assert_array_equal(back.parts[part], column)
    assert back.schema.fields.keys() == {"cost", "city"}
    assert (back.rewards.tolist(), back.densities.tolist()) == (log.rewards.tolist(), log.densities.tolist())
    assert back.with_outcome(agent.outcome).rewards.tolist() == log.rewards.tolist()
    dearer = outcome_of(name, formula=f"{FORMULAS[name]} - 1")
    assert back.with_outcome(dearer).rewards == pytest.approx(log.rewards - 1)


@pytest.mark.parametrize("suffix", [".vw", ".dsjson"])
def test_the_formats_of_vowpal_wabbit_refuse_parts_in_one_sentence(name, suffix, tmp_path):
    with pytest.raises(ManulError, match=r"Vowpal Wabbit has one number per .* cannot store .*\.$"):
        logged(name)[1].write(tmp_path / f"log{suffix}")


def test_an_estimate_of_another_formula_is_that_of_the_log_with_its_values(name):
    agent, log = logged(name)
    other = outcome_of(name, formula=f"{FORMULAS[name]} - 1")
    one = manul.evaluate(agent, log, "snips", outcome=other)
    two = manul.evaluate(agent, log.with_outcome(other), "snips")
    assert (one.value, one.low, one.high, one.outcome) == (two.value, two.low, two.high, two.outcome)
    assert one.reward.value == pytest.approx(manul.evaluate(agent, log, "snips").reward.value - 1)
    (row,) = manul.compare({"agent": agent}, [log, log], outcome=other)
    assert row.outcome == other
    assert [each for each in manul.doctor(log, outcome=other) if each.severity == "error"] == []


def test_a_policy_optimised_for_another_formula_is_that_of_the_log_with_its_values(name):
    _, log = logged(name)
    other = outcome_of(name, formula=f"{FORMULAS[name]} - 1", range="auto")
    priced = log.with_outcome(other)
    span = {"rewards": (float(priced.rewards.min()), float(priced.rewards.max()))}
    one = manul.optimize(log, outcome=other, candidates=["auto"]).policy
    two = manul.optimize(priced, candidates=["auto"], **span).policy
    assert manul.dumps(one) == manul.dumps(two)
    inside = one.agent if isinstance(one, manul.Mapped) else one
    assert (inside.outcome.formula, inside.outcome.parts) == (other.formula, other.parts)
    one.learn(CONTEXTS[0], one.decide(CONTEXTS[0]), **told(name, 0))


def test_rollouts_judge_the_value_alone_and_in_batches(name):
    def make():
        return manul.Rollout(
            agent_of(name), baseline=baseline_of(ActionSpace(SPACES[name])), steps=(0.6,), budget=1e9, seed=3
        )

    one, many = make(), make()
    decisions = many.decide_many(CONTEXTS)
    many.learn_many(CONTEXTS, decisions, parts=parts_of(name))
    for row, decision in enumerate(one.decide_many(CONTEXTS)):
        one.learn(CONTEXTS[row], decision, **told(name, row))
    assert manul.dumps(one) == manul.dumps(many)
    assert one.progress.judged == ROUNDS


def test_a_map_hides_nothing_from_the_formula(name):
    one, other = (manul.Mapped(agent=agent_of(name), features=lambda context: [context["cost"] * 2]) for _ in range(2))
    for row, context in enumerate(CONTEXTS):
        decision = one.decide(context)
        assert decision == other.decide(context)
        value = agent_of(name)._reader.value(decision.action, context, told(name, row)["parts"])
        one.learn(context, decision, **told(name, row))
        other.learn(context, decision, reward=value)
    assert manul.dumps(one.agent) == manul.dumps(other.agent)


def said(*arguments):
    """What a command prints; it must not fail."""
    result = CliRunner().invoke(main, [*map(str, arguments)], catch_exceptions=False)
    assert result.exit_code in (0, 1), result.output
    assert "Traceback" not in result.output
    return result.stdout


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_commands_evaluate_check_convert_and_optimise_for_a_formula(name, suffix, tmp_path):
    agent, log = logged(name)
    agent.save(tmp_path / "agent.manul")
    log.write(tmp_path / f"log{suffix}")
    command = "evaluate", tmp_path / "agent.manul", tmp_path / f"log{suffix}", "--estimator", "snips", "--json"
    (estimate,) = json.loads(said(*command, "--formula", f"{FORMULAS[name]} - 1"))["estimates"]
    assert estimate["reward"]["value"] == pytest.approx(log.rewards.mean() - 1, rel=1e-6)
    said("check", tmp_path / f"log{suffix}", "--policy", tmp_path / "agent.manul", "--formula", FORMULAS[name])
    said("inspect", tmp_path / "agent.manul", "--data", tmp_path / f"log{suffix}")
    if suffix == ".parquet":
        said("convert", tmp_path / "log.parquet", tmp_path / "log.jsonl")
        assert manul.Log.read(tmp_path / "log.jsonl", like=agent).parts.keys() == log.parts.keys()
        optimise = "optimize", tmp_path / "log.parquet", "--candidate", "auto", "--out", tmp_path / "new.manul"
        said(*optimise, "--formula", f"{FORMULAS[name]} - 1")
        assert manul.load(tmp_path / "new.manul").outcome.formula.endswith("- 1")
