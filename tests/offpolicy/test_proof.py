"""What logs prove that keep what their actions were drawn from, whatever their actions, contexts and outcomes are."""

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.rollout import MEAN, fixed_sample

import manul
from manul.actions.levels import KnobLevels
from manul.agents.rollout.rollout_plan import RolloutPlan
from manul.agents.rollout.sample_size import decisions_needed
from manul.offpolicy.evaluation import exact_mass
from manul.offpolicy.evaluation.exact_mass import ExactMass, PolicyTerms
from manul.offpolicy.evaluation.piece_masses import Masses
from manul.outcomes import Outcome


def simulated(rounds=3000, **settings):
    agent = manul.Cats(leaves=16, bandwidth=1 / 8, epsilon=0.1, seed=1, **settings)
    return manul.simulate(agent, manul.worlds.linear(rounds=rounds, width=3, seed=2)).log


@pytest.fixture(scope="module")
def log():
    return simulated()


@pytest.fixture(scope="module")
def policy():
    """An agent that has learned from other rows."""
    agent = manul.Cats(leaves=32, bandwidth=1 / 16, epsilon=0.02, seed=3)
    manul.simulate(agent, manul.worlds.linear(rounds=3000, width=3, seed=4))
    return agent


def without_levels(log, **changes):
    given = {"floors": log.floors, "action_range": log.action_range, "loss_range": log.loss_range} | changes
    return manul.Log(log.contexts, log.actions, log.densities, log.losses, **given)


def ends(estimate):
    return estimate.low, estimate.high


def test_the_interval_is_exact_if_the_log_keeps_what_its_actions_were_drawn_from(log, policy):
    assert manul.evaluate(policy, log).interval == "exact-mass"
    assert manul.evaluate(policy, without_levels(log)).interval == "empirical-likelihood"
    assert manul.evaluate(policy, log, interval="empirical-likelihood").interval == "empirical-likelihood"
    assert manul.evaluate(policy, log, largest_weight=1000).interval == "empirical-likelihood"


def test_the_older_interval_is_that_of_a_log_without_levels(log, policy):
    older = manul.evaluate(policy, without_levels(log))
    assert ends(manul.evaluate(policy, log, interval="empirical-likelihood")) == pytest.approx(ends(older), abs=1e-9)


def test_an_exact_interval_of_a_log_without_levels_is_refused(log, policy):
    with pytest.raises(manul.errors.InputError, match=r"interval exact-mass needs a log that keeps .* Try empirical-l"):
        manul.evaluate(policy, without_levels(log), interval="exact-mass")


def test_one_row_without_levels_gives_the_older_interval(log, policy):
    levels = log.levels[""]
    some = KnobLevels.join([levels.select(slice(0, -1)), levels.unknown(1)])
    changed = without_levels(log, levels={"": some})
    assert manul.evaluate(policy, changed).interval == "empirical-likelihood"
    assert ends(manul.evaluate(policy, changed)) == pytest.approx(ends(manul.evaluate(policy, without_levels(log))))
    (row,), (older,) = (manul.compare([policy], each) for each in (changed, without_levels(log)))
    assert (row.low, row.high) == pytest.approx((older.low, older.high))


def test_batches_files_and_iterators_give_the_same_interval(log, policy, tmp_path):
    whole = ends(manul.evaluate(policy, log))
    parts = [log.rows(slice(first, first + 700)) for first in range(0, 3000, 700)]
    assert ends(manul.evaluate(policy, iter(parts))) == pytest.approx(whole, abs=1e-9)
    for suffix in (".parquet", ".jsonl"):
        log.write(tmp_path / f"log{suffix}")
        assert ends(manul.evaluate(policy, manul.Log.read(tmp_path / f"log{suffix}"))) == pytest.approx(whole, abs=1e-6)


def test_a_long_log_has_the_interval_of_one_that_is_kept_in_memory(log, policy, monkeypatch):
    (kept,) = manul.compare([policy], log)
    monkeypatch.setattr(exact_mass, "MOST_ROWS", 500)
    parts = [log.rows(slice(first, first + 400)) for first in range(0, 3000, 400)]
    (streamed,) = manul.compare([policy], iter(parts))
    assert (streamed.low, streamed.high) == pytest.approx((kept.low, kept.high), abs=2e-3)


