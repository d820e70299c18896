"""An estimate that must not be trusted says so, and why."""

import numpy as np
import pytest

import manul
from manul.errors import ParameterError
from manul.offpolicy.evaluation.report import estimates_table
from manul.offpolicy.smoothed import Smoothed

RANGE = (0.0, 1.0)


def uniform_log(rows, seed=0, **changes):
    rng = np.random.default_rng(seed)
    actions = rng.random(rows)
    columns = {"actions": actions, "densities": np.ones(rows), "losses": actions, "floors": np.ones(rows)}
    return manul.Log(np.zeros((rows, 1), np.float32), **(columns | changes))


def titles(estimate, severity):
    return [objection.title for objection in estimate.objections if objection.severity == severity]


def window(centre, bandwidth):
    return Smoothed(lambda _: centre, bandwidth, RANGE)


def test_a_good_log_has_no_objections():
    assert manul.evaluate(window(0.5, 0.1), uniform_log(2000)).objections == ()


def test_one_logged_action_is_an_error():
    estimate = manul.evaluate(window(0.5, 1 / 256), uniform_log(500, actions=np.full(500, 0.5)))
    assert titles(estimate, "error") == ["only one logged action", "wrong densities"]
    assert "Weights average 128, not 1." in str(estimate)
    assert not estimate.usable


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_wrong_densities_are_an_error(factor):
    densities = np.full(2000, factor)
    estimate = manul.evaluate(window(0.5, 0.1), uniform_log(2000, densities=densities, floors=densities))
    assert titles(estimate, "error") == ["wrong densities"]


def test_an_estimate_that_must_not_be_used_is_not_printed_or_drawn():
    densities = np.full(2000, 2.0)
    estimate = manul.evaluate(window(0.5, 0.1), uniform_log(2000, densities=densities, floors=densities))
    assert str(estimate).startswith("loss cannot be known (snips), 2,000 rows, effective sample size ")
    assert '<td style="text-align:left">cannot be known</td>' in estimate._repr_html_()
    assert f"{estimate.value:.4g}" not in str(estimate) + estimate._repr_html_() + estimates_table([estimate])
    axes = estimate.plot(label="new")
    assert np.isnan(axes.lines[0].get_xdata()).all()
    assert axes.get_yticklabels()[0].get_text() == "new: cannot be known"


def test_few_matching_decisions_are_a_warning():
    estimate = manul.evaluate(window(0.5, 0.005), uniform_log(1000))
    assert titles(estimate, "warning") == ["small sample"]
    assert f"{estimate.effective_size:.0f} of 1,000 decisions match: not enough to say." in str(estimate)


@pytest.mark.parametrize("interval", ["normal", "bootstrap"])
def test_an_interval_that_is_too_narrow_on_few_decisions_is_an_error(interval):
    estimate = manul.evaluate(window(0.5, 0.0005), uniform_log(5000), interval=interval)
    assert titles(estimate, "error") == ["small sample"]


def test_a_wide_interval_is_a_warning():
    estimate = manul.evaluate(window(0.5, 0.25), uniform_log(80, floors=np.full(80, 1e-6)), level=0.999999)
    assert titles(estimate, "warning") == ["wide interval"]


@pytest.mark.parametrize("interval", ["clopper-pearson", "bernstein"])
@pytest.mark.parametrize("floors", [None, np.append(np.ones(99), np.nan), np.append(np.ones(99), 0.0)])
def test_an_interval_that_needs_a_bound_says_what_is_missing(interval, floors):
    log = uniform_log(100, floors=floors)
    with pytest.raises(
        ParameterError, match=f"interval {interval} needs .*: largest_weight, or a log with a column floor"
    ):
        manul.evaluate(window(0.5, 0.25), log, interval=interval)
    assert manul.evaluate(window(0.5, 0.25), log, interval=interval, largest_weight=2.0).low > 0


@pytest.mark.parametrize("interval", ["clopper-pearson", "bernstein", "empirical-likelihood"])
def test_the_bound_comes_from_the_floors(interval):
    log = uniform_log(200, floors=np.full(200, 0.5))
    known, given = (manul.evaluate(window(0.5, 0.25), log, interval=interval, largest_weight=b) for b in (None, 4.0))
    assert (known.low, known.high) == (given.low, given.high)


def test_an_unknown_bound_is_wide():
    known, unknown = (manul.evaluate(window(0.5, 0.1), uniform_log(200, floors=f)) for f in (np.ones(200), None))
    assert unknown.high > known.high


