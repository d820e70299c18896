"""The coverage of 95 % confidence intervals on 500 simulated logs for each interval and estimator.

    python -m benchmarks.coverage

The logging policy chooses from a window around a linear action with epsilon-greedy exploration; the target policy has another
window. Losses are noisy, and the true loss is an integral. Exits with status 1 if an interval covers too few true losses.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np

import manul
from manul.offpolicy.evaluation.policy_densities import Smoothed

LOGS, ROWS = 500, 2_000
REQUIRED = {"clopper-pearson": 0.95, "bernstein": 0.95, "sequence": 0.95, "normal": 0.93, "bootstrap": 0.93}
PAIRS = [(estimator, interval) for interval in REQUIRED for estimator in ("ips", "snips")] + [
    ("dr", "normal"),
    ("dr", "bootstrap"),
]


def simulate_log(seed: int, rows: int = ROWS, epsilon: float = 0.2) -> manul.Log:
    """Contexts uniform on [0, 1], windows with bandwidth 0.15 around them, and losses of 1 with probability |action - context / 2|."""
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
    """The true loss of the policy: |action - x / 2|, averaged over window and contexts."""
    x = (np.arange(20_000) + 0.5) / 20_000
    low, high = np.maximum(0.25 + x / 2 - 0.2, 0), np.minimum(0.25 + x / 2 + 0.2, 1)
    shares = (np.arange(200) + 0.5) / 200
    actions = low[:, np.newaxis] + (high - low)[:, np.newaxis] * shares
    return float(np.abs(actions - x[:, np.newaxis] / 2).mean())


def coverage(logs: int = LOGS, rows: int = ROWS) -> Iterator[tuple[str, str, float, float]]:
    """The share of logs whose interval contains the true loss, and the mean width of the interval, for each pair."""
    value, simulated = truth(), [simulate_log(seed, rows) for seed in range(logs)]
    for estimator, interval in PAIRS:
        estimates = [manul.evaluate(POLICY, log, estimator, interval, seed=seed) for seed, log in enumerate(simulated)]
        covered = [estimate.low <= value <= estimate.high for estimate in estimates]
        yield (
            estimator,
            interval,
            float(np.mean(covered)),
            float(np.mean([estimate.high - estimate.low for estimate in estimates])),
        )


def main() -> int:
    short = 0
    print("interval         estimator coverage  width required")
    for estimator, interval, share, width in coverage():
        print(f"{interval:<16} {estimator:<9} {share:7.3f} {width:7.4f} {REQUIRED[interval]:6.2f}", flush=True)
        short += share < REQUIRED[interval]
    return int(short > 0)


if __name__ == "__main__":
    sys.exit(main())