def test_a_narrow_policy_inside_the_logged_windows_needs_no_large_weights():
    """Without the pieces, the interval must allow for weights of 640; with them, none is above 11."""
    rng, count = np.random.default_rng(0), 2000
    contexts = rng.random(count)
    best = 0.25 + contexts / 2
    actions = np.where(rng.random(count) < 0.05, rng.random(count), rng.uniform(best - 1 / 6, best + 1 / 6))
    windows = np.column_stack([best - 1 / 6, best + 1 / 6, np.zeros(count), np.full(count, 0.05)])
    densities = 0.05 + 0.95 * 3 * (np.abs(actions - best) <= 1 / 6)
    losses = (rng.random(count) < np.abs(actions - best)).astype(float)
    log = manul.Log(
        contexts[:, np.newaxis],
        actions,
        densities,
        losses,
        floors=np.full(count, 0.05),
        levels={"": KnobLevels.of_windows(windows, np.zeros(count), np.ones(count))},
    )
    (exact,) = manul.compare([lambda context: 0.25 + context[0] / 2], log, bandwidth=1 / 64, level=0.9)
    (older,) = manul.compare([lambda context: 0.25 + context[0] / 2], without_levels(log), bandwidth=1 / 64, level=0.9)
    assert exact.verdict == "better"
    assert exact.high < -0.05 < older.high


def test_segments_are_logs_of_their_own(log):
    first = np.arange(len(log)) % 2 == 0
    named = manul.Log(
        {"x": np.where(first, "a", "b").tolist(), **{f"c{place}": log.contexts[:, place] for place in range(3)}},
        log.actions, log.densities, log.losses, levels=log.levels, action_range=(0.0, 1.0),
    )  # fmt: skip
    target = manul.Cats(leaves=16, bandwidth=1 / 16)
    target.decide({"x": "a", "c0": 0.0, "c1": 0.0, "c2": 0.0})
    rows = {row.segment: row for row in manul.compare([target], named, by="x")}
    (alone,) = manul.compare([target], named.rows(np.flatnonzero(first)))
    assert (rows["a"].low, rows["a"].high) == pytest.approx((alone.low, alone.high), abs=1e-9)


def test_clusters_of_one_row_change_nothing_and_copies_are_not_evidence(log, policy):
    (single,) = manul.compare([policy], log)
    doubled = manul.Log.concat([log, log])
    clusters = doubled.contexts.copy()
    clusters[:, 0] = np.tile(np.arange(len(log)), 2)
    levels = {"": KnobLevels.join([log.levels[""]] * 2)}
    copied = manul.Log(clusters, doubled.actions, doubled.densities, doubled.losses, levels=levels)
    function = {"a": lambda _: 0.5}
    (alone,) = manul.compare(function, copied.rows(slice(0, len(log))), bandwidth=1 / 8)
    (both,) = manul.compare(function, copied, bandwidth=1 / 8, clusters="0")
    assert (both.low, both.high) == pytest.approx((alone.low, alone.high), abs=2e-3)
    assert single.low < single.high


def test_a_difference_of_two_policies_is_that_of_the_other_order_reversed(log, policy):
    other = manul.Cats(leaves=8, bandwidth=1 / 4, epsilon=0.1)
    (forward,) = manul.compare({"a": policy, "b": other}, log, against="b")
    (backward,) = manul.compare({"a": policy, "b": other}, log, against="a")
    assert (forward.low, forward.high) == pytest.approx((-backward.high, -backward.low), abs=2e-3)


def test_narrower_ranges_are_allowed_for(policy):
    rng, agent = np.random.default_rng(5), manul.Cats(leaves=16, bandwidth=1 / 16, epsilon=0.2)
    contexts, lows = rng.random((1000, 3)).astype(np.float32), rng.uniform(0, 0.4, 1000)
    within = np.column_stack([lows, lows + 0.5])
    made = agent.decide_many(contexts, within, levels=True)
    given = {"levels": made.levels, "lows": made.lows, "highs": made.highs}
    log = manul.Log(contexts, made.actions, made.densities, np.abs(made.actions - 0.4), **given)
    estimate = manul.evaluate(policy, log)
    assert (estimate.interval, estimate.mean_weight) == ("exact-mass", pytest.approx(1.0, abs=0.3))


def test_rewards_and_other_prices_have_exact_intervals(log, policy):
    rewards = without_levels(log, levels=log.levels, outcome=Outcome.of(rewards=(-1.0, 0.0)), loss_range=None)
    estimate, plain = manul.evaluate(policy, rewards), manul.evaluate(policy, log)
    assert estimate.interval == "exact-mass"
    assert (estimate.reward.low, estimate.reward.high) == pytest.approx((-plain.high, -plain.low), abs=1e-6)