@pytest.mark.parametrize("interval", ["clopper-pearson", "bernstein", "empirical-likelihood"])
@pytest.mark.parametrize(("floors", "bound"), [(np.full(200, 1e-308), None), (None, np.inf)])
def test_a_bound_without_limit_is_an_interval_all_the_same(interval, floors, bound):
    estimate = manul.evaluate(
        window(0.5, 0.25), uniform_log(200, floors=floors), interval=interval, largest_weight=bound
    )
    assert 0 <= estimate.low <= estimate.value <= estimate.high <= 1


@pytest.mark.parametrize("loss", [0.0, 1.0])
def test_losses_that_are_all_equal_have_an_interval_on_one_side(loss):
    estimate = manul.evaluate(window(0.5, 0.1), uniform_log(500, losses=np.full(500, loss)))
    assert estimate.value == loss
    assert 0.01 < estimate.high - estimate.low < 0.05


# The logger plays a window around the context and explores 5 %; the policy plays its centre below `agreement` and 0.5 away above.
def agreeing_log(seed, agreement, half=1 / 125, rows=2000):
    rng = np.random.default_rng(seed)
    x = rng.random(rows).astype(np.float32).astype(float)
    low = 0.25 + x / 2 - 0.15
    actions = np.where(rng.random(rows) < 0.05, rng.random(rows), low + 0.3 * rng.random(rows))
    densities = 0.05 + 0.95 * ((low <= actions) & (actions <= low + 0.3)) / 0.3
    losses = np.abs(actions - 0.25 - x / 2)
    log = manul.Log(x[:, np.newaxis].astype(np.float32), actions, densities, losses, floors=np.full(rows, 0.05))
    centre = lambda row: (0.25 + row[0] / 2 + (0.0 if row[0] < agreement else 0.5)) % 1.0  # noqa: E731
    return Smoothed(centre, half, RANGE), log


@pytest.mark.parametrize("seed", range(4))
def test_dr_objects_if_the_log_lacks_the_decisions_of_the_policy_in_some_contexts(seed):
    estimate = manul.evaluate(*agreeing_log(seed, 0.7), "dr")
    assert set(titles(estimate, "warning")) & {"missing decisions", "few large weights", "small sample"}
    assert estimate.value == pytest.approx(0.3 * 0.5, abs=0.05)


def test_dr_has_no_objection_if_the_log_has_all_decisions_of_the_policy():
    estimate = manul.evaluate(*agreeing_log(0, 1.0, half=1 / 16), "dr")
    assert estimate.objections == ()
    assert estimate.high - estimate.low < 0.01


@pytest.mark.parametrize(("seed", "title"), [(0, "missing decisions"), (1, "few large weights")])
def test_a_normal_interval_that_rare_large_weights_make_too_narrow_is_a_warning(seed, title):
    policy, log = agreeing_log(seed, 0.8, half=1 / 16)
    assert titles(manul.evaluate(policy, log, interval="normal"), "warning") == [title]
    assert manul.evaluate(policy, log).objections == ()


@pytest.mark.parametrize("rewards", [False, True])
def test_a_range_that_is_far_wider_than_the_losses_is_named(rewards):
    word = "rewards" if rewards else "losses"
    outcomes = {"losses": -uniform_log(500).actions, "rewards": True} if rewards else {}
    estimate = manul.evaluate(window(0.5, 0.1), uniform_log(500, **outcomes), **{word: (0, 500)})
    assert titles(estimate, "warning") == [f"wide range of {word}"]
    assert f"The {word} of the log are between 0.00" in str(estimate)
    assert "but their range is 0 to 500." in str(estimate)


@pytest.mark.parametrize(
    ("losses", "span"),
    [
        (np.random.default_rng(1).lognormal(0, 1.5, 2000), (0, 1000)),
        (np.minimum(np.random.default_rng(1).pareto(1.5, 2000), 1000), (0, 1000)),
        ((np.random.default_rng(1).random(2000) < 0.002).astype(float), (0, 1)),
        (np.zeros(2000), (0, 1000)),
    ],
)
def test_skewed_and_rare_losses_may_have_a_wide_range(losses, span):
    estimate = manul.evaluate(window(0.5, 0.1), uniform_log(2000, losses=losses), losses=span)
    assert not any("range" in objection.title for objection in estimate.objections)


def test_an_interval_that_was_extended_to_its_estimate_says_so():
    log = uniform_log(500, densities=np.full(500, 0.8), floors=np.full(500, 0.8))
    estimate = manul.evaluate(window(0.5, 0.25), log, "ips")
    assert estimate.value == estimate.high
    assert "estimate outside the interval" in titles(estimate, "warning")
