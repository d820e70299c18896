"""Auto that is told the formula of its reward, in the markets of `benchmarks.markets`: with and without it, starts and priors.

    python -m benchmarks.formulas [--sections markets,wrong,priors,starts] [--worlds TEXT] [--seeds 8] [--processes 16]
    python -m benchmarks.formulas --development     # seeds from 0 on, to choose constants with
    python -m benchmarks.formulas --cost            # time per round with and without a formula

Every number is the share of the best expected reward that is missed in a window of rounds, a mean over seeds with its
standard error. The best constant is that of hindsight; "regression" is scikit-learn with the formula
(`benchmarks.formula_models`). Seeds from 1000 on are for the reported numbers: choose nothing with them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import manul
from benchmarks import formula_models
from benchmarks.first_rounds import HELD_OUT, play_auto, report, seeded_arguments
from benchmarks.limits import Check, standard_error
from benchmarks.markets import MARKETS, SISTERS, Draw, Market, pricing, returns
from benchmarks.simulated_worlds import Array

ROUNDS, SISTER_ROUNDS = 4000, 3000
WINDOWS = ((0, 200), (200, 500), (0, 300), (300, 1000), (1000, 4000))
EARLY_WINDOWS = ((0, 100), (100, 300), (0, 300), (300, 1000), (1000, 3000))
STARTS = {"right": 1.0, "1.5 times the margin": 1.5, "0.6 times the margin": 0.6}
STARTED = ("conversion 1 %", "pricing", "shop")


def outcome(market: Market) -> manul.Outcome:
    """The outcome that a user with this market declares."""
    return manul.Bid() if market.kind == "won" else manul.Sale(cost=market.cost, units=market.kind == "units")


def wrong_hint(market: Market) -> manul.Outcome:
    """That somebody buys more often at higher prices."""
    declared: Any = {"formula": f"(action - {market.cost}) * bought", "parts": {"bought": "yes/no"}}
    return manul.Outcome("profit", better="high", range="auto", hints={"bought": "rises"}, **declared)


def play_formula(
    market: Market, seed: int, *, outcome: manul.Outcome, reported: bool = False, **settings: Any
) -> tuple[Array, Any]:
    """The actions of Auto that is told parts, and the reward beside them if it is `reported`, and the agent."""
    agent: Any = manul.Auto(actions=market.actions, outcome=outcome, seed=seed, **settings)
    actions = []
    for number, context in enumerate(market.contexts):
        decision = agent.decide(context)
        beside = {"reward": -market.loss(decision.action, number)} if reported else {}
        agent.learn(context, decision, parts=market.parts(decision.action, number), **beside)
        actions.append(decision.action)
    return np.array(actions), agent


def play_plain(market: Market, seed: int, **settings: Any) -> tuple[Array, Any]:
    """The actions of Auto that is told rewards only, and the agent."""
    agent: Any = manul.Auto(actions=market.actions, rewards="auto", seed=seed, **settings)
    actions = []
    for number, context in enumerate(market.contexts):
        decision = agent.decide(context)
        agent.learn(context, decision, reward=-market.loss(decision.action, number))
        actions.append(decision.action)
    return np.array(actions), agent


Player = Callable[[Market, int], Array]
PLAYERS: dict[str, Player] = {
    "formula": lambda market, seed: play_formula(market, seed, outcome=outcome(market))[0],
    "Auto": play_auto,
    "best constant": lambda market, _: np.full(len(market), market.best_constant()),
    "regression": formula_models.play,
}
WRONG: dict[str, Player] = {
    "formula": lambda market, seed: play_formula(market, seed, outcome=outcome(market), reported=True)[0],
    "wrong hint": lambda market, seed: play_formula(market, seed, outcome=wrong_hint(market))[0],
    "Auto": play_auto,
    "best constant": PLAYERS["best constant"],
}


def play_sister(market: Market, seed: int, *, parts: bool, sister: str | None) -> Array:
    """The actions of an agent whose prior is one that has learned in a sister market; a cold start without a sister."""
    play = play_with(parts=parts)
    prior = {} if sister is None else {"prior": play(SISTERS[sister](seed, SISTER_ROUNDS), seed + 1)[1]}
    return play(market, seed, **prior)[0]


def play_start(market: Market, seed: int, *, parts: bool, margin: float | None) -> Array:
    """The actions of an agent that starts at the best constant, with its margin times a factor."""
    start = {} if margin is None else {"start": market.cost + margin * (market.best_constant() - market.cost)}
    return play_with(parts=parts)(market, seed, **start)[0]


def play_with(*, parts: bool) -> Callable[..., tuple[Array, Any]]:
    """Plays with parts, or with rewards only."""
    if not parts:
        return play_plain
    return lambda market, seed, **settings: play_formula(market, seed, outcome=outcome(market), **settings)


@dataclass(frozen=True)
class Cell:
    """A player in a world; both by name, so that another process can find them."""

    section: str
    world: str
    player: str


def cells(sections: Sequence[str]) -> list[Cell]:
    """All cells of sections."""
    found = []
    if "markets" in sections:
        found += [Cell("markets", world, player) for world in MARKETS for player in PLAYERS]
    if "wrong" in sections:
        found += [Cell("wrong", "returns", player) for player in ("formula", "Auto", "best constant")]
        found += [Cell("wrong", "pricing", player) for player in ("wrong hint", "Auto", "best constant")]
    for parts in ("with parts", "without"):
        if "priors" in sections:
            found += [Cell("priors", sister, parts) for sister in ("cold", *SISTERS)]
        if "starts" in sections:
            found += [Cell("starts", f"{world}, {start}", parts) for world in STARTED for start in ("none", *STARTS)]
    return found


def windows(section: str) -> tuple[tuple[int, int], ...]:
    return EARLY_WINDOWS if section in {"priors", "starts"} else WINDOWS


def measure(task: tuple[Cell, int]) -> list[float]:
    """The missed share of the best expected reward in each window."""
    cell, seed = task
    rounds = windows(cell.section)[-1][-1]
    market, player = _market_and_player(cell, seed, rounds)
    missed = market.regrets(player(market, seed))
    return [float(missed[first:last].sum() / -market.best[first:last].sum()) for first, last in windows(cell.section)]


def _market_and_player(cell: Cell, seed: int, rounds: int) -> tuple[Market, Player]:
    parts = cell.player == "with parts"
    if cell.section == "markets":
        return MARKETS[cell.world](seed, rounds), PLAYERS[cell.player]
    if cell.section == "wrong":
        draw: Draw = returns if cell.world == "returns" else pricing
        return draw(seed, rounds), WRONG[cell.player]
    if cell.section == "priors":
        sister = None if cell.world == "cold" else cell.world
        return pricing(seed, rounds), partial(play_sister, parts=parts, sister=sister)
    world, start = cell.world.split(", ")
    return MARKETS[world](seed, rounds), partial(play_start, parts=parts, margin=STARTS.get(start))


Results = dict[Cell, Array]
"""Missed shares: a row per seed, a column per window."""


def checks(results: Results) -> Iterator[Check]:
    """The requirements; those whose cells were not played are left out."""

    def missed(section: str, world: str, player: str, window: tuple[int, int]) -> float:
        values = results.get(Cell(section, world, player))
        return np.nan if values is None else float(values[:, windows(section).index(window)].mean())

    def limit(world: str, window: tuple[int, int], most: float, note: str = "") -> Check:
        name = f"{world}, missed in rounds {window[0]} to {window[1]}"
        return Check(name, missed("markets", world, "formula", window), most, note)

    def ratio(section: str, world: str, players: tuple[str, str], window: tuple[int, int]) -> float:
        ours, theirs = (missed(section, world, player, window) for player in players)
        return ours / theirs

    middle, late = (300, 1000), (1000, 4000)
    found = [limit("pricing", middle, 0.05), limit("pricing", late, 0.02), limit("shop", late, 0.115)]
    constant = {world: missed("markets", world, "best constant", late) for world in MARKETS}
    bid = missed("markets", "bidding", "best constant", middle)
    found += [limit("bidding", middle, bid, "the best constant"), limit("bidding", late, 0.08)]
    found += [limit(world, window, 0.05) for world in ("season", "jump") for window in (middle, late)]
    found += [limit(w, late, constant[w], "the best constant") for w in ("conversion 5 %", "conversion 30 %")]
    found += [limit("conversion 1 %", late, 0.12)]
    by_world = {world: ratio("markets", world, ("formula", "Auto"), middle) for world in MARKETS}
    played = [value for value in by_world.values() if not np.isnan(value)]
    if played:
        above = sum(value > 0.67 for value in played)
        found.append(
            Check(f"of {len(played)} markets above 0.67 of Auto in rounds 300 to 1000", above, len(played) // 4)
        )
        last = {world: ratio("markets", world, ("formula", "Auto"), late) for world in MARKETS}
        worst = max(last, key=lambda world: np.nan_to_num(last[world]))
        found.append(Check("worst ratio to Auto in rounds 1000 to 4000", last[worst], 1.1, worst))
    for window in (middle, late):
        name = f"relative to Auto in rounds {window[0]} to {window[1]}"
        found.append(Check(f"wrong formula, {name}", ratio("wrong", "returns", ("formula", "Auto"), window), 1.3))
        found.append(Check(f"wrong hint, {name}", ratio("wrong", "pricing", ("wrong hint", "Auto"), window), 1.5))
    for parts in ("with parts", "without"):
        same = missed("priors", "same market", parts, (0, 300))
        found.append(Check(f"prior of the same market, {parts}, missed in rounds 0 to 300", same, 0.07))
        pairs = {
            f"{sister}, rounds {window[0]} to {window[1]}": missed("priors", sister, parts, window)
            / missed("priors", "cold", parts, window)
            for sister in list(SISTERS)[1:]
            for window in EARLY_WINDOWS
        }
        worst = max(pairs, key=lambda pair: np.nan_to_num(pairs[pair]))
        found.append(Check(f"wrong prior relative to a cold start, {parts}, worst window", pairs[worst], 1.1, worst))
    start = missed("starts", "conversion 1 %, right", "with parts", (0, 100))
    found.append(Check("conversion 1 % with a right start, missed in rounds 0 to 100", start, 0.09))
    yield from (check for check in found if not np.isnan([check.value, check.limit]).any())


def table(results: Results) -> Iterator[str]:
    """A line per cell; a heading per section."""
    last = ""
    for cell, values in results.items():
        if cell.section != last:
            last = cell.section
            heads = " ".join(f"{f'{first}-{end}':^15}" for first, end in windows(last))
            yield f"{last:28} {'':14} {heads}"
        errors = [standard_error(column.tolist()) if len(values) > 1 else np.nan for column in values.T]
        means = " ".join(f"{mean:6.3f} ± {error:.3f} " for mean, error in zip(values.mean(0), errors, strict=True))
        yield f"{cell.world:28} {cell.player:14} {means}"


def hint_check() -> Check:
    """Whether the report of an agent with a wrong hint says so."""
    market = pricing(HELD_OUT, 1000)
    _, agent = play_formula(market, HELD_OUT, outcome=wrong_hint(market))
    return Check("reports of a wrong hint that do not mention it", float("hint" not in str(agent.report())), 0.0)


def cost(rounds: int = 1000, repeats: int = 5) -> Iterator[Check]:
    """Time of decide and learn at d = 10 with and without parts; the lowest of each round counts."""
    market = pricing(HELD_OUT, rounds, width=10)
    with_parts, without = (
        np.min([_round_times(market, parts=parts) for _ in range(repeats)], axis=0) * 1e6 for parts in (True, False)
    )
    more, note = float(with_parts.mean() - without.mean()), f"{with_parts.mean():.0f} against {without.mean():.0f}"
    yield Check(f"µs per round more while parts are modelled, {rounds} rounds", more, 80, note)
    yield Check("µs of the worst round with parts", float(with_parts.max()), 2000)


def _round_times(market: Market, *, parts: bool) -> Array:
    settings: Any = {"outcome": outcome(market)} if parts else {"rewards": "auto"}
    agent: Any = manul.Auto(actions=market.actions, seed=0, **settings)
    times = np.empty(len(market))
    for number, context in enumerate(market.contexts):
        began = time.perf_counter()
        decision = agent.decide(context)
        between = time.perf_counter()
        told: Any = {"reward": -market.loss(decision.action, number)}
        if parts:
            told = {"parts": market.parts(decision.action, number)}
        resumed = time.perf_counter()
        agent.learn(context, decision, **told)
        times[number] = time.perf_counter() - resumed + between - began
    return times


def main() -> int:
    parser = seeded_arguments(__doc__)
    parser.add_argument("--sections", default="markets,wrong,priors,starts")
    parser.add_argument("--players", default="", help="only those with these names, separated by commas")
    parser.add_argument("--quick", action="store_true", help="two seeds, and no regression")
    options = parser.parse_args()
    if options.cost:
        return report(cost())
    first, count = 0 if options.development else HELD_OUT, 2 if options.quick else options.seeds
    names = options.players.split(",") if options.players else None
    wanted = [
        cell
        for cell in cells(options.sections.split(","))
        if options.worlds in cell.world
        and (names is None or cell.player in names)
        and not (options.quick and cell.player == "regression")
    ]
    tasks = [(cell, seed) for cell in wanted for seed in range(first, first + count)]
    with ProcessPoolExecutor(options.processes, initializer=threadpool_limits, initargs=(1,)) as pool:
        values = list(pool.map(measure, tasks))
    results = {cell: np.array([v for (c, _), v in zip(tasks, values, strict=True) if c == cell]) for cell in wanted}
    print(*table(results), sep="\n")
    hints = [hint_check()] if "wrong" in options.sections else []
    return report(iter([*checks(results), *hints]))


if __name__ == "__main__":
    raise SystemExit(main())
