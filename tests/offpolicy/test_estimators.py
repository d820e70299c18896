"""ips, snips and dr are what a row-by-row computation says, however the log is cut."""

import tracemalloc

import numpy as np
import pytest

import manul
from manul.checks import discover
from manul.errors import InputError, ParameterError
from manul.offpolicy.cross_fitting import BLOCKS, FOLDS
from manul.offpolicy.evaluation.doubly_robust import control_coefficient
from manul.offpolicy.evaluation.intervals import INTERVALS

WORLD = manul.worlds.linear(rounds=700, width=3)


@pytest.fixture(scope="module")
def log():
    return manul.simulate(manul.Cats(leaves=16, bandwidth=1 / 8, epsilon=0.3), WORLD).log


@pytest.fixture(scope="module")
def policy():
    agent = manul.Cats(leaves=8, bandwidth=1 / 4, epsilon=0.1, seed=1)
    manul.simulate(agent, WORLD)
    return agent


def slow_weights(policy, log):
    rows = zip(log.contexts, log.actions, log.densities, strict=True)
    return np.array([policy.distribution(context).density(action) / density for context, action, density in rows])


class Ridge:
    """A quadratic model of the action, as a user would write it."""

    def fit(self, rows, losses):
        table = self.features(rows)
        self.model = np.linalg.solve(table.T @ table + 0.1 * np.eye(table.shape[1]), table.T @ losses)

    def predict(self, rows):
        return self.features(rows) @ self.model

    def features(self, rows):
        actions = rows[:, -1:]
        return np.column_stack([np.ones(len(rows)), rows, actions**2, rows[:, :-1] * actions])


