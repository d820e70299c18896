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
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import repeat
from statistics import NormalDist

import numpy as np

from benchmarks.rollouts_at_once import Draws, Outcome, play_at_once
from manul.agents.rollout.in_flight import InFlight
from manul.agents.rollout.rollout_plan import RolloutPlan
from manul.agents.rollout.rollout_progress import COHORT, Progress
from manul.types import Floats

MEAN = 0.2  # loss of the baseline
LENGTH = 6  # of a run, in fixed-sample tests
DELAY = 300  # decisions, on average, until a late loss comes
GROUP = 25  # rollouts that one process plays together
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


def draw(scenario: Scenario, decisions: int, seeds: Sequence[int]) -> Draws:
    """What happens in rollouts with these seeds; the learner changes at half time."""
    half = decisions // 2
    shape = len(seeds), decisions
    baseline, learner, coins = (np.empty(shape) for _ in range(3))
    for row, seed in enumerate(seeds):
        rng = np.random.default_rng(seed)
        baseline[row] = scenario.draw(rng, MEAN, decisions)
        learner[row, :half] = scenario.draw(rng, MEAN * scenario.before, half)
        learner[row, half:] = scenario.draw(rng, MEAN * scenario.after, decisions - half)
        coins[row] = rng.random(decisions)
    costs = MEAN * (np.repeat([scenario.before, scenario.after], [half, decisions - half]) - 1)
    return Draws(baseline, learner, coins, costs)


def play(draws: Draws, plan: RolloutPlan, delays: Floats) -> Outcome:
    """The rollout of the first row, with losses that come late."""
    progress, last = Progress(plan, (0.0, 1.0)), len(plan.steps) - 1
    baseline, learner, coins, costs = (column.tolist() for column in (*(each[0] for each in draws[:3]), draws.costs))
    waits = delays.tolist()
    full, excess, worst = np.inf, 0.0, 0.0
    in_flight = InFlight()
    due: list[tuple[float, int, float]] = []
    for number, coin in enumerate(coins):
        share = in_flight.share(progress)
        ticket = progress.ticket(learner=coin < share, share=share)
        in_flight.add(number, ticket)
        excess += share * costs[number] - plan.tolerance * MEAN
        worst = max(worst, excess)
        loss = learner[number] if ticket.learner else baseline[number]
        heappush(due, (number + waits[number] * (0.5 + loss), number, loss))
        while due and due[0][0] <= number:
            _, arrived, loss = heappop(due)
            progress.add(arrived, in_flight.tickets[arrived], loss)
            in_flight.arrive(arrived)
        in_flight.forget_before(progress.next)
        if progress.level == last:
            full = min(full, number)
        if progress.level < 0:  # for good
            return Outcome(full, number, worst, 0.0)
    return Outcome(full, np.inf, worst, in_flight.share(progress))


def outcomes(scenario: Scenario, plan: RolloutPlan, decisions: int, seeds: Sequence[int]) -> Floats:
    """The outcomes of rollouts, a row each."""
    if not scenario.late:
        return np.stack(play_at_once(draw(scenario, decisions, seeds), plan, MEAN), axis=1)
    rows = []
    for seed in seeds:
        delays = np.random.default_rng([seed, 1]).geometric(1 / DELAY, decisions)
        rows.append(play(draw(scenario, decisions, [seed]), plan, delays))
    return np.array(rows)


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
            decisions = COHORT * int(LENGTH * fixed / COHORT)
            seeds = [range(first, min(first + GROUP, runs)) for first in range(0, runs, GROUP)]
            given = map(repeat, (scenario, plan, decisions))
            full, back, excess, traffic = np.concatenate(list(pool.map(outcomes, *given, seeds))).T
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
