"""Worlds with several knobs, each with a known best action and a known optimum.

Contexts are normal. Given the context, every loss is a function of all knobs plus uniform noise with mean 0, which is the
same for all actions of a round. Losses are in [0, 1], and so are knobs unless said otherwise. Targets are normal
scores of the contexts, mapped to the range from 0.1 to 0.9.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from manul.actions.kinds.choice import Choice
from manul.actions.kinds.knob import KnobValue
from manul.actions.kinds.stepped import Stepped
from manul.contexts import conversion
from manul.utils.validation import Floats, check_shape, check_whole_number
from manul.worlds.synthetic import normal_share, random_generator, scalar_products, unit
from manul.worlds.world import Contexts

NOISE = 0.05
FLOOR = 0.1  # the loss of the best action, in all worlds but `price_and_discount` and those with steps

Numbers = npt.NDArray[np.int64]
Columns = Mapping[str, npt.NDArray[Any]]
Expected = Callable[[Numbers, Columns], Floats]
"""The expected losses of actions, which are columns by knob, in rounds with these numbers."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Several:
    """A loss for the values of several knobs in each round.

    `actions` are the knobs as an agent takes them, `best` the best action of each round, as columns by knob.

    >>> world = separable(rounds=100, knobs=2)
    >>> best = {name: column[0] for name, column in world.best.items()}
    >>> abs(world.loss(0, best) - world.optimum()) <= NOISE, float(world.regrets(world.best).max())
    (True, 0.0)
    """

    contexts: Contexts
    actions: dict[str, Any]
    expected: Expected
    best: dict[str, npt.NDArray[Any]]
    noise: Floats

    def __len__(self) -> int:
        return len(self.contexts)

    def loss(self, number: int, action: Mapping[str, KnobValue]) -> float:
        """The loss of an action in a round; rounds are numbered from 0.

        >>> world = separable(rounds=3, knobs=2)
        >>> 0 <= world.loss(2, {"knob1": 0.5, "knob2": 0.1}) <= 1
        True
        """
        columns = {name: np.array([action[name]]) for name in self.actions}
        return float(self.expected(np.array([number]), columns)[0] + self.noise[number])

    def expected_losses(self, actions: Columns) -> Floats:
        """The expected loss of one action per round, given as columns by knob."""
        for name in self.actions:
            check_shape(name, np.asarray(actions[name]), len(self))
        return self.expected(np.arange(len(self)), {name: np.asarray(actions[name]) for name in self.actions})

    def optimum(self) -> float:
        """The mean loss of the best actions.

        >>> round(bowl(rounds=10, knobs=3).optimum(), 9)
        0.1
        """
        return float(self.expected_losses(self.best).mean())

    def regrets(self, actions: Columns) -> Floats:
        """How much more each round's action is expected to lose than the best one."""
        return self.expected_losses(actions) - self.expected_losses(self.best)

    def best_action(self, number: int) -> dict[str, KnobValue]:
        """The best action of a round.

        >>> templates(rounds=5).best_action(0)["template"] in "abcde"
        True
        """
        return {name: column[number].item() for name, column in self.best.items()}


def separable(*, rounds: int, knobs: int, steps: int | None = None, width: int = 20, seed: int = 0) -> Several:
    """The mean distance of the knobs to their targets; with `steps`, knobs are whole numbers from 0 to `steps`.

    >>> separable(rounds=3, knobs=2, steps=10).actions["knob1"]
    Stepped(low=0.0, high=10.0, step=1.0)
    """
    start = _Start(rounds=rounds, knobs=knobs, width=width, seed=seed)
    if steps is not None:
        check_whole_number("steps", steps, 1, 10**6, "Try 20.")
    scale = 1.0 if steps is None else float(steps)

    def expected(numbers: Numbers, columns: Columns) -> Floats:
        losses: Floats = FLOOR + 0.8 * np.abs(_stack(columns) / scale - start.targets[numbers]).mean(axis=1)
        return losses

    best = start.targets if steps is None else np.round(start.targets * scale)
    return start.world(expected, best, knob=(0.0, 1.0) if steps is None else Stepped(0, steps, 1))