# Fits each fold's model on the other folds and integrates it over the policy's density on a fine grid.
def slow_dr(policy, log):
    rows, grid = np.column_stack([log.contexts, log.actions]), (np.arange(400) + 0.5) / 400
    folds = np.array([row * BLOCKS // len(log) % FOLDS for row in range(len(log))])
    weights, predicted, expected = slow_weights(policy, log), [], []
    for row, context in enumerate(log.contexts):
        model = Ridge()
        model.fit(rows[folds != folds[row]], log.losses[folds != folds[row]])
        density = policy.distribution(context).density_many(grid)
        curve = np.clip(model.predict(np.column_stack([np.tile(context, (400, 1)), grid])), 0, 1)
        expected.append(np.mean(density * curve) / np.mean(density))
        predicted.append(np.clip(model.predict(rows[[row]])[0], 0, 1))
    weighted, known = (np.average(each, weights=weights) for each in (log.losses, predicted))
    influence = weights * (log.losses - weighted) / weights.mean()
    control = expected - np.mean(expected) - weights * (predicted - known) / weights.mean()
    off = np.mean(expected) - known
    return weighted + slow_coefficient(influence, control, off) * off


# Tries all coefficients: the squared standard error, and the bias as far as it exceeds two standard errors of the control.
def slow_coefficient(influence, control, off):
    grid = np.linspace(0, 1, 10_001)
    variances = np.array([np.sum((influence + each * control) ** 2) for each in grid]) / len(control) ** 2
    bias = max(off**2 - 4 * np.sum(control**2) / len(control) ** 2, 0.0)
    return grid[np.argmin(variances + (1 - grid) ** 2 * bias)]


def test_ips_is_the_mean_of_weight_times_loss(policy, log):
    weights = slow_weights(policy, log)
    estimate = manul.evaluate(policy, log, "ips")
    assert estimate.value == pytest.approx(np.mean(weights * log.losses), rel=1e-9)
    assert estimate.mean_weight == pytest.approx(weights.mean(), rel=1e-9)
    assert estimate.largest_weight == pytest.approx(weights.max(), rel=1e-9)
    assert estimate.effective_size == pytest.approx(weights.sum() ** 2 / (weights**2).sum(), rel=1e-9)


def test_snips_divides_by_the_weights(policy, log):
    weights = slow_weights(policy, log)
    expected = (weights * log.losses).sum() / weights.sum()
    assert manul.evaluate(policy, log, "snips").value == pytest.approx(expected, rel=1e-9)


def test_dr_is_the_cross_fitted_model_and_what_it_does_not_explain(policy, log):
    few = log.rows(slice(0, 60))
    estimate = manul.evaluate(policy, few, "dr", "normal", outcome_model=Ridge())
    assert estimate.value == pytest.approx(slow_dr(policy, few), abs=1e-3)


# Rows above 0.7 never match: their contexts have other losses, which the variance of the others does not show.
@pytest.mark.parametrize("agreement", [0.7, 1.0])
def test_the_control_coefficient_has_the_smallest_squared_error(rng, agreement):
    x, hits = rng.random(500), rng.random(500) < 0.2
    weights = np.where(x < agreement, 5.0 * hits, 0.0)
    expected, losses = 0.1 + 0.4 * (x > 0.7), (rng.random(500) < 0.1).astype(float)
    predicted = expected + 0.02 * rng.normal(size=500)
    columns = np.stack([np.ones(500), expected, weights * predicted, weights * losses, weights])
    weighted, known = (np.average(each, weights=weights) for each in (losses, predicted))
    influence = weights * (losses - weighted) / weights.mean()
    control = expected - expected.mean() - weights * (predicted - known) / weights.mean()
    slow = slow_coefficient(influence, control, expected.mean() - known)
    assert control_coefficient(columns @ columns.T) == pytest.approx(slow, abs=1e-4)
    assert (slow > 0.9) == (agreement < 1)


def test_dr_is_never_outside_the_range_of_losses(policy, log):
    class Wild(Ridge):
        def predict(self, rows):
            return 100 * super().predict(rows) - 50

    estimate = manul.evaluate(policy, log, "dr", "normal", outcome_model=Wild())
    assert 0 <= estimate.low <= estimate.value <= estimate.high <= 1


def test_a_model_that_knows_nothing_leaves_snips(policy, log):
    class Constant(Ridge):
        def predict(self, rows):
            return np.full(len(rows), 0.25)

    estimates = [manul.evaluate(policy, log, "dr", "normal", outcome_model=Constant())]
    estimates.append(manul.evaluate(policy, log, "snips", "normal"))
    assert estimates[0].value == pytest.approx(estimates[1].value)


@pytest.mark.parametrize("model", ["tree", 5])
def test_an_outcome_model_that_is_none_is_refused(policy, log, model):
    with pytest.raises((InputError, ParameterError), match="outcome_model must be"):
        manul.evaluate(policy, log, "dr", "normal", outcome_model=model)


def test_snips_takes_no_outcome_model(policy, log):
    with pytest.raises(ParameterError, match="outcome_model applies only to dm and dr, not to snips"):
        manul.evaluate(policy, log, "snips", outcome_model="critic")


def test_dr_of_a_loss_that_the_model_knows_has_no_error(policy, log):
    paid = manul.Log(log.contexts, log.actions, log.densities, 0.2 + 0.3 * log.actions)
    means, _ = policy.distributions(log.contexts).moments()
    modelled = manul.evaluate(policy, paid, "dr", "normal", outcome_model=Ridge())
    weighted = manul.evaluate(policy, paid, "ips", "normal")
    assert modelled.value == pytest.approx(np.mean(0.2 + 0.3 * means), abs=1e-3)
    assert modelled.high - modelled.low < 0.1 * (weighted.high - weighted.low)


@pytest.mark.parametrize("estimator", ["ips", "snips", "dr"])
def test_all_recover_the_loss_of_the_policy_when_it_is_played(estimator):
    logger = manul.Cats(leaves=16, bandwidth=1 / 8, epsilon=0.5)
    log = manul.simulate(logger, manul.worlds.linear(rounds=20_000, width=3)).log
    world = manul.worlds.linear(rounds=20_000, width=3)
    played = np.clip(0.5 + 0.2 * (np.random.default_rng(1).random(20_000) * 2 - 1), 0, 1)
    truth = np.abs(played - world.targets).mean()
    estimate = manul.evaluate(lambda _: 0.5, log, estimator, bandwidth=0.2)
    assert estimate.value == pytest.approx(truth, abs=0.01)


@pytest.mark.parametrize("size", [1, 7, 256, 699])
@pytest.mark.parametrize(
    ("estimator", "interval"),
    [("snips", "empirical-likelihood"), ("snips", "bootstrap"), ("ips", "sequence"), ("dr", "normal")],
)
def test_batches_of_any_size_give_the_same_bytes(policy, log, monkeypatch, estimator, interval, size):
    monkeypatch.setattr("manul.logs.sample.Sample.pieces.__defaults__", (128,))
    batches = [log.rows(slice(start, start + size)) for start in range(0, len(log), size)]
    assert manul.evaluate(policy, batches, estimator, interval) == manul.evaluate(policy, log, estimator, interval)


@pytest.mark.parametrize("interval", INTERVALS.names())
def test_memory_does_not_grow_with_the_log(interval, log):
    def peak(count):
        tracemalloc.start()
        manul.evaluate(lambda _: 0.5, (log for _ in range(count)), "ips", interval, bandwidth=0.2, largest_weight=50.0)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    peak(1)
    assert peak(80) < 1.2 * peak(40)


@pytest.mark.parametrize(
    "make", [make for name, make in discover() if not name.startswith("Mapped") and make(0).space.is_number]
)
def test_fast_densities_are_those_of_the_distribution(make):
    agent = make(0)
    rng = np.random.default_rng(3)
    contexts = rng.normal(size=(40, 4)).astype(np.float32)
    low, high = agent.actions
    for _ in range(5):
        decisions = agent.decide_many(contexts)
        agent.learn_many(contexts, decisions, np.full(40, np.mean(agent.outcome.losses)))
    for actions in (agent.decide_many(contexts).actions, rng.uniform(low - 0.1, high + 0.1, 40)):
        slow = [agent.distribution(row).density(action) for row, action in zip(contexts, actions, strict=True)]
        assert agent.distributions(contexts).density(actions) == pytest.approx(slow, rel=1e-9)
    largest = [agent.distribution(row).largest_density() for row in contexts]
    assert agent.distributions(contexts).largest() == pytest.approx(largest, rel=1e-9)
    means, squares = agent.distributions(contexts).moments()
    assert means == pytest.approx([agent.distribution(row).mean() for row in contexts], rel=1e-9)
    assert squares == pytest.approx([agent.distribution(row).square() for row in contexts], rel=1e-9)


def test_narrowed_rows_are_weighed_in_their_own_range(rng):
    agent = manul.Cats(leaves=16, bandwidth=1 / 16, epsilon=0.1)
    contexts, lows = rng.normal(size=(50, 2)).astype(np.float32), rng.uniform(0, 0.5, 50)
    within = np.column_stack([lows, lows + 0.4])
    actions = rng.uniform(0, 1, 50)
    rows = zip(contexts, actions, within, strict=True)
    slow = [agent.distribution(context, tuple(ends)).density(action) for context, action, ends in rows]
    assert agent.distributions(contexts, within).density(actions) == pytest.approx(slow, rel=1e-9)
    assert 0 in slow


@pytest.mark.parametrize("within", [None, (0.2, 0.9)])
def test_a_tree_of_classifiers_is_weighed_as_it_plays(log, rng, within):
    policy = manul.policies.train_tree(log, leaves=8, bandwidth=1 / 8)
    actions, contexts = rng.random(60), log.contexts[:60]
    pairs = None if within is None else np.tile(within, (60, 1))
    played = [policy.distribution(context, within) for context in contexts]
    slow = [each.density(action) for each, action in zip(played, actions, strict=True)]
    assert policy.distributions(contexts, pairs).density(actions) == pytest.approx(slow, rel=1e-9)
    assert policy.distributions(contexts, pairs).largest() == pytest.approx([each.largest_density() for each in played])
    means, squares = policy.distributions(contexts, pairs).moments()
    assert means == pytest.approx([each.mean() for each in played], rel=1e-9)
    assert squares == pytest.approx([each.square() for each in played], rel=1e-9)


def test_a_policy_with_nothing_but_a_distribution_is_enough(log):
    class Uniform:
        def distribution(self, context, within=None):
            return manul.Distribution.uniform(0.0, 1.0)

    assert manul.evaluate(Uniform(), log, "ips").value == pytest.approx(np.mean(log.losses / log.densities))


def test_the_units_of_losses_do_not_matter(policy, log):
    shares = {"floors": log.floors, "levels": log.levels}
    scaled = manul.Log(log.contexts, log.actions, log.densities, 10 * log.losses - 4, **shares)
    one, other = manul.evaluate(policy, log), manul.evaluate(policy, scaled, losses=(-4, 6))
    assert [other.value, other.low, other.high] == pytest.approx([10 * v - 4 for v in (one.value, one.low, one.high)])


def test_an_estimate_of_a_function_says_how_it_was_smoothed(log):
    chosen, given = (str(manul.evaluate(lambda _: 0.5, log, bandwidth=width)) for width in (None, 0.2))
    assert chosen.splitlines()[0].endswith(" (chosen by SLOPE)")
    assert ", smoothed over ± 0." in chosen
    assert given.splitlines()[0].endswith(", smoothed over ± 0.2")


def test_an_estimate_of_a_policy_is_not_smoothed(policy, log):
    estimate = manul.evaluate(policy, log)
    assert (estimate.smoothing, estimate.bandwidth) == ("", None)
    assert "smoothed" not in str(estimate)


def test_an_estimate_draws_itself(policy, log):
    estimate = manul.evaluate(policy, log)
    axes = estimate.plot()
    manul.evaluate(policy, log, "ips").plot(axes)
    assert axes.lines[0].get_xdata() == pytest.approx([estimate.low, estimate.value, estimate.high])
    assert [line.get_label() for line in axes.lines] == ["snips", "ips"]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"estimator": "switch"}, "estimator must be one of dm, dr, ips, snips, got 'switch'"),
        ({"interval": "t"}, "interval must be one of bernstein, bootstrap, "),
        ({"estimator": "dr", "interval": "sequence"}, "interval must be 'bootstrap' or 'normal', got"),
        ({"level": 1.0}, r"level must be in \(0, 1\)"),
        ({"bandwidth": 0.1}, "bandwidth applies only to functions"),
        ({"largest_weight": 0.0}, "largest_weight must be above 0"),
    ],
)
def test_a_bad_setting_is_one_sentence(policy, log, settings, sentence):
    with pytest.raises(ParameterError, match=sentence):
        manul.evaluate(policy, log, **settings)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"losses": 2.0}, r"loss must be in \[0, 1\], got 2 in row 5"),
        ({"densities": 0.0}, r"density must be in \[1e-100, 1e\+100\], got 0 in row 5"),
        ({"densities": np.nan}, r"density must be in \[1e-100, 1e\+100\], got nan in row 5"),
    ],
)
def test_a_bad_row_is_named(policy, log, change, sentence):
    columns = {name: getattr(log, name).copy() for name in ("contexts", "actions", "densities", "losses")}
    for name, value in change.items():
        columns[name][5] = value
    with pytest.raises(InputError, match=sentence):
        manul.evaluate(policy, manul.Log(**columns))


@pytest.mark.parametrize("estimator", ["ips", "dr"])
def test_an_empty_log_is_refused(policy, log, estimator):
    with pytest.raises(InputError, match="log has no rows"):
        manul.evaluate(policy, log.rows(slice(0)), estimator)


def test_a_bound_that_does_not_hold_is_refused(policy, log):
    with pytest.raises(InputError, match=r"largest_weight must be at least the largest weight, .*, got 1"):
        manul.evaluate(policy, log, largest_weight=1.0)


def test_dr_does_not_read_a_generator_twice(policy, log):
    with pytest.raises(ParameterError, match="A model reads the log twice"):
        manul.evaluate(policy, iter([log]), "dr")


def test_a_policy_that_plays_elsewhere_is_refused(log):
    with pytest.raises(InputError, match="density 0 at every logged action"):
        manul.evaluate(lambda _: 5.0, log, bandwidth=0.25, actions=(0.0, 10.0))


@pytest.mark.parametrize("policy", [3, lambda _: "much", lambda _: np.nan])
def test_what_is_no_policy_is_refused(log, policy):
    with pytest.raises((ParameterError, InputError), match="policy must"):
        manul.evaluate(policy, log)
