"""Simulated worlds with a known optimum: contexts, a loss for an action in each round, and its expectation.

The worlds of the first rounds are here, those whose outcomes have parts in `benchmarks.markets`. Losses may be negative
rewards. Of d features, at most five matter. A world is drawn from its name, a seed and a number of rounds, and its noise
is the same for all actions of a round, so that players are compared on equal luck.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtr

Array = NDArray[np.float64]
Rounds = Any
"""What selects rounds: a number, or a slice of all of them."""
ALL = slice(None)
GRID = 1025  # actions among which the best one of each round is searched, if it is not known
MATTER = 5  # features
SCORE = 0.6  # deviation of the scores of contexts: they matter, and yet a constant action is not hopeless


@dataclass(frozen=True, eq=False, kw_only=True)
class World:
    """Contexts, as an agent and as numbers for its rivals; knobs, expected losses, and losses as they are drawn.

    `actions` is a range, or ranges by name. `expected` takes an action, or an array with one per round, and rounds; the
    actions of several knobs are arrays whose last axis are the knobs. `settings` are those of the agent.
    """

    contexts: Sequence[Any]
    rows: Array
    expected: Callable[[Any, Rounds], Any]
    loss: Callable[[Any, int], float]
    best: Array
    actions: Any = (0.0, 1.0)
    settings: Mapping[str, Any] = field(default_factory=lambda: {"losses": "auto"})

    def __len__(self) -> int:
        return len(self.contexts)

    @property
    def ends(self) -> tuple[Array, Array]:
        """The lowest and the highest value of each knob."""
        ranges = list(self.actions.values()) if isinstance(self.actions, dict) else [self.actions]
        return np.array([low for low, _ in ranges]), np.array([high for _, high in ranges])

    def regrets(self, actions: Array) -> Array:
        """How much more the actions of the first rounds are expected to lose than the best ones."""
        first = slice(len(actions))
        regrets: Array = self.expected(actions, first) - self.best[first]
        return regrets


def best_of_grid(expected: Callable[[Any, Rounds], Any], rounds: int, actions: tuple[float, float]) -> Array:
    """The lowest expected loss of each round, of 1025 actions."""
    best = np.full(rounds, np.inf)
    for action in np.linspace(*actions, GRID):
        best = np.minimum(best, expected(action, ALL))
    return best


def generator(name: str, seed: int) -> np.random.Generator:
    """Random numbers for a world; the seed of one world says nothing about another."""
    return np.random.default_rng([seed, zlib.crc32(name.encode())])


def direction(rng: np.random.Generator, width: int) -> Array:
    """A random direction, of length 1, in which at most five features matter."""
    vector = np.zeros(width)
    vector[:MATTER] = rng.standard_normal(min(width, MATTER))
    return vector / max(np.linalg.norm(vector), 1e-9)


# --- one knob: nine shapes of losses, each with a number of features --------------------------------------------------


def _far_valley(a: Any, y: Any) -> Any:
    near, far = np.exp(-0.5 * ((a - 0.25) / 0.12) ** 2), np.exp(-0.5 * ((a - y) / 0.05) ** 2)
    return 0.7 - 0.25 * near - 0.6 * far


def _newsvendor(a: Any, y: Any) -> Any:
    """Demand is y with normal noise of 0.1; a missing unit costs 1.8, a unit that is left 0.2."""
    z = (a - y) / 0.1
    short = 0.1 * (np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi) - z * ndtr(-z))
    return 1.8 * short + 0.2 * (short + a - y)


@dataclass(frozen=True)
class Shape:
    """The optimum by the score u of a context, the expected loss of an action, and the noise or a drawn loss."""

    optimum: Callable[[Array], Array]
    expected: Callable[[Any, Any], Any]
    noise: float = 0.0
    drawn: Callable[[float, float, float], float] | None = None  # of an action, the optimum and a uniform number


def _accepted(
    chance: Callable[[Any, Any], Any], loss: Callable[[Any], Any], optimum: Callable[[Array], Array]
) -> Shape:
    """A loss that depends on whether an action is accepted."""
    refused = loss(None)
    return Shape(
        optimum,
        lambda a, y: refused + chance(a, y) * (loss(a) - refused),
        drawn=lambda a, y, u: loss(a) if u < chance(a, y) else refused,
    )


def _wave(u: Array) -> Array:
    return 0.5 + 0.3 * np.sin(1.3 * u)


def _limit(u: Array) -> Array:
    return 0.25 + 0.5 * expit(1.5 * u)


SHAPES: dict[str, Shape] = {
    "linear": Shape(lambda u: np.clip(0.5 + 0.2 * u, 0, 1), lambda a, y: np.abs(a - y), 0.05),
    "dose": Shape(_wave, lambda a, y: np.minimum(4 * (a - y) ** 2, 1.5), 0.1),
    "bump": Shape(_wave, lambda a, y: 1 - np.exp(-0.5 * ((a - y) / 0.12) ** 2), 0.1),
    "cliff": _accepted(lambda a, y: expit((y - a) / 0.02), lambda a: 1.0 if a is None else 1 - a, _limit),
    "price": _accepted(lambda a, y: expit(10 * (y - a)), lambda a: 1.0 if a is None else 1 - a, _limit),
    "far valley": Shape(lambda u: 0.8 + 0.08 * np.tanh(u), _far_valley, 0.05),
    "newsvendor": Shape(
        _wave,
        _newsvendor,
        drawn=lambda a, y, n: 2 * max(0.9 * (y + 0.1 * n - a), 0.1 * (a - y - 0.1 * n)),
    ),
    "bid": _accepted(
        lambda a, y: expit((a - 0.2 - 0.5 * y) / 0.06),
        lambda a: 0.0 if a is None else -1.5 * (1 - a),
        lambda u: expit(1.5 * u),
    ),
    "inter": Shape(lambda product: 0.5 + 0.3 * np.sin(product), lambda a, y: 4 * (a - y) ** 2, 0.1),
}
WIDTHS = (0, 1, 3, 10, 30)


def one_knob(shape: str, width: int, seed: int, rounds: int) -> World:
    """Losses of a shape, with an optimum that depends on a linear score, or for "inter" on a product of two features."""
    rng = generator(f"{shape} {width}", seed)
    rows = rng.standard_normal((rounds, width))
    level = 0.5 * rng.standard_normal()
    score = SCORE * rows @ direction(rng, width) + level
    if shape == "inter" and width > 1:
        score = rows[:, 0] * rows[:, 1]
    return shaped(SHAPES[shape], rows, score, rng)


def shaped(shape: Shape, rows: Array, score: Array, rng: np.random.Generator, **changes: Any) -> World:
    y = shape.optimum(score)
    normal, uniform = rng.standard_normal(len(y)), rng.random(len(y))
    luck = normal if shape.expected is _newsvendor else uniform

    def expected(a: Any, rounds: Rounds) -> Any:
        return shape.expected(a, y[rounds])

    def loss(a: Any, number: int) -> float:
        if shape.drawn is not None:
            return float(shape.drawn(a, y[number], luck[number]))
        return float(shape.expected(a, y[number]) + shape.noise * normal[number])

    # The optimum itself is the best action of these shapes; the others have it elsewhere.
    searched = shape.drawn is not None or shape.expected is _far_valley
    best = best_of_grid(expected, len(y), (0.0, 1.0)) if searched else expected(y, ALL)
    world = {"contexts": rows, "rows": rows, "expected": expected, "loss": loss, "best": best}
    return World(**{**world, **changes})


# --- shops with rare purchases, and profits with heavy tails ----------------------------------------------------------


def shop(conversion: float, width: int, seed: int, rounds: int) -> World:
    """Prices from 0.2 to 1; `conversion` is the mean share of buyers at the best prices."""
    rng = generator(f"shop {conversion} {width}", seed)
    rows = rng.standard_normal((rounds, width))
    interest = rows @ direction(rng, width)
    slope = 6 * np.exp(0.25 * np.tanh(rows @ direction(rng, width)))
    prices, luck = np.linspace(0.2, 1, 161), rng.random(rounds)

    def share(level: float) -> float:
        chances = expit(level + interest[:500, None] - slope[:500, None] * prices)
        best = np.argmax(chances * prices, axis=1)
        return float(np.take_along_axis(chances, best[:, None], 1).mean())

    low, high = -10.0, 10.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if share(middle) < conversion else (low, middle)

    def chance(price: Any, at: Rounds) -> Any:
        return expit(low + interest[at] - slope[at] * price)

    def expected(price: Any, at: Rounds) -> Any:
        return -price * chance(price, at)

    return World(
        contexts=rows,
        rows=rows,
        expected=expected,
        loss=lambda price, number: -price if luck[number] < chance(price, number) else 0.0,
        best=best_of_grid(expected, rounds, (0.2, 1.0)),
        actions=(0.2, 1.0),
        settings={"rewards": (0.0, 1.0)},
    )


TAILS: dict[str, Callable[[np.random.Generator, int], Array]] = {
    "lognormal 1": lambda rng, rounds: np.exp(rng.standard_normal(rounds) - 0.5),
    "lognormal 1.5": lambda rng, rounds: np.exp(1.5 * rng.standard_normal(rounds) - 1.125),
    "pareto 1.5": lambda rng, rounds: (1 + rng.pareto(1.5, rounds)) / 3,
}


def heavy_tail(tail: str, width: int, seed: int, rounds: int) -> World:
    """Profits whose size is a product of a curve and a factor with mean 1 and a heavy tail."""
    rng = generator(f"{tail} {width}", seed)
    rows = rng.standard_normal((rounds, width))
    level = 0.5 * rng.standard_normal()
    y = 0.5 + 0.3 * np.tanh(rows @ direction(rng, width) + level)
    factors = TAILS[tail](rng, rounds)

    def expected(a: Any, at: Rounds) -> Any:
        return -np.maximum(0.05, 1 - ((a - y[at]) / 0.5) ** 2)

    return World(
        contexts=rows,
        rows=rows,
        expected=expected,
        loss=lambda a, number: float(factors[number] * expected(a, number)),
        best=np.full(rounds, -1.0),
        settings={"rewards": "auto"},
    )


# --- further worlds, which no constant of Auto was chosen on ----------------------------------------------------------


def useless_context(seed: int, rounds: int) -> World:
    """Ten features, of which none matters."""
    rng = generator("useless context", seed)
    rows = rng.standard_normal((rounds, 10))
    return shaped(SHAPES["dose"], rows, np.full(rounds, rng.standard_normal()), rng)


def little_to_gain(seed: int, rounds: int) -> World:
    """Noise of 0.3, and at most 0.04 to gain."""
    rng = generator("little to gain", seed)
    rows = rng.standard_normal((rounds, 5))
    flat = Shape(_wave, lambda a, y: 0.5 + 0.04 * np.minimum(4 * (a - y) ** 2, 1), 0.3)
    return shaped(flat, rows, rows @ direction(rng, 5), rng)


def categories(seed: int, rounds: int) -> World:
    """Contexts with names: a country of eight, a device of three, an age, and a colour that does not matter."""
    rng = generator("categories", seed)
    country, device, colour = (rng.integers(0, count, rounds) for count in (8, 3, 5))
    age = rng.uniform(18, 80, rounds)
    score = rng.standard_normal(8)[country] + 0.7 * rng.standard_normal(3)[device] + (age - 49) / 40
    rows = np.column_stack([np.eye(8)[country], np.eye(3)[device], np.eye(5)[colour], (age - 49) / 18])
    columns = zip(country.tolist(), device.tolist(), colour.tolist(), age.tolist(), strict=True)
    contexts = [{"country": f"c{c}", "device": f"d{d}", "colour": f"k{k}", "age": years} for c, d, k, years in columns]
    return shaped(SHAPES["dose"], rows, score, rng, contexts=contexts)


def trend(seed: int, rounds: int) -> World:
    """A dose whose losses rise by 2 in 1,000 rounds, whatever is done."""
    rng = generator("trend", seed)
    rows = rng.standard_normal((rounds, 3))
    world = shaped(SHAPES["dose"], rows, rows @ direction(rng, 3), rng)
    rise = 0.002 * np.arange(rounds)
    return World(
        contexts=rows,
        rows=rows,
        expected=lambda a, at: world.expected(a, at) + rise[at],
        loss=lambda a, number: world.loss(a, number) + float(rise[number]),
        best=world.best + rise,
    )


def two_valleys(seed: int, rounds: int) -> World:
    """Valleys at 0.2 and 0.8; the context says which one is deeper."""
    rng = generator("two valleys", seed)
    rows = rng.standard_normal((rounds, 4))

    def expected(a: Any, share: Any) -> Any:
        left, right = (np.exp(-0.5 * ((a - middle) / 0.07) ** 2) for middle in (0.2, 0.8))
        return 1 - (0.3 + 0.6 * share) * left - (0.9 - 0.6 * share) * right

    shape = Shape(lambda u: expit(4 * u), expected, 0.1)
    world = shaped(shape, rows, rows @ direction(rng, 4), rng)
    best = best_of_grid(world.expected, rounds, (0.0, 1.0))
    return World(contexts=rows, rows=rows, expected=world.expected, loss=world.loss, best=best)


def large_scale(seed: int, rounds: int) -> World:
    """Losses of millions around 50 millions, for actions up to 250."""
    rng = generator("large scale", seed)
    rows = rng.standard_normal((rounds, 5))
    unit = shaped(SHAPES["dose"], rows, rows @ direction(rng, 5), rng)
    return World(
        contexts=1000 * rows,
        rows=rows,
        expected=lambda a, at: 5e7 + 1e6 * unit.expected(a / 250, at),
        loss=lambda a, number: 5e7 + 1e6 * unit.loss(a / 250, number),
        best=5e7 + 1e6 * unit.best,
        actions=(0.0, 250.0),
    )


def border(seed: int, rounds: int) -> World:
    """The best action is the highest one in two thirds of the rounds, otherwise a bit lower."""
    rng = generator("border", seed)
    rows = rng.standard_normal((rounds, 5))
    shape = Shape(lambda u: np.clip(1.1 + 0.25 * u, 0, 1), lambda a, y: np.abs(a - y), 0.1)
    return shaped(shape, rows, rows @ direction(rng, 5), rng)


KNOBS = {"price": (10.0, 50.0), "discount": (0.0, 0.5), "reminder": (1.0, 30.0)}


def knobs(count: int, seed: int, rounds: int) -> World:
    """Named knobs with a bowl of losses, in which neighbours interact."""
    rng = generator(f"{count} knobs", seed)
    rows = rng.standard_normal((rounds, 3))
    targets = np.column_stack([_wave(rows @ direction(rng, 3) + 0.5 * rng.standard_normal()) for _ in range(count)])
    actions = dict(list(KNOBS.items())[:count])
    low, high = (np.array(ends) for ends in zip(*actions.values(), strict=True))
    noise = 0.1 * rng.standard_normal(rounds)

    def expected(a: Any, at: Rounds) -> Any:
        off = (a - low) / (high - low) - targets[at]
        return (4 * (off + 0.5 * np.roll(off, 1, -1)) ** 2).sum(-1) / count

    return World(
        contexts=rows,
        rows=rows,
        expected=expected,
        loss=lambda a, number: float(expected(a, number) + noise[number]),
        best=np.zeros(rounds),
        actions=actions,
    )


Draw = Callable[[int, int], World]
"""Draws a world from a seed and a number of rounds."""

KINDS: dict[str, dict[str, Draw]] = {
    "one knob": {f"{shape} {width}": partial(one_knob, shape, width) for shape in SHAPES for width in WIDTHS},
    "shops": {f"shop {rate} {width}": partial(shop, rate, width) for rate in (0.01, 0.05, 0.2) for width in (0, 5, 20)},
    "heavy tails": {f"{tail} {width}": partial(heavy_tail, tail, width) for tail in TAILS for width in (0, 5)},
    "further": {
        "useless context": useless_context,
        "little to gain": little_to_gain,
        "categories": categories,
        "trend": trend,
        "two valleys": two_valleys,
        "large scale": large_scale,
        "border": border,
        "2 knobs": partial(knobs, 2),
        "3 knobs": partial(knobs, 3),
    },
}
DRAWS = {name: draw for draws in KINDS.values() for name, draw in draws.items()}
