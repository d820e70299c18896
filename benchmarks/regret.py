"""The growth of the smoothed regret of Cats on a realizable world, compared with Theorem greedy-tree-formal of the paper.

    python -m benchmarks.regret

The theorem, for (h, K)-realizable worlds, ln = ln(|F| / delta), and its remark for trees of K leaves:

    Reg(T, F_inf, h) = E[sum of l_t(a_t)] - T inf over F_inf of lambda_h(pi) = O((T^4 ln / h^3)^(1/5))
        with epsilon = (ln / (T h^3))^(1/5) and K = (T / (h^2 ln))^(1/5)
    Reg(T, F_K, h) = O((K^2 T^2 ln / h)^(1/3))                                 with epsilon = (K^2 ln / (h T))^(1/3)

Details of the measurement:

- F_inf contains trees of any depth, so on a realizable world its best policy has the lowest smoothed loss in every
  context. The best policy of F_K chooses the best leaf in every context.
- Smooth_h(a) is uniform on [a - h, a + h] truncated to [0, 1], so a policy of F_inf may use half a window at an end of
  the range. Cats may not: the paper's implementation excludes centres in [0, h] and [1 - h, 1]. If that matters, regret
  is linear in T whatever is learned. So the valleys lie in [5/16, 11/16], where truncation has no advantage for h <= 1/4.
- The theorem does not apply if its epsilon is above 1, so only horizons with an epsilon below 1 are used.
- K is rounded to a power of two and therefore jumps, so quarters of decades are used as well as whole decades.

An oracle chooses the best leaf from the first round on, with the same leaves and epsilon; a column has its exponent. The
regret of Cats beyond that of the oracle is the cost of learning; it is shown relative to the regret of the oracle at the
first and the last horizon, and is below 1 %. At h = 1/5 it grows, and rounding K raises the exponent of the oracle
above 4/5 as well. The bound of the proof grows faster than 4/5 because of its logarithms.

The last rows have valleys on all of [0, 1], and regret against the best window inside the range. There, leaves cost more
in contexts with a valley at an end of the range, and the exponent of the oracle is above 4/5 as well.

The exponent is the least-squares slope of log regret over log horizon, with three points per horizon.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

import manul
from manul import worlds
from manul.policies import theory

HORIZONS = tuple(round(10 ** (3 + quarter / 4)) for quarter in range(13))
DECADES = HORIZONS[::4]
ROUNDS_PER_POINT = 100_000
CLASS = {"log_class_size": math.log(2 * 65), "failure": 0.05}
MIDDLE, EVERYWHERE = (5 / 16, 11 / 16), (0.0, 1.0)


@dataclass(frozen=True)
class Setting:
    """A bandwidth, the leaves if they are fixed, and the range of the valleys."""

    bandwidth: float
    leaves: int | None = None
    best: tuple[float, float] = MIDDLE

    def at(self, horizon: int) -> dict[str, float]:
        """The leaves and epsilon for a horizon."""
        problem = {"horizon": horizon, "bandwidth": self.bandwidth, **CLASS}
        leaves = self.leaves or theory.leaves_for_horizon(**problem)
        return {"leaves": leaves, "epsilon": theory.epsilon_for_horizon(**problem, leaves=self.leaves)}

    @property
    def limit(self) -> float:
        """The exponent in the theorem, or in its remark."""
        return 4 / 5 if self.leaves is None else 2 / 3

    @property
    def horizons(self) -> tuple[int, ...]:
        """The horizons at which the theorem's epsilon is below 1."""
        return tuple(horizon for horizon in HORIZONS if self.at(horizon)["epsilon"] < 1)


SETTINGS = (
    Setting(1 / 4),
    Setting(1 / 5),
    Setting(1 / 8),
    Setting(1 / 4, 4),
    Setting(1 / 4, 8),
    Setting(1 / 8, 8),
    Setting(1 / 4, best=EVERYWHERE),
    Setting(1 / 8, best=EVERYWHERE),
)


@cache
def levels(setting: Setting) -> worlds.Curves:
    """The realizable world with one round per distinct context and without noise."""
    world = worlds.realizable(rounds=10_000, best=setting.best)
    level = np.unique(world.contexts[:, 0], return_index=True)[1]
    return worlds.Curves(world.contexts[level], positions=world.positions[level], values=world.expected[level])


