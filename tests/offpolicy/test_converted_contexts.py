"""Contexts of logs, as agents and functions get them; and those of format 1, in which dates, flags and lists were numbers."""

import datetime
import json

import numpy as np
import pyarrow as pa
import pytest

import manul
from manul.logs.sample import Sample
from manul.offpolicy.evaluation.policy_densities import PolicyOnLog
from manul.offpolicy.smoothed import Smoothed

DAYS = [datetime.date(2024, 1, 1) + datetime.timedelta(days=day) for day in range(400)]


def small_log(contexts):
    return manul.Log(contexts, *np.ones((3, len(contexts))))


def test_a_method_of_an_agent_gets_what_the_agent_got():
    agent = manul.Auto(epsilon=0.2)
    log = small_log([{"x": 1.0, "age": None}, {"x": 2.0, "age": 30}])
    (rows,) = Sample.of(log).pieces()
    assert PolicyOnLog(Smoothed(agent.best, 0.1, (0, 1))).inputs(rows) == rows.to_dicts()
    assert rows.to_dicts()[0] == {"x": 1.0, "age": None}


def test_functions_get_contexts_without_missing_values():
    log = small_log([{"x": 1.0, "city": None}, {"x": 2.0, "city": "a"}])
    assert [tuple(context) for context in next(Sample.of(log).pieces()).function_inputs()] == [("x",), ("x", "city")]


def test_a_field_that_one_batch_lacks_is_missing_there():
    logs = [small_log([context]) for context in ({"a": 1.0}, {"a": 2.0, "b": None}, {"a": None, "b": "x"})]
    assert next(Sample.of(logs).pieces()).to_dicts() == [
        {"a": 1.0, "b": None},
        {"a": 2.0, "b": None},
        {"a": None, "b": "x"},
    ]


@pytest.mark.parametrize(("one", "other"), [(True, None), (None, False), (DAYS[0], None), (["a"], None)])
def test_batches_with_missing_values_only_do_not_change_the_type_of_others(one, other):
    (rows,) = Sample.of([small_log([{"field": one}]), small_log([{"field": other}])]).pieces()
    assert [row["field"] for row in rows.to_dicts()] == [one, other]


def of_format_1(columns, converted):
    """A table with the metadata of an older version."""
    changes = {"absent": [], "converted": converted}
    ranges = {"action_range": [0.0, 1.0], "loss_range": None, "names": None, "width": None}
    metadata = {"format": 1, "changes": changes, **ranges}
    return pa.table(columns).replace_schema_metadata({b"manul": json.dumps(metadata).encode()})


@pytest.fixture(scope="module")
def dated():
    """A log of format 1 whose contexts had dates."""
    rng = np.random.default_rng(1)
    days = [DAYS[number] for number in rng.integers(len(DAYS), size=1500)]
    best, actions = np.array([0.2 + 0.6 * (day.weekday() >= 5) for day in days]), rng.random(1500)
    seconds = [86400.0 * (day - datetime.date(1970, 1, 1)).days for day in days]
    columns = {"at": seconds, "action": actions, "density": np.ones(1500), "loss": abs(actions - best)}
    return manul.Log.from_table(of_format_1({**columns, "floor": np.ones(1500)}, {"at": "date"}))


@pytest.fixture(scope="module")
def optimized(dated):
    return manul.optimize(dated, candidates="auto")


def test_the_dates_of_format_1_are_read_as_they_were_written(dated):
    assert dated.schema.fields["at"].kind == "number"
    assert dated.action_range == (0, 1)


def test_a_gain_on_contexts_that_had_dates_is_not_shown(optimized):
    assert optimized.verdict.status == "not shown"
    assert not optimized.usable
    assert "The log has dates (at) as seconds since 1970" in str(optimized)
    assert "Export the log again with this version" in str(optimized)


@pytest.mark.parametrize("way", ["memory", ".parquet", "pandas", "split"])
def test_an_estimate_of_a_policy_on_contexts_that_had_dates_is_an_error(dated, optimized, way, tmp_path):
    dated.write(tmp_path / "log.parquet")
    log = {
        "memory": lambda: dated,
        ".parquet": lambda: manul.Log.read(tmp_path / "log.parquet"),
        "pandas": lambda: manul.Log.from_pandas(dated.to_pandas()),
        "split": lambda: dated.split(0.5)[1],
    }[way]()
    estimate = manul.evaluate(optimized.policy, log)
    assert "contexts had dates or lists" in [each.title for each in estimate.objections if each.severity == "error"]
    (row,) = manul.compare([optimized.policy], log)
    assert row.verdict == "not shown"


def test_a_function_of_the_log_may_be_evaluated_on_contexts_that_had_dates(dated):
    assert manul.evaluate(lambda _: 0.3, dated, bandwidth=0.1).objections == ()


def test_the_doctor_warns_of_dates_and_objects_to_policies(dated, optimized):
    severities = [
        [each.severity for each in manul.offpolicy.doctor(dated, policy) if each.title == "contexts had dates or lists"]
        for policy in (None, optimized.policy)
    ]
    assert severities == [["warning"], ["error"]]


def test_estimated_densities_are_no_way_around_the_objection(dated):
    result = manul.offpolicy.optimize_without_densities(dated.rows(slice(400)))
    assert result.estimate is None
    assert "The log has dates (at)" in result.refusal


@pytest.mark.parametrize(("values", "kind"), [([1.0, 0.0, None], "flag"), ([1.0, 2.0, None], "number")])
def test_the_flags_of_format_1_are_flags_again(values, kind):
    ones = {name: np.ones(3) for name in ("action", "density", "loss")}
    log = manul.Log.from_table(of_format_1({"vip": values, **ones}, {"vip": "flag"}))
    assert log.schema.fields["vip"].kind == kind
    assert log.converted == {}


def test_an_agent_that_learned_flags_as_numbers_takes_flags():
    agent = manul.Auto()
    for vip in (0.0, 1.0) * 10:
        agent.learn({"vip": vip}, agent.decide({"vip": vip}), vip)
    assert agent.best({"vip": True}) == agent.best({"vip": 1.0})


def test_a_gain_on_dates_is_proven_by_a_log_that_keeps_them(tmp_path):
    rng = np.random.default_rng(1)
    contexts = [{"at": DAYS[number]} for number in rng.integers(len(DAYS), size=1500)]
    best, actions = np.array([0.2 + 0.6 * (each["at"].weekday() >= 5) for each in contexts]), rng.random(1500)
    log = manul.Log(contexts, actions, np.ones(1500), abs(actions - best), floors=np.ones(1500))
    log.write(tmp_path / "log.parquet")
    optimized = manul.optimize([*manul.Log.batches(tmp_path / "log.parquet", 400)], candidates="auto")
    assert optimized.verdict.status == "proven"
    assert optimized.policy.best({"at": datetime.date(2026, 11, 14)}) == pytest.approx(0.8, abs=0.1)