def test_parts_are_priced_again_with_exact_intervals():
    rng, agent = np.random.default_rng(6), manul.Cats(leaves=8, bandwidth=1 / 8, epsilon=0.3)
    contexts = rng.random((800, 2)).astype(np.float32)
    made = agent.decide_many(contexts, levels=True)
    sold = (rng.random(800) > made.actions).astype(float)
    outcome = Outcome(range=(0.0, 1.0), better="high", formula="sold * action", parts={"sold": "yes/no"})
    log = manul.Log(contexts, made.actions, made.densities, parts={"sold": sold}, outcome=outcome, levels=made.levels)
    cheaper = replace(outcome, formula="sold * action / 2")
    estimates = [manul.evaluate(lambda _: 0.5, log, bandwidth=0.1, outcome=each) for each in (outcome, cheaper)]
    assert [each.interval for each in estimates] == ["exact-mass"] * 2
    assert estimates[1].value == pytest.approx(estimates[0].value / 2)


@pytest.mark.parametrize(
    ("actions", "function"),
    [
        (manul.Choice(["plain", "bold", "large"]), lambda _: "bold"),
        (manul.Stepped(1, 8, 1), lambda _: 3),
        ({"price": (10.0, 50.0), "days": manul.Stepped(1, 4, 1)}, lambda _: {"price": 30.0, "days": 2}),
        ({"price": (10.0, 50.0), "size": (0.0, 1.0)}, lambda _: {"price": 30.0}),
    ],
)
def test_steps_options_and_several_knobs_have_exact_intervals(actions, function):
    rng, agent = np.random.default_rng(7), manul.Auto(actions=actions, epsilon=0.5, seed=1)
    contexts = rng.random((2000, 2)).astype(np.float32)
    made = agent.decide_many(contexts, levels=True)
    losses = (rng.random(2000) < 0.3).astype(float)
    by_knob = {} if made.densities_by_knob is None else {"densities_by_knob": made.densities_by_knob}
    log = manul.Log(contexts, made.actions, made.densities, losses, knobs=actions, levels=made.levels, **by_knob)
    (row,) = manul.compare([function], log)
    estimate = manul.evaluate(function, log, "snips")
    assert estimate.interval == "exact-mass"
    assert estimate.low < 0.3 < estimate.high
    assert row.low < 0 < row.high


def test_limits_between_knobs_give_the_older_interval():
    actions, limits = {"price": (10.0, 50.0), "size": (0.0, 1.0)}, ["size <= price / 50"]
    rng, agent = np.random.default_rng(8), manul.Auto(actions=actions, limits=limits, epsilon=0.5, seed=1)
    contexts = rng.random((500, 2)).astype(np.float32)
    made = agent.decide_many(contexts, levels=True)
    space = agent.space
    log = manul.Log(contexts, made.actions, made.densities, rng.random(500), knobs=space, levels=made.levels)
    assert manul.evaluate(agent, log, "snips").interval == "empirical-likelihood"


def test_levels_that_do_not_fit_the_densities_are_refused(log, policy):
    levels = {"": log.levels[""].select(np.roll(np.arange(len(log)), 1))}  # those of the row before
    with pytest.raises(
        manul.errors.InputError, match=r"density_levels must fit the logged densities; row \d+ has the density"
    ):
        manul.evaluate(policy, without_levels(log, levels=levels))


def test_without_a_loss_in_the_matching_decisions_three_of_them_are_allowed_for():
    """The rule of three: 100 decisions without a loss leave a loss of about 3 %."""
    count = 200
    masses = Masses(count, np.arange(count), np.full(count, 2.0), np.ones(count), np.arange(count))
    exact = ExactMass()
    exact.add(np.zeros(count), PolicyTerms(np.tile([0.0, 2.0], count // 2), masses))
    assert exact.ends(0.9)[1] == pytest.approx(0.03, abs=0.001)


@pytest.mark.whole
def test_optimize_proves_a_gain_over_a_log_that_explores_nearby():
    agent = manul.Auto(epsilon=0.05, nearby=0.4, seed=0)
    log = manul.simulate(agent, manul.worlds.linear(rounds=6000, width=2, seed=0)).log
    verdict = manul.optimize(log, candidates=["auto"]).verdict
    assert verdict.exact
    assert verdict.status == "proven"
    older = manul.optimize(without_levels(log), candidates=["auto"]).verdict
    assert (older.exact, older.status) == (False, "likely")


@pytest.mark.parametrize("factor", [0.98, 0.9])
def test_a_rollout_takes_about_as_long_as_planned_tests(factor):
    """Rollouts of benchmarks.rollout take 1.0 to 1.5 times as long as the tests that it plans with the true difference."""
    planned = fixed_sample(RolloutPlan(), 0.13, factor)
    assert decisions_needed(RolloutPlan(), MEAN, (1 - factor) * MEAN, 0.13) == pytest.approx(planned)
