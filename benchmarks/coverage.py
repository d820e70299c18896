"""The coverage and the mean width of 95 % confidence intervals on simulated logs, cell by cell.

    python -m benchmarks.coverage [LOGS]        # 200 logs per cell by default
    python -m benchmarks.coverage 60 --cells "fading .* rising" --processes 16        # the cells whose line matches

Contexts are uniform on [0, 1]. The best action is 1/4 + context / 2, and the loss depends on the distance to it. Logs are made
by a fixed policy with a window, or by Cats or Auto while they learn. The target policy has a window around the best action
(good overlap), or half of the range away from it (poor overlap), or a narrow window that agrees with the fixed policy in a share
of the contexts and is half of the range away from the best action in the others. Losses may rise, fall or change with the seasons.
The true loss is an integral. A log on which nothing can be estimated, because the policy has density 0 at every logged action,
counts as an interval of the whole range.

Columns: the share of intervals that hold the truth, the share with an objection, the share with either, and the mean width.

Exits with status 1 if an interval of empirical likelihood covers too few true losses or gains, is too wide, if too many gains are
called proven where nothing can be gained, or if an interval of `dr` or of a log with a trend neither holds nor has an objection.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np

import manul
from manul.actions.distributions import Windows
from manul.errors import InputError
from manul.offpolicy.evaluation.intervals import INTERVALS
from manul.utils.validation import Floats

LOGS, NULL_LOGS, LEVEL = 200, 500, 0.95
REQUIRED, REQUIRED_GAIN, WIDEST, MOST_WRONG = 0.93, 0.95, 1.2, 0.05
REACH, WINDOW = 0.1, 0.15  # bandwidths of the target policy and of the fixed logging policy
TAIL, SCALE = 1.2, 0.3  # of heavy-tailed losses
LIFT = 0.5  # the share of a trend in a loss
DEFAULT, DOUBLY_ROBUST = "empirical-likelihood", "dr"


@dataclass(frozen=True)
class Cell:
    """A kind of log and a target policy."""

    logger: str
    rows: int
    epsilon: float | None  # None fades
    loss: str
    overlap: str | float  # the share of contexts in which the target agrees with the fixed policy
    trend: str = "steady"
    reach: float = REACH

    def __str__(self) -> str:
        epsilon = "fading" if self.epsilon is None else f"{self.epsilon:g}"
        reach = "" if self.reach == REACH else f"1/{1 / self.reach:g}"
        return f"{self.logger:5} {self.rows:6} {epsilon:>6} {self.loss:8} {self.overlap!s:4} {self.trend:8} {reach:5}"


EPSILONS, LOSSES, OVERLAPS = (0.01, 0.05, 0.2, None), ("absolute", "binary", "heavy"), ("good", "poor")
TRENDS, AGREEMENTS, NARROW = ("rising", "falling", "seasonal"), (0.5, 0.7, 0.9, 1.0), (1 / 16, 1 / 64, 1 / 125)
GRIDS = [
    (("fixed",), (50, 500, 5000), EPSILONS, LOSSES, OVERLAPS),
    (("fixed",), (20_000,), (0.01, None), LOSSES, ("poor",)),
    (("cats", "auto"), (200, 2000), (0.05, None), LOSSES, OVERLAPS),
]
TREND_GRIDS = [
    (("fixed",), (2000, 10_000), (None,), ("absolute", "binary"), OVERLAPS, TRENDS),
    (("cats", "auto"), (2000, 10_000), (None,), ("binary",), OVERLAPS, TRENDS),
]
PARTIAL_GRIDS = [
    (("fixed",), (2000,), (0.05, 0.2), ("absolute", "binary"), AGREEMENTS, ("steady",), NARROW),
    (("fixed",), (10_000,), (0.05,), ("absolute", "binary"), AGREEMENTS[1:], ("steady",), NARROW[::2]),
]
CELLS = [Cell(*settings) for grid in (*GRIDS, *TREND_GRIDS, *PARTIAL_GRIDS) for settings in product(*grid)]


def best(x: Floats) -> Floats:
    """The best action of each context."""
    return 0.25 + x / 2


def expected_loss(loss: str, distances: Floats) -> Floats:
    """The mean loss at a distance from the best action."""
    if loss != "heavy":
        return distances
    scaled = SCALE * distances
    return (TAIL * scaled - scaled**TAIL) / (TAIL - 1)


def trend_of(trend: str, rows: int) -> Floats:
    """What losses add over time, from 0 to 1; the seasons come three times."""
    times = (np.arange(rows) + 0.5) / rows
    return {"rising": times, "falling": 1 - times, "seasonal": (1 + np.sin(6 * np.pi * times)) / 2}[trend]


def draw_trending(cell: Cell, distances: Floats, levels: Floats, rng: np.random.Generator) -> Floats:
    """Losses of which a share `LIFT` is the trend and the rest the distance."""
    if cell.trend == "steady":
        return draw_losses(cell.loss, distances, rng)
    return draw_losses(cell.loss, LIFT * levels + (1 - LIFT) * distances, rng)


def true_loss(cell: Cell, policy: Window | None) -> float:
    """The mean loss of a policy, or of uniform actions, on the rows of a cell."""
    value = mean_loss(policy, cell.loss)
    return (
        value if cell.trend == "steady" else LIFT * float(trend_of(cell.trend, cell.rows).mean()) + (1 - LIFT) * value
    )


def draw_losses(loss: str, distances: Floats, rng: np.random.Generator) -> Floats:
    """Losses in [0, 1] with that mean: the distance itself, 0 or 1, or a Pareto variable cut at 1."""
    if loss == "absolute":
        return distances
    if loss == "binary":
        return (rng.random(len(distances)) < distances).astype(np.float64)
    return np.minimum(1.0, SCALE * distances * (1 + rng.pareto(TAIL, len(distances))))


ELSEWHERE = 0.5  # the shift of windows with poor overlap


class Window:
    """A policy with a window of constant width around a line, clipped to [0, 1]."""

    def __init__(self, shift: float, bandwidth: float, agreement: float = 1.0) -> None:
        self.shift, self.half, self.agreement = shift, bandwidth, agreement

    def ends(self, x: Floats) -> tuple[Floats, Floats]:
        """The ends of the window of each context; contexts above `agreement` have another shift."""
        centres = (best(x) + np.where(x < self.agreement, self.shift, ELSEWHERE)) % 1.0
        return np.maximum(centres - self.half, 0), np.minimum(centres + self.half, 1)

    def distribution(self, context: Floats, within: object = None) -> manul.Distribution:
        """The uniform distribution on the window."""
        return self.distributions(np.asarray(context)[np.newaxis], within)[0]

    def distributions(self, contexts: Floats, within: object = None) -> Windows:  # noqa: ARG002
        """The window of each row."""
        low, high = self.ends(np.asarray(contexts, np.float64)[:, 0])
        return Windows(low, high, np.tile((0.0, 1.0), (len(low), 1)))


def target(cell: Cell) -> Window:
    """The policy to evaluate."""
    if isinstance(cell.overlap, float):
        return Window(SHIFT, cell.reach, cell.overlap)
    return Window(0.0 if cell.overlap == "good" else ELSEWHERE, cell.reach)


SHIFT = 0.1  # of the fixed policy
LOGGER = Window(SHIFT, WINDOW)


def mean_loss(policy: Window | None, loss: str) -> float:
    """The true loss of a policy, or of uniform actions, by numeric integration."""
    x = (np.arange(2000) + 0.5) / 2000
    low, high = (np.zeros_like(x), np.ones_like(x)) if policy is None else policy.ends(x)
    shares = (np.arange(500) + 0.5) / 500
    actions = low[:, np.newaxis] + (high - low)[:, np.newaxis] * shares
    return float(expected_loss(loss, np.abs(actions - best(x)[:, np.newaxis])).mean())


def fixed_log(cell: Cell, seed: int) -> manul.Log:
    """A log of the fixed policy."""
    rng, rows = np.random.default_rng(seed), cell.rows
    x, epsilons = rng.random(rows), epsilons_of(cell)
    low, high = LOGGER.ends(x.astype(np.float32).astype(np.float64))
    actions = np.where(rng.random(rows) < epsilons, rng.random(rows), low + (high - low) * rng.random(rows))
    inside = (low <= actions) & (actions <= high)
    densities = epsilons + (1 - epsilons) * inside / (high - low)
    losses = draw_trending(cell, np.abs(actions - best(x)), levels_of(cell), rng)
    return manul.Log(x[:, np.newaxis].astype(np.float32), actions, densities, losses, floors=epsilons)


def epsilons_of(cell: Cell) -> Floats:
    """The share of exploration of each row."""
    if cell.epsilon is not None:
        return np.full(cell.rows, cell.epsilon)
    schedule = fading(cell)
    return np.array([schedule.at(row) for row in range(cell.rows)])


def levels_of(cell: Cell) -> Floats:
    """The trend of each row."""
    return np.zeros(cell.rows) if cell.trend == "steady" else trend_of(cell.trend, cell.rows)


def fading(cell: Cell) -> manul.schedules.Fading:
    """Epsilon from 0.3 to 0.01."""
    return manul.schedules.Fading(first=0.3, last=0.01, rounds=max(cell.rows // 20, 1))


def learning_log(cell: Cell, seed: int) -> manul.Log:
    """A log of an agent that learns after every block of decisions."""
    rng, rows = np.random.default_rng(seed), cell.rows
    epsilon = fading(cell) if cell.epsilon is None else cell.epsilon
    agent = (
        manul.Cats(leaves=16, bandwidth=1 / 8, epsilon=epsilon, seed=seed)
        if cell.logger == "cats"
        else manul.Auto(actions=(0.0, 1.0), losses=(0.0, 1.0), epsilon=epsilon, seed=seed)
    )
    x, levels, block, columns = rng.random(rows), levels_of(cell), 20, []
    for start in range(0, rows, block):
        contexts = x[start : start + block, np.newaxis].astype(np.float32)
        floors = np.full(len(contexts), agent.current_epsilon)
        decisions = agent.decide_many(contexts)
        distances = np.abs(decisions.actions - best(x[start : start + block]))
        losses = draw_trending(cell, distances, levels[start : start + block], rng)
        agent.learn_many(contexts, decisions, losses)
        columns.append((contexts, decisions.actions, decisions.densities, losses, floors))
    contexts, actions, densities, losses, floors = map(np.concatenate, zip(*columns, strict=True))
    return manul.Log(contexts, actions, densities, losses, floors=floors)


class Ends(NamedTuple):
    """An interval, and whether the estimate has an objection."""

    low: float
    high: float
    objected: bool


class Coverage(NamedTuple):
    """Shares of logs, and the mean width of the intervals."""

    held: float
    width: float
    objected: float
    held_or_objected: float


@dataclass(frozen=True)
class Result:
    """Coverage by interval; for fixed loggers also that of the gain, and for partial agreement that of `dr`."""

    cell: Cell
    intervals: dict[str, Coverage]

    def __str__(self) -> str:
        return "\n".join(
            f"{self.cell} {name:20}  {each.held:5.3f} {each.objected:5.3f} {each.held_or_objected:5.3f}  {each.width:6.4f}"
            for name, each in self.intervals.items()
        )


def measure(cell: Cell, logs: int) -> Result:
    """Play all logs of a cell."""
    make = fixed_log if cell.logger == "fixed" else learning_log
    policy, value = target(cell), true_loss(cell, target(cell))
    windows, uniform = true_loss(cell, LOGGER), true_loss(cell, None)
    logged = windows + np.mean(epsilons_of(cell)) * (uniform - windows)
    ends: dict[str, list[Ends]] = {}
    for seed in range(logs):
        log = make(cell, seed)
        for name in names_of(cell):
            ends.setdefault(name, []).append(estimate(policy, log, name))
        if cell.logger == "fixed":
            (row,) = manul.compare([policy], log)
            ends.setdefault("gain", []).append(Ends(row.low, row.high, bool(row.objections)))
    truths = {"gain": value - logged}
    return Result(cell, {name: coverage(pairs, truths.get(name, value)) for name, pairs in ends.items()})


def names_of(cell: Cell) -> tuple[str, ...]:
    """The intervals that are measured: all in a cell without trend, otherwise those that are recommended."""
    if isinstance(cell.overlap, float):
        return (DEFAULT, DOUBLY_ROBUST)
    return tuple(INTERVALS.names()) if cell.trend == "steady" else (DEFAULT,)


def estimate(policy: Window, log: manul.Log, interval: str) -> Ends:
    """The interval of `snips`, or that of `dr`; the whole range if there is nothing to estimate from."""
    settings = ("dr", None) if interval == DOUBLY_ROBUST else ("snips", interval)
    try:
        result = manul.evaluate(policy, log, *settings, level=LEVEL)
    except InputError:
        return Ends(0.0, 1.0, objected=True)
    return Ends(result.low, result.high, bool(result.objections))


def coverage(ends: list[Ends], truth: float) -> Coverage:
    """The share of intervals that contain the truth, and their mean width."""
    low, high, objected = np.array(ends).T
    held, objected = (low <= truth) & (truth <= high), objected > 0
    return Coverage(*(float(np.mean(each)) for each in (held, high - low, objected, held | objected)))


def wrongly_proven(seed: int) -> bool:
    """Whether a gain is proven on a log in which losses do not depend on the actions."""
    cell = Cell("fixed", 1000, 0.05, "binary", "poor" if seed % 2 else "good")
    log = fixed_log(cell, seed)
    losses = (np.random.default_rng([seed, 1]).random(len(log)) < 0.3).astype(np.float64)
    (row,) = manul.compare(
        [target(cell)], manul.Log(log.contexts, log.actions, log.densities, losses, floors=log.floors)
    )
    return row.high < 0


def shortcomings(results: list[Result], logs: int, wrong: float) -> Iterator[str]:
    """What misses its target; coverage may be two standard errors below."""
    for required, name in ((REQUIRED, DEFAULT), (REQUIRED_GAIN, "gain"), (REQUIRED, DOUBLY_ROBUST)):
        limit = required - 2 * np.sqrt(required * (1 - required) / logs)
        for result in results:
            if name in result.intervals:
                covered = result.intervals[name]
                share = covered.held_or_objected if name == DOUBLY_ROBUST else covered.held
                if share < limit:
                    yield f"{name} covers {share:.3f} in {result.cell}"
    binary = [result.intervals for result in results if result.cell.loss == "binary"]
    widths = np.array(
        [[each[name].width for name in (DEFAULT, "clopper-pearson")] for each in binary if "clopper-pearson" in each]
    )
    if len(widths):
        ratio = widths[:, 0].mean() / widths[:, 1].mean()
        most = np.max(widths[:, 0] / widths[:, 1])
        print(f"binary losses: mean width {ratio:.3f} times that of clopper-pearson, {most:.3f} at most")
        if ratio > WIDEST:
            yield f"empirical-likelihood is {ratio:.2f} times as wide as clopper-pearson"
    print(f"gains wrongly proven: {wrong:.3f}")
    if wrong > MOST_WRONG:
        yield f"gains are wrongly proven in {wrong:.3f} of the logs"


def main(logs: int = LOGS, cells: str = "", processes: int = 2, null_logs: int = NULL_LOGS) -> int:
    print("columns: held, objected, held or objected, mean width")
    chosen = [cell for cell in CELLS if re.search(cells, str(cell))]
    results = []
    with ProcessPoolExecutor(processes) as pool:
        for result in pool.map(measure, chosen, [logs] * len(chosen)):
            results.append(result)
            print(result, flush=True)
        wrong = float(np.mean(list(pool.map(wrongly_proven, range(null_logs), chunksize=25))))
    for name in (*INTERVALS.names(), DOUBLY_ROBUST, "gain"):
        held = np.array([result.intervals[name] for result in results if name in result.intervals])
        if len(held):
            shares, either = held[:, 0], held[:, 3]
            enough = f"at least {REQUIRED} in {np.mean(shares >= REQUIRED):.0%} of {len(shares)} cells"
            print(f"{name:22} coverage: lowest {shares.min():.3f}, {enough}; with objections lowest {either.min():.3f}")
    missed = list(shortcomings(results, logs, wrong))
    print("\n".join(missed) or "all targets met")
    return int(bool(missed))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Coverage of confidence intervals on simulated logs.")
    parser.add_argument("logs", type=int, nargs="?", default=LOGS)
    parser.add_argument("--cells", default="", help="regular expression; only the cells whose line it matches")
    parser.add_argument("--processes", type=int, default=min(os.cpu_count() or 1, 2))
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main(**vars(arguments())))
