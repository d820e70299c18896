"""Simulated rollouts: how often a learner reaches full traffic, goes back to the baseline, or breaks the guarantee.

    python -m benchmarks.rollout [RUNS] [KIND]

The baseline has a mean loss of 0.2. A learner costs 10 % less, the same, 5 % more (the tolerance), or 20 % more. Each is
played with four kinds of losses and delays: a beta distribution, binary losses, heavy tails (most losses are near 0, a few
near 1), and beta losses that come late, large ones later than small ones. In `drift`, the learner gets worse at half time:
from 10 % less to 20 % or 100 % more. The fixed-sample test has the same steps, level and power (0.95), and would have to be
planned with the true difference. Runs are six times as long, with half time in the middle.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import repeat
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from manul.agents.rollout.in_flight import InFlight
from manul.agents.rollout.rollout_plan import RolloutPlan
from manul.agents.rollout.rollout_progress import Progress
from manul.types import Floats

MEAN = 0.2  # loss of the baseline
LENGTH = 6  # of a run, in fixed-sample tests
DELAY = 300  # decisions, on average, until a late loss comes
Draw = Callable[[np.random.Generator, float, int], Floats]


def beta(rng: np.random.Generator, mean: float, count: int) -> Floats:
    return rng.beta(8 * mean, 8 * (1 - mean), count)


def binary(rng: np.random.Generator, mean: float, count: int) -> Floats:
    return (rng.random(count) < mean).astype(np.float64)


def heavy(rng: np.random.Generator, mean: float, count: int) -> Floats:
    return rng.beta(0.2 * mean, 0.2 * (1 - mean), count)


@dataclass(frozen=True)
class Scenario:
    """The learner's mean loss relative to the baseline's, before and after half time, and the kind of losses."""

    name: str
    draw: Draw
    before: float
    after: float
    late: bool = False


KINDS: dict[str, tuple[Draw, bool]] = {"beta": (beta, False), "binary": (binary, False), "heavy": (heavy, False)}
KINDS["late"] = beta, True
EFFECTS = {"-10 %": 0.9, "equal": 1.0, "+5 %": 1.05, "+20 %": 1.2}
SCENARIOS = [
    Scenario(f"{kind} {effect}", draw, factor, factor, late)
    for kind, (draw, late) in KINDS.items()
    for effect, factor in EFFECTS.items()
] + [
    Scenario(f"{kind} -10 %, then {100 * after - 100:+.0f} %", draw, 0.9, after, late)
    for kind, (draw, late) in KINDS.items()
    for after in (1.2, 2.0)
]


class Outcome(NamedTuple):
    """When a run reached full traffic and went back to the baseline, if it did, and how far it stayed from the limit."""

    full: float
    back: float
    excess: float
    traffic: float


def play(scenario: Scenario, plan: RolloutPlan, decisions: int, seed: int) -> Outcome:
    """One rollout."""
    rng = np.random.default_rng(seed)
    progress, last = Progress(plan, (0.0, 1.0)), len(plan.steps) - 1
    half = decisions // 2
    parts = [scenario.draw(rng, MEAN * factor, half) for factor in (scenario.before, scenario.after)]
    losses = [scenario.draw(rng, MEAN, 2 * half).tolist(), np.concatenate(parts).tolist()]
    coins = rng.random(2 * half).tolist()
    delays = rng.geometric(1 / DELAY, 2 * half).tolist()
    full, excess, worst = np.inf, 0.0, 0.0
    in_flight = InFlight()
    due: list[tuple[float, int, float]] = []
    for number in range(2 * half):
        share = progress.share(in_flight.total)
        ticket = progress.ticket(learner=coins[number] < share, share=share)
        factor = scenario.before if number < half else scenario.after
        excess += share * MEAN * (factor - 1) - plan.tolerance * MEAN
        worst = max(worst, excess)
        loss = losses[ticket.learner][number]
        if scenario.late:
            in_flight.add(number, ticket)
            heappush(due, (number + delays[number] * (0.5 + loss), number, loss))
            while due and due[0][0] <= number:
                _, arrived, loss = heappop(due)
                progress.add(arrived, in_flight.tickets[arrived], loss)
            in_flight.forget_before(progress.next)
        else:
            progress.add(number, ticket, loss)
        if progress.level == last:
            full = min(full, number)
        if progress.level < 0:  # for good
            return Outcome(full, number, worst, 0.0)
    return Outcome(full, np.inf, worst, progress.share(in_flight.total))


def fixed_sample(plan: RolloutPlan, deviation: float, factor: float) -> float:
    """The decisions of fixed-sample tests, one per step but the last, that prove "not worse" with a power of 0.95."""
    quantile = NormalDist().inv_cdf(plan.confidence) + NormalDist().inv_cdf(0.95)
    difference = MEAN * (1 + plan.tolerance - factor)
    variances = [deviation**2 * (1 / p + (1 + plan.tolerance) ** 2 / (1 - p)) for p in plan.shares[:-1]]
    return sum(quantile**2 * variance / difference**2 for variance in variances)


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    kind = sys.argv[2] if len(sys.argv) > 2 else ""
    plan = RolloutPlan()
    with ProcessPoolExecutor() as pool:
        for scenario in [each for each in SCENARIOS if each.name.startswith(kind)]:
            deviation = scenario.draw(np.random.default_rng(0), MEAN, 100_000).std()
            fixed = fixed_sample(plan, float(deviation), 0.9)
            given = map(repeat, (scenario, plan, int(LENGTH * fixed)))
            outcomes = list(pool.map(play, *given, range(runs), chunksize=8))
            columns = [np.array(column) for column in zip(*outcomes, strict=True)]
            full, back, excess, traffic = columns
            text = f"{scenario.name}: full traffic {np.isfinite(full).mean():.3f}"
            if scenario.before < 1:
                text += f", median after {np.median(full):,.0f} decisions, {np.median(full) / fixed:.2f} times a fixed-sample test"
            broken = (excess > plan.budget).mean()
            print(
                f"{text}; back to the baseline {np.isfinite(back).mean():.3f}; guarantee broken {broken:.3f}, "
                f"largest excess {excess.max():.1f} of {plan.budget:g}; traffic at the end {traffic.mean():.3f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
