"""Checks the requirements of Auto: `python -m benchmarks.auto [loss] [hindsight] [alarms] [drift] [speed]`; default: all.

Every line is a value with its limit, ok or MISS, and is written to results/auto.json; a MISS makes the command fail. Losses
are means over seeds with standard errors; a seed generates the world and seeds the agent. Use `benchmarks.loss` for your
own tables.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import manul
from benchmarks import problems
from manul import worlds
from manul.paper.experiments import vowpal_wabbit
from manul.paper.experiments.hindsight import EPSILON, best_constant
from manul.worlds.simulation import Run

SEEDS, ALARM_SEEDS, DRIFT_SEEDS = range(3), range(20), range(5)
# Rounds that Auto may take to recover from a jump, and rounds over which losses are compared.
RETURN, WINDOW = 5000, 5000

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


@dataclass(frozen=True)
class Check:
    """A measured value, its upper limit, and a note.

    >>> Check("loss", 0.5, 0.4).line
    'MISS loss: 0.5 (limit 0.4)'
    """

    name: str
    value: float
    limit: float
    note: str = ""

    @property
    def ok(self) -> bool:
        return self.value <= self.limit

    @property
    def line(self) -> str:
        verdict = "ok  " if self.ok else "MISS"
        return f"{verdict} {self.name}: {self.value:.4g} (limit {self.limit:.4g}){self.note and ', '}{self.note}"


def loss() -> Iterator[Check]:
    """Losses on synthetic worlds against fixed limits."""
    yield _mean(
        "linear world, loss", [_auto_loss(STEADY["linear"](problems.ROUNDS, seed), seed) for seed in SEEDS], 0.031
    )
    yield _mean("4(a-y)² on its contexts, |a-y|", [_squared_error(seed) for seed in SEEDS], 0.038)
    noise, shuffled = zip(*(_beyond_constant(seed) for seed in SEEDS), strict=True)
    yield _mean("noise world, loss beyond the best constant", noise, 0.005)
    yield _mean("linear world with shuffled targets, loss beyond the best constant", shuffled, 0.005)


def squared_loss(world: worlds.Regression) -> worlds.Regression:
    """The same contexts and targets with the loss (a - y)²; it is equivalent to 4(a - y)² with losses in [0, 4]."""
    return worlds.Regression(world.contexts, world.targets, loss="squared")


def _squared_error(seed: int) -> float:
    world = STEADY["4(a-y)²"](problems.ROUNDS, seed)
    assert isinstance(world, worlds.Regression)
    return float(np.abs(_run(world, seed).log.actions - world.targets).mean())


def _beyond_constant(seed: int) -> tuple[float, float]:
    """The loss beyond the best constant, in the noise world and in the linear world with shuffled targets."""
    world, linear = worlds.noise(rounds=problems.ROUNDS, seed=seed), worlds.linear(rounds=problems.ROUNDS, seed=seed)
    targets = np.random.default_rng(seed).permutation(linear.targets)
    losses = _auto_loss(world, seed), _auto_loss(worlds.Regression(linear.contexts, targets), seed)
    return losses[0] - problems.curves_hindsight(world).constant, losses[1] - best_constant(targets).loss


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
        yield _mean(f"{name}, loss", list(map(_auto_loss, by_seed, SEEDS)), best, note)


def _cats_losses(world: World, seed: int) -> list[float]:
    players = [
        manul.Cats(leaves=cell.leaves, bandwidth=cell.bandwidth or 0.0, epsilon=EPSILON, seed=seed)
        for cell in vowpal_wabbit.grid()
    ]
    return [run.mean_loss for run in manul.simulate_many(players, world)]


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
        yield _mean(f"{name}, loss over former loss", back, 1.1, f"at worst {max(back):.3f}")
    ratios, fresh = zip(*map(_opposite, DRIFT_SEEDS), strict=True)
    note = f"at worst {max(ratios):.3f}; new agent {np.mean(fresh):.3f}"
    yield _mean("drift world with an opposite jump, loss over former loss", ratios, 1.1, note)


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


def speed() -> Iterator[Check]:
    """CPU time per round, in microseconds."""
    yield Check("Auto, 20 features, 50,000 rounds, µs per round", auto_seconds(50_000) * 1e6, 30)
    yield Check("Auto, first 1,000 rounds, µs per round", auto_seconds(1000) * 1e6, 100)
    yield Check("Cats, decide + learn, 20 fields, µs", mapping_seconds() * 1e6, 15)
    size, early, late = million_names()
    yield Check("a million names, 1024 leaves, late loss at most early loss", late, early, f"{size / 2**20:.0f} MiB")


def auto_seconds(rounds: int, repeats: int = 3) -> float:
    """The lowest CPU time per round of Auto on the linear world with 20 features."""
    world, best = manul.worlds.linear(rounds=rounds), float("inf")
    for _ in range(repeats):
        agent = manul.Auto()
        started = time.process_time()
        manul.simulate_many([agent], world, threads=1)
        best = min(best, time.process_time() - started)
    return best / rounds


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


def _mean(name: str, values: Sequence[float], limit: float, note: str = "") -> Check:
    error = f"± {np.std(values, ddof=1) / np.sqrt(len(values)):.2g}"
    return Check(name, float(np.mean(values)), limit, f"{error}, {note}" if note else error)


SECTIONS = {"loss": loss, "hindsight": hindsight, "alarms": alarms, "drift": drift, "speed": speed}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the given sections, and keep the results of the others in the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", metavar="section", help=f"{', '.join(SECTIONS)} (all)")
    parser.add_argument("--out", type=Path, default=Path("results/auto.json"))
    options = parser.parse_args(arguments)
    if unknown := set(options.sections) - set(SECTIONS):
        parser.error(f"section must be one of {', '.join(SECTIONS)}, got {', '.join(sorted(unknown))}.")
    results = json.loads(options.out.read_text()) if options.out.exists() else {}
    missed = 0
    for section in options.sections or SECTIONS:
        results[section] = []
        for check in SECTIONS[section]():
            print(check.line, flush=True)
            missed += not check.ok
            results[section].append({**asdict(check), "ok": check.ok})
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(results, indent=2, ensure_ascii=False) + "\n")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
