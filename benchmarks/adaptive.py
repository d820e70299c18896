"""What AdaptiveCats, told nothing about the bandwidth, loses beside the best fixed bandwidth in hindsight.

    python -m benchmarks.adaptive

The excess loss counts from the clairvoyant: the best smoothed policy there is, at the best of the bandwidths and with
the same epsilon. Every round's disturbance, the same for all actions, is taken out of the losses.
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
    """Mean excess losses over seeds, and which bandwidth AdaptiveCats had at the end for each seed."""

    fixed: npt.NDArray[np.float64]
    adaptive: float
    chosen: list[float]

    @property
    def best(self) -> float:
        """The fixed bandwidth with the smallest loss."""
        return BANDWIDTHS[int(self.fixed.argmin())]

    @property
    def ratio(self) -> float:
        """The excess loss of AdaptiveCats over that of the best fixed bandwidth."""
        return float(self.adaptive / self.fixed.min())


def optimum(world: worlds.Curves, epsilon: float) -> float:
    """The clairvoyant's expected loss at the best of the bandwidths: the narrowest, as a window is two of half its width."""
    return world.optimum(bandwidth=min(BANDWIDTHS), epsilon=epsilon)


def compare(name: str, *, rounds: int, seeds: int, leaves: int = 256, epsilon: float = 0.05) -> Comparison:
    rows, chosen = [], []
    for seed in range(seeds):
        world = WORLDS[name](rounds=rounds, seed=seed)
        agents = [manul.Cats(leaves=leaves, bandwidth=h, epsilon=epsilon, seed=seed) for h in BANDWIDTHS]
        adaptive = manul.AdaptiveCats(leaves=leaves, bandwidths=BANDWIDTHS, epsilon=epsilon, seed=seed)
        runs = manul.simulate_many([*agents, adaptive], world)
        least = (world.values - world.expected).mean() + optimum(world, epsilon)
        rows.append([run.mean_loss - least for run in runs])
        chosen.append(adaptive.bandwidth)
    mean = np.mean(rows, axis=0)
    return Comparison(mean[:-1], float(mean[-1]), chosen)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=50_000)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    print("world        best fixed  its excess  adaptive's  ratio  chosen at the end")
    for name in WORLDS:
        found = compare(name, rounds=options.rounds, seeds=options.seeds)
        chosen = " ".join(f"1/{round(1 / h)}" for h in found.chosen)
        print(
            f"{name:12} {f'1/{round(1 / found.best)}':>10}  {found.fixed.min():10.4f}  {found.adaptive:10.4f}  "
            f"{found.ratio:5.2f}  {chosen}"
        )


if __name__ == "__main__":
    main()
