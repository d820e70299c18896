"""Off-policy evaluation and optimization on logs with several knobs."""

import math

import numpy as np
import pytest

import manul
from manul.errors import InputError, ParameterError
from manul.logs.sample import Sample
from manul.offpolicy.evaluation.policy_densities import DRAWS, PolicyOnLog
from manul.offpolicy.optimization.verdict import Verdict

KNOBS = {"price": (10, 50), "days": manul.Stepped(1, 4, 1), "template": manul.Choice(["a", "b"])}
VOLUME = 40 * 4 * 2


def loss_of(action):
    return (
        0.1 + 0.4 * abs(action["price"] - 30) / 20 + 0.1 * (action["days"] - 1) / 3 + 0.2 * (action["template"] == "b")
    )


def play(agent, rounds):
    """The log of an agent that learns."""
    rng = np.random.default_rng(0)
    contexts, actions, decisions, losses = rng.random((rounds, 2)).astype(np.float32), [], [], []
    for context in contexts:
        decision = agent.decide(context)
        losses.append(loss_of(decision.action))
        agent.learn(context, decision, losses[-1])
        actions.append(decision.action)
        decisions.append(decision)
    by_knob = {name: np.array([each.densities[name] for each in decisions]) for name in KNOBS}
    columns = agent.space.columns_of(actions), np.array([each.density for each in decisions]), np.array(losses)
    return manul.Log(contexts, *columns, knobs=KNOBS, densities_by_knob=by_knob)


@pytest.fixture(scope="module")
def uniform():
    return play(manul.Auto(actions=KNOBS, epsilon=1.0, seed=1), 3000)


@pytest.fixture(scope="module")
def greedy(uniform):
    return manul.optimize(uniform).policy


def always(price, days, template):
    return lambda _: {"price": price, "days": days, "template": template}


def test_the_weights_of_a_function_are_those_of_its_windows(uniform):
    estimate = manul.evaluate(always(30, 1, "a"), uniform, "ips", bandwidth={"price": 8})
    matches = (abs(uniform.actions["price"] - 30) <= 8) & (uniform.actions["days"] == 1)
    weights = np.where(matches & (uniform.actions["template"] == "a"), 1 / 16 * VOLUME, 0.0)
    assert estimate.mean_weight == pytest.approx(weights.mean(), rel=1e-9)
    assert estimate.value == pytest.approx((weights * uniform.losses).mean(), rel=1e-9)


def test_a_function_that_sets_one_knob_has_the_weights_of_that_knob(uniform):
    estimate = manul.evaluate(lambda _: {"price": 30}, uniform, bandwidth={"price": 4})
    assert estimate.smoothing == "price ± 4"
    weights = np.where(abs(uniform.actions["price"] - 30) <= 4, 5.0, 0.0)
    assert estimate.mean_weight == pytest.approx(weights.mean())
    assert (estimate.estimator, estimate.objections) == ("dr", ())
    others = uniform.losses - 0.4 * abs(uniform.actions["price"] - 30) / 20
    assert estimate.value == pytest.approx(others.mean() + 0.4 * 2 / 20, abs=0.005)


def test_one_knob_alone_needs_densities_by_knob(uniform):
    columns = (uniform.contexts, uniform.actions, uniform.densities, uniform.losses)
    with pytest.raises(InputError, match="policy must set all knobs, because the log has no densities by knob"):
        manul.evaluate(lambda _: {"price": 30}, manul.Log(*columns, knobs=KNOBS))


def test_a_log_with_enough_such_decisions_has_an_interval_that_holds_the_truth(uniform):
    estimate = manul.evaluate(always(30, 1, "a"), uniform, bandwidth={"price": 20})
    assert (estimate.estimator, estimate.interval, estimate.objections) == ("dr", "normal", ())
    assert estimate.low < 0.1 + 0.4 / 2 < estimate.high


def test_a_policy_that_the_log_hardly_played_rests_on_a_model(greedy):
    estimate = manul.evaluate(greedy, play(manul.Auto(actions=KNOBS, epsilon=1.0, seed=2), 3000))
    assert (estimate.estimator, estimate.interval, estimate.usable) == ("dm", "none", True)
    assert math.isnan(estimate.low)
    assert [objection.title for objection in estimate.objections] == ["rests on a model"]
    assert estimate.value == pytest.approx(0.1, abs=0.05)
    assert str(estimate).startswith(f"{estimate.value:.4g} (no interval, dm), 3,000 rows")


