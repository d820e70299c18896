"""A policy that minimises a predicted loss among the actions that a log supports: pessimism about all others."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt

from manul.actions.decision import Within
from manul.actions.distribution import Distribution
from manul.actions.distributions import Windows
from manul.actions.ranges import Actions
from manul.agents.auto import Auto
from manul.agents.density_critic import CriticDensity
from manul.agents.player_host import host_of
from manul.contexts.schema import Context, ContextSchema
from manul.policies.plot_mixin import PlotMixin
from manul.utils import model_files
from manul.utils.validation import Floats, check_bandwidth, check_epsilon, check_number

POINTS = 64  # actions that are compared
LEAST_DENSITY = 0.2  # of the densest action, and of a uniform policy: the estimated density of a supported action


@model_files.saveable()
class Restricted(PlotMixin, model_files.FileMixin):
    """Plays within `bandwidth` of the action with the lowest predicted loss among those that the log supports.

    `critic` predicts losses, and `support` the density of the logged policy. An action is supported if its density is at
    least `least_density` of the uniform density and of the densest action's; if none is, the policy plays the densest one.

    >>> import manul
    >>> rng = np.random.default_rng(0)
    >>> actions, ones = rng.uniform(0.2, 0.5, 2000), np.ones(2000)
    >>> log = manul.Log(rng.random((2000, 1), np.float32), actions, ones, np.abs(actions - 0.9))
    >>> result = manul.offpolicy.optimize_without_densities(log)
    >>> 0.4 < result.policy.best([0.5]) < 0.55  # the log says nothing about 0.9
    True
    """

    def __init__(
        self,
        *,
        critic: Auto,
        support: CriticDensity,
        bandwidth: float,
        least_density: float = LEAST_DENSITY,
        epsilon: float = 0.0,
    ) -> None:
        self.critic, self.support, self.actions = critic, support, critic.actions
        self._range = Actions(*self.actions)
        self.bandwidth = check_bandwidth(bandwidth, self._range)
        self.least_density = check_number("least_density", least_density, 0, 1, f"Try {LEAST_DENSITY}.")
        self.epsilon = check_epsilon(epsilon)

    @property
    def schema(self) -> ContextSchema:
        """The fields of contexts that the critic knows, or the width of rows of numbers."""
        return self.critic.schema

    def distribution(self, context: Context, within: Within | None = None) -> Distribution:
        """The distribution of the action for a context."""
        ends = self._range.narrow(within, self.bandwidth)
        return self._windows(self._single(context), np.array([ends]))[0]

    def best(self, context: Context, within: Within | None = None) -> float:
        """The action with the lowest predicted loss among those that the log supports."""
        ends = np.array([self._range.narrow(within, self.bandwidth)])
        return float(self._choose(self._single(context), ends)[0][0])

    def distributions(self, contexts: Any, within: npt.ArrayLike | None = None) -> Windows:
        """The distribution of each row; `within` is one (low, high) per row."""
        return self._windows(
            contexts, self._range.narrow_many(within, len(host_of(self.critic).batch(contexts)), self.bandwidth)
        )

    def _windows(self, contexts: Any, ends: Floats) -> Windows:
        """The part of the window around the best action that is supported without a gap."""
        centres, lows, highs = self._choose(contexts, ends)
        lows, highs = np.maximum(centres - self.bandwidth, lows), np.minimum(centres + self.bandwidth, highs)
        return Windows(lows, highs, ends, self.epsilon)

    def _choose(self, contexts: Any, ends: Floats) -> tuple[Floats, Floats, Floats]:
        """The best supported action of each row, and the ends of the supported actions around it."""
        steps = (ends[:, 1] - ends[:, 0]) / POINTS
        grid = ends[:, :1] + (np.arange(POINTS) + 0.5) * steps[:, np.newaxis]
        losses, densities = (
            predict(contexts, np.minimum(grid, ends[:, 1:]))
            for predict in (self.critic.predict_losses, self.support.relative)
        )
        densest = densities.max(axis=1, keepdims=True)
        # The densest action is always supported: if it is below the share of the uniform density, it is its own limit.
        supported = densities >= np.minimum(self.least_density * np.maximum(densest, 1.0), densest)
        best = np.argmin(np.where(supported, losses, np.inf), axis=1)
        first, last = _run_around(supported, best)
        rows = np.arange(len(grid))
        return grid[rows, best], ends[:, 0] + first * steps, ends[:, 0] + (last + 1) * steps

    def _single(self, context: Context) -> Any:
        _, features = host_of(self.critic).player_and_context(self.critic, context)
        return [features] if isinstance(features, dict) else features[np.newaxis]

    def _contents(self) -> model_files.Contents:
        settings: dict[str, Any] = {"bandwidth": self.bandwidth, "least_density": self.least_density}
        settings["epsilon"] = self.epsilon
        arrays: model_files.Arrays = {"knots": self.support.knots.ravel()}
        for name, agent in (("critic", self.critic), ("support", self.support.critic)):
            _, settings[name], state = model_files.contents(agent)
            arrays |= {f"{name}.{part}": array for part, array in state.items()}
        return "Restricted", settings, arrays

    @classmethod
    def from_saved(cls, parameters: model_files.Parameters, arrays: model_files.Arrays) -> Self:
        """The policy that was saved with these parameters and arrays."""
        split = model_files.split_by_prefix(arrays)
        (knots,) = model_files.vectors(split.pop("", {}), knots=("f8", None))
        pairs = knots.reshape(2, -1) if len(knots) and len(knots) % 2 == 0 else None
        if pairs is None or not np.isfinite(pairs).all() or (np.diff(pairs[0]) < 0).any() or len(split) != 2:
            raise model_files.mismatch_error()
        settings = dict(parameters)
        critic, support = (
            model_files.restore("Auto", settings.pop(name), split.get(name, {})) for name in ("critic", "support")
        )
        return cls(critic=critic, support=CriticDensity(support, pairs.copy()), **settings)

    def __repr__(self) -> str:
        return f"Restricted(actions={self.actions}, bandwidth={self.bandwidth:g}, least_density={self.least_density:g})"


def _run_around(flags: npt.NDArray[np.bool_], inside: npt.NDArray[np.intp]) -> tuple[Any, Any]:
    """The first and last of the neighbouring flags around one that is set, in each row.

    >>> _run_around(np.array([[True, False, True, True, False]]), np.array([2]))
    (array([2]), array([3]))
    """
    numbers = np.arange(flags.shape[1])
    before = np.where(~flags & (numbers < inside[:, np.newaxis]), numbers, -1).max(axis=1)
    after = np.where(~flags & (numbers > inside[:, np.newaxis]), numbers, len(numbers)).min(axis=1)
    return before + 1, after - 1
