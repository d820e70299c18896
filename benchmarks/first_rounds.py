"""The first rounds of Auto in worlds with a known optimum, compared with an earlier version and with GP-UCB.

    python -m benchmarks.first_rounds [--kinds "one knob,shops"] [--seeds 8] [--processes 16] [--tables FOLDER]
    python -m benchmarks.first_rounds --development     # seeds from 0 on, to choose constants with
    python -m benchmarks.first_rounds --cost            # time per round

Regrets are expected losses beyond those of the best actions, as means over the rounds up to a checkpoint. Those of the
earlier version ("before") and of GP-UCB, which do not change, are in `first_rounds.json`: `--save before` writes those of the
installed Auto, `--save GP-UCB` those of worlds and seeds that GP-UCB has not played yet. Seeds from 1000 on are for the
reported numbers: choose nothing with them.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import manul
from benchmarks import gp_ucb, problems
from benchmarks.limits import Check, standard_error
from benchmarks.simulated_worlds import DRAWS, KINDS, Array, World
from manul.outcomes import outcome_of

SAVED = Path(__file__).with_suffix(".json")
HELD_OUT, SEEDS, TABLE_SEEDS = 1000, 8, 3
SHORT, LONG, TABLE = (50, 100, 200, 500, 1000), (50, 100, 200, 300, 500, 1000, 3000), (1000, 3000, 10_000, 40_000)
SHOP = (300, 1000, 3000)
GP_ROUNDS = 500  # a Gaussian process is too slow for more
CHECKPOINTS = {name: LONG if kind in {"shops", "heavy tails"} else SHORT for kind in KINDS for name in KINDS[kind]}
LIMITS = {50: 0.80, 100: 0.72, 200: 0.70, 500: 0.66}  # of the geometric mean of regrets relative to the earlier version

Regrets = dict[str, dict[str, dict[str, list[float]]]]
"""Regrets at the checkpoints by player, world and seed."""


def play_auto(world: World, seed: int) -> Array:
    """The actions of Auto, one row per round if the world has several knobs."""
    agent: Any = manul.Auto(actions=world.actions, seed=seed, **world.settings)
    outcome, actions = outcome_of(agent), []
    for number, context in enumerate(world.contexts):
        decision = agent.decide(context)
        several = isinstance(decision.action, dict)
        action = np.array(list(decision.action.values())) if several else decision.action
        agent.learn(context, decision, **outcome.told(world.loss(action, number)))
        actions.append(action)
    return np.array(actions)


def play_gp_ucb(world: World, seed: int) -> Array:
    """The actions of GP-UCB."""
    low, high = world.ends
    several = len(low) > 1

    def loss(shares: Array, number: int) -> float:
        action = low + (high - low) * shares
        return world.loss(action if several else float(action[0]), number)

    shares = gp_ucb.play(world.rows[:GP_ROUNDS], loss, candidates=gp_ucb.unit_cube(len(low)), seed=seed)
    actions = low + (high - low) * shares
    return actions if several else actions[:, 0]


def measure(task: tuple[str, str, int]) -> list[float]:
    """The regrets of a player at the checkpoints of a world; in shops they are shares of the best revenue."""
    player, name, seed = task
    world = DRAWS[name](seed, CHECKPOINTS[name][-1])
    regrets = world.regrets({"Auto": play_auto, "GP-UCB": play_gp_ucb}[player](world, seed))
    unit = -world.best if name in KINDS["shops"] else np.ones(len(world))
    ends = [end for end in CHECKPOINTS[name] if end <= len(regrets)]
    return [float(f"{regrets[:end].sum() / unit[:end].sum():.4g}") for end in ends]


def measure_table(task: tuple[Path, int]) -> list[float]:
    """The mean losses of Auto on a table, up to 40,000 rounds."""
    path, seed = task
    losses = manul.simulate(
        manul.Auto(seed=seed), problems.encoded_table(path, rows=TABLE[-1]).shuffle(seed)
    ).log.losses
    return [float(f"{losses[:end].mean():.5g}") for end in TABLE]


def compare(regrets: Regrets, name: str, rival: str) -> tuple[Array, Array]:
    """Regrets of Auto and of a rival in a world: a row per seed that both played, a column per checkpoint of both."""
    ours, theirs = regrets["Auto"].get(name, {}), regrets.get(rival, {}).get(name, {})
    seeds = [seed for seed in ours if seed in theirs]
    if not seeds:
        return np.empty((0, 0)), np.empty((0, 0))
    ends = min(len(ours[seeds[0]]), len(theirs[seeds[0]]))
    return np.array([ours[seed][:ends] for seed in seeds]), np.array([theirs[seed][:ends] for seed in seeds])


def ratios(regrets: Regrets, names: Sequence[str], rival: str) -> dict[str, Array]:
    """The ratio of mean regrets at each checkpoint, by world."""
    pairs = {name: compare(regrets, name, rival) for name in names}
    return {name: ours.mean(0) / theirs.mean(0) for name, (ours, theirs) in pairs.items() if len(ours)}


def checks(regrets: Regrets) -> Iterator[Check]:
    """The requirements of the first rounds."""
    plain = [*KINDS["one knob"], *KINDS["further"]]
    before, process = ratios(regrets, list(KINDS["one knob"]), "before"), ratios(regrets, plain, "GP-UCB")
    for place, end in enumerate(SHORT):
        if before and end in LIMITS:
            mean = float(np.exp(np.mean([np.log(ratio[place]) for ratio in before.values()])))
            name = f"regret relative to before at {end}, geometric mean of {len(before)} worlds"
            yield Check(name, mean, LIMITS[end], spread(before, place))
        if process and end <= GP_ROUNDS:
            above = float(np.mean([ratio[place] > 1 for ratio in process.values()]))
            yield Check(f"share of {len(process)} worlds above GP-UCB at {end}", above, 0.25, spread(process, place))
    yield from shop_checks(regrets)
    heavy = ratios(regrets, list(KINDS["heavy tails"]), "before")
    if heavy:
        cells = {f"{name} at {end}": float(ratio[LONG.index(end)]) for name, ratio in heavy.items() for end in LONG[3:]}
        worst = max(cells, key=lambda cell: cells[cell])
        yield Check("heavy tails, worst ratio to before from 300 rounds on", cells[worst], 1.1, worst)
    tables = ratios(regrets, [name for name in regrets["Auto"] if name.startswith("table ")], "before")
    if tables:
        last = {name: float(ratio[-1]) for name, ratio in tables.items()}
        name = max(last, key=lambda table: last[table])
        note = f"worst: {name} {last[name]:.3f}"
        yield Check(f"loss of {len(last)} tables relative to before", float(np.mean(list(last.values()))), 1.01, note)


def shop_checks(regrets: Regrets) -> Iterator[Check]:
    """The share of the best revenue that Auto earns more than before, paired by seed."""
    pairs = {name: compare(regrets, name, "before") for name in KINDS["shops"]}
    more = {name: theirs - ours for name, (ours, theirs) in pairs.items() if len(ours) > 1}
    if not more:
        return
    errors = {f"{name} at {end}": gain[:, LONG.index(end)] for name, gain in more.items() for end in SHOP}
    below = {cell: -float(gain.mean()) / max(standard_error(gain.tolist()), 1e-9) for cell, gain in errors.items()}
    worst = max(below, key=lambda cell: below[cell])
    yield Check("shops, standard errors below before, worst cell", below[worst], 2.0, worst)
    gains = [float(gain[:, LONG.index(1000)].mean()) for gain in more.values()]
    yield Check("shops, share of revenue less than before at 1000, mean", -float(np.mean(gains)), -0.05)


def spread(by_world: dict[str, Array], place: int) -> str:
    """The range of ratios, and how many exceed 1.05."""
    found = [float(ratio[place]) for ratio in by_world.values()]
    return f"{min(found):.2f} to {max(found):.2f}, {sum(ratio > 1.05 for ratio in found)} above 1.05"


def table(regrets: Regrets) -> Iterator[str]:
    """A line per world: regrets of Auto, and ratios to those of the earlier version and of GP-UCB."""
    yield f"{'world':20} {'regret of Auto':52} {'relative to before':42} relative to GP-UCB"
    for name, by_seed in regrets["Auto"].items():
        mean = np.mean(list(by_seed.values()), axis=0)
        columns = [" ".join(f"{value:7.4g}" for value in mean)]
        for rival, width in (("before", 42), ("GP-UCB", 0)):
            ratio = ratios(regrets, [name], rival).get(name, np.array([]))
            columns.append(" ".join(f"{value:5.2f}" for value in ratio).ljust(width))
        yield f"{name:20} {columns[0]:52} {columns[1]} {columns[2]}"
    for name in KINDS["shops"]:
        ours, theirs = compare(regrets, name, "before")
        if len(ours) > 1:
            places = [LONG.index(end) for end in SHOP]
            more = [f"{mean_of(theirs[:, place] - ours[:, place])}" for place in places]
            shares = [f"{1 - ours[:, place].mean():.3f} ({gain})" for place, gain in zip(places, more, strict=True)]
            yield f"{name:20} share of the best revenue, and more than before, at {SHOP}: {', '.join(shares)}"


def mean_of(values: Array) -> str:
    """A mean with its standard error.

    >>> mean_of(np.array([0.2, 0.4]))
    '+0.300 ± 0.100'
    """
    return f"{values.mean():+.3f} ± {standard_error(values.tolist()):.3f}"


def cost(rounds: int = 1000, repeats: int = 5) -> Iterator[Check]:
    """Time of a round, decide and learn, at d = 10: of the first ones, and of late ones, in which only the critic is left.

    Every repetition does the same work, so the lowest time of each round counts. `benchmarks.compare` says whether late
    rounds are slower than those of another version.
    """
    late = slice(3 * rounds, 4 * rounds)
    world = DRAWS["dose 10"](HELD_OUT, late.stop)
    times = np.min([_round_times(world) for _ in range(repeats)], axis=0) * 1e6
    note = f"{times[:rounds].mean() / times[late].mean():.2f} times rounds {late.start} to {late.stop}"
    yield Check(f"µs per round, mean of the first {rounds}", float(times[:rounds].mean()), 180, note)
    worst = int(times[:rounds].argmax())
    yield Check(f"µs of the worst of the first {rounds} rounds", float(times[worst]), 2000, f"round {worst}")


def _round_times(world: World) -> Array:
    agent, times = manul.Auto(losses="auto", seed=0), np.empty(len(world))
    for number, context in enumerate(world.contexts):
        began = time.perf_counter()
        decision = agent.decide(context)
        between = time.perf_counter()
        loss = world.loss(decision.action, number)
        resumed = time.perf_counter()
        agent.learn(context, decision, loss)
        times[number] = time.perf_counter() - resumed + between - began
    return times


def seeded_arguments(description: str | None) -> argparse.ArgumentParser:
    """The arguments of benchmarks whose worlds are drawn with seeds."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--development", action="store_true", help="seeds from 0 on, to choose constants with")
    parser.add_argument("--worlds", default="", help="only those whose name contains this text")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--cost", action="store_true", help="time of a round only")
    return parser