@pytest.mark.parametrize("estimator", ["ips", "snips"])
def test_weights_far_from_1_are_refused(estimator):
    log = play(manul.Auto(actions=KNOBS, seed=1), 1000)
    estimate = manul.evaluate(always(40, 2, "a"), log, estimator, bandwidth={"price": 10})
    assert not estimate.usable
    assert estimate.objections[0].title == "mean weight"
    assert str(manul.compare([always(40, 2, "a")], log, bandwidth={"price": 10})).count("error: mean weight") == 1


def test_draws_follow_the_distribution_of_a_policy(uniform):
    agent = manul.Auto(actions=KNOBS, epsilon=0.5, nearby=0.3, seed=3)
    rows = next(Sample.of(uniform).pieces())
    draws, _ = PolicyOnLog(agent).points(rows)
    assert draws.shape == (3000, DRAWS, 3)
    assert draws[:, :, 0].mean() == pytest.approx(0.5, abs=0.02)  # untrained: uniform
    assert (draws[:, :, 2] == 1).mean() == pytest.approx(0.5, abs=0.02)


def test_batches_give_the_same_estimate(uniform, greedy):
    whole = manul.evaluate(greedy, uniform, "snips")
    parts = [uniform.rows(slice(first, first + 500)) for first in range(0, 3000, 500)]
    assert manul.evaluate(greedy, parts, "snips") == whole


def test_logs_with_named_contexts_are_evaluated_and_optimized(uniform):
    few = uniform.rows(slice(0, 500))
    table = {"city": ["Oslo", "Bergen"] * 250, "action": few.table["action"], "density": few.densities}
    log = manul.Log.from_table({**table, "loss": few.losses}, knobs=KNOBS)
    best = manul.optimize(log)
    assert set(best.policy.best({"city": "Oslo"})) == set(KNOBS)
    assert manul.evaluate(best.policy, log).estimator == "dm"


def test_a_policy_with_a_distribution_only_is_evaluated(uniform):
    class Uniform:
        agent = manul.Auto(actions=KNOBS)
        space = agent.space

        def distribution(self, context, within=None):
            return self.agent.distribution(context, within)

    few = uniform.rows(slice(0, 200))
    estimate = manul.evaluate(Uniform(), few)
    assert (estimate.estimator, estimate.mean_weight) == ("dr", pytest.approx(1.0))
    assert estimate.low < 0.45 < estimate.high


def test_narrowed_rows_are_evaluated_within_their_ranges(uniform):
    rows = slice(0, 200)
    within = [{"price": (20, 40), "template": ["a"]}] * 200
    inside = uniform.rows(rows)
    actions = {**inside.actions, "price": inside.actions["price"] / 2 + 15, "template": np.array(["a"] * 200, object)}
    log = manul.Log(inside.contexts, actions, np.full(200, 1 / 80), inside.losses, knobs=KNOBS, within=within)
    agent = manul.Auto(actions=KNOBS)  # uniform before it has learned
    assert manul.evaluate(agent, log, "ips").mean_weight == pytest.approx(1.0)


def test_optimize_finds_the_best_action_and_says_that_a_model_does(uniform, tmp_path):
    best = manul.optimize(uniform)
    assert best.verdict.status == "rests on a model"
    assert "by a model. The log cannot confirm it: 14 of 3,000 decisions match" in str(best)
    assert best.verdict.gain == pytest.approx(uniform.losses.mean() - 0.1, abs=0.05)
    best.save(tmp_path / "best.manul")
    policy = manul.load(tmp_path / "best.manul")
    action = policy.best([0.5, 0.5])
    assert loss_of(action) < 0.15
    assert policy.decide([0.5, 0.5]).density > 0


def test_optimize_can_prove_a_gain_if_the_log_supports_it():
    choices = {"template": manul.Choice(["a", "b"]), "days": manul.Stepped(1, 2, 1)}
    rng = np.random.default_rng(0)
    template, days = rng.integers(0, 2, 2000), rng.integers(1, 3, 2000)
    actions = {"template": np.array(["a", "b"], object)[template], "days": days.astype(float)}
    losses = 0.2 + 0.4 * template + 0.2 * (days - 1)
    log = manul.Log(rng.random((2000, 2), np.float32), actions, np.full(2000, 0.25), losses, knobs=choices)
    best = manul.optimize(log)
    assert (best.verdict.status, best.policy.best([0.5, 0.5])) == ("proven", {"template": "a", "days": 1.0})


