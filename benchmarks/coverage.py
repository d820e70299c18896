"""The coverage and the mean width of 95 % confidence intervals on simulated logs, cell by cell.

    python -m benchmarks.coverage [LOGS]        # 200 logs per cell by default

Contexts are uniform on [0, 1]. The best action is 1/4 + context / 2, and the loss depends on the distance to it. Logs are made
by a fixed policy with a window, or by Cats or Auto while they learn. The target policy has a window around the best action
(good overlap), or half of the range away from it (poor overlap). The true loss is an integral. A log on which nothing can be
estimated, because the policy has density 0 at every logged action, counts as an interval of the whole range.

Exits with status 1 if an interval of empirical likelihood covers too few true losses or gains, is too wide, or if too many gains
are called proven where nothing can be gained.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import product

import numpy as np

import manul
from manul.errors import InputError
from manul.offpolicy.evaluation.intervals import NAMES
from manul.types import Floats

LOGS, NULL_LOGS, LEVEL = 200, 500, 0.95
REQUIRED, REQUIRED_GAIN, WIDEST, MOST_WRONG = 0.93, 0.95, 1.2, 0.05
REACH, WINDOW = 0.1, 0.15  # bandwidths of the target policy and of the fixed logging policy
TAIL, SCALE = 1.2, 0.3  # of heavy-tailed losses
Expected = Callable[[Floats], Floats]


@dataclass(frozen=True)
class Cell:
    """A kind of log and a target policy."""

    logger: str
    rows: int
    epsilon: float | None  # None fades
    loss: str
    overlap: str

    def __str__(self) -> str:
        epsilon = "fading" if self.epsilon is None else f"{self.epsilon:g}"
        return f"{self.logger:5} {self.rows:6} {epsilon:>6} {self.loss:9} {self.overlap:5}"


EPSILONS, LOSSES, OVERLAPS = (0.01, 0.05, 0.2, None), ("absolute", "binary", "heavy"), ("good", "poor")
GRIDS = [
    (("fixed",), (50, 500, 5000), EPSILONS, LOSSES, OVERLAPS),
    (("fixed",), (20_000,), (0.01, None), LOSSES, ("poor",)),
    (("cats", "auto"), (200, 2000), (0.05, None), LOSSES, OVERLAPS),
]
CELLS = [Cell(*settings) for grid in GRIDS for settings in product(*grid)]


def best(x: Floats) -> Floats:
    """The best action of each context."""
    return 0.25 + x / 2


def expected_loss(loss: str, distances: Floats) -> Floats:
    """The mean loss at a distance from the best action."""
    if loss != "heavy":
        return distances
    scaled = SCALE * distances
    return (TAIL * scaled - scaled**TAIL) / (TAIL - 1)


def draw_losses(loss: str, distances: Floats, rng: np.random.Generator) -> Floats:
    """Losses in [0, 1] with that mean: the distance itself, 0 or 1, or a Pareto variable cut at 1."""
    if loss == "absolute":
        return distances
    if loss == "binary":
        return (rng.random(len(distances)) < distances).astype(np.float64)
    return np.minimum(1.0, SCALE * distances * (1 + rng.pareto(TAIL, len(distances))))


class Window:
    """A policy with a window of constant width around a line, clipped to [0, 1]."""

    def __init__(self, shift: float, bandwidth: float) -> None:
        self.shift, self.half = shift, bandwidth

    def ends(self, x: Floats) -> tuple[Floats, Floats]:
        """The ends of the window of each context."""
        centres = (best(x) + self.shift) % 1.0
        return np.maximum(centres - self.half, 0), np.minimum(centres + self.half, 1)

    def distribution(self, context: Floats, within: object = None) -> manul.Distribution:  # noqa: ARG002 - the protocol
        """The uniform distribution on the window."""
        low, high = self.ends(np.asarray(context, np.float64)[:1])
        return manul.Distribution.uniform(float(low[0]), float(high[0]))

    def densities_many(self, contexts: Floats, actions: Floats, within: object = None) -> Floats:  # noqa: ARG002
        """The density of each row's action."""
        low, high = self.ends(np.asarray(contexts, np.float64)[:, 0])
        return np.where((low <= actions) & (actions <= high), 1 / (high - low), 0.0)

    def largest_densities_many(self, contexts: Floats, within: object = None) -> Floats:  # noqa: ARG002
        """The density inside the window of each row."""
        low, high = self.ends(np.asarray(contexts, np.float64)[:, 0])
        return 1 / (high - low)

    def moments_many(self, contexts: Floats, within: object = None) -> tuple[Floats, Floats]:  # noqa: ARG002
        """The moments of the action, for `dr`."""
        low, high = self.ends(np.asarray(contexts, np.float64)[:, 0])
        return (low + high) / 2, (low * low + low * high + high * high) / 3


def target(cell: Cell) -> Window:
    """The policy to evaluate."""
    return Window(0.0 if cell.overlap == "good" else 0.5, REACH)


