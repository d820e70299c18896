"""Contexts of a log that are not those of the decisions: missing values, flags, dates and lists."""

import datetime

import numpy as np
import pyarrow as pa
import pytest

import manul
from manul.logs.sample import Sample
from manul.offpolicy.evaluation.policy_densities import PolicyOnLog
from manul.offpolicy.smoothed import Smoothed

ROWS = 300
DAYS = [datetime.date(2024, 1, 1) + datetime.timedelta(days=day) for day in range(400)]


def fields(kind, rng):
    """A field of a context, which may be missing or absent."""
    gone = rng.random() < 1 / 3
    values = {
        "number": {"age": float(rng.integers(80))},
        "text": {"city": "ab"[rng.integers(2)]},
        "flag": {"vip": bool(rng.random() < 0.5)},
        "missing number": {"age": None if gone else float(rng.integers(80))},
        "missing text": {"city": None if gone else "ab"[rng.integers(2)]},
        "missing flag": {"vip": None if gone else bool(rng.random() < 0.5)},
        "absent number": {} if gone else {"age": float(rng.integers(80))},
        "absent text": {} if gone else {"city": "ab"[rng.integers(2)]},
        "date": {"at": DAYS[rng.integers(len(DAYS))]},
    }
    return values[kind]


def frozen_log(agent, kind, **more):
    """The log of an agent that has learned before and does not learn any more."""
    rng = np.random.default_rng(0)
    for _ in range(ROWS):
        context = {"x": rng.normal(), **fields(kind, rng)}
        decision = agent.decide(context)
        agent.learn(
            context, decision, abs(decision.action - 0.2 - 0.5 * (len(context) == 1 or None in context.values()))
        )
    contexts = [{"x": rng.normal(), **fields(kind, rng)} for _ in range(ROWS)]
    decisions = [agent.decide(context) for context in contexts]
    columns = ([each.action for each in decisions], [each.density for each in decisions], rng.random(ROWS))
    return manul.Log(contexts, *map(np.array, columns), **more)


AGENTS = {"auto": lambda: manul.Auto(epsilon=0.2), "cats": lambda: manul.Cats(leaves=8, bandwidth=1 / 8, epsilon=0.2)}
SAME_EVERYWHERE = ["missing number", "missing text", "absent number", "absent text"]
WAYS = ["memory", ".parquet", ".jsonl", ".csv", "pandas", "arrow", "batches"]
CASES = [(kind, way) for kind in SAME_EVERYWHERE for way in WAYS]
CASES += [(kind, way) for kind in ("flag", "missing flag") for way in WAYS if way != ".csv"]


def through(log, way, folder):
    if way.startswith("."):
        log.write(folder / f"log{way}")
        return manul.Log.read(folder / f"log{way}")
    if way == "batches":
        return [log.rows(slice(start, start + 100)) for start in range(0, len(log), 100)]
    return {"memory": lambda: log, "pandas": lambda: manul.Log.from_pandas(log.to_pandas())}.get(
        way, lambda: manul.Log.from_arrow(log.to_arrow())
    )()


@pytest.mark.parametrize("name", AGENTS)
@pytest.mark.parametrize(("kind", "way"), CASES)
def test_an_agent_on_its_own_log_states_the_densities_that_it_logged(name, kind, way, tmp_path):
    agent = AGENTS[name]()
    log = through(frozen_log(agent, kind), way, tmp_path)
    own = np.concatenate([PolicyOnLog(agent).densities(rows) for rows in Sample.of(log).pieces()])
    logged = np.concatenate([rows.densities for rows in Sample.of(log).pieces()])
    np.testing.assert_allclose(own, logged, rtol=1e-12)


def test_a_method_of_an_agent_gets_what_the_agent_got():
    agent = manul.Auto(epsilon=0.2)
    log = frozen_log(agent, "missing number")
    (rows,) = Sample.of(log).pieces()
    assert PolicyOnLog(Smoothed(agent.best, 0.1, (0, 1))).inputs(rows) == rows.to_dicts()
    assert None in {context["age"] for context in rows.to_dicts()}
    manul.evaluate(agent.best, log, bandwidth=0.1)