def test_single_rows_give_the_same_policy(uniform):
    few = uniform.rows(slice(0, 300))
    single = [few.rows(slice(row, row + 1)) for row in range(300)]
    assert str(manul.optimize(single)) == str(manul.optimize(few))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"candidates": "cats"}, "Trees set one knob, but the log has price, days, template. Use candidates='auto'."),
        ({"grid": manul.offpolicy.Grid.small()}, "Trees set one knob"),
        ({"actions": (0, 1)}, "actions applies to logs with one knob"),
    ],
)
def test_what_applies_to_one_knob_is_refused(uniform, settings, sentence):
    with pytest.raises(ParameterError, match=sentence):
        manul.optimize(uniform, **settings)


@pytest.mark.parametrize(
    ("policy", "settings", "sentence"),
    [
        (
            manul.Cats(leaves=4, bandwidth=1 / 4),
            {},
            "has the knobs price, days, template, but the policy sets one number",
        ),
        (manul.Auto(actions={"price": (10, 50)}), {}, "but the policy sets price"),
        (manul.Auto(actions={**KNOBS, "price": (10, 60)}), {}, "The knob price of the log is"),
        (lambda _: 3.0, {}, "policy must return a mapping of price, days, template to values, got 3.0"),
        (lambda _: {"price": 20, "days": 1.5, "template": "a"}, {}, "days must be one of 1, 2, …, 4, got 1.5"),
        (lambda _: {}, {}, "policy must return a mapping of price, days, template to values, got {}"),
        (lambda _: {"price": 3}, {}, r"price must be in \[10, 50\], got 3"),
        (lambda _: {"cost": 3}, {}, "action has an unknown knob 'cost'"),
        (lambda _: {"template": "a"}, {}, "policy must set price too, because it depends on template"),
        (always(30, 1, "a"), {"bandwidth": {"price": "wide"}}, r"bandwidth of price must be in \(0, 20\], got 'wide'"),
        (always(30, 1, "a"), {"bandwidth": 3.0}, "bandwidth must map knobs to half-widths, got 3.0"),
        (always(30, 1, "a"), {"bandwidth": {"days": 1}}, "bandwidth must name knobs that are ranges, got 'days'"),
        (always(30, 1, "a"), {"bandwidth": {"price": 30}}, r"bandwidth of price must be in \(0, 20\], got 30"),
        (always(30, 1, "a"), {"interval": "sequence"}, "interval must be 'bootstrap' or 'normal'"),
        (3.0, {}, "policy must have a method distribution or be a function of a context, got 3.0"),
    ],
)
def test_a_policy_that_does_not_fit_is_one_sentence(uniform, policy, settings, sentence):
    with pytest.raises((ParameterError, InputError), match=sentence):
        manul.evaluate(policy, uniform, **settings)


def test_a_policy_with_several_knobs_does_not_fit_a_log_with_one():
    log = manul.Log(np.zeros((2, 1), np.float32), np.ones(2), np.ones(2), np.ones(2))
    with pytest.raises(
        ParameterError, match="A log with one knob takes policies with one knob, but this one sets price"
    ):
        manul.evaluate(manul.Auto(actions={"price": (10, 50), "days": (1, 2)}), log)


def test_estimated_densities_are_refused(uniform):
    columns = (uniform.contexts, uniform.actions, uniform.densities, uniform.losses)
    log = manul.Log(*columns, knobs=KNOBS, densities_estimated=True)
    for function in (lambda: manul.evaluate(always(30, 1, "a"), log), lambda: manul.optimize(log)):
        with pytest.raises(InputError, match="With several knobs, densities must be logged"):
            function()


def test_a_model_that_expects_no_gain_does_not_advise_to_try_the_policy():
    support = {"rows": 500, "effective_size": 3.0, "supported": False}
    verdict = Verdict((0.5, math.nan), -0.1, math.nan, math.nan, math.nan, logged=(0.4, 0.01), greedy=None, **support)
    assert str(verdict).endswith("Keep the logged policy, or log more decisions.")


def test_a_model_is_not_said_to_need_100_matching_decisions_that_the_log_has():
    support = {"rows": 2000, "effective_size": 300.0, "supported": False}
    verdict = Verdict((0.5, math.nan), 0.1, math.nan, math.nan, math.nan, logged=(0.6, 0.01), greedy=None, **support)
    assert "300 of 2,000 decisions match those of the policy, but the log misses many others" in str(verdict)
