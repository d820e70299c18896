"""The distribution of an action with several knobs and limits between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from manul.actions.distribution import Options
from manul.actions.joint import JointDistribution
from manul.actions.kinds.knob import Marginal
from manul.errors import InputError

DRAWS, BINS = 1024, 32  # the standard error of a share is at most 1.6 %
_FIRST = 2**63  # numbers of draws that no decision has


@dataclass(frozen=True)
class LimitedDistribution(JointDistribution):
    """A view of an agent: its densities and samples are exact, marginals are shares of 1,024 draws, always the same ones.

    >>> import manul
    >>> agent = manul.Auto(actions={"price": (10, 50), "discount": (0, 0.5)}, limits=["discount <= 1 - 9 / price"])
    >>> agent.distribution([0.5]).density({"price": 12.0, "discount": 0.4})
    0.0
    """

    density_of: Callable[[Any], float] = field(kw_only=True)
    draws_of: Callable[[npt.NDArray[np.uint64]], dict[str, npt.NDArray[Any]]] = field(kw_only=True)

    def __reduce__(self) -> str:
        raise InputError("A distribution with limits is a view of its agent and has no copy. Copy the agent.", "agent")

    def density(self, action: Any) -> float:
        """The joint density of an action: of the knobs with steps or options, the probability."""
        self.space.positions(action)
        return self.density_of(action)

    def marginal(self, name: str = "") -> Marginal:
        """The distribution of one knob in 1,024 draws."""
        self.space.check_names({name: None}, "distribution")
        knob = dict(self.space.knobs)[name]
        places = knob.positions(self._draws[name], name)
        if knob.is_option:
            shares = {option: float(np.mean(places == number)) for number, option in enumerate(knob.sweep(0))}
            return Options({option: share for option, share in shares.items() if share > 0})
        counts, edges = np.histogram(places, bins=knob.core[1] or BINS, range=(0.0, 1.0))
        return knob.marginal(zip(edges[:-1], edges[1:], counts / DRAWS, strict=True))

    def mix(self, other: JointDistribution, weight: float) -> LimitedDistribution:
        """The mixture with `weight` on the other distribution."""

        def density(action: Any) -> float:
            return (1 - weight) * self.density(action) + weight * other.density(action)

        def draws(numbers: npt.NDArray[np.uint64]) -> dict[str, npt.NDArray[Any]]:
            columns, rng = self.draws_of(numbers), np.random.default_rng(numbers)
            for row in np.flatnonzero(rng.random(len(numbers)) < weight):
                for name, value in self.space.wrap(other.sample(rng)).items():
                    columns[name][row] = value
            return columns

        return LimitedDistribution(self.space, (), density_of=density, draws_of=draws)

    def integral(self) -> float:
        """The total mass, which is 1: given the knobs before it, each knob has a distribution inside its limits."""
        return 1.0

    def sample(self, rng: np.random.Generator) -> Any:
        """One action drawn with a NumPy generator."""
        columns = self.draws_of(rng.integers(_FIRST, size=1, dtype=np.uint64))
        return self.space.unwrap({name: column.tolist()[0] for name, column in columns.items()})

    @cached_property
    def _draws(self) -> dict[str, npt.NDArray[Any]]:
        return self.draws_of(np.uint64(_FIRST) + np.arange(DRAWS, dtype=np.uint64))
