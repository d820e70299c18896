"""Worlds that are each hard in one known way, with a known loss of the best smoothed policy.

Given the context, every loss is a curve over the actions plus uniform noise with mean 0, which is the same for all
actions of a round. Losses are in [0, 1].
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from manul.actions.decision import Within
from manul.errors import ParameterError
from manul.utils.validation import Floats, check_choice, check_range, check_whole_number
from manul.worlds.curves import Curves
from manul.worlds.synthetic import normal_share, random_generator

LEVELS = 64  # distinct contexts of `realizable`


def valleys(
    *,
    rounds: int,
    width: int = 5,
    valleys: int = 4,
    dependency: Literal["linear", "crossed"] = "linear",
    seed: int = 0,
) -> Curves:
    """Several valleys, one of them deep; which one depends on the context.

    With `dependency="linear"` a tree of linear classifiers can distinguish them, with `"crossed"` it cannot.

    >>> world = valleys(rounds=100, seed=1)
    >>> world.optimum(bandwidth=1/64, epsilon=0.0) < world.best_constant(bandwidth=1/64, epsilon=0.0) - 0.2
    True
    """
    check_whole_number("valleys", valleys, 2, 64, "Try 4.")
    check_choice("dependency", dependency, ("linear", "crossed"))
    rng, contexts = _start(rounds, width, seed)
    share = normal_share(_score(rng, contexts)) if dependency == "linear" else _crossed_share(contexts)
    deep = np.minimum((share * valleys).astype(np.int64), valleys - 1)
    positions = np.arange(2 * valleys + 1) / (2 * valleys)
    values = np.where(np.arange(2 * valleys + 1) % 2 == 1, 0.5, 0.9) + np.zeros((rounds, 1))
    values[np.arange(rounds), 2 * deep + 1] = 0.1
    return _add_noise(rng, contexts, np.tile(positions, (rounds, 1)), values)


def cliff(*, rounds: int, width: int = 2, steep: bool = False, seed: int = 0) -> Curves:
    """The loss falls slowly up to an edge and then jumps, as for a price that is too high; small bandwidths are better.

    If `steep`, the loss falls mostly within the last tenth before the edge, and wide windows cost more.

    >>> cliff(rounds=3).losses([0.0, 0.0, 1.0], actions=(0.0, 1.0)).round(1)
    array([0.9, 0.9, 1. ])
    """
    rng, contexts = _start(rounds, width, seed)
    edge = np.where(_score(rng, contexts) < 0, 0.25, 0.4)
    if steep:
        return _add_noise(
            rng, contexts, _columns(0, edge - 0.1, edge, edge, 1), _columns(np.full(rounds, 0.7), 0.5, 0.1, 0.95, 0.95)
        )
    return _add_noise(rng, contexts, _columns(0, edge, edge, 1), _columns(0.1 + 2 * edge, 0.1, 0.95, 0.95))


def smooth(*, rounds: int, width: int = 5, seed: int = 0) -> Curves:
    """A wide flat valley that moves with the context, and much noise: large bandwidths cost nothing and learn faster.

    >>> world = smooth(rounds=100)
    >>> world.optimum(bandwidth=1/8, epsilon=0.0) - world.optimum(bandwidth=1/64, epsilon=0.0) < 1e-12
    True
    """
    rng, contexts = _start(rounds, width, seed)
    middle = 0.2 + 0.6 * normal_share(_score(rng, contexts))
    left, right = np.maximum(middle - 0.2, 0), np.minimum(middle + 0.2, 1)
    values = _columns(0.25 + 0.8 * left, 0.25, 0.25, 0.25 + 0.8 * (1 - right))
    return _add_noise(rng, contexts, _columns(0, left, right, 1), values, noise=0.25)


def ranges(*, rounds: int, width: int = 5, seed: int = 0) -> Curves:
    """The allowed range of actions depends on the context and often excludes the best action.

    >>> world = ranges(rounds=100)
    >>> bool((world.highs - world.lows >= 0.3).all()), bool((world.highs - world.lows < 0.5).any())
    (True, True)
    """
    rng, contexts = _start(rounds, width, seed)
    best, low, reach = (normal_share(_score(rng, contexts)) for _ in range(3))
    lows = 0.4 * low
    highs = lows + 0.3 + 0.3 * reach
    positions, values = _valley(best)
    return _add_noise(rng, contexts, positions, values, lows=lows, highs=highs)


def drift(*, rounds: int, width: int = 5, jump: Literal["turned", "opposite"] = "turned", seed: int = 0) -> Curves:
    """One valley that jumps halfway through the rounds.

    With `jump="turned"` it then depends on another direction of the context and is as hard to learn as before. With
    `"opposite"` it moves by half of the range, to the worst action so far. Its position is then no longer a continuous
    function of the context, which is harder to learn, even for a new agent.

    >>> world = drift(rounds=100)
    >>> world.optimum(bandwidth=1/64, epsilon=0.0) < 0.15
    True
    """
    check_choice("jump", jump, ("turned", "opposite"))
    rng, contexts = _start(rounds, width, seed)
    best = normal_share(_score(rng, contexts))
    after = normal_share(_score(rng, contexts)) if jump == "turned" else (best + 0.5) % 1
    best[rounds // 2 :] = after[rounds // 2 :]
    return _add_noise(rng, contexts, *_valley(best))


def turning(*, rounds: int, width: int = 5, period: int = 50_000, seed: int = 0) -> Curves:
    """One valley whose position depends on a direction of the context that turns all the time, once in `period` rounds.

    >>> half_turn, still = (turning(rounds=2, period=period).positions[1, 1] for period in (2, 10**9))
    >>> round(float(half_turn + still), 6)
    1.0
    """
    check_whole_number("period", period, 2, None, "Try 50000.")
    rng, contexts = _start(rounds, width, seed)
    check_whole_number("width", width, 2, None, "Try 5.")
    plane, _ = np.linalg.qr(rng.standard_normal((width, 2)))
    angle = 2 * np.pi * np.arange(rounds) / period
    score = (contexts @ plane * _columns(np.cos(angle), np.sin(angle))).sum(axis=1)
    return _add_noise(rng, contexts, *_valley(normal_share(score)))


def season(*, rounds: int, width: int = 5, period: int = 10_000, seed: int = 0) -> Curves:
    """One valley that moves with the context within half of the range, and that half moves to and fro once in `period` rounds.

    >>> world = season(rounds=100, period=100)
    >>> float(world.positions[:50, 1].mean().round(1)), float(world.positions[50:, 1].mean().round(1))
    (0.7, 0.3)
    """
    check_whole_number("period", period, 2, None, "Try 10000.")
    rng, contexts = _start(rounds, width, seed)
    shift = 0.25 * np.sin(2 * np.pi * np.arange(rounds) / period)
    return _add_noise(rng, contexts, *_valley(0.25 + 0.5 * normal_share(_score(rng, contexts)) + shift))


def far_valley(*, rounds: int, width: int = 5, seed: int = 0) -> Curves:
    """A valley on the left, and from half of the rounds on a deeper one on the right, which changes nothing on the left.

    >>> far_valley(rounds=4).expected.min(axis=1)
    array([0.3, 0.3, 0.1, 0.1])
    """
    rng, contexts = _start(rounds, width, seed)
    near = 0.1 + 0.1 * normal_share(_score(rng, contexts))
    far = 0.65 + 0.15 * normal_share(_score(rng, contexts))
    depth = np.where(np.arange(rounds) < rounds // 2, 0.7, 0.1)
    positions = _columns(0, near, near + 0.2, far - 0.25, far, far + 0.2, 1)
    return _add_noise(rng, contexts, positions, _columns(0.3 + 2 * near, 0.3, 0.7, 0.7, depth, 0.7, 0.7))


def noise(*, rounds: int, width: int = 5, seed: int = 0) -> Curves:
    """Uninformative contexts: the same action is best in every round.

    >>> world = noise(rounds=100)
    >>> abs(world.best_constant(bandwidth=1/8, epsilon=0.0) - world.optimum(bandwidth=1/8, epsilon=0.0)) < 1e-6
    True
    """
    rng, contexts = _start(rounds, width, seed)
    return _add_noise(rng, contexts, *_valley(np.full(rounds, rng.uniform(0.2, 0.8))))


def realizable(*, rounds: int, best: Within = (0.0, 1.0), seed: int = 0) -> Curves:
    """A world that satisfies the paper's theorems: a context of one number with 64 values, and a valley that moves with it.

    The valleys are between the two shares `best` of the range of actions. The loss is one shape that moves with the
    context, so for any bandwidth and any number of leaves, a threshold on the context determines the better side of each
    node. So the paper's realizability holds for the class of all thresholds in both directions, which has 2 x 65 members.

    >>> np.unique(realizable(rounds=10_000).contexts).size
    64
    """
    rng = random_generator(rounds=rounds, width=1, seed=seed)
    low, high = check_range("best", best)
    if low < 0 or high > 1:
        raise ParameterError(f"best must be two shares in [0, 1], got {best!r}.", "best")
    share = (rng.integers(0, LEVELS, rounds) + 0.5) / LEVELS
    return _add_noise(rng, share[:, np.newaxis].astype(np.float32), *_valley(low + (high - low) * share))


def _start(rounds: int, width: int, seed: int) -> tuple[np.random.Generator, Floats]:
    """The random generator of a world, and its contexts."""
    rng = random_generator(rounds=rounds, width=width, seed=seed)
    # The losses are computed from exactly the numbers that the agent sees.
    return rng, rng.standard_normal((rounds, width)).astype(np.float32).astype(np.float64)


def _score(rng: np.random.Generator, contexts: Floats) -> Floats:
    """Project the contexts on a random direction; the result is standard normal."""
    direction: Floats = rng.standard_normal((1, contexts.shape[1]))
    score: Floats = (contexts * (direction / np.sqrt((direction**2).sum()))).sum(axis=1)
    return score


def _crossed_share(contexts: Floats) -> Floats:
    """The angle of the first and the last feature as a share of half a turn, so opposite quadrants are equal."""
    return np.arctan2(contexts[:, 0], contexts[:, -1]) / np.pi % 1


def _valley(best: Floats) -> tuple[Floats, Floats]:
    """The distance to the best action, from 0.1 upwards."""
    return _columns(0, best, 1), _columns(0.1 + 0.8 * best, 0.1, 0.9 - 0.8 * best)


def _columns(*columns: Floats | float) -> Floats:
    return np.stack(np.broadcast_arrays(*columns), axis=1)


def _add_noise(
    rng: np.random.Generator,
    contexts: Floats,
    positions: Floats,
    expected: Floats,
    *,
    noise: float = 0.05,
    lows: Floats | None = None,
    highs: Floats | None = None,
) -> Curves:
    values = expected + rng.uniform(-noise, noise, (len(contexts), 1))
    return Curves(contexts, positions=positions, values=values, expected=expected, lows=lows, highs=highs)
