"""How fast the smoothed regret of Cats grows on a realizable world, against the theorem's bound and its exponent 4/5.

    python -m benchmarks.regret

Epsilon is the theorem's for each horizon; leaves are the theorem's for each horizon too, or fixed (its remark). The
regret counts from the best smoothed policy there is, exploring included. The exponent is the slope of least squares of
log regret over log horizon, one point per horizon and seed, with its standard error: once over whole decades and once
over quarter decades, because leaves must be a power of two and so go up in steps that whole decades meet by chance.

With the theorem's leaves and epsilon the exponent is above 4/5, either way of counting. That is not for want of
learning: a clairvoyant that plays the best leaf from the first round on, with the same leaves and epsilon, has it too
(the column beside). As epsilon falls with the horizon, from 0.87 to 0.22 at bandwidth 1/4, more rounds pay for the
leaves being few; at 1/8 epsilon stops at 1 for the shortest horizon. With fixed leaves it is below 4/5 at these
horizons, but not for ever: what few leaves cost grows like the horizon.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import manul
from manul import theory, worlds

HORIZONS = tuple(round(10 ** (3 + quarter / 4)) for quarter in range(13))
DECADES = HORIZONS[::4]
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


def levels() -> worlds.Curves:
    """The realizable world over its levels instead of drawn rounds, without disturbance."""
    world = worlds.realizable(rounds=10_000)
    level = np.unique(world.contexts[:, 0], return_index=True)[1]
    return worlds.Curves(world.contexts[level], positions=world.positions[level], values=world.expected[level])


def optimum(bandwidth: float) -> float:
    """The least smoothed loss of the realizable world."""
    return levels().optimum(bandwidth=bandwidth, epsilon=0.0)


def clairvoyant(setting: Setting, horizon: int) -> float:
    """The regret of playing the best leaf of every context from the first round on, with the same epsilon."""
    world, h, chosen = levels(), setting.bandwidth, setting.of(horizon)
    leaves = (np.arange(chosen["leaves"]) + 0.5) / chosen["leaves"]
    reachable = leaves[(leaves >= h) & (leaves <= 1 - h)]
    greedy = world._expected.windows(np.tile(reachable, (len(world), 1)), h).min(axis=1).mean()
    explored = world.optimum(bandwidth=h, epsilon=1.0)
    return float(horizon * (chosen["epsilon"] * explored + (1 - chosen["epsilon"]) * greedy - optimum(h)))


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


def shown(horizons: Sequence[int], measured: Sequence[float]) -> str:
    slope, error = exponent(horizons, measured)
    return f"{slope:.3f} ± {error:.3f} {'holds' if slope <= 0.8 + error else 'fails'}"


def main(seeds: int = 3) -> None:
    played = np.repeat(HORIZONS, seeds)
    table = np.array([regrets(SETTINGS, horizon, number % seeds) for number, horizon in enumerate(played.tolist())])
    decades = np.isin(played, DECADES)
    print("bandwidth leaves     over decades         over quarter decades  clairvoyant  regret/bound (largest)")
    for setting, column in zip(SETTINGS, table.T, strict=True):
        share = max(regret / bound(setting, horizon) for regret, horizon in zip(column, played.tolist(), strict=True))
        slopes = f"{shown(played[decades], column[decades])}  {shown(played, column):20}"
        knowing = exponent(HORIZONS, [clairvoyant(setting, horizon) for horizon in HORIZONS])[0]
        leaves = setting.leaves or "theorem's"
        print(f"{setting.bandwidth:<9g} {leaves!s:<10} {slopes}  {knowing:11.3f}  {share:.5f}")


if __name__ == "__main__":
    main()
