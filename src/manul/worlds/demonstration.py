"""A demonstration on a simulated house: how warm should the water in the radiators be?

A heating controller sees the weather and chooses a flow temperature. It never sees the best temperature, only the
distance between the chosen temperature and the best one.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from manul.actions.decision import Within
from manul.agents.auto import Auto
from manul.agents.base import BaseAgent
from manul.agents.cats import Cats
from manul.utils.atomic_files import writable_folder
from manul.utils.validation import Floats, check_seed, check_whole_number
from manul.worlds.regression import Regression
from manul.worlds.simulation import Run, simulate_many

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ACTIONS: Within = (20.0, 70.0)
MOST_ROUNDS = 10_000_000


def house(*, rounds: int, seed: int = 0) -> Regression:
    """Moments of a year in a house: outdoor °C, wind in m/s, sunshine and people at home; the targets are in °C."""
    check_whole_number("rounds", rounds, 1, MOST_ROUNDS, "Try 100000.")
    rng = np.random.default_rng(check_seed(seed))
    season, hour = rng.uniform(0, 2 * np.pi, rounds), rng.uniform(0, 24, rounds)
    outdoor = 8 - 9 * np.cos(season) - 4 * np.cos((hour - 3) / 12 * np.pi) + 3 * rng.standard_normal(rounds)
    wind = rng.gamma(2, 2, rounds)
    sun = np.maximum(np.sin((hour - 6) / 12 * np.pi), 0) * rng.random(rounds)
    people = rng.integers(0, 5, rounds)
    warmth = 24 + 1.3 * np.maximum(19 - outdoor, 0) + 0.6 * wind - 8 * sun - 0.8 * people
    return Regression(
        np.column_stack([outdoor, wind, sun, people]), np.clip(warmth + 1.5 * rng.standard_normal(rounds), *ACTIONS)
    )


@dataclass(frozen=True)
class Result:
    """The losses of one agent: the distance to the best temperature divided by the range."""

    name: str
    mean_loss: float
    recent_loss: float


@dataclass(frozen=True)
class Demonstration:
    """The losses of all agents, and the paths of the plots."""

    rounds: int
    seconds: float
    results: tuple[Result, ...]
    pictures: tuple[Path, ...]

    def __str__(self) -> str:
        low, high = ACTIONS
        table = [f"{result.name:<30} {result.mean_loss:>9.4f} {result.recent_loss:>9.4f}" for result in self.results]
        return "\n".join(
            [
                f"Heating a house: {self.rounds:,} rounds, each with a flow temperature from {low:g} to {high:g} °C.",
                f"{'':<30} {'mean loss':>9} {'last 5 %':>9}",
                *table,
                f"The agents ran in parallel for {self.seconds:.1f} seconds. Plots, each with its data as .csv:",
                *(f"  {picture}" for picture in self.pictures),
            ]
        )


def demonstrate(folder: str | Path, *, rounds: int = 100_000, seed: int = 0, progress: bool = False) -> Demonstration:
    """Run three agents on the simulated house, and plot their losses and the policy of the first one."""
    from manul import plotting as plots

    world, out = house(rounds=rounds, seed=seed), writable_folder(folder)
    agents: dict[str, BaseAgent[Any]] = {
        "Auto": Auto(actions=ACTIONS, seed=seed),
        "Cats": Cats(actions=ACTIONS, leaves=128, bandwidth=1.5, seed=seed),
        "Cats.paper": Cats.paper(actions=ACTIONS, leaves=128, bandwidth=1.5, seed=seed),
    }
    runs = dict(zip(agents, simulate_many(list(agents.values()), world, progress=progress), strict=True))
    constant = float(np.median(world.targets))
    best = _result(f"best constant action, {constant:.1f} °C", world.losses(np.full(rounds, constant), ACTIONS))
    pictures = (out / "loss.png", out / "policy.png")
    plots.save(_loss_plot(runs, best), pictures[0])
    plots.save(_policy_plot(agents["Auto"], world), pictures[1])
    results = (*(_result(name, run.log.losses) for name, run in runs.items()), best)
    return Demonstration(rounds, runs["Cats"].seconds, results, pictures)


def _loss_plot(runs: dict[str, Run], best: Result) -> Axes:
    from manul import plotting as plots

    axes = plots.new_axes()
    for name, run in runs.items():
        plots.loss_curve(run.log.losses, axes, label=name)
    axes.set_title("Heating a house: loss of three agents", loc="left")
    axes = plots.level(best.mean_loss, axes, label=best.name)
    axes.set_ylabel(f"loss (distance to the target / {ACTIONS[1] - ACTIONS[0]:g} °C)")
    return axes


def _policy_plot(agent: BaseAgent[Any], world: Regression) -> Axes:
    from manul import plotting as plots

    axes = plots.policy_map(agent, world.contexts, 0, world.targets)
    axes.set_title("Policy of Auto after the last round, other features at their medians", loc="left")
    axes.set_xlabel("outdoor temperature (°C)")
    axes.set_ylabel("action: flow temperature (°C)")
    return axes


def _result(name: str, losses: Floats) -> Result:
    from manul.plotting import recent_rounds

    return Result(name, float(losses.mean()), float(losses[-recent_rounds(len(losses)) :].mean()))
