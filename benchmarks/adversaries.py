"""How often proven gains and rollouts are wrong in worlds that try to make them wrong, and whose truth is known.

    python -m benchmarks.adversaries [--runs 100] [--processes 2] [--kind logs|rollouts] [--worlds TEXT]

Logs: `compare` with the logged policy, and the verdict of `optimize`, state a lower end of the gain, which is wrong if it exceeds the
true gain; if it is above 0, the gain is proven. The interval of `evaluate` is wrong if it misses the true loss without an objection.
Columns: the share of logs in which each is wrong; of the logs with a true gain, the share in which it is proven; the median of the
lower end divided by the true gain.

Rollouts: a step up of a learner that is worse than tolerated, or breaks a guard, is wrong, and so is a step down of one that is not
worse, and an excess over the tolerance beyond the budget. Columns: the share of rollouts with each; the share that reached the last
step, and the median of the decisions until then. Worlds with guards are skipped if the installed version refuses them.

Exits with status 1 if more than 5 % of all claims are wrong, or more than 8 % in a world, or if a world fails.
"""

from __future__ import annotations

import argparse
import os
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any, NamedTuple, TypeVar

import numpy as np

import manul
from benchmarks import adversarial_logs, adversarial_rollouts
from benchmarks.adversarial_logs import Claim
from benchmarks.adversarial_rollouts import Outcome, RolloutWorld

MOST_WRONG, MOST_WRONG_IN_A_WORLD = 0.05, 0.08
BY_CHANCE = 2  # so many wrong claims mean nothing if there are few runs


Result = TypeVar("Result")


class Failure(NamedTuple):
    """What went wrong in a run instead of a claim; `refused` if manul says so in a sentence."""

    refused: bool
    sentence: str


@dataclass
class Tally:
    """The numbers of claims and of wrong ones, by what they are about, and what misses its target."""

    claims: dict[str, int] = field(default_factory=dict)
    wrong: dict[str, int] = field(default_factory=dict)
    missed: list[str] = field(default_factory=list)

    def add(self, world: str, kind: str, wrong: Sequence[bool]) -> str:
        """Count the claims of a world; returns the share of wrong ones, with a mark if there are too many."""
        count, bad = len(wrong), sum(wrong)
        self.claims[kind] = self.claims.get(kind, 0) + count
        self.wrong[kind] = self.wrong.get(kind, 0) + bad
        if bad <= max(MOST_WRONG_IN_A_WORLD * count, BY_CHANCE):
            return f"{bad / count:.3f} "
        self.missed.append(f"{world}: {kind} wrong in {bad} of {count}")
        return f"{bad / count:.3f}!"

    def lines(self) -> Iterator[str]:
        """The shares of all worlds together, and what misses its target."""
        for kind, count in self.claims.items():
            bad = self.wrong[kind]
            yield f"all worlds, {kind}: {bad} of {count} wrong ({bad / count:.3f})"
            if bad > max(MOST_WRONG * count, BY_CHANCE):
                self.missed.append(f"{kind}: {bad / count:.3f} of all are wrong")
        yield "\n".join(self.missed) or "all targets met"


def log_run(place: int, seed: int) -> list[Claim] | Failure:
    """The claims of one log of a world."""
    world = adversarial_logs.WORLDS[place]
    return guarded(lambda: adversarial_logs.claims(world, own_seed(world.name, seed)))


def rollout_run(place: int, seed: int) -> Outcome | Failure:
    """One rollout of a world."""
    world = adversarial_rollouts.WORLDS[place]
    return guarded(lambda: world.play(own_seed(world.name, seed)))


def own_seed(world: str, run: int) -> int:
    """Seeds that differ between worlds, so that one unlucky seed is not unlucky in all of them."""
    return zlib.crc32(world.encode()) % 10**5 * 10**4 + run