def main() -> int:
    parser = seeded_arguments(__doc__)
    parser.add_argument("--kinds", default=",".join(KINDS), help=f"of {', '.join(KINDS)}")
    parser.add_argument("--no-gp", action="store_true", help="compare with the saved regrets of GP-UCB only")
    parser.add_argument("--quick", action="store_true", help="two seeds and a quarter of the worlds")
    parser.add_argument("--tables", type=Path, help="a folder of encoded tables (.npz), 40,000 rounds each")
    parser.add_argument("--save", choices=("before", "GP-UCB"), help="save regrets of the installed Auto, or of GP-UCB")
    options = parser.parse_args()
    if options.cost:
        return report(cost())
    first, count = (0 if options.development else HELD_OUT), 2 if options.quick else options.seeds
    names = [name for kind in options.kinds.split(",") for name in KINDS[kind.strip()] if options.worlds in name]
    names = names[::4] if options.quick else names
    saved: Regrets = json.loads(SAVED.read_text()) if SAVED.exists() else {"before": {}, "GP-UCB": {}}
    regrets: Regrets = {"Auto": {}, **saved}
    with ProcessPoolExecutor(options.processes, initializer=threadpool_limits, initargs=(1,)) as pool:
        tasks = [("Auto", name, seed) for name in names for seed in range(first, first + count)]
        known = saved["GP-UCB"]
        missing = [task for task in tasks if str(task[2]) not in known.get(task[1], {})]
        tasks += [] if options.no_gp else [("GP-UCB", name, seed) for _, name, seed in missing]
        for (player, name, seed), values in zip(tasks, pool.map(measure, tasks), strict=True):
            regrets[player].setdefault(name, {})[str(seed)] = values
        files = sorted(options.tables.glob("*.npz")) if options.tables else []
        runs = [(path, seed) for path in files for seed in range(first, first + min(count, TABLE_SEEDS))]
        for (path, seed), values in zip(runs, pool.map(measure_table, runs), strict=True):
            regrets["Auto"].setdefault(f"table {path.stem}", {})[str(seed)] = values
    if options.save == "before":
        for name, by_seed in regrets["Auto"].items():
            regrets["before"].setdefault(name, {}).update(by_seed)
    if options.save:
        save(regrets)
    print(*table(regrets), sep="\n")
    return report(checks(regrets))


def save(regrets: Regrets) -> None:
    """Save the regrets of the rivals; a line per world keeps differences readable."""
    players = []
    for player in ("before", "GP-UCB"):
        lines = [f"  {json.dumps(name)}: {json.dumps(by_seed)}" for name, by_seed in regrets[player].items()]
        players.append(f' "{player}": {{\n' + ",\n".join(lines) + "\n }")
    SAVED.write_text("{\n" + ",\n".join(players) + "\n}\n")


def report(results: Iterator[Check]) -> int:
    """Print a line per check; 1 if any is missed."""
    missed = 0
    for check in results:
        print(check.verdict, flush=True)
        missed += not check.ok
    return int(missed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
