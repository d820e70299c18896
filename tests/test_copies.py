"""Copies of every agent, policy, log and result: by pickle, copy and joblib, equal in what they do next, and with nothing in common."""

import copy
import dataclasses
import io
import pickle
import sys
import tempfile
from functools import cache

import joblib
import numpy as np
import pytest

import manul
from manul.actions.distributions import Distributions
from manul.actions.kinds.knob import KINDS as KNOB_KINDS
from manul.actions.schedules import SCHEDULES, as_schedule
from manul.checks import agent_checks, policy_checks
from manul.errors import InputError
from manul.inspection.inspect import inspect
from manul.offpolicy.evaluation.estimators import ESTIMATORS
from manul.offpolicy.evaluation.intervals import INTERVALS, is_bounded
from manul.utils import model_files
from tests.recorded_values import LEFT_OUT
from tests.saved_agents import KINDS, NAMED
from tests.saved_agents import saved as saved_bytes


def through_joblib(value):
    file = io.BytesIO()
    joblib.dump(value, file)
    file.seek(0)
    return joblib.load(file)


COPIES = {
    "pickle": lambda value: pickle.loads(pickle.dumps(value)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "joblib": through_joblib,
}
CONTEXTS = np.random.default_rng(0).standard_normal((20, 3)).astype(np.float32)


class Shares:
    """A policy class that files do not know: shares of the first number of the context."""

    def start(self, width, actions, bandwidth):
        return ShareLearner()


class ShareLearner:
    def __init__(self):
        self.share = 0.5

    def action(self, context, within):
        return min(max(self.share * float(context[0]), 0.0), 1.0)

    def learn(self, context, decision, loss):
        self.share += 0.1 * (decision.action - self.share) * (1 - loss)

    def state(self):
        return {"share": np.array([self.share])}

    def restore(self, arrays):
        self.share = float(arrays["share"][0])


def doubled(row):
    """A feature map that files do not know."""
    return np.concatenate([row, 2 * row])


def middle(_):
    """A policy as a function."""
    return 0.5


class OwnAuto(manul.Auto):
    """A subclass that files do not know."""


KNOBS = {"price": (10, 50), "days": manul.Stepped(1, 9, 1), "template": manul.Choice(["a", "b"])}
SALE = {"actions": (1.0, 9.0), "outcome": manul.Sale(cost=1.0), "seed": 3}
OWN = {
    "own-map": lambda: manul.Mapped(agent=manul.Auto(), features=doubled),
    "own-policies": lambda: manul.agents.SmoothedGreedy(policies=Shares(), bandwidth=1 / 4),
    "own-policies-pareto": lambda: manul.agents.ParetoGreedy(policies=Shares(), bandwidths=(1 / 4, 1 / 8)),
    "functions": lambda: manul.agents.SmoothedGreedy(policies=manul.policies.Finite([middle]), bandwidth=1 / 4),
    "own-class": lambda: OwnAuto(seed=3),
    "rollout-own-map": lambda: manul.Rollout(OWN["own-map"](), baseline=0.5, budget=1e9),
    "formula": lambda: manul.Auto(**SALE),
    "budget": lambda: manul.Auto(
        actions=(0.0, 9.0), outcome=manul.Bid(), seed=3, spend_at_most=("won * action", 50.0, 10)
    ),
    "limits": lambda: manul.Auto(actions=KNOBS, limits=["days <= 5 if price > 20"], seed=3),
    "rollout-limits": lambda: manul.Rollout(
        OWN["limits"](), baseline={"price": 20, "days": 3, "template": "b"}, budget=1e9
    ),
    "keep": lambda: manul.Auto(**SALE, keep=("bought", ">=", 0.2)),
}
AGENTS = dict(agent_checks.discover()) | {name: lambda _, make=make: make() for name, make in OWN.items()}


def outcome_told(agent, number):
    parts = {name: number % 3 == 0 if kind == "yes/no" else 4.0 for name, kind in agent.outcome.parts.items()}
    return {"parts": parts} if parts else agent.outcome.told(number % 5 / 5)


def play(agent, rounds, first=0):
    decisions = []
    for number in range(first, first + rounds):
        context = CONTEXTS[number % len(CONTEXTS)]
        decisions.append(agent.decide(context))
        agent.learn(context, decisions[-1], **outcome_told(agent, number))
    return [tuple(each)[:5] for each in decisions]


@cache
def learned(name):
    agent = AGENTS[name](7)
    play(agent, 60)
    return agent


@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize("name", AGENTS)
def test_a_copy_of_an_agent_decides_and_learns_alike_and_shares_nothing(name, way):
    agent = learned(name)
    one, two, three = (COPIES[way](agent) for _ in range(3))
    assert type(one) is type(agent)
    assert repr(one).partition(" at 0x")[0] == repr(agent).partition(" at 0x")[0]
    first = play(one, 25)
    assert play(two, 25) == first  # the original has not moved when the first copy learned
    assert play(COPIES[way](three), 25) == first


@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize("name", [name for name in KINDS if name not in LEFT_OUT])
def test_a_copy_of_what_a_file_can_hold_has_its_bytes(name, way):
    agent = manul.loads(saved_bytes(name))
    assert manul.dumps(COPIES[way](agent)) == manul.dumps(agent)


def trained_tree(classifier):
    log = manul.simulate(manul.Cats(leaves=4, bandwidth=1 / 4), manul.worlds.linear(rounds=300, width=3)).log
    return manul.policies.train_tree(log, leaves=4, bandwidth=1 / 4, classifier=classifier)


def forest():
    from sklearn.tree import DecisionTreeClassifier

    return trained_tree(DecisionTreeClassifier(max_depth=2))  # which files do not hold


POLICIES = {name: lambda make=make: make(7) for name, make in policy_checks.discover_policies()} | {"forest": forest}


@cache
def policy_of(name):
    return POLICIES[name]()


@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize("name", POLICIES)
def test_a_copy_of_a_policy_plays_alike(name, way):
    one, other = policy_of(name), COPIES[way](policy_of(name))
    assert type(one) is type(other)
    assert all(same(one.distribution(row), other.distribution(row)) for row in CONTEXTS)


def same(one, other):
    """Whether two values are equal in all that they consist of."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    if isinstance(one, manul.Log):
        parts = ("space", "outcome", "schema", "within", "densities_estimated")
        return one.to_arrow().equals(other.to_arrow()) and all(
            getattr(one, each) == getattr(other, each) for each in parts
        )
    if isinstance(one, model_files.FileMixin):
        return manul.dumps(one) == manul.dumps(other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
    if isinstance(one, tuple | list | Distributions):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float):
        return one == other or (one != one and other != other)
    if dataclasses.is_dataclass(one):
        return all(same(getattr(one, field.name), getattr(other, field.name)) for field in dataclasses.fields(one))
    return one == other or (hasattr(one, "__dict__") and same(vars(one), vars(other)))


def decided(contexts, agent=None, **kinds):
    agent = agent or manul.Auto(seed=7, epsilon=0.3, **kinds)
    decisions = agent.decide_many(contexts, levels=agent.tells_levels)
    losses = np.linspace(0, 1, len(contexts))
    if agent.outcome.parts:
        return manul.Log(contexts, decisions, parts=dict.fromkeys(agent.outcome.parts, losses > 0.5), like=agent)
    return manul.Log(contexts, decisions, **{agent.outcome.keywords: losses}, like=agent)


SPARSE = [{f"word{number % 4}": 1.0} for number in range(20)]
DATED = [
    {"at": np.datetime64("2024-02-01") + number, "tags": ["x"] * (number % 3), "age": None} for number in range(20)
]
LOGS = {
    "rows": lambda: decided(CONTEXTS),
    "no contexts": lambda: decided(np.empty((20, 0))),
    "named": lambda: decided(NAMED[:20]),
    "dated": lambda: decided(DATED),
    "sparse": lambda: decided(SPARSE),
    "knobs": lambda: decided(CONTEXTS, actions=KNOBS),
    "limits": lambda: decided(CONTEXTS, actions=KNOBS, limits=["days <= 5 if price > 20"]),
    "rewards": lambda: decided(CONTEXTS, rewards=(0.0, 1.0)),
    "parts": lambda: decided(NAMED[:20], actions=(1.0, 9.0), outcome=manul.Sale()),
    "rollout": lambda: decided(CONTEXTS, manul.Rollout(manul.Auto(), baseline=0.5)),
    "estimated": lambda: manul.offpolicy.estimate_densities(
        manul.Log(np.tile(CONTEXTS, (10, 1)), np.linspace(0, 1, 200), np.ones(200), np.zeros(200))
    ),
    "empty": lambda: decided(CONTEXTS).rows(slice(0)),
}


@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize("name", LOGS)
def test_a_copy_of_a_log_has_all_of_it(name, way):
    log = LOGS[name]()
    assert same(COPIES[way](log), log)


@cache
def run():
    agent = manul.Cats(leaves=4, bandwidth=1 / 4, losses=(0.0, 1.0))
    return manul.simulate(agent, manul.worlds.linear(rounds=1000, width=2))


@cache
def best():
    return manul.optimize(run().log)


def ended_rollout():
    rollout = manul.Rollout(manul.Auto(seed=7, epsilon=0.1), baseline=0.5, steps=(0.5,), budget=1e9)
    play(rollout, 60)
    return rollout


def limited():
    agent = OWN["budget"]()
    play(agent, 30)
    return agent


def inspected(agent):
    with tempfile.TemporaryDirectory() as folder:
        agent.save(f"{folder}/agent.manul")
        return inspect(f"{folder}/agent.manul", CONTEXTS[0].tolist())


def evaluated(estimator, interval):
    bound = 50.0 if is_bounded(interval) or interval == "empirical-likelihood" else None
    return manul.evaluate(manul.Cats(leaves=4, bandwidth=1 / 4), run().log, estimator, interval, largest_weight=bound)


def reported(agent):
    return agent.report(CONTEXTS[0])


RESULTS = {
    **{
        f"estimate {estimator} {interval}": lambda each=(estimator, interval): evaluated(*each)
        for estimator in ESTIMATORS.names()
        for interval in ESTIMATORS[estimator].intervals or INTERVALS.names()
    },
    "estimate without an interval": lambda: evaluated("snips", "none"),
    "estimate of rewards": lambda: manul.evaluate(middle, LOGS["rewards"](), bandwidth=0.2),
    "comparison": lambda: manul.compare({"new": middle}, run().log, bandwidth=0.2),
    "findings": lambda: manul.doctor(run().log),
    "run": run,
    "optimized": best,
    "optimized tree": lambda: manul.optimize(run().log, grid=manul.offpolicy.Grid(bandwidths=(1 / 4,), leaves=(4,))),
    "restrained": lambda: manul.offpolicy.optimize_without_densities(run().log),
    "verdict": lambda: best().verdict,
    "candidates": lambda: best().table,
    "grid": manul.offpolicy.Grid.small,
    "evidence": lambda: ended_rollout().evidence,
    "rollout plan": lambda: ended_rollout().plan,
    "report": lambda: reported(learned("Auto 0")),
    "report of a formula": lambda: reported(learned("formula")),
    "report of a budget": lambda: reported(limited()),
    "effects": lambda: manul.inspection.effects(learned("Auto 0"), CONTEXTS),
    "inspection": lambda: inspected(learned("Auto 0")),
    "distribution": lambda: learned("Auto 0").distribution(CONTEXTS[0]),
    "atoms": lambda: manul.agents.DiscreteTree(leaves=8).distribution(CONTEXTS[0]),
    "joint distribution": lambda: decided_knobs().distribution(CONTEXTS[0]),
    "decision": lambda: decided_knobs().decide(CONTEXTS[0], levels=True),
    "decisions": lambda: decided_knobs().decide_many(CONTEXTS, levels=True),
    "space": lambda: manul.ActionSpace(KNOBS, ["days <= 5 if price > 20"]),
    "schema": lambda: decided(DATED).schema,
    "outcome": lambda: manul.Sale(wait=manul.Wait(60, default={"bought": False})),
    "bid": manul.Bid,
    "map": lambda: manul.maps.Columns.fit({"city": ["a", "b"], "age": [1.0, None]}),
    "world": lambda: manul.worlds.linear(rounds=10, width=2),
    **{f"schedule {name}": SCHEDULES[name] for name in SCHEDULES.names()},
    "number as a schedule": lambda: as_schedule(0.05),
}


def decided_knobs():
    return manul.Auto(actions=KNOBS, seed=7)


@cache
def result_of(name):
    return RESULTS[name]()


@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize("name", RESULTS)
def test_a_copy_of_a_result_is_equal(name, way):
    value = result_of(name)
    other = COPIES[way](value)
    assert same(other, value)
    assert str(other).partition(" at 0x")[0] == str(value).partition(" at 0x")[0]


@pytest.mark.parametrize("way", COPIES)
def test_what_the_policy_of_a_copied_result_learns_does_not_change_the_original(way):
    before, policy = manul.dumps(best().policy), COPIES[way](best()).policy
    policy.learn([0.5, 0.2], policy.decide([0.5, 0.2]), 0.1)
    assert manul.dumps(policy) != before
    assert manul.dumps(best().policy) == before


@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize("actions", [(0.0, 1.0), KNOBS], ids=["number", "knobs"])
def test_copied_distributions_stay_valid_when_the_agent_learns(actions, way):
    agent = manul.Auto(actions=actions, seed=7)
    play(agent, 30)
    rows = agent.distributions(CONTEXTS)
    other, drawn = COPIES[way](rows), agent.decide_many(CONTEXTS)
    expected = rows.density(drawn.actions)
    play(agent, 10)
    np.testing.assert_allclose(other.density(drawn.actions), expected, rtol=1e-12)


@pytest.mark.parametrize("way", COPIES)
def test_a_distribution_with_limits_is_refused_in_one_sentence(way):
    with pytest.raises(InputError, match=r"is a view of its agent and has no copy\. Copy the agent"):
        COPIES[way](OWN["limits"]().distribution(CONTEXTS[0]))


def test_every_kind_of_value_that_notebooks_show_is_tried():
    modules = [module for name, module in [*sys.modules.items()] if name.startswith("manul.")]
    kinds = {kind for module in modules for kind in vars(module).values() if isinstance(kind, type)}
    values = [*map(result_of, RESULTS), LOGS["rows"](), *(make(0) for make in AGENTS.values())]
    tried = {kind for value in values for kind in type(value).__mro__}
    own = {kind for kind in kinds if kind.__module__.startswith("manul.")}
    assert {kind for kind in own if "_repr_html_" in vars(kind)} <= tried


@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize("name", KNOB_KINDS.names())
def test_a_copy_of_a_knob_is_equal(name, way):
    knob = {"span": (0.0, 2.0), "steps": manul.Stepped(1, 9, 2), "choice": manul.Choice(["a", 3])}[name]
    space = manul.ActionSpace(knob)
    assert COPIES[way](space) == space
