"""The theorems of the paper as functions: Sections 2 to 4 and Appendices B to E.

Units are the paper's: the action range has length one, so a bandwidth is a fraction of it, and losses
lie in [0, 1]. Rates omit constants and log factors.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from numbers import Integral

from manul.errors import ParameterError


def lipschitz_constant(*, bandwidth: float) -> float:
    """Return the steepest slope that a smoothed loss can have (Section 2).

    >>> lipschitz_constant(bandwidth=1 / 16)
    16.0
    """
    _check(bandwidth=bandwidth)
    return 1 / bandwidth


def discretization_error(*, leaves: int, bandwidth: float) -> float:
    """Bound the loss per round from choosing among leaves instead of all actions (Section 2).

    >>> discretization_error(leaves=1024, bandwidth=1 / 16)
    0.015625
    """
    _check(leaves=leaves)
    return lipschitz_constant(bandwidth=bandwidth) / leaves


def updates_per_example(*, leaves: int) -> int:
    """Return the largest number of nodes that one example can update (Theorem cats-log-time).

    >>> updates_per_example(leaves=8192)
    25
    """
    _check(leaves=leaves)
    # The proof counts two nodes per level; the root is one node.
    return 2 * _depth(leaves) - 1


def tree_training_bound(
    *, rounds: int, leaves: int, bandwidth: float, minimum_density: float, log_class_size: float, failure: float
) -> float:
    """Bound the excess smoothed loss of a tree trained on a log (Lemma off-policy-fixed).

    >>> round(tree_training_bound(rounds=10**8, leaves=4, bandwidth=1 / 4, minimum_density=0.05,
    ...     log_class_size=10, failure=0.05), 3)
    0.586
    """
    _check(rounds=rounds, leaves=leaves, bandwidth=bandwidth, minimum_density=minimum_density)
    confidence = _log_union(2 * rounds * leaves, log_class_size, failure)
    # The proof ignores the floor in rounds / depth; with it, 20 would be 20 * sqrt(2).
    return 20 * leaves * math.sqrt(_depth(leaves) * confidence / (rounds * minimum_density * bandwidth))


def regret_bound(
    *,
    horizon: int,
    leaves: int,
    bandwidth: float,
    epsilon: float,
    log_class_size: float,
    failure: float,
    any_depth: bool = True,
) -> float:
    """Bound the regret of Cats against trees of any depth, or of its own depth (Theorem greedy-tree-formal).

    >>> round(regret_bound(horizon=10**10, leaves=4, bandwidth=1 / 2, epsilon=0.1,
    ...     log_class_size=10, failure=0.05) / 10**10, 3)
    0.662
    """
    _check(horizon=horizon, leaves=leaves, bandwidth=bandwidth, epsilon=epsilon)
    # As printed: the proof's union bound over rounds would put the horizon squared in the logarithm.
    confidence = _log_union(2 * horizon * leaves, log_class_size, failure)
    learning = 40 * leaves * math.sqrt(horizon * _depth(leaves) * confidence / (epsilon * bandwidth))
    rounding = discretization_error(leaves=leaves, bandwidth=bandwidth) if any_depth else 0.0
    return 1 + (epsilon + rounding) * horizon + learning


def regret_rate(
    *, horizon: int, bandwidth: float, log_class_size: float, failure: float, leaves: int | None = None
) -> float:
    """Return the rate of the regret of Cats against trees of any depth or with `leaves` leaves (Theorem greedy-tree-formal).

    >>> round(regret_rate(horizon=10**6, bandwidth=1 / 4, log_class_size=10, failure=0.05))
    242101
    """
    _check(horizon=horizon, bandwidth=bandwidth)
    confidence = _log_union(1, log_class_size, failure)
    if leaves is None:
        return math.pow(horizon, 4 / 5) * math.pow(confidence / bandwidth**3, 1 / 5)
    _check(leaves=leaves)
    return math.pow(leaves * horizon, 2 / 3) * math.pow(confidence / bandwidth, 1 / 3)


def epsilon_for_horizon(
    *, horizon: int, bandwidth: float, log_class_size: float, failure: float, leaves: int | None = None
) -> float:
    """Choose epsilon for Cats against trees of any depth or with `leaves` leaves (Theorem greedy-tree-formal).

    >>> round(epsilon_for_horizon(horizon=10**6, bandwidth=1 / 4, log_class_size=10, failure=0.05), 3)
    0.242
    """
    rate = regret_rate(
        horizon=horizon, bandwidth=bandwidth, log_class_size=log_class_size, failure=failure, leaves=leaves
    )
    # The theorem balances epsilon * horizon with the rate; unlike Theorem greedy, it omits the cap at one.
    return min(1.0, rate / horizon)


def leaves_for_horizon(*, horizon: int, bandwidth: float, log_class_size: float, failure: float) -> int:
    """Choose the number of leaves of Cats, rounded to a power of two (Theorem greedy-tree-formal).

    >>> leaves_for_horizon(horizon=10**6, bandwidth=1 / 4, log_class_size=10, failure=0.05)
    16
    """
    _check(horizon=horizon, bandwidth=bandwidth)
    confidence = _log_union(1, log_class_size, failure)
    return _power_of_two(math.pow(horizon / (bandwidth**2 * confidence), 1 / 5))


def off_policy_constant(*, horizon: int, cells: int, failure: float) -> float:
    """Return the constant for which the penalty of Algorithm 3 holds for every cell of the grid.

    >>> round(off_policy_constant(horizon=10**6, cells=100, failure=0.05), 1)
    1459.4
    """
    _check(horizon=horizon, cells=cells)
    # Section 5 quotes this constant with 2 * horizon; Algorithm 3 and the proof have 4 * horizon.
    return 64 * _log_union(4 * horizon * cells, 0, failure)


def off_policy_penalty(
    *, mean_loss: float, horizon: int, bandwidth: float, minimum_density: float, constant: float
) -> float:
    """Return the penalty of one cell in Algorithm 3; the paper's experiments use the constant 1.

    >>> round(off_policy_penalty(
    ...     mean_loss=0.1, horizon=10**6, bandwidth=1 / 4, minimum_density=0.05, constant=1), 5)
    0.00291
    """
    _check(mean_loss=mean_loss, constant=constant)
    _check(horizon=horizon, bandwidth=bandwidth, minimum_density=minimum_density)
    # As in Algorithm 3: Equation opt-hat of the proof minimises with three times the last term.
    scale = constant / (horizon * minimum_density * bandwidth)
    return math.sqrt(mean_loss * scale) + scale


def off_policy_bound(
    *,
    horizon: int,
    leaves: int,
    bandwidth: float,
    minimum_density: float,
    cells: int,
    log_class_size: float,
    failure: float,
) -> float:
    """Bound the excess loss of Algorithm 3 over the best tree of one cell (Theorem off-policy-opt-formal).

    >>> round(off_policy_bound(horizon=10**10, leaves=4, bandwidth=1 / 4, minimum_density=0.05, cells=10,
    ...     log_class_size=10, failure=0.05), 3)
    0.519
    """
    _check(horizon=horizon, leaves=leaves, bandwidth=bandwidth, minimum_density=minimum_density, cells=cells)
    # In the proof 160 = 2 * 44 + 72, although Lemma off-policy-fixed would allow 20 instead of 44.
    confidence = _log_union(4 * horizon * leaves * cells, log_class_size, failure)
    return 160 * leaves * math.sqrt(_depth(leaves) * confidence / (horizon * minimum_density * bandwidth))


@dataclass(frozen=True, kw_only=True, slots=True)
class BandwidthGrid:
    """The grid of bandwidths of Algorithms 5 and 7, about four times the horizon squared, computed on demand.

    >>> grid = BandwidthGrid(horizon=1000)
    >>> len(grid), next(iter(grid))
    (3998001, 0.0005)
    """

    horizon: int

    def __post_init__(self) -> None:
        _check(horizon=self.horizon)

    def __len__(self) -> int:
        return 4 * self.horizon**2 - 2 * self.horizon + 1

    def __iter__(self) -> Iterator[float]:
        finest = 4 * self.horizon**2
        return (multiple / finest for multiple in range(2 * self.horizon, finest + 1))


def adaptive_penalty(
    *, rounds: int, horizon: int, leaves: int, bandwidth: float, epsilon: float, log_class_size: float, failure: float
) -> float:
    """Return the penalty of a bandwidth after some rounds of AdaptiveCats (Algorithm 5).

    >>> round(adaptive_penalty(rounds=10**6, horizon=10**6, leaves=4, bandwidth=1 / 4, epsilon=0.05,
    ...     log_class_size=10, failure=0.05), 3)
    0.374
    """
    _check(leaves=leaves, log_class_size=log_class_size)
    # Algorithm 5 has 4 and 2 here, the constants of Equation unif-conv-log; Algorithm 7 has 2 and 3.
    scale = _scale(rounds, horizon, bandwidth, epsilon, leaves * log_class_size, failure)
    return 4 * math.sqrt(scale) + 2 * scale


def adaptive_regret_rate(*, horizon: int, bandwidth: float, log_class_size: float, failure: float) -> float:
    """Return the rate of the regret of AdaptiveCats at any one bandwidth (Theorem adaptive-tree).

    >>> round(adaptive_regret_rate(horizon=10**6, bandwidth=1 / 4, log_class_size=10, failure=0.05))
    421522
    """
    _check(horizon=horizon, bandwidth=bandwidth)
    return math.pow(horizon, 4 / 5) * math.pow(_log_union(1, log_class_size, failure), 1 / 5) / bandwidth


def adaptive_epsilon_for_horizon(*, horizon: int, log_class_size: float, failure: float) -> float:
    """Choose epsilon for AdaptiveCats (Theorem adaptive-tree).

    >>> round(adaptive_epsilon_for_horizon(horizon=10**6, log_class_size=10, failure=0.05), 3)
    0.105
    """
    _check(horizon=horizon)
    return min(1.0, math.pow(_log_union(1, log_class_size, failure) / horizon, 1 / 5))


def adaptive_leaves_for_horizon(*, horizon: int, log_class_size: float, failure: float) -> int:
    """Choose the number of leaves of AdaptiveCats, rounded to a power of two (Theorem adaptive-tree).

    >>> adaptive_leaves_for_horizon(horizon=10**6, log_class_size=10, failure=0.05)
    8
    """
    _check(horizon=horizon)
    return _power_of_two(math.pow(horizon / _log_union(1, log_class_size, failure), 1 / 5))


def general_regret_bound(
    *, horizon: int, bandwidth: float, epsilon: float, log_class_size: float, failure: float
) -> float:
    """Bound the regret of SmoothedGreedy against its policy class (Theorem greedy).

    >>> round(general_regret_bound(horizon=10**7, bandwidth=1 / 4, epsilon=0.1,
    ...     log_class_size=10, failure=0.05) / 10**7, 3)
    0.624
    """
    _check(horizon=horizon, bandwidth=bandwidth, epsilon=epsilon)
    confidence = _log_union(2 * horizon, log_class_size, failure)
    return 1 + epsilon * horizon + 48 * math.sqrt(horizon * confidence / (epsilon * bandwidth))


def general_regret_rate(*, horizon: int, bandwidth: float, log_class_size: float, failure: float) -> float:
    """Return the rate of the regret of SmoothedGreedy (Theorem greedy).

    >>> round(general_regret_rate(horizon=10**6, bandwidth=1 / 4, log_class_size=10, failure=0.05))
    44531
    """
    _check(horizon=horizon, bandwidth=bandwidth)
    difficulty = _log_union(1, log_class_size, failure) / bandwidth
    return math.pow(horizon, 2 / 3) * math.pow(difficulty, 1 / 3) + math.sqrt(horizon * difficulty)


def general_epsilon_for_horizon(*, horizon: int, bandwidth: float, log_class_size: float, failure: float) -> float:
    """Choose epsilon for SmoothedGreedy (Theorem greedy).

    >>> round(general_epsilon_for_horizon(horizon=10**6, bandwidth=1 / 4, log_class_size=10, failure=0.05), 4)
    0.0373
    """
    _check(horizon=horizon, bandwidth=bandwidth)
    return min(1.0, math.pow(_log_union(1, log_class_size, failure) / (bandwidth * horizon), 1 / 3))


def pareto_penalty(
    *, rounds: int, horizon: int, bandwidth: float, epsilon: float, log_class_size: float, failure: float
) -> float:
    """Return the penalty of a bandwidth after some rounds of ParetoGreedy (Algorithm 7).

    >>> round(pareto_penalty(rounds=10**6, horizon=10**6, bandwidth=1 / 4, epsilon=0.05,
    ...     log_class_size=10, failure=0.05), 3)
    0.167
    """
    scale = _scale(rounds, horizon, bandwidth, epsilon, log_class_size, failure)
    return 2 * math.sqrt(scale) + 3 * scale


def pareto_regret_rate(*, horizon: int, bandwidth: float, log_class_size: float, failure: float) -> float:
    """Return the rate of the regret of ParetoGreedy at any one bandwidth (Theorem adaptive).

    >>> round(pareto_regret_rate(horizon=10**6, bandwidth=1 / 4, log_class_size=10, failure=0.05))
    47022
    """
    _check(horizon=horizon, bandwidth=bandwidth)
    confidence = _log_union(1, log_class_size, failure)
    return math.pow(horizon, 2 / 3) * math.pow(confidence, 1 / 3) / math.sqrt(bandwidth)


def pareto_epsilon_for_horizon(*, horizon: int, log_class_size: float, failure: float) -> float:
    """Choose epsilon for ParetoGreedy (Theorem adaptive).

    >>> round(pareto_epsilon_for_horizon(horizon=10**6, log_class_size=10, failure=0.05), 4)
    0.0235
    """
    _check(horizon=horizon)
    return min(1.0, math.pow(_log_union(1, log_class_size, failure) / horizon, 1 / 3))


def freedman_bound(*, rounds: int, variance: float, magnitude: float, failure: float) -> float:
    """Bound a sum of martingale differences by its summed variance and largest term (Lemma freedman).

    >>> round(freedman_bound(rounds=100, variance=100, magnitude=1, failure=0.05), 1)
    131.8
    """
    _check(rounds=rounds, variance=variance, magnitude=magnitude)
    # The lemma requires failure < 1/e, but only failure / (2 * rounds) matters, and one round cannot fail.
    confidence = _log_union(2 * rounds, 0, failure)
    return 4 * math.sqrt(variance * confidence) + 2 * magnitude * confidence


def progressive_validation_bound(
    *, true_loss: float, rounds: int, bandwidth: float, minimum_density: float, failure: float
) -> float:
    """Bound the difference between the progressive validation loss and the true mean loss (Equation pv-conv).

    >>> round(progressive_validation_bound(
    ...     true_loss=0.1, rounds=10**6, bandwidth=1 / 4, minimum_density=0.05, failure=0.05), 4)
    0.0501
    """
    _check(true_loss=true_loss, rounds=rounds, bandwidth=bandwidth, minimum_density=minimum_density)
    weight = 1 / (minimum_density * bandwidth)
    variance = rounds * true_loss * weight
    return freedman_bound(rounds=rounds, variance=variance, magnitude=weight, failure=failure) / rounds


def uniform_convergence_bound(
    *, rounds: int, bandwidth: float, minimum_density: float, log_class_size: float, failure: float
) -> float:
    """Bound the error of the estimated losses of all policies simultaneously (Equation unif-conv-log).

    >>> round(uniform_convergence_bound(
    ...     rounds=10**6, bandwidth=1 / 4, minimum_density=0.05, log_class_size=10, failure=0.05), 3)
    0.192
    """
    _check(rounds=rounds, bandwidth=bandwidth, minimum_density=minimum_density)
    scale = _log_union(2 * rounds, log_class_size, failure) / (rounds * minimum_density * bandwidth)
    return 4 * math.sqrt(scale) + 2 * scale


def _log_union(events: float, log_class_size: float, failure: float) -> float:
    _check(log_class_size=log_class_size, failure=failure)
    return math.log(events / failure) + log_class_size


def _scale(rounds: int, horizon: int, bandwidth: float, epsilon: float, log_class_size: float, failure: float) -> float:
    _check(rounds=rounds, horizon=horizon, bandwidth=bandwidth, epsilon=epsilon)
    if rounds > horizon:
        raise ParameterError(f"rounds must be at most horizon={horizon}, got {rounds}.", "rounds")
    return _log_union(8 * math.pow(horizon, 4), log_class_size, failure) / (rounds * epsilon * bandwidth)


def _depth(leaves: int) -> int:
    return int(leaves).bit_length() - 1


def _power_of_two(number: float) -> int:
    return 1 << max(1, round(math.log2(number)))


def _is_count(value: float) -> bool:
    return isinstance(value, Integral) and value >= 1


_TREE_SIZES = frozenset(2**depth for depth in range(1, 64))
_RULES: dict[str, tuple[Callable[[float], bool], str, str]] = {
    "horizon": (_is_count, "an integer of at least 1", "It is the total number of rounds."),
    "rounds": (_is_count, "an integer of at least 1", "It is the number of rounds so far."),
    "cells": (_is_count, "an integer of at least 1", "It is the number of (bandwidth, leaves) pairs."),
    "leaves": (lambda value: value in _TREE_SIZES, "a power of two of at least 2", "Try 128."),
    "bandwidth": (lambda value: 0 < value <= 1, "in (0, 1]", "Divide it by the length of the action range."),
    "epsilon": (lambda value: 0 < value <= 1, "in (0, 1]", "It is the share of rounds that explore; try 0.05."),
    "minimum_density": (lambda value: 0 < value <= 1, "in (0, 1]", "Multiply it by the length of the action range."),
    "failure": (lambda value: 0 < value < 1, "in (0, 1)", "It is the probability that the bound fails; try 0.05."),
    "log_class_size": (lambda value: 0 <= value < math.inf, "in [0, inf)", "It is ln of the size of the class."),
    "mean_loss": (lambda value: 0 <= value < math.inf, "in [0, inf)", "Scale losses to [0, 1]."),
    "true_loss": (lambda value: 0 <= value <= 1, "in [0, 1]", "Scale losses to [0, 1]."),
    "variance": (lambda value: 0 <= value < math.inf, "in [0, inf)", "It is the sum of the conditional variances."),
    "magnitude": (lambda value: 0 <= value < math.inf, "in [0, inf)", "It is the largest absolute value of a term."),
    "constant": (lambda value: 0 <= value < math.inf, "in [0, inf)", "Try 1, or off_policy_constant(...)."),
}


def _check(**parameters: float) -> None:
    for name, value in parameters.items():
        holds, rule, explanation = _RULES[name]
        if not holds(value):
            raise ParameterError(f"{name} must be {rule}, got {value}. {explanation}", name)
