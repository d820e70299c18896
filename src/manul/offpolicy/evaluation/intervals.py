"""Confidence intervals for the loss of a policy, computed piece by piece in constant memory.

Symbols: a row has an importance weight w, a loss u scaled to [0, 1], and a pair (g, d) such that the estimate is
sum g / sum d: (w u, 1) for ips, (w u, w) for snips. Empirical likelihood, exact-mass, Clopper-Pearson, Bernstein and the confidence
sequence are intervals for the mean of w u, which is the loss of the policy, whatever the estimator.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import NamedTuple, Protocol, TypeVar

import numpy as np

from manul.actions.decision import Within
from manul.errors import InputError
from manul.offpolicy.evaluation.empirical_likelihood import EmpiricalLikelihood
from manul.offpolicy.evaluation.exact_mass import ExactMass, PolicyTerms
from manul.offpolicy.evaluation.piece_masses import Masses
from manul.utils.registry import Registry
from manul.utils.validation import Floats

REPLICATES = 400  # of the bootstrap
_ROWS = 1024  # per step of the bootstrap, so that its counts fit into the cache
_LOG_BETS = np.arange(-16, 4) * math.log(2)  # a geometric grid of bets


class Terms(NamedTuple):
    """The contributions of the rows of a piece to an estimate.

    `controls`, of estimators with an outcome model, average 0 if the log has the policy's decisions in all contexts. `masses` are
    those of the policy on the pieces of the log, if an interval asks for them.
    """

    numerators: Floats
    denominators: Floats
    weights: Floats
    losses: Floats
    controls: Floats | None = None
    masses: Masses | None = None


class Interval(Protocol):
    """A confidence interval for losses scaled to [0, 1], updated piece by piece."""

    def add(self, terms: Terms) -> None:
        """Add a piece."""

    def ends(self, level: float, largest_weight: float) -> Within:
        """The interval so far; `largest_weight` is an upper bound of the weights."""


class NoInterval:
    """No interval, for estimates that rest on a model alone."""

    def add(self, terms: Terms) -> None:
        """Ignore a piece."""

    def ends(self, level: float, largest_weight: float) -> Within:  # noqa: ARG002 - the signature of intervals
        return math.nan, math.nan


class ExactMassInterval:
    """The exact-mass interval of a loss (`exact_mass.py`), for logs that keep what their actions were drawn from."""

    def __init__(self) -> None:
        self.exact = ExactMass()

    def add(self, terms: Terms) -> None:
        if terms.masses is None:
            missing = "a log that keeps what its actions were drawn from, and a policy that says it too"
            raise InputError(f"interval exact-mass needs {missing}. Try empirical-likelihood.", "interval")
        self.exact.add(terms.losses, PolicyTerms(terms.weights, terms.masses))

    def ends(self, level: float, largest_weight: float) -> Within:  # noqa: ARG002 - the others need it
        return self.exact.ends(level)


class ClopperPearson:
    """The paper's interval (section 5): exact for a proportion, applied to w u / largest weight, which lies in [0, 1]."""

    def __init__(self) -> None:
        self.count, self.total = 0, 0.0

    def add(self, terms: Terms) -> None:
        self.count += len(terms.weights)
        self.total += float((terms.weights * terms.losses).sum())

    def ends(self, level: float, largest_weight: float) -> Within:
        from scipy.special import betaincinv

        tail, hits = (1 - level) / 2, self.total / largest_weight
        misses = max(self.count - hits, 0.0)
        low = float(betaincinv(hits, misses + 1, tail)) if hits > 0 else 0.0
        high = float(betaincinv(hits + 1, misses, 1 - tail)) if misses > 0 else 1.0
        return low * largest_weight, high * largest_weight


class Normal:
    """The normal approximation, with the delta method for ratios."""

    def __init__(self) -> None:
        self.sums = np.zeros(5)

    def add(self, terms: Terms) -> None:
        g, d = terms.numerators, terms.denominators
        self.sums += [g.sum(), d.sum(), (g * g).sum(), (g * d).sum(), (d * d).sum()]

    def ends(self, level: float, largest_weight: float) -> Within:  # noqa: ARG002 - the others need it
        g, d, gg, gd, dd = self.sums.tolist()
        value = g / d
        error = math.sqrt(max(gg - 2 * value * gd + value * value * dd, 0.0)) / d
        reach = NormalDist().inv_cdf((1 + level) / 2) * error
        return value - reach, value + reach


