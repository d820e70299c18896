"""The excess loss of AdaptiveCats, which chooses its bandwidth, against Cats with the best fixed bandwidth in hindsight.

    python -m benchmarks.adaptive

The excess loss is relative to the best smoothed policy with the best of the bandwidths and the same epsilon. The noise
of each round, which is the same for all actions, is subtracted from the losses.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

import manul
from manul import worlds

BANDWIDTHS = tuple(2.0**-i for i in range(1, 13))
WORLDS = {
    "smooth": worlds.smooth,
    "steep cliff": partial(worlds.cliff, steep=True),
    "cliff": worlds.cliff,
    "valleys": worlds.valleys,
    "noise": worlds.noise,
    "drift": worlds.drift,
    "realizable": worlds.realizable,
}


@dataclass(frozen=True)
class Comparison:
    """Mean excess losses over seeds, and the final bandwidth of AdaptiveCats for each seed."""

    fixed: npt.NDArray[np.float64]
    adaptive: float
    chosen: list[float]

    @property
    def best(self) -> float:
        """The fixed bandwidth with the lowest loss."""
        return BANDWIDTHS[int(self.fixed.argmin())]

    @property
    def ratio(self) -> float:
        """The excess loss of AdaptiveCats divided by that of the best fixed bandwidth."""
        return float(self.adaptive / self.fixed.min())


def optimum(world: worlds.Curves, epsilon: float) -> float:
    """The expected loss of the best smoothed policy with the best of the bandwidths."""
    # The narrowest bandwidth is the best: a window consists of two windows of half its width.
    return world.optimum(bandwidth=min(BANDWIDTHS), epsilon=epsilon)


def compare(name: str, *, rounds: int, seeds: int, leaves: int = 256, epsilon: float = 0.05) -> Comparison:
    rows, chosen = [], []
    for seed in range(seeds):
        world = WORLDS[name](rounds=rounds, seed=seed)
        agents = [manul.Cats(leaves=leaves, bandwidth=h, epsilon=epsilon, seed=seed) for h in BANDWIDTHS]
        adaptive = manul.AdaptiveCats(leaves=leaves, bandwidths=BANDWIDTHS, epsilon=epsilon, seed=seed)
        runs = manul.worlds.simulate_many([*agents, adaptive], world)
        lowest = (world.values - world.expected).mean() + optimum(world, epsilon)
        rows.append([run.mean_loss - lowest for run in runs])
        chosen.append(adaptive.bandwidth)
    mean = np.mean(rows, axis=0)
    return Comparison(mean[:-1], float(mean[-1]), chosen)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=50_000)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    print("world        best fixed  its excess    adaptive  ratio  final bandwidths")
    for name in WORLDS:
        result = compare(name, rounds=options.rounds, seeds=options.seeds)
        chosen = " ".join(f"1/{round(1 / h)}" for h in result.chosen)
        print(
            f"{name:12} {f'1/{round(1 / result.best)}':>10}  {result.fixed.min():10.4f}  {result.adaptive:10.4f}  "
            f"{result.ratio:5.2f}  {chosen}"
        )


if __name__ == "__main__":
    main()
