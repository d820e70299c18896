"""How often 95 % intervals hold: 500 simulated logs for each interval and estimator.

    python -m benchmarks.coverage

The logger plays a window around a linear action with epsilon-greedy exploration; the policy plays another window. Losses
are noisy, and the true loss is an integral. Exits with status 1 where an interval holds less often than it must.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np

import manul
from manul.offpolicy.evaluation.policy_densities import Smoothed

LOGS, ROWS = 500, 2_000
MUST = {"clopper-pearson": 0.95, "bernstein": 0.95, "sequence": 0.95, "normal": 0.93, "bootstrap": 0.93}
PAIRS = [(estimator, interval) for interval in MUST for estimator in ("ips", "snips")] + [
    ("dr", "normal"),
    ("dr", "bootstrap"),
]


def logged(seed: int, rows: int = ROWS, epsilon: float = 0.2) -> manul.Log:
    """Contexts uniform on [0, 1], a window of half-width 0.15 around them, losses |action - context / 2| flipped to 0 or 1."""
    rng = np.random.default_rng(seed)
    x = rng.random(rows)
    low, high = np.maximum(x - 0.15, 0), np.minimum(x + 0.15, 1)
    explored = rng.random(rows) < epsilon
    actions = np.where(explored, rng.random(rows), low + (high - low) * rng.random(rows))
    inside = (low <= actions) & (actions <= high)
    densities = epsilon + (1 - epsilon) * inside / (high - low)
    losses = (rng.random(rows) < np.abs(actions - x / 2)).astype(np.float64)
    return manul.Log(x[:, np.newaxis].astype(np.float32), actions, densities, losses)


POLICY = Smoothed(lambda context: 0.25 + float(context[0]) / 2, 0.2, (0.0, 1.0))


def truth() -> float:
    """The policy's loss: the mean over the window of |action - x / 2|, averaged over contexts."""
    x = (np.arange(20_000) + 0.5) / 20_000
    low, high = np.maximum(0.25 + x / 2 - 0.2, 0), np.minimum(0.25 + x / 2 + 0.2, 1)
    shares = (np.arange(200) + 0.5) / 200
    actions = low[:, np.newaxis] + (high - low)[:, np.newaxis] * shares
    return float(np.abs(actions - x[:, np.newaxis] / 2).mean())


def held(logs: int = LOGS, rows: int = ROWS) -> Iterator[tuple[str, str, float, float]]:
    """For each pair the share of logs whose interval holds the truth, and the mean width."""
    value, made = truth(), [logged(seed, rows) for seed in range(logs)]
    for estimator, interval in PAIRS:
        found = [manul.evaluate(POLICY, log, estimator, interval, seed=seed) for seed, log in enumerate(made)]
        holds = [each.low <= value <= each.high for each in found]
        yield estimator, interval, float(np.mean(holds)), float(np.mean([each.high - each.low for each in found]))


def main() -> int:
    short = 0
    print("interval         estimator   holds   width   must")
    for estimator, interval, share, width in held():
        print(f"{interval:<16} {estimator:<9} {share:7.3f} {width:7.4f} {MUST[interval]:6.2f}", flush=True)
        short += share < MUST[interval]
    return int(short > 0)


if __name__ == "__main__":
    sys.exit(main())