def guarded(run: Callable[[], Result]) -> Result | Failure:
    """The result of a run, or why it has none, so that the other worlds are still played."""
    try:
        return run()
    except manul.ManulError as error:
        return Failure(refused=True, sentence=str(error))
    except Exception as error:  # reported, with status 1
        return Failure(refused=False, sentence=f"{type(error).__name__}: {error}")


def ran(name: str, results: Sequence[Any], tally: Tally) -> list[Any]:
    """The runs that have a result; the first reason of the others is printed."""
    failures = [each for each in results if isinstance(each, Failure)]
    if failures:
        what = "refused" if failures[0].refused else "failed"
        print(f"{name:52} {what} in {len(failures)} of {len(results)}: {failures[0].sentence}")
        tally.missed += [] if failures[0].refused else [f"{name}: failed"]
    return [each for each in results if not isinstance(each, Failure)]


def report_logs(name: str, runs: Sequence[list[Claim]], tally: Tally) -> None:
    """One line per function that claims something of the logs of a world."""
    for by in dict.fromkeys(claim.by for claims in runs for claim in claims):
        every = [claim for claims in runs for claim in claims if claim.by == by]
        line = f"{name:52} {by:9} wrong {tally.add(name, by, [claim.wrong for claim in every])}"
        gainful = [claim for claim in every if claim.gain > adversarial_logs.ROUNDING]
        if gainful:
            proven = np.mean([claim.low > 0 for claim in gainful])
            ratio = np.median([claim.low / claim.gain for claim in gainful])
            line += f" proven {proven:.2f} of {len(gainful):3}, median lower end {ratio:6.2f} of the gain, "
        if by != "evaluate":
            line += f" gain {np.median([claim.gain for claim in every]):.4f}"
        print(line, flush=True)


def report_rollouts(world: RolloutWorld, runs: Sequence[Outcome], tally: Tally) -> None:
    """One line about the rollouts of a world."""
    up, down, full, excess = (np.array(column) for column in zip(*runs, strict=True))
    line = f"{world.name:52} budget broken {tally.add(world.name, 'budget', (excess > world.budget).tolist())}"
    line += f" largest excess {excess.max():5.1f} of {world.budget:g}, "
    if world.truth == "worse":
        line += f" up, wrongly {tally.add(world.name, 'up', up.tolist())}"
    if world.truth == "no worse":
        line += f" down, wrongly {tally.add(world.name, 'down', down.tolist())}"
    reached = np.isfinite(full)
    line += f" last step {reached.mean():.2f}"
    print(line + (f", median after {np.median(full[reached]):,.0f}" if reached.any() else ""), flush=True)


def main(runs: int, processes: int, kind: str | None, worlds: str) -> int:
    tally, seeds = Tally(), range(runs)
    with ProcessPoolExecutor(processes) as pool:
        if kind != "rollouts":
            print("columns of the logs:")
            for agent, names in adversarial_logs.columns().items():
                print(f"    {agent}: {', '.join(names)}")
            for place, world in enumerate(adversarial_logs.WORLDS):
                if worlds in world.name:
                    results = ran(world.name, list(pool.map(log_run, repeat(place), seeds)), tally)
                    report_logs(world.name, results, tally)
        if kind != "logs":
            for place, rollout in enumerate(adversarial_rollouts.WORLDS):
                if worlds not in rollout.name:
                    continue
                if rollout.guard is not None and (refusal := adversarial_rollouts.guards_refused()):
                    print(f"{rollout.name:52} skipped: {refusal}")
                    continue
                outcomes = ran(rollout.name, list(pool.map(rollout_run, repeat(place), seeds)), tally)
                if outcomes:
                    report_rollouts(rollout, outcomes, tally)
    print("\n".join(tally.lines()))
    return int(bool(tally.missed))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100, help="logs, and rollouts, per world")
    parser.add_argument("--processes", type=int, default=min(os.cpu_count() or 1, 2))
    parser.add_argument("--kind", choices=["logs", "rollouts"], help="only these")
    parser.add_argument("--worlds", default="", help="worlds whose name contains this text")
    sys.exit(main(**vars(parser.parse_args())))