class Bernstein:
    """The two-sided empirical Bernstein bound (Maurer and Pontil 2009, theorem 4), valid for any number of rows."""

    def __init__(self) -> None:
        self.count, self.total, self.squares = 0, 0.0, 0.0

    def add(self, terms: Terms) -> None:
        values = terms.weights * terms.losses
        self.count += len(values)
        self.total += float(values.sum())
        self.squares += float((values * values).sum())

    def ends(self, level: float, largest_weight: float) -> Within:
        if self.count < 2:
            return 0.0, largest_weight
        mean, confidence = self.total / self.count, math.log(4 / (1 - level))
        variance = max(self.squares - self.count * mean * mean, 0.0) / (self.count - 1)
        reach = math.sqrt(2 * variance * confidence / self.count)
        reach += 7 * largest_weight * confidence / (3 * (self.count - 1))
        return mean - reach, mean + reach


class Bootstrap:
    """The Poisson bootstrap: each replicate counts a row Poisson(1) times, in both numerator and denominator."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.numerators, self.denominators = np.zeros(REPLICATES), np.zeros(REPLICATES)

    def add(self, terms: Terms) -> None:
        for start in range(0, len(terms.weights), _ROWS):
            g, d = terms.numerators[start : start + _ROWS], terms.denominators[start : start + _ROWS]
            counts = _COUNTS[self.rng.integers(0, 2**16, (REPLICATES, len(g)), dtype=np.uint16)]
            self.numerators += (counts * g).sum(axis=1)
            self.denominators += (counts * d).sum(axis=1)

    def ends(self, level: float, largest_weight: float) -> Within:  # noqa: ARG002 - the others need it
        valid = self.denominators > 0
        low, high = np.quantile(self.numerators[valid] / self.denominators[valid], [(1 - level) / 2, (1 + level) / 2])
        return float(low), float(high)


class Sequence:
    """A confidence sequence: the intervals after every number of rows are valid simultaneously, for any weights.

    For w u >= 0 with mean m and any bet b > 0, the product of (1 + b w u) / (1 + b m) is a nonnegative martingale that
    starts at 1; so is a mixture over bets. By Ville's inequality, it ever reaches 2 / (1 - level) with probability at most
    (1 - level) / 2. The lower end is the smallest mean for which it has not. The upper end follows in the same way from
    w (1 - u), whose mean is 1 - m because weights average 1. If the mean changes from row to row, the interval is valid for
    the average mean, because log(1 + b m) is concave.

    If an upper bound B of the weights is known in advance, half of the wealth bets on 1 - w u / B >= 0, which has less
    variance than w (1 - u) if losses are small.
    """

    def __init__(self, largest_weight: float | None = None) -> None:
        self.bound = largest_weight
        self.below, self.above, self.bounded = Wealth(), Wealth(), Wealth()

    def add(self, terms: Terms) -> None:
        self.below.add(terms.weights * terms.losses)
        self.above.add(terms.weights * (1 - terms.losses))
        if self.bound is not None:
            self.bounded.add(np.maximum(1 - terms.weights * terms.losses / self.bound, 0.0))

    def ends(self, level: float, largest_weight: float) -> Within:  # noqa: ARG002 - needed in advance
        failure = (1 - level) / 2
        return self.below.lower(failure), 1 - _smallest_mean(self.log_wealth_above, failure, 1.0)

    def log_wealth_above(self, complement: float) -> float:
        """The logarithm of the wealth of bets against a mean of 1 - complement."""
        wealth = self.above.log_at(complement)
        if self.bound is None:
            return wealth
        bounded = self.bounded.log_at(max(1 - (1 - complement) / self.bound, 0.0))
        return float(np.logaddexp(wealth, bounded)) - math.log(2)


class Wealth:
    """The wealth of bets against small means of nonnegative values: the lower side of a confidence sequence."""

    def __init__(self) -> None:
        self.count, self.logs = 0, np.zeros(len(_LOG_BETS))

    def add(self, values: Floats, zeros: int = 0) -> None:
        """Add nonnegative values and a number of zeros."""
        self.count += len(values) + zeros
        self.logs += np.log1p(np.exp(_LOG_BETS)[:, np.newaxis] * values).sum(axis=1)

    def lower(self, failure: float, largest: float = 1.0) -> float:
        """A lower bound of the mean, wrong with a probability of at most `failure`; at most `largest`."""
        return _smallest_mean(self.log_at, failure, largest)

    def log_at(self, mean: float) -> float:
        """The logarithm of the wealth, given the mean."""
        logs = self.logs - self.count * np.log1p(np.exp(_LOG_BETS) * mean)
        largest = float(logs.max())
        return largest + math.log(float(np.exp(logs - largest).mean()))


def _smallest_mean(log_wealth: Callable[[float], float], failure: float, largest: float) -> float:
    """The smallest mean that the wealth, which falls with the mean, does not rule out; found by bisection."""
    low, high, threshold = 0.0, largest, -math.log(failure)
    if log_wealth(high) >= threshold:
        return largest
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if log_wealth(middle) >= threshold else (low, middle)
    return low


def _poisson_counts() -> Floats:
    """Poisson(1) counts for each of 2^16 equally likely draws."""
    masses = np.exp(-1.0) / np.array([math.factorial(count) for count in range(10)])
    ends = np.round(np.cumsum(masses) * 2**16)
    counts: Floats = np.searchsorted(ends, np.arange(2**16), side="right").astype(np.float64)
    return counts


_COUNTS = _poisson_counts()


Start = Callable[[int, float | None], Interval]
_Start = TypeVar("_Start", bound=Callable[..., Interval])


class IntervalMethod(NamedTuple):
    """A registered interval: `start` makes one; a `bounded` one is valid only with an upper bound of the weights, an
    `approximate` one only if many rows determine the estimate, and an `exact` one needs the masses of the policy."""

    start: Start
    bounded: bool = False
    approximate: bool = False
    exact: bool = False


INTERVALS = Registry[IntervalMethod]("interval", "manul.offpolicy.evaluation", suggestion="normal")


def register_interval(
    name: str, *, bounded: bool = False, approximate: bool = False, exact: bool = False
) -> Callable[[_Start], _Start]:
    """Register a confidence interval under a `name`, for `evaluate` and `manul evaluate --interval NAME`.

    Decorate a class, or a function that returns an object, with the methods `add(terms)`, called with the `Terms` of each
    piece of the log, and `ends(level, largest_weight)`, which returns the interval of the loss, scaled to [0, 1]. It is
    called with the seed of `evaluate` and its `largest_weight`, or None. A `bounded` interval is valid only if the
    `largest_weight` of `ends` is an upper bound of all weights; `evaluate` refuses logs without one. An `approximate` one
    takes the estimate for normally distributed, as `normal` and `bootstrap` do: estimators with an outcome model allow it,
    and estimates from few matching decisions get an objection. The terms of an `exact` one have the masses of the policy on the
    pieces of the log.

    >>> import manul
    >>> @manul.register.interval("hoeffding", bounded=True)
    ... class Hoeffding(ClopperPearson):
    ...     def __init__(self, seed, largest_weight):
    ...         super().__init__()
    ...     def ends(self, level, largest_weight):
    ...         reach = largest_weight * math.sqrt(math.log(2 / (1 - level)) / (2 * self.count))
    ...         return self.total / self.count - reach, self.total / self.count + reach
    >>> log = manul.simulate(manul.Cats(leaves=16, bandwidth=1/8), manul.worlds.linear(rounds=500)).log
    >>> manul.evaluate(lambda context: 0.5, log, interval="hoeffding", bandwidth=1/4).interval
    'hoeffding'
    >>> INTERVALS.remove("hoeffding")
    """
    return INTERVALS.decorator(name, lambda start: IntervalMethod(start, bounded, approximate, exact))


register_interval("empirical-likelihood")(lambda *_: EmpiricalLikelihood())
register_interval("exact-mass", exact=True)(lambda *_: ExactMassInterval())
register_interval("bootstrap", approximate=True)(lambda seed, _: Bootstrap(seed))
register_interval("normal", approximate=True)(lambda *_: Normal())
register_interval("clopper-pearson", bounded=True)(lambda *_: ClopperPearson())
register_interval("bernstein", bounded=True)(lambda *_: Bernstein())
register_interval("sequence")(lambda _, largest_weight: Sequence(largest_weight))
NONE = "none"


def start(name: str, seed: int, largest_weight: float | None = None) -> Interval:
    """Create an interval by name; `largest_weight` is an upper bound of the weights that is known in advance, if any."""
    return NoInterval() if name == NONE else INTERVALS[name].start(seed, largest_weight)


def is_bounded(name: str) -> bool:
    """Whether an interval is valid only with an upper bound of the weights."""
    return name != NONE and INTERVALS[name].bounded


def is_approximate(name: str) -> bool:
    """Whether an interval takes the estimate for normally distributed."""
    return name != NONE and INTERVALS[name].approximate


def is_exact(name: str) -> bool:
    """Whether an interval needs the masses of the policy on the pieces of the log."""
    return name != NONE and INTERVALS[name].exact


def approximate_names() -> tuple[str, ...]:
    return tuple(filter(is_approximate, INTERVALS.names()))
