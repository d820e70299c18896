"""How fast the smoothed regret of Cats grows on a realizable world, against the theorem's bound and its exponent 4/5.

    python -m benchmarks.regret

Epsilon is the theorem's for each horizon; leaves are the theorem's for each horizon too, or fixed (its remark). The
regret counts from the best smoothed policy there is, exploring included.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import manul
from manul import theory, worlds

HORIZONS = (1_000, 10_000, 100_000, 1_000_000)
CLASS = {"log_class_size": math.log(2 * 65), "failure": 0.05}


@dataclass(frozen=True)
class Setting:
    bandwidth: float
    leaves: int | None = None

    def of(self, horizon: int) -> dict[str, float]:
        """Leaves and epsilon for a horizon."""
        problem = {"horizon": horizon, "bandwidth": self.bandwidth, **CLASS}
        leaves = self.leaves or theory.leaves_for_horizon(**problem)
        return {"leaves": leaves, "epsilon": theory.epsilon_for_horizon(**problem, leaves=self.leaves)}


SETTINGS = (
    Setting(1 / 4),
    Setting(1 / 8),
    Setting(1 / 4, 8),
    Setting(1 / 4, 16),
    Setting(1 / 8, 8),
    Setting(1 / 8, 16),
)


def optimum(bandwidth: float) -> float:
    """The least smoothed loss of the realizable world, over its levels instead of drawn rounds."""
    world = worlds.realizable(rounds=10_000)
    level = np.unique(world.contexts[:, 0], return_index=True)[1]
    whole = worlds.Curves(world.contexts[level], positions=world.positions[level], values=world.expected[level])
    return whole.optimum(bandwidth=bandwidth, epsilon=0.0)


def regrets(settings: Sequence[Setting], horizon: int, seed: int) -> list[float]:
    """What each setting loses beyond the optimum over the whole horizon."""
    agents = [manul.Cats(bandwidth=each.bandwidth, seed=seed, **each.of(horizon)) for each in settings]
    runs = manul.simulate_many(agents, worlds.realizable(rounds=horizon, seed=seed))
    return [horizon * (run.mean_loss - optimum(each.bandwidth)) for run, each in zip(runs, settings, strict=True)]


def bound(setting: Setting, horizon: int) -> float:
    return theory.regret_bound(horizon=horizon, bandwidth=setting.bandwidth, **CLASS, **setting.of(horizon))


def exponent(horizons: Sequence[int], measured: Sequence[float]) -> tuple[float, float]:
    """The slope of log regret over log horizon, and its standard error."""
    x, y = np.log(horizons), np.log(measured)
    slope, level = np.polyfit(x, y, 1)
    scatter = np.sqrt(((y - level - slope * x) ** 2).sum() / (len(x) - 2))
    return float(slope), float(scatter / np.sqrt(((x - x.mean()) ** 2).sum()))


def main(seeds: int = 3) -> None:
    played = [horizon for horizon in HORIZONS for _ in range(seeds)]
    table = np.array([regrets(SETTINGS, horizon, number % seeds) for number, horizon in enumerate(played)])
    print("bandwidth leaves      exponent ± error  holds  regret/bound (largest)")
    for setting, column in zip(SETTINGS, table.T, strict=True):
        slope, error = exponent(played, column)
        share = max(regret / bound(setting, horizon) for regret, horizon in zip(column, played, strict=True))
        leaves = setting.leaves or "theorem's"
        holds = "yes" if slope <= 0.8 + error else "no"
        print(f"{setting.bandwidth:<9g} {leaves!s:<10} {slope:9.3f} ± {error:.3f}  {holds:<5}  {share:.5f}")


if __name__ == "__main__":
    main()
