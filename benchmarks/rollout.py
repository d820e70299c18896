"""Simulated rollouts: how often a learner reaches full traffic, goes back to the baseline, or breaks the guarantee.

    python -m benchmarks.rollout [RUNS] [KIND]

The baseline has a mean loss of 0.2. A learner costs 10 % less, the same, 5 % more (the tolerance), or 20 % more. Each is
played with four kinds of losses and delays: a beta distribution, binary losses, heavy tails (most losses are near 0, a few
near 1), and beta losses that come late, large ones later than small ones. In `drift`, the learner gets worse at half time:
from 10 % less to 20 % or 100 % more. The fixed-sample test has the same steps, level and power (0.95), and would have to be
planned with the true difference. Runs are six times as long, with half time in the middle.

Three more kinds: In `late by value`, losses above 0.25 come 900 decisions late, after a patience of 300, those of the learner only or
those of both arms. In `new model`, the learner is replaced at half time by one that costs 20 % or 100 % more, or the same as before. In
`replicas`, losses come late, the first step is 50 % of the traffic, a second replica starts while the budget is used up for the first
time, and the first one leaves soon after; each makes most decisions in turn, and reads those of the other ten times a second. In the first
two, a learner that costs more must not reach full traffic; of a new model, only what comes after half time is shown.

In `predicted`, a model predicts the losses before the arm is drawn: it explains half of their variance, all that contexts contribute, or
it is wrong, and predicts the losses of other contexts. In `guard`, the learner costs 10 % less, and a second value, with the same
distribution, may be at most 5 % higher than the baseline's: it is 10 % higher, equal or 10 % lower. These runs end at full traffic, and
are four times as long if the value is equal.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import repeat
from statistics import NormalDist
from typing import Literal

import numpy as np

from benchmarks.rollouts_at_once import Draws, Outcome, play_at_once
from manul.agents.rollout.guards import Guard
from manul.agents.rollout.in_flight import InFlight
from manul.agents.rollout.rollout_plan import RolloutPlan
from manul.agents.rollout.rollout_progress import COHORT, Progress, Ticket
from manul.utils.validation import Floats

MEAN = 0.2  # loss of the baseline
LENGTH = 6  # of a run, in fixed-sample tests
DELAY = 300  # decisions, on average, until a late loss comes
GROUP = 64  # rollouts that one process plays together
LARGE, VERY_LATE, PATIENCE = 0.25, 900, 300  # large losses that come after patience, in decisions
RATE = 400  # decisions per second, of all replicas together
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
    kind: Literal[
        "usual",
        "learner's large losses",
        "all large losses",
        "new model",
        "replicas",
        "predicted",
        "predicted wrongly",
        "guard",
    ] = "usual"
    guarded: float = 1.0


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
SCENARIOS += [
    *(Scenario(f"late by value, learner {100 * by - 100:+.0f} %", beta, by, by, kind="learner's large losses") for by in (1.2, 2, 3)),
    *(Scenario(f"late by value, both arms {100 * by - 100:+.0f} %", beta, by, by, kind="all large losses") for by in (0.5, 1.2)),
    *(Scenario(f"new model {100 * by - 100:+.0f} %", beta, 0.9, by, kind="new model") for by in (0.9, 1.2, 2.0)),
    *(Scenario(f"replicas {100 * by - 100:+.0f} %", binary, by, by, kind="replicas") for by in (0.9, 1.2, 5.0)),
    *(Scenario(f"predicted beta {100 * by - 100:+.0f} %", beta, by, by, kind="predicted") for by in (0.9, 1.05, 1.2)),
    *(Scenario(f"predicted binary {100 * by - 100:+.0f} %", binary, by, by, kind="predicted") for by in (0.9, 1.05)),
    Scenario("predicted wrongly -10 %", beta, 0.9, 0.9, kind="predicted wrongly"),
    *(Scenario(f"guard {100 * by - 100:+.0f} %", beta, 0.9, 0.9, kind="guard", guarded=by) for by in (1.1, 1.0, 0.9)),
]  # fmt: skip
GUARD = Guard("latency", "<=", 1.05, (0.0, 1.0))


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


def draw_predicted(scenario: Scenario, decisions: int, seed: int) -> Draws:
    """Losses like those of `draw`, half of whose variance is that of the means of contexts, which are predicted."""
    rng = np.random.default_rng(seed)
    size = 1 if scenario.draw is binary else 17
    means = rng.beta(size * MEAN, size * (1 - MEAN), decisions)
    arms = [factor * means for factor in (1.0, scenario.before)]
    if scenario.draw is binary:
        baseline, learner = ((rng.random(decisions) < each).astype(float)[None] for each in arms)
    else:
        baseline, learner = (rng.beta(16 * each, 16 * (1 - each))[None] for each in arms)
    predicted = means if scenario.kind == "predicted" else rng.permutation(means)
    costs = means * (scenario.before - 1)
    return Draws(baseline, learner, rng.random((1, decisions)), costs, predicted[None])


def play(draws: Draws, plan: RolloutPlan, delays: Floats, kind: str = "usual", guard: Draws | None = None) -> Outcome:
    """The rollout of the first row, with losses that come late; `guard` are the values that a guard watches."""
    progress, last = Progress(plan, (0.0, 1.0), guards=() if guard is None else (GUARD,)), len(plan.steps) - 1
    short = guard is not None or draws.predicted is not None
    baseline, learner, coins, costs = (column.tolist() for column in (*(each[0] for each in draws[:3]), draws.costs))
    waits = delays.tolist()
    full, excess, worst = np.inf, 0.0, 0.0
    in_flight = InFlight()
    due: list[tuple[float, int, float]] = []
    for number, coin in enumerate(coins):
        if kind == "new model" and number == len(coins) // 2:
            progress.restart()
            full, excess = np.inf, 0.0  # of the new model alone
        share = in_flight.share(progress)
        predicted = None if draws.predicted is None else float(draws.predicted[0, number])
        ticket = progress.ticket(learner=coin < share, share=share, predicted=predicted)
        in_flight.add(number, ticket)
        excess += share * costs[number] - plan.tolerance * MEAN
        worst = max(worst, excess)
        loss = learner[number] if ticket.learner else baseline[number]
        very_late = loss > LARGE and (
            kind == "all large losses" or (kind == "learner's large losses" and ticket.learner)
        )
        heappush(due, (number + (VERY_LATE if very_late else waits[number] * (0.5 + loss)), number, loss))
        while due and due[0][0] <= number:
            _, arrived, loss = heappop(due)
            if arrived in in_flight.tickets:
                own = in_flight.tickets[arrived]
                values = None if guard is None else (guard.learner if own.learner else guard.baseline)
                progress.add(arrived, own, loss, None if values is None else {GUARD.name: float(values[0, arrived])})
                in_flight.arrive(arrived)
        for overdue in progress.overdue(number):
            progress.add(overdue, in_flight.tickets[overdue], None)
        in_flight.forget_before(progress.next)
        if progress.level == last:
            full = min(full, number)
        if progress.level < 0:  # for good
            return Outcome(full, number, worst, 0.0)
        if short and progress.level == last:
            break
    return Outcome(full, np.inf, worst, in_flight.share(progress))


def play_replicas(draws: Draws, plan: RolloutPlan, delays: Floats) -> Outcome:
    """The rollout of the first row, with two replicas that know each other's decisions only from the store."""
    progress, last = Progress(plan, (0.0, 1.0)), len(plan.steps) - 1
    baseline, learner, coins, costs = (column.tolist() for column in (*(each[0] for each in draws[:3]), draws.costs))
    rng = np.random.default_rng(int(coins[0] * 2**32))
    waits, busy = delays.tolist(), rng.random(len(coins)).tolist()
    comes, leaves = rng.integers(1, 200), rng.integers(200, 2000)
    replicas = [InFlight(known_to=-1) for _ in range(2)]
    stored: dict[int, Ticket] = {}
    full, excess, worst = np.inf, 0.0, 0.0
    due: list[tuple[float, int, float]] = []

    def read(replica: InFlight, end: int) -> None:
        first = max(int(replica.known_to), progress.next - 1) + 1
        replica.join({each: stored[each] for each in range(first, end)}, progress)

    for number, coin in enumerate(coins):
        living = [0] if number < comes else [0, 1] if number < leaves else [1]
        for place in living:
            if number % (RATE // 10) == 7 * place or number == (comes if place else 0):  # not at the same time
                read(replicas[place], number)
        often = 0.9 if number % 100 < 50 else 0.1
        place = living[-1] if busy[number] < often else living[0]
        share = replicas[place].share(progress, number)
        ticket = progress.ticket(learner=coin < share, share=share)
        replicas[place].add(number, ticket)
        stored[number] = ticket
        excess += share * costs[number] - plan.tolerance * MEAN
        worst = max(worst, excess)
        loss = learner[number] if ticket.learner else baseline[number]
        heappush(due, (number + waits[number] * (0.5 + loss), number, loss))
        while due and due[0][0] <= number:
            _, arrived, loss = heappop(due)
            read(replicas[living[0]], number + 1)  # which learns
            progress.add(arrived, stored[arrived], loss)
            for each in replicas if arrived >= progress.next else ():
                each.arrive(arrived)
        for each in replicas:
            each.forget_before(progress.next)
        while stored and (first := next(iter(stored))) < progress.next:
            del stored[first]
        if progress.level == last:
            full = min(full, number)
        if progress.level < 0:
            return Outcome(full, number, worst, 0.0)
    return Outcome(full, np.inf, worst, replicas[1].share(progress, len(coins)))


def outcomes(scenario: Scenario, plan: RolloutPlan, decisions: int, seeds: Sequence[int]) -> Floats:
    """The outcomes of rollouts, a row each."""
    if not scenario.late and scenario.kind == "usual":
        return np.stack(play_at_once(draw(scenario, decisions, seeds), plan, MEAN), axis=1)
    rows = []
    for seed in seeds:
        delays = np.random.default_rng([seed, 1]).geometric(1 / DELAY, decisions)
        draws = draw(scenario, decisions, [seed])
        if scenario.kind.startswith("predicted"):
            rows.append(play(draw_predicted(scenario, decisions, seed), plan, np.zeros(decisions)))
        elif scenario.kind == "guard":
            watched = draw(
                replace(scenario, before=scenario.guarded, after=scenario.guarded), decisions, [seed + 10**6]
            )
            rows.append(play(draws, plan, np.zeros(decisions), guard=watched))
        elif scenario.kind == "replicas":
            rows.append(play_replicas(draws, replace(plan, steps=(0.5, 1.0)), delays))
        elif scenario.late:
            rows.append(play(draws, plan, delays))
        else:
            patient = replace(plan, patience=PATIENCE) if "large" in scenario.kind else plan
            rows.append(play(draws, patient, np.zeros(decisions), scenario.kind))
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
            length = 4 * LENGTH if scenario.kind == "guard" and scenario.guarded == 1 else LENGTH
            decisions = COHORT * int(length * fixed / COHORT)
            group = GROUP if not scenario.late and scenario.kind == "usual" else 1
            seeds = [range(first, min(first + group, runs)) for first in range(0, runs, group)]
            given = map(repeat, (scenario, plan, decisions))
            full, back, excess, traffic = np.concatenate(list(pool.map(outcomes, *given, seeds))).T
            text = f"{scenario.name}: full traffic {np.isfinite(full).mean():.3f}"
            if scenario.before < 1 and (scenario.kind in ("usual", "guard") or scenario.kind.startswith("predicted")):
                text += f", median after {np.median(full):,.0f} decisions, {np.median(full) / fixed:.2f} times a fixed-sample test"
            broken = (excess > plan.budget).mean()
            print(
                f"{text}; back to the baseline {np.isfinite(back).mean():.3f}; guarantee broken {broken:.3f}, "
                f"largest excess {excess.max():.1f} of {plan.budget:g}; traffic at the end {traffic.mean():.3f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