def smoothed_losses(setting: Setting, centres: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The smoothed loss of every context at each centre."""
    world = levels(setting)
    return world._expected.windows(np.tile(centres, (len(world), 1)), setting.bandwidth)


def best_leaves(setting: Setting, leaves: int) -> float:
    """The loss of the best tree with this many leaves, which Cats spreads over the possible centres of a window."""
    h = setting.bandwidth
    return float(smoothed_losses(setting, h + (np.arange(leaves) + 0.5) / leaves * (1 - 2 * h)).min(axis=1).mean())


def comparator(setting: Setting) -> float:
    """The lowest smoothed loss in the class of comparison: F_K, or F_inf."""
    if setting.leaves is not None:
        return best_leaves(setting, setting.leaves)
    return levels(setting).optimum(bandwidth=setting.bandwidth, epsilon=0.0)


def oracle_regret(setting: Setting, horizon: int) -> float:
    """The regret of choosing the best leaf in every context from the first round on, with the same epsilon."""
    chosen = setting.at(horizon)
    explored = levels(setting).optimum(bandwidth=setting.bandwidth, epsilon=1.0)
    greedy = best_leaves(setting, int(chosen["leaves"]))
    loss = chosen["epsilon"] * explored + (1 - chosen["epsilon"]) * greedy
    return float(horizon * (loss - comparator(setting)))


def regret(setting: Setting, horizon: int, seed: int) -> float:
    """The regret of Cats over the whole horizon; for short horizons, the mean of many runs."""
    repeats = max(1, ROUNDS_PER_POINT // horizon)
    losses = []
    for number in range(seed * repeats, (seed + 1) * repeats):
        agent = manul.Cats(bandwidth=setting.bandwidth, seed=number, **setting.at(horizon))
        world = worlds.realizable(rounds=horizon, best=setting.best, seed=number)
        losses.append(manul.simulate(agent, world).mean_loss)
    return float(horizon * (np.mean(losses) - comparator(setting)))


def bound(setting: Setting, horizon: int) -> float:
    """The bound at the end of the theorem's proof."""
    chosen = setting.at(horizon)
    any_depth = setting.leaves is None
    return theory.regret_bound(horizon=horizon, bandwidth=setting.bandwidth, any_depth=any_depth, **CLASS, **chosen)


def exponent(horizons: Sequence[int], measured: Sequence[float]) -> tuple[float, float]:
    """The slope of log regret over log horizon, and its standard error."""
    x, y = np.log(horizons), np.log(measured)
    slope, level = np.polyfit(x, y, 1)
    scatter = np.sqrt(((y - level - slope * x) ** 2).sum() / (len(x) - 2))
    return float(slope), float(scatter / np.sqrt(((x - x.mean()) ** 2).sum()))


def format_slope(horizons: Sequence[int], measured: Sequence[float], limit: float) -> str:
    slope, error = exponent(horizons, measured)
    return f"{slope:.4f} ± {error:.4f} {'holds' if slope <= limit + error else 'fails'}"


def row(setting: Setting, seeds: int) -> str:
    """One line of the table."""
    horizons = np.repeat(setting.horizons, seeds)
    measured = np.array([regret(setting, horizon, number % seeds) for number, horizon in enumerate(horizons.tolist())])
    decades = np.isin(horizons, DECADES)
    unavoidable = np.array([oracle_regret(setting, horizon) for horizon in setting.horizons])
    oracle = exponent(setting.horizons, unavoidable)[0]
    learning = (measured.reshape(-1, seeds).mean(axis=1) / unavoidable - 1)[[0, -1]]
    bounds = np.array([bound(setting, horizon) for horizon in setting.horizons])
    slopes = [format_slope(horizons[at], measured[at], setting.limit) for at in (decades, slice(None))]
    share, proof = (measured / bounds.repeat(seeds)).max(), exponent(setting.horizons, bounds)[0]
    valleys, leaves = "middle" if setting.best == MIDDLE else "all", str(setting.leaves or "theorem's")
    return (
        f"{valleys:8}{setting.bandwidth:<11g}{leaves:<11}{setting.horizons[0]:<8}{setting.limit:.3f}  "
        f"{slopes[0]:23}{slopes[1]:23}{oracle:<13.4f}{learning[0]:<+8.2%}{learning[1]:<+8.2%}"
        f"{proof:<8.3f}{share:.5f}"
    )


def main(seeds: int = 3) -> None:
    print(
        "valleys bandwidth  leaves     from    limit  over decades           over quarter decades   oracle       "
        "learning cost   proof   regret/bound (largest)"
    )
    for setting in SETTINGS:
        print(row(setting, seeds), flush=True)


if __name__ == "__main__":
    main()
