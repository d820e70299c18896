"""The distribution of an action with several knobs and limits between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from manul.actions.distribution import Atoms, Distribution
from manul.actions.knobs import Choice, KnobAction, KnobValue, Stepped
from manul.actions.knobs_distribution import KnobsDistribution, Marginal, Options

DRAWS, BINS = 1024, 32  # the standard error of a share is at most 1.6 %
_FIRST = 2**63  # numbers of draws that no decision has


@dataclass(frozen=True)
class LimitedDistribution(KnobsDistribution):
    """A view of an agent: its densities and samples are exact, marginals are shares of 1,024 draws, always the same ones.

    >>> import manul
    >>> agent = manul.Auto(actions={"price": (10, 50), "discount": (0, 0.5)}, limits=["discount <= 1 - 9 / price"])
    >>> agent.distribution([0.5]).density({"price": 12.0, "discount": 0.4})
    0.0
    """

    density_of: Callable[[KnobAction], float] = field(kw_only=True)
    draws_of: Callable[[npt.NDArray[np.uint64]], dict[str, npt.NDArray[Any]]] = field(kw_only=True)

    def density(self, action: KnobAction) -> float:
        """The joint density of an action: of the knobs with steps or options, the probability."""
        self.knobs.positions(action)
        return self.density_of(action)

    def marginal(self, name: str) -> Marginal:
        """The distribution of one knob in 1,024 draws."""
        self.knobs.check_names({name: None}, "distribution")
        knob: Any = dict(self.knobs.knobs)[name]
        values = self._draws[name]
        if isinstance(knob, Choice):
            shares = {option: float(np.mean([value == option for value in values])) for option in knob.options}
            return Options({option: share for option, share in shares.items() if share > 0})
        if isinstance(knob, Stepped):
            steps = np.array([knob.value((step + 0.5) / knob.count) for step in range(knob.count)])
            places = np.rint((values - knob.low) / knob.step).astype(np.int64)
            return Atoms(steps, np.bincount(places, minlength=knob.count) / DRAWS, knob.step)
        counts, edges = np.histogram(values, bins=BINS, range=(knob.low, knob.high))
        return Distribution(edges, counts / DRAWS / np.diff(edges))

    def integral(self) -> float:
        """The total mass, which is 1: given the knobs before it, each knob has a distribution inside its limits."""
        return 1.0

    def sample(self, rng: np.random.Generator) -> dict[str, KnobValue]:
        """One action drawn with a NumPy generator."""
        columns = self.draws_of(rng.integers(_FIRST, size=1, dtype=np.uint64))
        return {
            name: column[0].item() if isinstance(column[0], np.generic) else column[0]
            for name, column in columns.items()
        }

    @cached_property
    def _draws(self) -> dict[str, npt.NDArray[Any]]:
        return self.draws_of(np.uint64(_FIRST) + np.arange(DRAWS, dtype=np.uint64))