def bowl(*, rounds: int, knobs: int, width: int = 20, seed: int = 0) -> Several:
    """A quadratic bowl in which neighbouring knobs interact: each distance counts with half of the next one.

    >>> bowl(rounds=3, knobs=4).regrets(bowl(rounds=3, knobs=4).best)
    array([0., 0., 0.])
    """
    start = _Start(rounds=rounds, knobs=knobs, width=width, seed=seed)

    def expected(numbers: Numbers, columns: Columns) -> Floats:
        off = _stack(columns) - start.targets[numbers]
        losses: Floats = FLOOR + 0.4 * ((off + 0.5 * np.roll(off, -1, axis=1)) ** 2).mean(axis=1)
        return losses

    return start.world(expected, start.targets)


def ridge(*, rounds: int, knobs: int, width: int = 20, seed: int = 0) -> Several:
    """A narrow valley: the sum of the knobs must fit closely, their single values only roughly.

    >>> world = ridge(rounds=1, knobs=2)
    >>> best = world.best_action(0)
    >>> moved = {"knob1": best["knob1"] - 0.1, "knob2": best["knob2"] + 0.1}
    >>> round(world.loss(0, moved) - world.loss(0, best), 6)
    0.02
    """
    start = _Start(rounds=rounds, knobs=knobs, width=width, seed=seed)

    def expected(numbers: Numbers, columns: Columns) -> Floats:
        off = _stack(columns) - start.targets[numbers]
        across = np.minimum(1.0, np.abs(off.sum(axis=1)))
        losses: Floats = FLOOR + (0.6 * across + 0.2 * np.abs(off).mean(axis=1))
        return losses

    return start.world(expected, start.targets)


def valleys(*, rounds: int, knobs: int, valleys: int = 3, width: int = 20, seed: int = 0) -> Several:
    """Several valleys at fixed places, one of them deep; which one depends on the context.

    >>> world = valleys(rounds=100, knobs=2)
    >>> len(set(world.best["knob1"].tolist()))
    3
    """
    check_whole_number("valleys", valleys, 2, 64, "Try 3.")
    start = _Start(rounds=rounds, knobs=knobs, width=width, seed=seed)
    places = start.rng.uniform(0.1, 0.9, (valleys, knobs))
    deep = np.minimum((start.shares(1)[:, 0] * valleys).astype(np.int64), valleys - 1)

    def expected(numbers: Numbers, columns: Columns) -> Floats:
        off = _stack(columns)[:, None, :] - places[None, :, :]
        distances = np.sqrt((off**2).mean(axis=2))
        depths = np.where(np.arange(valleys) == deep[numbers][:, None], 0.0, 0.4)
        losses: Floats = FLOOR + np.minimum(0.8, (depths + 1.6 * distances).min(axis=1))
        return losses

    return start.world(expected, places[deep])


def cliff(*, rounds: int, knobs: int, width: int = 20, seed: int = 0) -> Several:
    """The loss falls up to an edge of each knob and jumps beyond it, as for prices that are too high.

    >>> world = cliff(rounds=1, knobs=1)
    >>> edge = world.best_action(0)["knob1"]
    >>> [round(world.loss(0, {"knob1": edge + step}) - world.loss(0, {"knob1": edge}), 6) for step in (-0.1, 0.001)]
    [0.1, 0.8]
    """
    start = _Start(rounds=rounds, knobs=knobs, width=width, seed=seed)
    edges = 0.25 + 0.5 * start.shares(knobs)

    def expected(numbers: Numbers, columns: Columns) -> Floats:
        below = edges[numbers] - _stack(columns)
        losses: Floats = FLOOR + np.where(below >= 0, below, 0.8).mean(axis=1)
        return losses

    return start.world(expected, edges)


def price_and_discount(*, rounds: int, products: int = 1, width: int = 20, seed: int = 0) -> Several:
    """Prices from 10 to 50 and discounts from 0 to 0.3, two knobs per product; customers like discounts up to a point.

    What a customer is willing to pay, and the most attractive discount, depend on the context. The probability of a
    purchase at the paid price, price · (1 - discount), is logistic. The loss is 0.9 - 0.8 · mean revenue / 35.

    >>> world = price_and_discount(rounds=100)
    >>> list(world.actions), world.optimum() < 0.6
    (['price', 'discount'], True)
    """
    check_whole_number("products", products, 1, 8, "Try 1.")
    start = _Start(rounds=rounds, knobs=2 * products, width=width, seed=seed)
    shares = start.shares(2 * products)
    willing, attractive = 16 + 14 * shares[:, ::2], 0.05 + 0.2 * shares[:, 1::2]
    spread, taste = 3.0, 150.0

    def revenue(numbers: Numbers, prices: Floats, discounts: Floats) -> Floats:
        paid = prices * (1 - discounts)
        limit = willing[numbers] + taste * (2 * attractive[numbers] - discounts) * discounts
        chance: Floats = 0.5 * (1 + np.tanh((limit - paid) / (2 * spread)))
        return paid * chance

    def expected(numbers: Numbers, columns: Columns) -> Floats:
        values = _stack(columns)
        losses: Floats = 0.9 - 0.8 / 35 * revenue(numbers, values[:, ::2], values[:, 1::2]).mean(axis=1)
        return losses

    paid = _best_paid_price((willing + taste * attractive**2) / spread) * spread
    best = np.stack([paid / (1 - attractive), attractive], axis=2).reshape(rounds, -1)
    numbered = [""] if products == 1 else [str(product + 1) for product in range(products)]
    names = [name + number for number in numbered for name in ("price", "discount")]
    return start.world(expected, best, names=names, knobs=[(10.0, 50.0), (0.0, 0.3)] * products)