LOGGER = Window(0.1, WINDOW)


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
    losses = draw_losses(cell.loss, np.abs(actions - best(x)), rng)
    return manul.Log(x[:, np.newaxis].astype(np.float32), actions, densities, losses, floors=epsilons)


def epsilons_of(cell: Cell) -> Floats:
    """The share of exploration of each row."""
    if cell.epsilon is not None:
        return np.full(cell.rows, cell.epsilon)
    schedule = fading(cell)
    return np.array([schedule.at(row) for row in range(cell.rows)])


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
    x, block, columns = rng.random(rows), 20, []
    for start in range(0, rows, block):
        contexts = x[start : start + block, np.newaxis].astype(np.float32)
        floors = np.full(len(contexts), agent.current_epsilon)
        decisions = agent.decide_many(contexts)
        losses = draw_losses(cell.loss, np.abs(decisions.actions - best(x[start : start + block])), rng)
        agent.learn_many(contexts, decisions, losses)
        columns.append((contexts, decisions.actions, decisions.densities, losses, floors))
    contexts, actions, densities, losses, floors = map(np.concatenate, zip(*columns, strict=True))
    return manul.Log(contexts, actions, densities, losses, floors=floors)


@dataclass(frozen=True)
class Result:
    """Coverage and mean width by interval; for fixed loggers also those of the gain."""

    cell: Cell
    intervals: dict[str, tuple[float, float]]

    def __str__(self) -> str:
        pairs = (f"{share:5.3f} {width:6.4f}" for share, width in self.intervals.values())
        return f"{self.cell}  " + "   ".join(pairs)


def measure(cell: Cell, logs: int) -> Result:
    """Play all logs of a cell."""
    make = fixed_log if cell.logger == "fixed" else learning_log
    policy, value = target(cell), mean_loss(target(cell), cell.loss)
    logged = np.mean(epsilons_of(cell)) * (mean_loss(None, cell.loss) - mean_loss(LOGGER, cell.loss)) + mean_loss(
        LOGGER, cell.loss
    )
    ends: dict[str, list[tuple[float, float]]] = {}
    for seed in range(logs):
        log = make(cell, seed)
        for name in NAMES:
            ends.setdefault(name, []).append(estimate(policy, log, name))
        if cell.logger == "fixed":
            (row,) = manul.compare([policy], log)
            ends.setdefault("gain", []).append((row.low, row.high))
    truths = {"gain": value - logged}
    return Result(cell, {name: held(pairs, truths.get(name, value)) for name, pairs in ends.items()})


def estimate(policy: Window, log: manul.Log, interval: str) -> tuple[float, float]:
    """The interval; the whole range if there is nothing to estimate from."""
    try:
        result = manul.evaluate(policy, log, "snips", interval, level=LEVEL)
    except InputError:
        return 0.0, 1.0
    return result.low, result.high


def held(ends: list[tuple[float, float]], truth: float) -> tuple[float, float]:
    """The share of intervals that contain the truth, and their mean width."""
    low, high = np.array(ends).T
    return float(np.mean((low <= truth) & (truth <= high))), float(np.mean(high - low))


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
    for required, name in ((REQUIRED, "empirical-likelihood"), (REQUIRED_GAIN, "gain")):
        limit = required - 2 * np.sqrt(required * (1 - required) / logs)
        for result in results:
            if name in result.intervals and result.intervals[name][0] < limit:
                yield f"{name} covers {result.intervals[name][0]:.3f} in {result.cell}"
    binary = [result.intervals for result in results if result.cell.loss == "binary"]
    widths = np.array([[each[name][1] for name in ("empirical-likelihood", "clopper-pearson")] for each in binary])
    ratio = widths[:, 0].mean() / widths[:, 1].mean()
    print(
        f"binary losses: mean width {ratio:.3f} times that of clopper-pearson, {np.max(widths[:, 0] / widths[:, 1]):.3f} at most"
    )
    if ratio > WIDEST:
        yield f"empirical-likelihood is {ratio:.2f} times as wide as clopper-pearson"
    print(f"gains wrongly proven: {wrong:.3f}")
    if wrong > MOST_WRONG:
        yield f"gains are wrongly proven in {wrong:.3f} of the logs"


def main(logs: int = LOGS, null_logs: int = NULL_LOGS) -> int:
    print("coverage and mean width of " + ", ".join(NAMES) + ", gain")
    results = []
    with ProcessPoolExecutor(2) as pool:
        for result in pool.map(measure, CELLS, [logs] * len(CELLS)):
            results.append(result)
            print(result, flush=True)
        wrong = float(np.mean(list(pool.map(wrongly_proven, range(null_logs), chunksize=25))))
    for name in (*NAMES, "gain"):
        shares = np.array([result.intervals[name][0] for result in results if name in result.intervals])
        enough = f"at least {REQUIRED} in {np.mean(shares >= REQUIRED):.0%} of {len(shares)} cells"
        print(f"{name:22} coverage: lowest {shares.min():.3f}, {enough}")
    missed = list(shortcomings(results, logs, wrong))
    print("\n".join(missed) or "all targets met")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:2])))