def test_functions_get_contexts_without_missing_values():
    log = frozen_log(manul.Auto(epsilon=0.2), "missing text")
    keys = {tuple(context) for context in next(Sample.of(log).pieces()).function_inputs()}
    assert keys == {("x",), ("x", "city")}


def test_a_field_that_one_batch_lacks_is_absent_there_and_missing_elsewhere():
    outcomes = np.ones(1), np.ones(1), np.ones(1)
    logs = [manul.Log([context], *outcomes) for context in ({"a": 1.0}, {"a": 2.0, "b": None}, {"a": None, "b": "x"})]
    assert next(Sample.of(logs).pieces()).to_dicts() == [{"a": 1.0}, {"a": 2.0, "b": None}, {"a": None, "b": "x"}]


@pytest.fixture(scope="module")
def dated():
    """A log whose contexts had dates, and the policy trained on it."""
    rng = np.random.default_rng(1)
    contexts = [fields("date", rng) for _ in range(1500)]
    best = np.array([0.2 + 0.6 * (context["at"].weekday() >= 5) for context in contexts])
    actions = rng.random(1500)
    return manul.Log(contexts, actions, np.ones(1500), abs(actions - best), floors=np.ones(1500))


@pytest.fixture(scope="module")
def optimized(dated):
    return manul.optimize(dated, candidates="auto")


def test_a_gain_on_contexts_that_had_dates_is_not_shown(optimized):
    assert optimized.verdict.status == "not shown"
    assert not optimized.usable
    assert "The log has dates (at) as seconds since 1970" in str(optimized)
    assert "Pass what matters as fields of its own to decide and to the log" in str(optimized)


@pytest.mark.parametrize("way", ["memory", ".parquet", "pandas", "arrow", "split"])
def test_an_estimate_of_a_policy_on_contexts_that_had_dates_is_an_error(dated, optimized, way, tmp_path):
    log = dated.split(0.5)[1] if way == "split" else through(dated, way, tmp_path)
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


def test_dates_of_json_lines_are_noticed(tmp_path):
    line = '{"at": {"$date": "2024-02-29"}, "vip": true, "action": 0.5, "density": 1, "loss": 0}\n'
    (tmp_path / "log.jsonl").write_text(line * 3)
    assert manul.Log.read(tmp_path / "log.jsonl").context_changes.converted == {"at": "date", "vip": "flag"}


def test_a_policy_trained_on_flags_decides_alike_on_flags_and_numbers():
    rng = np.random.default_rng(2)
    flags = rng.random(800) < 0.5
    actions = rng.random(800)
    columns = {"vip": flags, "action": actions, "density": np.ones(800), "loss": abs(actions - 0.2 - 0.5 * flags)}
    for candidate in ("auto", "cats"):
        best = manul.optimize(manul.Log.from_table(pa.table(columns)), candidates=candidate)
        assert best.usable
        one, other = (best.policy.distribution({"vip": value}).mean() for value in (True, 1.0))
        assert one == other
        assert best.policy.distribution({"vip": False}).mean() < one


def test_a_log_with_several_knobs_has_the_objection_too():
    rng = np.random.default_rng(3)
    contexts = [fields("date", rng) for _ in range(300)]
    actions = {"price": rng.uniform(10, 50, 300), "discount": rng.uniform(0, 0.3, 300)}
    ranges = {"price": (10, 50), "discount": (0, 0.3)}
    log = manul.Log(contexts, actions, np.full(300, 1 / 12), rng.random(300), knobs=ranges)
    assert manul.optimize(log).verdict.status == "not shown"


def test_estimated_densities_are_no_way_around_the_objection(dated):
    result = manul.offpolicy.optimize_without_densities(dated.rows(slice(400)))
    assert result.estimate is None
    assert "The log has dates (at)" in result.refusal