def templates(*, rounds: int, templates: int = 5, width: int = 20, seed: int = 0) -> Several:
    """A choice of a template and a price: which template is best, and the best price of each, depend on the context.

    >>> templates(rounds=3).actions["template"]
    Choice(options=('a', 'b', 'c', 'd', 'e'))
    """
    check_whole_number("templates", templates, 2, 26, "Try 5.")
    start = _Start(rounds=rounds, knobs=2, width=width, seed=seed)
    options = np.array([chr(ord("a") + number) for number in range(templates)])
    scores = start.scores(templates)
    behind = np.minimum(0.4, 0.2 * (scores.max(axis=1, keepdims=True) - scores))
    prices = 0.1 + 0.8 * start.shares(templates)

    def expected(numbers: Numbers, columns: Columns) -> Floats:
        chosen = np.searchsorted(options, np.asarray(columns["template"], dtype=str))
        off = np.abs(columns["price"] - prices[numbers, chosen])
        losses: Floats = FLOOR + (behind[numbers, chosen] + 0.4 * off)
        return losses

    chosen = scores.argmax(axis=1)
    return Several(
        contexts=start.contexts,
        actions={"template": Choice(options.tolist()), "price": (0.0, 1.0)},
        expected=expected,
        best={"template": options[chosen], "price": prices[np.arange(rounds), chosen]},
        noise=start.noise(),
    )


class _Start:
    """The contexts of a world and what is drawn for it."""

    def __init__(self, *, rounds: int, knobs: int, width: int, seed: int) -> None:
        check_whole_number("knobs", knobs, 1, 16, "Try 2.")
        self.rng = random_generator(rounds=rounds, width=width, seed=seed)
        self.contexts = conversion.matrix(self.rng.standard_normal((rounds, width)))
        self.knobs = knobs
        self.targets = 0.1 + 0.8 * self.shares(knobs)

    def scores(self, count: int) -> Floats:
        """Standard normal scores of the contexts, each in a random direction."""
        directions = self.rng.standard_normal((self.contexts.shape[1], count))
        return scalar_products(self.contexts, np.transpose([unit(direction) for direction in directions.T]))

    def shares(self, count: int) -> Floats:
        """Scores as uniform numbers from 0 to 1."""
        return normal_share(self.scores(count))

    def noise(self) -> Floats:
        return self.rng.uniform(-NOISE, NOISE, len(self.contexts))

    def world(
        self,
        expected: Expected,
        best: Floats,
        *,
        names: list[str] | None = None,
        knob: Any = (0.0, 1.0),
        knobs: list[Any] | None = None,
    ) -> Several:
        chosen = names or [f"knob{number + 1}" for number in range(self.knobs)]
        return Several(
            contexts=self.contexts,
            actions=dict(zip(chosen, knobs or [knob] * self.knobs, strict=True)),
            expected=expected,
            best=dict(zip(chosen, best.T, strict=True)),
            noise=self.noise(),
        )


def _stack(columns: Columns) -> Floats:
    return np.stack(list(columns.values()), axis=1).astype(np.float64)


def _best_paid_price(limits: Floats) -> Floats:
    """The price x that maximises x / (1 + exp(x - limit)): x - 1 = exp(limit - x), by Newton's method.

    >>> _best_paid_price(np.array([2.0]))
    array([2.])
    """
    prices = np.maximum(limits, 1.5)
    for _ in range(50):
        # ln(x - 1) + x = limit is concave, so the steps converge.
        prices = np.maximum(prices - (np.log(prices - 1) + prices - limits) / (1 / (prices - 1) + 1), 1 + 1e-9)
    return prices
