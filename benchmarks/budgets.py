"""Auto with limits in expectation: budgets in first-price auctions, and floors of the conversion of prices.

    python -m benchmarks.budgets [--sections budgets,late,days,floors,greedy] [--worlds TEXT] [--seeds 4] [--processes 2]
    python -m benchmarks.budgets --development     # seeds from 0 on, to choose constants with
    python -m benchmarks.budgets --cost            # time per round with and without a budget

A day has 500 auctions, as in `manul.worlds.bidding` but with gamma values, and a budget of 40 % of what the best bids without a
budget spend. Numbers are expected profits as shares of the fluid optimum: that of the best policy, with the truth known, whose
expected spending of each day is the budget. Seeds from 1000 on are for the reported numbers: choose nothing with them.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import manul
from benchmarks.first_rounds import HELD_OUT, report, seeded_arguments
from benchmarks.limits import Check, standard_error
from benchmarks.markets import Market, conversion, saturation
from benchmarks.simulated_worlds import ALL, Array, direction, generator

DAYS, PER_DAY, FREE_SHARE = 16, 500, 0.4
EVENING, CHEAPER = 0.7, 0.6  # the share of a day before its evening, and what others bid then
WINDOWS = ((0, 1), (1, 4), (4, 16))  # days
FLOOR, FLOOR_ROUNDS = 1.3, 4000  # times the conversion of the best prices without a floor
FLOOR_WINDOWS = ((0, 300), (300, 1000), (1000, 4000))
GRID = 257  # actions among which the best policies choose
HIGHEST_PRICE = 50.0  # of what is spent


@dataclass(frozen=True, eq=False)
class Auctions:
    """First-price auctions of some days: contexts, and values and bids of others around their means and medians."""

    contexts: Array
    mean_values: Array
    medians: Array
    values: Array
    other_bids: Array
    per_day: int = PER_DAY
    actions: tuple[float, float] = (0.0, 40.0)

    def __len__(self) -> int:
        return len(self.contexts)

    def chance(self, bids: Any, at: Any = ALL) -> Any:
        """The probability to win."""
        return 1 / (1 + (self.medians[at] / np.maximum(bids, 1e-9)) ** 5)

    def parts(self, bid: float, number: int) -> dict[str, Any]:
        """What is reported of a bid."""
        won = bool(bid >= self.other_bids[number])
        return {"won": True, "value": float(self.values[number])} if won else {"won": False}

    def spent(self, bid: float, number: int) -> float:
        return bid if self.parts(bid, number)["won"] else 0.0

    def profits(self, bids: Array) -> Array:
        """What bids, one per auction, are expected to earn."""
        return np.asarray((self.mean_values - bids) * self.chance(bids))

    def day(self, number: int) -> slice:
        return slice(number * self.per_day, (number + 1) * self.per_day)

    def best(self, day: slice, budget: float) -> tuple[float, float]:
        """The expected profit and spending of the best bids of a day whose expected spending is at most a `budget`."""
        bids = np.linspace(*self.actions, GRID)[:, np.newaxis]
        chance = self.chance(bids, day)
        spent = bids * chance
        profit = self.mean_values[day] * chance - spent

        def priced(price: float) -> tuple[float, float]:
            chosen = np.argmax(profit - price * spent, axis=0)[np.newaxis]
            sums = (np.take_along_axis(each, chosen, 0).sum() for each in (profit, spent))
            return tuple(map(float, sums))  # type: ignore[return-value]

        low, high = 0.0, HIGHEST_PRICE
        if priced(0.0)[1] <= budget:
            return priced(0.0)
        for _ in range(25):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if priced(middle)[1] > budget else (low, middle)
        return priced(high)

    @cached_property
    def budget(self) -> float:
        """40 % of what the best bids of a day spend without a budget."""
        days = range(len(self) // self.per_day)
        return FREE_SHARE * float(np.mean([self.best(self.day(day), math.inf)[1] for day in days]))


def auctions(
    seed: int, *, evenings: bool = False, known: bool = True, days: int = DAYS, per_day: int = PER_DAY
) -> Auctions:
    """Auctions of some days; in `evenings` others bid less, which the context says if it is `known`."""
    rng, rounds = generator("budgets", seed), days * per_day
    rows = rng.standard_normal((rounds, 5))
    mean_values = 10 * np.exp(0.2 * rows @ direction(rng, 5))
    late = (np.arange(rounds) % per_day >= EVENING * per_day) & evenings
    medians = 0.6 * mean_values * np.exp(0.1 * rows @ direction(rng, 5)) * np.where(late, CHEAPER, 1.0)
    values, bids = mean_values * rng.gamma(4, 0.25, rounds), medians * np.exp(rng.logistic(size=rounds) / 5)
    contexts = np.column_stack([rows, late]) if evenings and known else rows
    return Auctions(contexts, mean_values, medians, values, bids, per_day)


WORLDS: dict[str, Callable[[int], Auctions]] = {
    "flat days": auctions,
    "cheap evenings": partial(auctions, evenings=True),
    "evenings that no context says": partial(auctions, evenings=True, known=False),
}


@dataclass(frozen=True)
class Played:
    """The bids of a player, and what it spent each day."""

    bids: Array
    spent: Array


def play_paced(world: Auctions, seed: int, *, late: Any = None, delay: int = 0, **settings: Any) -> Played:
    """The agent with a budget; outcomes are known after so many auctions."""
    limits: Any = {"spend_at_most": ("won * action", world.budget, world.per_day), "late": late}
    agent: Any = manul.Auto(actions=world.actions, outcome=manul.Bid(), seed=seed, **limits, **settings)
    bids, decisions = np.zeros(len(world)), []
    for number, context in enumerate(world.contexts):
        decisions.append(agent.decide(context))
        bids[number] = decisions[-1].action
        if number >= delay:
            learned = number - delay
            agent.learn(
                world.contexts[learned], decisions[learned], parts=world.parts(decisions[learned].action, learned)
            )
    return Played(bids, _spent(world, bids))


def play_until_gone(world: Auctions, seed: int) -> Played:
    """The agent without a budget, whose bids are at most what is left of it."""
    agent: Any = manul.Auto(actions=world.actions, outcome=manul.Bid(), seed=seed)
    bids, budget, left = np.zeros(len(world)), world.budget, 0.0
    for number, context in enumerate(world.contexts):
        left = budget if number % world.per_day == 0 else left
        if left < 0.05:
            continue
        decision = agent.decide(context, (0.0, min(left, world.actions[1])))
        bids[number] = decision.action
        agent.learn(context, decision, parts=world.parts(decision.action, number))
        left -= world.spent(decision.action, number)
    return Played(bids, _spent(world, bids))


def _spent(world: Auctions, bids: Array) -> Array:
    spent = np.array([world.spent(bid, number) for number, bid in enumerate(bids)])
    return np.asarray(spent.reshape(-1, world.per_day).sum(axis=1))


PLAYERS: dict[str, Callable[[Auctions, int], Played]] = {
    "until gone": play_until_gone,
    "budget": play_paced,
    "a day late, reserve": partial(play_paced, late="reserve", delay=PER_DAY),
    "a day late, carry": partial(play_paced, late="carry", delay=PER_DAY),
    "budget, epsilon 0": partial(play_paced, epsilon=0.0),
    "carry, epsilon 0": partial(play_paced, late="carry", delay=PER_DAY, epsilon=0.0),
}


def measure_budget(world: Auctions, played: Played) -> list[float]:
    """Shares of the fluid optimum by window, the share of days over the budget from day 5 on, the worst day, and the total spent."""
    budget, days = world.budget, len(world) // world.per_day
    optima = np.array([world.best(world.day(day), budget)[0] for day in range(days)])
    earned = world.profits(played.bids).reshape(days, -1).sum(axis=1)
    shares = [float(earned[first:last].sum() / optima[first:last].sum()) for first, last in WINDOWS]
    used = played.spent / budget
    return [*shares, float((used[WINDOWS[-1][0] :] > 1 + 1e-9).mean()), float(used.max()), float(used.mean())]


def days_over(seed: int) -> float:
    """Days of 125 of 100 auctions on which more than the budget was spent, if costs are known at once."""
    world = auctions(seed, evenings=seed % 2 == 1, days=125, per_day=100)
    return float((play_paced(world, seed).spent > world.budget * (1 + 1e-9)).sum())


IMPOSSIBLE, TOO_HIGH = "a floor that no price reaches", 1.2  # times the highest conversion
FLOORS: dict[str, Callable[[int, int], Market]] = {
    "conversion 5 %": partial(conversion, 0.05),
    "conversion 30 %": partial(conversion, 0.3),
    IMPOSSIBLE: saturation,
}


def best_with_floor(market: Market, floor: float) -> float:
    """The highest mean profit of a policy that converts at least a `floor`, with the truth known."""
    prices = np.linspace(*market.actions, GRID)
    profits = np.array([-market.expected(price, ALL) for price in prices])
    chances = profits / np.maximum(prices - market.cost, 1e-9)[:, np.newaxis]
    chances[0] = chances[1]

    def best(worth: float) -> tuple[float, float]:
        chosen = np.argmax(profits + worth * chances, axis=0)[np.newaxis]
        return (
            float(np.take_along_axis(profits, chosen, 0).mean()),
            float(np.take_along_axis(chances, chosen, 0).mean()),
        )

    low, high = 0.0, 1e4
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if best(middle)[1] < floor else (low, middle)
    return best(high)[0]


def free_conversion(market: Market) -> float:
    """The conversion of the best prices without a floor."""
    prices = np.linspace(*market.actions, GRID)[1:]
    profits = np.array([-market.expected(price, ALL) for price in prices])
    chosen = np.argmax(profits, axis=0)
    return float((profits.max(axis=0) / (prices[chosen] - market.cost)).mean())


def highest_conversion(market: Market) -> float:
    """The conversion of the lowest prices."""
    price = market.actions[0] + 1e-3 * (market.actions[1] - market.actions[0])
    return float((-market.expected(price, ALL) / (price - market.cost)).mean())


def measure_floor(name: str, seed: int) -> list[float]:
    """The conversion as a share of the floor by window, the profit as a share of the best one with it, and when it was said to be
    out of reach, 0 if never."""
    market = FLOORS[name](seed, FLOOR_ROUNDS)
    floor = FLOOR * free_conversion(market) if name != IMPOSSIBLE else TOO_HIGH * highest_conversion(market)
    outcome = manul.Sale(cost=market.cost)
    agent: Any = manul.Auto(actions=market.actions, outcome=outcome, keep=("bought", ">=", floor), seed=seed)
    prices, said = np.zeros(FLOOR_ROUNDS), 0
    for number, context in enumerate(market.contexts):
        decision = agent.decide(context)
        prices[number] = decision.action
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            agent.learn(context, decision, parts=market.parts(decision.action, number))
        said = number if caught and not said else said
    profits = -market.expected(prices, ALL)
    chances = profits / (prices - market.cost)
    best = best_with_floor(market, floor)
    kept = [float(chances[first:last].mean() / floor) for first, last in FLOOR_WINDOWS]
    return [*kept, *(float(profits[first:last].mean() / best) for first, last in FLOOR_WINDOWS), float(said)]


Cell = tuple[str, str, str]
"""A section, a world and a player."""


def cells(sections: str) -> list[Cell]:
    """All cells of sections."""
    found = []
    if "budgets" in sections:
        found += [("budgets", world, player) for world in WORLDS for player in ("until gone", "budget")]
    if "late" in sections:
        late = ("a day late, reserve", "a day late, carry")
        found += [("late", world, player) for world in list(WORLDS)[:2] for player in late]
    if "greedy" in sections:
        greedy = ("budget, epsilon 0", "carry, epsilon 0")
        found += [("greedy", world, player) for world in list(WORLDS)[:2] for player in greedy]
    if "days" in sections:
        found += [("days", "days of 100", "budget")]
    if "floors" in sections:
        found += [("floors", world, "keep") for world in FLOORS]
    return found


def measure(task: tuple[Cell, int]) -> list[float]:
    """The numbers of a cell with a seed."""
    (section, world, player), seed = task
    if section == "days":
        return [days_over(seed)]
    if section == "floors":
        return measure_floor(world, seed)
    drawn = WORLDS[world](seed)
    return measure_budget(drawn, PLAYERS[player](drawn, seed))


Results = dict[Cell, Array]
"""Numbers: a row per seed."""
HEADS = {
    "budgets": ("day 1", "days 2-4", "days 5-16", "days over", "worst day", "total spent"),
    "floors": ("kept 0-300", "300-1000", "1000-4000", "profit 0-300", "300-1000", "1000-4000", "warned at"),
    "days": ("days over",),
}
HEADS["late"] = HEADS["greedy"] = HEADS["budgets"]


def checks(results: Results) -> Iterator[Check]:
    """The requirements; those whose cells were not played are left out."""

    def missed(name: str, cell: Cell, column: int, least: float) -> Iterator[Check]:
        if cell in results:
            value = float(results[cell][:, column].mean())
            yield Check(f"{cell[1]}, {name}: missed", 1 - value, 1 - least, f"share {value:.3f}")

    def most(name: str, cell: Cell, values: Callable[[Array], float], limit: float) -> Iterator[Check]:
        if cell in results:
            yield Check(f"{cell[1]}, {name}", values(results[cell]), limit)

    least = {"flat days": (0.75, 0.96), "cheap evenings": (0.75, 0.95), "evenings that no context says": (0.0, 0.85)}
    for world, (first, later) in least.items():
        cell = ("budgets", world, "budget")
        if first:
            yield from missed("day 1", cell, 0, first)
        yield from missed("days 5 to 16", cell, 2, later)
        yield from most("spent on the worst day, of the budget", cell, lambda rows: float(rows[:, 4].max()), 1 + 1e-9)
    yield from most("days over, of 125 per seed", ("days", "days of 100", "budget"), lambda rows: float(rows.sum()), 0)
    for world, reserve in (("flat days", 0.82), ("cheap evenings", 0.788)):
        cell = ("late", world, "a day late, reserve")
        yield from missed("reserve, days 5 to 16", cell, 2, reserve)
        yield from most("reserve, days over", cell, lambda rows: float(rows[:, 3].mean()), 0.06)
        cell = ("late", world, "a day late, carry")
        yield from missed("carry, days 5 to 16", cell, 2, 0.97)
        yield from most("carry, total off the budget", cell, lambda rows: float(abs(rows[:, 5].mean() - 1)), 0.02)
    for world, profit in (("conversion 5 %", 0.88), ("conversion 30 %", 0.94)):
        cell = ("floors", world, "keep")
        yield from most("below the floor, worst seed", cell, lambda rows: float((1 - rows[:, 2]).max()), 0.03)
        yield from missed("profit, rounds 1000 to 4000", cell, 5, profit)
    yield from most(
        "round of the latest warning",
        ("floors", IMPOSSIBLE, "keep"),
        lambda rows: float(np.where(rows[:, 6] > 0, rows[:, 6], np.inf).max()),
        2000,
    )


def table(results: Results) -> Iterator[str]:
    """A line per cell; a heading per section."""
    last = ""
    for (section, world, player), values in results.items():
        if section != last:
            last = section
            yield f"{section:31} {'':20} {' '.join(f'{head:^14}' for head in HEADS[section])}"
        errors = [standard_error(column.tolist()) if len(values) > 1 else np.nan for column in values.T]
        means = " ".join(f"{mean:6.3f} ± {error:.3f}" for mean, error in zip(values.mean(0), errors, strict=True))
        yield f"{world:31} {player:20} {means}"


def cost(rounds: int = 2000) -> Iterator[Check]:
    """Time of decide and learn with a budget and without."""
    world = auctions(HELD_OUT, days=4)
    budget: Any = ("won * action", world.budget, PER_DAY)
    times = []
    for settings in ({"spend_at_most": budget}, {}):
        agent: Any = manul.Auto(actions=world.actions, outcome=manul.Bid(), seed=0, **settings)
        spent = 0.0
        for number, context in enumerate(world.contexts[:rounds]):
            began = time.perf_counter()
            decision = agent.decide(context)
            between = time.perf_counter()
            parts = world.parts(decision.action, number)
            resumed = time.perf_counter()
            agent.learn(context, decision, parts=parts)
            spent += time.perf_counter() - resumed + between - began
        times.append(spent / rounds * 1e6)
    yield Check("µs per round more with a budget", times[0] - times[1], 50, f"{times[0]:.0f} against {times[1]:.0f}")


def main() -> int:
    parser = seeded_arguments(__doc__)
    parser.set_defaults(seeds=4)
    parser.add_argument("--sections", default="budgets,late,days,floors")
    options = parser.parse_args()
    if options.cost:
        return report(cost())
    first = 0 if options.development else HELD_OUT
    wanted = [cell for cell in cells(options.sections) if options.worlds in cell[1]]
    tasks = [(cell, seed) for cell in wanted for seed in range(first, first + options.seeds)]
    with ProcessPoolExecutor(options.processes, initializer=threadpool_limits, initargs=(1,)) as pool:
        values = list(pool.map(measure, tasks))
    results = {cell: np.array([v for (c, _), v in zip(tasks, values, strict=True) if c == cell]) for cell in wanted}
    print(*table(results), sep="\n")
    return report(checks(results))


if __name__ == "__main__":
    raise SystemExit(main())
