"""Markets: simulated worlds of prices and bids whose rewards have parts, such as whether somebody bought.

A seller knows the formula of the reward, (price - cost) times bought, and a bidder (value - bid) times won. Contexts are
standard normal, five features unless the name says otherwise. Losses are negative rewards.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from scipy.special import expit, logit

from benchmarks.simulated_worlds import ALL, Array, Rounds, World, best_of_grid, generator
from manul import worlds

Chance = Callable[[Any, Rounds], Any]
"""The probability of a purchase, or the mean number of units sold, at a price in rounds."""
Parts = dict[str, Any]
ARRIVALS = 400  # more units than anybody buys


@dataclass(frozen=True, eq=False, kw_only=True)
class Market(World):
    """A world whose losses follow from `parts`: "bought", "units", or "won" and "value", the latter only if won."""

    kind: Literal["bought", "units", "won"]
    parts: Callable[[Any, int], Parts]
    cost: float = 0.0

    def best_constant(self) -> float:
        """The action that is best for all rounds together."""
        actions = np.linspace(*self.actions, 1025)
        return float(actions[np.argmin([np.mean(self.expected(action, ALL)) for action in actions])])


def sale(
    rows: Array, chance: Chance, luck: Array, *, actions: tuple[float, float], cost: float = 0.0, **changes: Any
) -> Market:
    """A price for one item, which somebody buys or not."""

    def expected(price: Any, at: Rounds) -> Any:
        return -(price - cost) * chance(price, at)

    def parts(price: float, number: int) -> Parts:
        return {"bought": bool(luck[number] < chance(price, number))}

    market: Mapping[str, Any] = {
        "contexts": rows,
        "rows": rows,
        "expected": expected,
        "loss": lambda price, number: -(price - cost) * parts(price, number)["bought"],
        "best": best_of_grid(expected, len(rows), actions),
        "actions": actions,
        "settings": {"rewards": "auto"},
        "kind": "bought",
        "parts": parts,
        "cost": cost,
    }
    return Market(**{**market, **changes})


def pricing(
    seed: int, rounds: int, *, width: int = 5, dearer: float = 1.0, opposite: bool = False, draw: int = 0
) -> Market:
    """The prices of `manul.worlds.pricing`: nobody pays much more than about 20, by context. Of other widths two features matter.

    Sister markets are `dearer`, or have the `opposite` taste; `draw` numbers other visitors of the same market.
    """
    vector = _direction(generator(f"pricing {width}", seed), width, width if width == 5 else 2)
    rng = generator(f"visitors {width} {draw}", seed)
    rows, luck = rng.standard_normal((rounds, width)), rng.random(rounds)
    return _limited(rows, 20 * dearer * np.exp((-0.2 if opposite else 0.2) * rows @ vector), luck)


def _limited(rows: Array, limit: Array, luck: Array) -> Market:
    """Visitors who pay about their limit, blurred by a tenth of it."""
    return sale(rows, lambda price, at: expit((limit[at] - price) / (0.1 * limit[at])), luck, actions=(0.0, 60.0))


def season(seed: int, rounds: int) -> Market:
    """Limits rise and fall by 30 % in 1,500 rounds, and no context says so."""
    return _moving("season", seed, 1 + 0.3 * np.sin(2 * np.pi * np.arange(rounds) / 1500))


def jump(seed: int, rounds: int) -> Market:
    """Limits fall to 60 % at half time."""
    return _moving("jump", seed, np.where(np.arange(rounds) < rounds // 2, 1.0, 0.6))


def _moving(name: str, seed: int, factor: Array) -> Market:
    rng = generator(name, seed)
    rows = rng.standard_normal((len(factor), 5))
    limit = 20 * factor * np.exp(0.2 * rows @ _direction(rng, 5, 5))
    return _limited(rows, limit, rng.random(len(factor)))


def opposite_segments(seed: int, rounds: int) -> Market:
    """The limit depends on the sign of a product of two features."""
    rng = generator("opposite segments", seed)
    rows = rng.standard_normal((rounds, 5))
    return _limited(rows, 20 * np.exp(0.3 * np.sign(rows[:, 0] * rows[:, 1])), rng.random(rounds))


def conversion(rate: float, seed: int, rounds: int) -> Market:
    """A share `rate` of the visitors buys at a price of 30; interest and sensitivity to the price depend on the context."""
    rng = generator(f"conversion {rate}", seed)
    rows = rng.standard_normal((rounds, 5))
    interest, sensitivity = 0.6 * rows @ _direction(rng, 5, 5), 3 * np.exp(0.4 * rows @ _direction(rng, 5, 5))

    def chance(price: Any, at: Rounds) -> Any:
        return expit(logit(rate) + interest[at] - sensitivity[at] * (price / 30 - 1))

    return sale(rows, chance, rng.random(rounds), actions=(10.0, 80.0), cost=10.0)


def charm(seed: int, rounds: int) -> Market:
    """Half of the buyers leave at a price of 10 or more."""
    rng = generator("charm", seed)
    rows = rng.standard_normal((rounds, 5))
    interest = 0.7 * rows @ _direction(rng, 5, 5)

    def chance(price: Any, at: Rounds) -> Any:
        return np.where(price < 10, 1.0, 0.5) * expit(1 + interest[at] - 0.45 * (price - 8))

    return sale(rows, chance, rng.random(rounds), actions=(5.0, 15.0), cost=4.0)


def saturation(seed: int, rounds: int) -> Market:
    """Many do not buy at any price, and a few buy at every price."""
    rng = generator("saturation", seed)
    rows = rng.standard_normal((rounds, 5))
    most, limit = (rows @ _direction(rng, 5, 5) for _ in range(2))

    def chance(price: Any, at: Rounds) -> Any:
        return (0.15 + 0.5 * expit(most[at])) * (0.06 + 0.94 * expit((30 * np.exp(0.3 * limit[at]) - price) / 3))

    return sale(rows, chance, rng.random(rounds), actions=(10.0, 80.0), cost=10.0)


def shop(seed: int, rounds: int) -> Market:
    """The shop of the price tutorial: a channel, earlier visits, and the price of a competitor, unknown for one in five."""
    rng = generator("shop", seed)
    channel = rng.choice(3, rounds, p=[0.3, 0.4, 0.3])
    visits, competitor = rng.poisson(2, rounds), rng.uniform(32, 60, rounds).round(2)
    known, luck = rng.random(rounds) < 0.8, rng.random(rounds)
    limit = 38 + 2 * visits + np.array([12, 4, -4])[channel]

    def chance(price: Any, at: Rounds) -> Any:
        return np.where(price <= competitor[at], expit((limit[at] - price) / 4), 0.0)

    contexts = [
        {
            "channel": ("newsletter", "search", "comparison site")[channel[number]],
            "visits": int(visits[number]),
            "competitor": float(competitor[number]) if known[number] else None,
        }
        for number in range(rounds)
    ]
    rows = np.column_stack([np.eye(3)[channel], visits - 2, np.where(known, competitor - 46, 0) / 8, known])
    market = sale(rows, chance, luck, actions=(20.0, 80.0), cost=20.0, contexts=contexts)
    return replace(market, best=np.minimum(market.best, market.expected(competitor, ALL)))  # the edge is on no grid


def counts(seed: int, rounds: int, *, overdispersed: bool = False) -> Market:
    """Units sold at a price: Poisson, or Poisson with a mean that an exponential factor multiplies."""
    rng = generator(f"counts {overdispersed}", seed)
    rows = rng.standard_normal((rounds, 5))
    interest, elasticity = 0.5 * rows @ _direction(rng, 5, 5), 2.5 * np.exp(0.3 * rows @ _direction(rng, 5, 5))
    factor = rng.exponential(size=rounds) if overdispersed else np.ones(rounds)
    arrivals = rng.exponential(size=(rounds, ARRIVALS)).cumsum(1)  # as many units as arrive until the mean

    def mean(price: Any, at: Rounds) -> Any:
        return 3 * np.exp(interest[at] - elasticity[at] * np.log(price / 20))

    def parts(price: float, number: int) -> Parts:
        return {"units": int(np.searchsorted(arrivals[number], factor[number] * mean(price, number)))}

    changes: Mapping[str, Any] = {
        "kind": "units",
        "parts": parts,
        "loss": lambda price, number: -(price - 10.0) * parts(price, number)["units"],
    }
    return sale(rows, mean, np.ones(rounds), actions=(12.0, 80.0), cost=10.0, **changes)


def bidding(seed: int, rounds: int) -> Market:
    """The first-price auctions of `manul.worlds.bidding`."""
    world = worlds.bidding(rounds=rounds, seed=seed)

    def expected(bid: Any, at: Rounds) -> Any:
        bids = np.zeros(rounds)
        bids[at] = bid
        return -world.mean_rewards(bids)[at]

    def parts(bid: float, number: int) -> Parts:
        reward = world.reward(number, bid)
        return {"won": True, "value": reward + bid} if reward else {"won": False}

    return Market(
        contexts=world.contexts,
        rows=world.contexts.astype(np.float64),
        expected=expected,
        loss=lambda bid, number: -world.reward(number, bid),
        best=best_of_grid(expected, rounds, world.actions),
        actions=world.actions,
        settings={"rewards": "auto"},
        kind="won",
        parts=parts,
    )


def returns(seed: int, rounds: int) -> Market:
    """Pricing, but dear items come back and then cost 4: the reward is not price times bought."""
    market, luck = pricing(seed, rounds), generator("returns", seed).random(rounds)

    def back(price: Any) -> Any:
        return np.clip((price - 6) / 14, 0, 0.95)

    def expected(price: Any, at: Rounds) -> Any:
        return market.expected(price, at) * (1 - back(price) * (1 + 4 / np.maximum(price, 1e-9)))

    def loss(price: float, number: int) -> float:
        if not market.parts(price, number)["bought"]:
            return 0.0
        return 4.0 if luck[number] < back(price) else -price

    return replace(market, expected=expected, loss=loss, best=best_of_grid(expected, rounds, market.actions))


def _direction(rng: np.random.Generator, width: int, matter: int) -> Array:
    vector = np.zeros(width)
    vector[:matter] = rng.standard_normal(matter)
    return vector / np.linalg.norm(vector)


Draw = Callable[[int, int], Market]

MARKETS: dict[str, Draw] = {
    "pricing": pricing,
    "shop": shop,
    "conversion 1 %": partial(conversion, 0.01),
    "conversion 5 %": partial(conversion, 0.05),
    "conversion 30 %": partial(conversion, 0.3),
    "3 features": partial(pricing, width=3),
    "10 features": partial(pricing, width=10),
    "30 features": partial(pricing, width=30),
    "opposite segments": opposite_segments,
    "charm": charm,
    "saturation": saturation,
    "season": season,
    "jump": jump,
    "counts": counts,
    "overdispersed counts": partial(counts, overdispersed=True),
    "bidding": bidding,
}
SISTERS: dict[str, Draw] = {
    "same market": partial(pricing, draw=1),
    "15 % dearer": partial(pricing, draw=1, dearer=1.15),
    "twice as dear": partial(pricing, draw=1, dearer=2.0),
    "opposite taste": partial(pricing, draw=1, opposite=True),
}
