"""Checks the requirements of Auto: `python -m benchmarks.auto [section …]`; default: all sections.

Every line is a value with its limit, ok or MISS, and is written to results/auto.json; a MISS makes the command fail. Losses
are means over seeds with standard errors; a seed generates the world and seeds the agent. `--table` and `--target` add
tables to the section `first`; use `benchmarks.loss` for the losses of all rounds of a table.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import manul
from benchmarks import gp_ucb, problems
from benchmarks.limits import Check, mean_check, standard_error
from benchmarks.loss import PERCENTILES
from manul import worlds
from manul.errors import ManulError
from manul.paper import datasets
from manul.paper.experiments import vowpal_wabbit
from manul.paper.experiments.methods import EPSILON
from manul.worlds.simulation import Run

SEEDS, ALARM_SEEDS, DRIFT_SEEDS, FIRST_SEEDS = range(3), range(20), range(5), range(10)
# Rounds that Auto may take to recover from a jump, and rounds over which losses are compared.
RETURN, WINDOW = 5000, 5000
FIRST_ROUNDS = 200

World = worlds.Regression | worlds.Curves
STEADY: dict[str, Callable[[int, int], World]] = {
    "linear": lambda rounds, seed: worlds.linear(rounds=rounds, seed=seed),
    "ds": lambda rounds, seed: worlds.ds(rounds=rounds, seed=seed),
    "4(a-y)²": lambda rounds, seed: squared_loss(worlds.linear(rounds=rounds, seed=seed)),
    "two valleys": lambda rounds, seed: worlds.valleys(rounds=rounds, valleys=2, seed=seed),
    "four valleys": lambda rounds, seed: worlds.valleys(rounds=rounds, valleys=4, seed=seed),
    "crossed valleys": lambda rounds, seed: worlds.valleys(rounds=rounds, valleys=2, dependency="crossed", seed=seed),
    "cliff": lambda rounds, seed: worlds.cliff(rounds=rounds, seed=seed),
    "smooth": lambda rounds, seed: worlds.smooth(rounds=rounds, seed=seed),
    "noise": lambda rounds, seed: worlds.noise(rounds=rounds, seed=seed),
}


FIRST_WORLDS = ("linear", "two valleys", "cliff", "smooth", "noise")


def loss() -> Iterator[Check]:
    """Losses on synthetic worlds against fixed limits."""
    rounds = problems.SHAPED_ROUNDS
    linear = [_auto_loss(STEADY["linear"](rounds, seed), seed) for seed in SEEDS]
    yield mean_check(f"linear world, loss of {rounds} rounds", linear, 0.0165)
    yield mean_check("4(a-y)² on its contexts, |a-y|", [_squared_error(seed) for seed in SEEDS], 0.038)
    noise, shuffled = zip(*(_beyond_constant(seed) for seed in SEEDS), strict=True)
    yield mean_check("noise world, loss beyond the best constant", noise, 0.0045)
    yield mean_check("linear world with shuffled targets, loss beyond the best constant", shuffled, 0.005)


def squared_loss(world: worlds.Regression) -> worlds.Regression:
    """The same contexts and targets with the loss (a - y)²; it is equivalent to 4(a - y)² with losses in [0, 4]."""
    return worlds.Regression(world.contexts, world.targets, loss="squared")


def _squared_error(seed: int) -> float:
    world = STEADY["4(a-y)²"](problems.ROUNDS, seed)
    assert isinstance(world, worlds.Regression)
    return float(np.abs(_run(world, seed).log.actions - world.targets).mean())


def _beyond_constant(seed: int) -> tuple[float, float]:
    """The loss beyond the best constant, in the noise world and in the linear world with shuffled targets."""
    rounds = problems.SHAPED_ROUNDS
    world, linear = worlds.noise(rounds=rounds, seed=seed), worlds.linear(rounds=rounds, seed=seed)
    targets = np.random.default_rng(seed).permutation(linear.targets)
    losses = _auto_loss(world, seed), _auto_loss(worlds.Regression(linear.contexts, targets), seed)
    return losses[0] - problems.curves_hindsight(world).constant, losses[1] - problems.best_constant(targets)


def _auto_loss(world: World, seed: int) -> float:
    return _run(world, seed).mean_loss


def _run(world: World, seed: int) -> Run:
    return manul.simulate(manul.Auto(seed=seed), world)


def hindsight() -> Iterator[Check]:
    """Two valleys and the cliff: Auto against the best cell of the paper's grid for Cats, chosen in hindsight."""
    for name in ("two valleys", "cliff"):
        by_seed = [STEADY[name](problems.SHAPED_ROUNDS, seed) for seed in SEEDS]
        by_cell = np.array([_cats_losses(world, seed) for seed, world in zip(SEEDS, by_seed, strict=True)]).mean(axis=0)
        best, cell = float(by_cell.min()), vowpal_wabbit.grid()[int(by_cell.argmin())]
        note = f"Cats({cell.leaves}, 1/{round(1 / (cell.bandwidth or 1))}), best of {len(by_cell)} cells"
        yield mean_check(f"{name}, loss", list(map(_auto_loss, by_seed, SEEDS)), best, note)


def _cats_losses(world: World, seed: int) -> list[float]:
    players = [
        manul.Cats(leaves=cell.leaves, bandwidth=cell.bandwidth or 0.0, epsilon=EPSILON, seed=seed)
        for cell in vowpal_wabbit.grid()
    ]
    return [run.mean_loss for run in manul.worlds.simulate_many(players, world)]


def alarms() -> Iterator[Check]:
    """False drift alarms in 20 runs of every world without drift."""
    for name in STEADY:
        raised = sum(_alarms(name, seed) for seed in ALARM_SEEDS)
        yield Check(f"{name}, alarms in {len(ALARM_SEEDS)} runs of {problems.ROUNDS} rounds", raised, 0)


def _alarms(name: str, seed: int) -> int:
    agent = manul.Auto(seed=seed)
    manul.simulate(agent, STEADY[name](problems.ROUNDS, seed))
    return agent.report().alarms


def drift() -> Iterator[Check]:
    """The mean loss of the 5,000 rounds that begin 5,000 rounds after the jump, divided by that of the 5,000 before it.

    The drift world and the mirrored world are as hard after the jump as before. The world with the opposite jump becomes
    harder, because its best action is no longer continuous in the context; the note has the ratio of a new agent.
    """
    as_hard: dict[str, Callable[[int], World]] = {
        "drift world": lambda seed: worlds.drift(rounds=problems.SHAPED_ROUNDS, seed=seed),
        "linear world mirrored halfway": _mirrored_world,
    }
    for name, draw in as_hard.items():
        back = [recovery(_run(draw(seed), seed).log.losses, problems.SHAPED_ROUNDS // 2) for seed in DRIFT_SEEDS]
        yield mean_check(f"{name}, loss over former loss", back, 1.1, f"at worst {max(back):.3f}")
    ratios, fresh = zip(*map(_opposite, DRIFT_SEEDS), strict=True)
    note = f"at worst {max(ratios):.3f}; new agent {np.mean(fresh):.3f}"
    yield mean_check("drift world with an opposite jump, loss over former loss", ratios, 1.1, note)


def _mirrored_world(seed: int) -> worlds.Regression:
    world = worlds.linear(rounds=problems.SHAPED_ROUNDS, seed=seed)
    later = np.arange(len(world)) >= len(world) // 2
    return worlds.Regression(world.contexts, np.where(later, 1 - world.targets, world.targets))


def _opposite(seed: int) -> tuple[float, float]:
    """The loss after the jump of an agent that ran through it and of a new agent, over the loss before the jump."""
    world = worlds.drift(rounds=problems.SHAPED_ROUNDS, jump="opposite", seed=seed)
    jump = len(world) // 2
    losses = _run(world, seed).log.losses
    second = worlds.Curves(world.contexts[jump:], positions=world.positions[jump:], values=world.values[jump:])
    fresh = np.concatenate([losses[:jump], _run(second, seed).log.losses])
    return recovery(losses, jump), recovery(fresh, jump)


def recovery(losses: NDArray[np.float64], jump: int) -> float:
    """The mean loss well after the jump divided by the mean loss just before it.

    >>> recovery(np.repeat([1.0, 9.0, 2.0], [5000, 5000, 5000]), 5000)
    2.0
    """
    after = jump + RETURN
    return float(losses[after : after + WINDOW].mean() / losses[jump - WINDOW : jump].mean())


def gradual() -> Iterator[Check]:
    """Worlds that change all the time: the loss of Auto minus that of Auto with a constant epsilon of 0.05."""
    slow: dict[str, Callable[[int], World]] = {
        f"optimum that turns once in {period} rounds": partial(_turning_world, period)
        for period in (200_000, 50_000, 15_000)
    }
    slow["season of 10000 rounds"] = lambda seed: worlds.season(rounds=problems.SHAPED_ROUNDS, seed=seed)
    for name, draw in slow.items():
        losses = [_auto_loss(draw(seed), seed) for seed in DRIFT_SEEDS]
        constant = [_constant_epsilon(draw(seed), seed).mean_loss for seed in DRIFT_SEEDS]
        differences = np.subtract(losses, constant).tolist()
        note = f"{np.mean(losses):.4f} and {np.mean(constant):.4f}"
        yield mean_check(f"{name}, loss beyond epsilon=0.05", differences, standard_error(differences), note)


def _turning_world(period: int, seed: int) -> worlds.Curves:
    return worlds.turning(rounds=problems.SHAPED_ROUNDS, period=period, seed=seed)


def _constant_epsilon(world: World, seed: int) -> Run:
    return manul.simulate(manul.Auto(epsilon=EPSILON, seed=seed), world)


def far_valley() -> Iterator[Check]:
    """A better valley opens far away at half time; who does not find it loses at least 0.3 per round."""
    drawn = [worlds.far_valley(rounds=problems.SHAPED_ROUNDS, seed=seed) for seed in DRIFT_SEEDS]
    last = [
        float(_run(world, seed).log.losses[-10_000:].mean()) for seed, world in zip(DRIFT_SEEDS, drawn, strict=True)
    ]
    constant = [
        _constant_epsilon(world, seed).log.losses[-10_000:].mean()
        for seed, world in zip(DRIFT_SEEDS, drawn, strict=True)
    ]
    note = f"mean {np.mean(last):.3f}; with epsilon=0.05 {np.mean(constant):.3f}"
    yield Check("valley that opens far away, loss of the last 10000 rounds, at worst", max(last), 0.2, note)


def rewards() -> Iterator[Check]:
    """Rewards without a stated range, 20,000 rounds: the regret of Auto divided by that of the best constant."""
    limits: dict[Callable[..., worlds.RewardWorld], float] = {
        worlds.pricing: 0.40,
        worlds.dosing: 0.12,
        worlds.bidding: 1.0,
    }
    for draw, limit in limits.items():
        ratios = [_regret_ratio(draw(rounds=20_000, seed=seed), seed) for seed in SEEDS]
        yield mean_check(f"{draw.__name__}, regret over that of the best constant", ratios, limit)


def _regret_ratio(world: worlds.RewardWorld, seed: int) -> float:
    run = manul.simulate(_agent_without_range(world, seed), world)
    return world.regret(run.log.actions) / (world.optimum() - world.best_constant())


def _agent_without_range(world: worlds.RewardWorld, seed: int) -> manul.Auto:
    """Auto that learns the range of the losses or, if it cannot, with a range that surely includes them."""
    settings: dict[str, Any] = {"actions": world.actions, "seed": seed}
    try:
        return manul.Auto(losses="auto", **settings)
    except ManulError:
        return manul.Auto(losses=(-1e5, 1e5), **settings)


def speed() -> Iterator[Check]:
    """CPU time per round, in microseconds, and that of the slowest round."""
    yield Check("Auto, 20 features, 50,000 rounds, µs per round", auto_seconds(50_000) * 1e6, 40)
    yield Check("Auto, 20 features, after 40,000 rounds, µs per round", auto_seconds(10_000, after=40_000) * 1e6, 30)
    yield Check("Auto, 5 features, 50,000 rounds, µs per round", auto_seconds(50_000, width=5) * 1e6, 30)
    for width in (20, 137, 300):
        yield Check(f"Auto, {width} features, slowest round, ms", slowest_round(width) * 1e3, 5)
    yield Check("Auto, first 1,000 rounds, µs per round", auto_seconds(1000) * 1e6, 100)
    yield Check("Cats, decide + learn, 20 fields, µs", mapping_seconds() * 1e6, 15)
    size, early, late = million_names()
    yield Check("a million names, 1024 leaves, late loss at most early loss", late, early, f"{size / 2**20:.0f} MiB")


def auto_seconds(rounds: int, *, width: int = 20, after: int = 0, repeats: int = 3) -> float:
    """The lowest CPU time per round of Auto on the linear world, after some other rounds."""
    world, best = manul.worlds.linear(rounds=after + rounds, width=width), float("inf")
    before, timed = _rows(world, slice(after)), _rows(world, slice(after, None))
    for _ in range(repeats):
        agent = manul.Auto()
        manul.simulate(agent, before)
        started = time.process_time()
        manul.worlds.simulate_many([agent], timed, threads=1)
        best = min(best, time.process_time() - started)
    return best / rounds


def _rows(world: worlds.Regression, chosen: slice) -> worlds.Regression:
    return worlds.Regression(world.contexts[chosen], world.targets[chosen])


def slowest_round(width: int, rounds: int = 50_000, repeats: int = 2) -> float:
    """The CPU time of the slowest round of Auto; the lowest of several runs, which do the same work in each round."""
    world, seconds = manul.worlds.linear(rounds=rounds, width=width), np.full(rounds, np.inf)
    contexts, loss = list(world.contexts), world.table((0.0, 1.0)).loss
    for _ in range(repeats):
        agent = manul.Auto()
        for number, context in enumerate(contexts):
            started = time.thread_time()
            decision = agent.decide(context)
            agent.learn(context, decision, loss(number, decision.action))
            seconds[number] = min(seconds[number], time.thread_time() - started)
    return float(seconds.max())


def mapping_seconds(rounds: int = 10_000) -> float:
    """The CPU time of decide and learn of Cats for mappings of 20 fields: numbers, text, booleans and a list."""
    rng = np.random.default_rng(0)
    contexts = [
        {f"number {i}": value for i, value in enumerate(row)}
        | {
            "city": f"city {rng.integers(50)}",
            "plan": f"plan {rng.integers(3)}",
            "vip": bool(rng.integers(2)),
            "gap": None,
        }
        | {"tags": ["a", "b"]}
        for row in rng.standard_normal((rounds, 15)).tolist()
    ]
    agent = manul.Cats(leaves=128, bandwidth=1 / 32)
    started = time.process_time()
    for context in contexts:
        agent.learn(context, agent.decide(context), 0.5)
    return (time.process_time() - started) / rounds


def million_names(rounds: int = 200_000, leaves: int = 1024) -> tuple[int, float, float]:
    """Train Cats with five new values per round; returns the bytes of memory, the early and the late loss."""
    rng, agent, losses = np.random.default_rng(0), manul.Cats(leaves=leaves, bandwidth=1 / 32), []
    for number in range(rounds):
        city = int(rng.integers(10))
        fresh = {f"id {i}": f"{number} {i}" for i in range(5)}
        context = {"city": str(city), **fresh}
        decision = agent.decide(context)
        losses.append(abs(decision.action - 0.05 - city / 10))
        agent.learn(context, decision, losses[-1])
    return agent.nbytes, float(np.mean(losses[:5000])), float(np.mean(losses[-5000:]))


Draw = Callable[[int], World]
"""Draws a world from a seed."""


def first(tables: Mapping[str, Draw]) -> Iterator[Check]:
    """Auto may lose as much as GP-UCB in the first rounds, plus the standard error of their difference."""
    drawn: dict[str, Draw] = {name: partial(STEADY[name], FIRST_ROUNDS) for name in FIRST_WORLDS}
    for name, draw in {**drawn, **tables}.items():
        seeded = [(draw(seed), seed) for seed in FIRST_SEEDS]
        ours = [_auto_loss(world, seed) for world, seed in seeded]
        theirs = [_gp_loss(world, seed) for world, seed in seeded]
        limit = float(np.mean(theirs)) + standard_error(np.subtract(ours, theirs).tolist())
        note = f"GP-UCB {np.mean(theirs):.4f}"
        yield mean_check(f"{name}, loss of the first {FIRST_ROUNDS} rounds", ours, limit, note)


def _gp_loss(world: World, seed: int) -> float:
    unit = world.table((0.0, 1.0))

    def loss(action: NDArray[np.float64], number: int) -> float:
        return unit.loss(number, float(action[0]))

    rows = world.contexts.astype(np.float64)
    actions = gp_ucb.play(rows, loss, candidates=gp_ucb.unit_cube(1), seed=seed)[:, 0]
    return float(world.losses(actions, (0.0, 1.0)).mean())


SECTIONS: dict[str, Callable[..., Iterator[Check]]] = {
    "loss": loss,
    "hindsight": hindsight,
    "alarms": alarms,
    "drift": drift,
    "gradual": gradual,
    "far_valley": far_valley,
    "rewards": rewards,
    "first": first,
    "speed": speed,
}


def _table(path: Path, target: str) -> tuple[str, Draw]:
    table = datasets.read(path, target=target, rows=50_000, levels=32, percentiles=PERCENTILES, standardised=True)
    return table.name, lambda seed: table.shuffle(seed, rounds=FIRST_ROUNDS)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the given sections, and keep the results of the others in the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", metavar="section", help=f"{', '.join(SECTIONS)} (all)")
    parser.add_argument("--out", type=Path, default=Path("results/auto.json"))
    parser.add_argument("--table", type=Path, action="append", default=[], help="a CSV file for `first`; repeatable")
    parser.add_argument("--target", action="append", default=[], help="its target column; one per table")
    options = parser.parse_args(arguments)
    if len(options.table) != len(options.target):
        parser.error(f"--target must be given once per --table, got {len(options.target)} for {len(options.table)}.")
    if unknown := set(options.sections) - set(SECTIONS):
        parser.error(f"section must be one of {', '.join(SECTIONS)}, got {', '.join(sorted(unknown))}.")
    results = json.loads(options.out.read_text()) if options.out.exists() else {}
    missed = 0
    for section in options.sections or SECTIONS:
        results[section] = []
        tables = [dict(map(_table, options.table, options.target))] if section == "first" else []
        for check in SECTIONS[section](*tables):
            print(check.line, flush=True)
            missed += not check.ok
            results[section].append({**asdict(check), "ok": check.ok})
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(results, indent=2, ensure_ascii=False) + "\n")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
