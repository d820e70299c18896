"""The distribution of an action with several knobs: for each combination of options, a product over the other knobs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from manul.actions.distribution import Atoms, Distribution
from manul.actions.knobs import Choice, KnobAction, Knobs, KnobValue, Option
from manul.utils.html_cards import card

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Options:
    """The probabilities of the options of a choice.

    >>> Options({"plain": 0.9, "bold": 0.1}).density("bold")
    0.1
    """

    probabilities: Mapping[Option, float]

    def density(self, option: Any) -> float:
        """The probability of an option; 0 if it is not allowed."""
        return self.probabilities.get(option, 0.0)

    def densest(self) -> Option:
        """The most likely option.

        >>> Options({"plain": 0.9, "bold": 0.1}).densest()
        'plain'
        """
        return max(self.probabilities, key=lambda option: self.probabilities[option])

    def integral(self) -> float:
        """The total probability: 1 up to rounding."""
        return math.fsum(self.probabilities.values())

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw the probabilities."""
        from manul.plotting.knob_plots import options_plot

        return options_plot(self.probabilities, axes)


Marginal = Distribution | Atoms | Options


@dataclass(frozen=True)
class Branch:
    """A combination of options, its probability, and the distributions of the other knobs given the options."""

    options: Mapping[str, Option]
    probability: float
    others: Mapping[str, Distribution | Atoms]

    def density(self, action: Mapping[str, Any]) -> float:
        """The joint density of an action with these options."""
        total = self.probability
        for name, part in self.others.items():
            total *= part.density(action[name]) * (part.spacing if isinstance(part, Atoms) else 1.0)
        return total


@dataclass(frozen=True)
class KnobsDistribution:
    """The distribution of an action with several knobs.

    >>> import manul
    >>> agent = manul.Auto(actions={"price": (10, 50), "template": manul.Choice(["a", "b"])})
    >>> distribution = agent.distribution([0.5])
    >>> distribution.density({"price": 20.0, "template": "b"})
    0.0125
    """

    knobs: Knobs
    branches: tuple[Branch, ...]

    def density(self, action: KnobAction) -> float:
        """The joint density of an action: of the knobs with steps or options, the probability."""
        self.knobs.positions(action)
        return math.fsum(
            branch.density(action)
            for branch in self.branches
            if all(action[name] == option for name, option in branch.options.items())
        )

    def marginal(self, name: str) -> Marginal:
        """The distribution of one knob.

        >>> import manul
        >>> manul.Auto(actions={"days": manul.Stepped(1, 4, 1)}).distribution([0.5]).marginal("days").masses
        array([0.25, 0.25, 0.25, 0.25])
        """
        self.knobs.check_names({name: None}, "distribution")
        knob = dict(self.knobs.knobs)[name]
        if isinstance(knob, Choice):
            chances = {option: self._chance(name, option) for option in knob.options}
            return Options({option: chance for option, chance in chances.items() if chance > 0})
        mixed: Any = None
        total = 0.0
        for branch in self.branches:
            total += branch.probability
            part = branch.others[name]
            share = branch.probability / total if total else 0.0
            mixed = part if mixed is None else _mix(mixed, part, share)
        result: Distribution | Atoms = mixed
        return result

    def integral(self) -> float:
        """The total mass: 1 up to rounding.

        >>> import manul
        >>> manul.Auto(actions={"days": manul.Stepped(1, 4, 1)}).distribution([0.5]).integral()
        1.0
        """
        return math.fsum(
            branch.probability * math.prod(part.integral() for part in branch.others.values())
            for branch in self.branches
        )

    def mean(self) -> dict[str, KnobValue]:
        """The expected value of each knob, and the most likely option of a choice."""
        marginals = {name: self.marginal(name) for name in self.knobs.names}
        return {name: part.densest() if isinstance(part, Options) else part.mean() for name, part in marginals.items()}

    def sample(self, rng: np.random.Generator) -> dict[str, KnobValue]:
        """One action drawn with a NumPy generator."""
        ends = np.cumsum([branch.probability for branch in self.branches])
        branch = self.branches[min(int(np.searchsorted(ends, rng.random() * ends[-1], side="right")), len(ends) - 1)]
        return {
            name: branch.options[name] if name in branch.options else branch.others[name].sample(rng)
            for name in self.knobs.names
        }

    def _repr_html_(self) -> str:
        rows = [(name, _describe(self.marginal(name))) for name in self.knobs.names]
        return card("KnobsDistribution", rows)

    def plot(self) -> list[Axes]:
        """Draw the distribution of each knob."""
        from manul.plotting import new_grid

        panels = new_grid(len(self.knobs.knobs))
        for name, axes in zip(self.knobs.names, panels, strict=True):
            self.plot_marginal(name, axes)
        return panels

    def plot_marginal(self, name: str, axes: Axes | None = None) -> Axes:
        """Draw the distribution of one knob: a density, or the probabilities of steps or options."""
        from manul.plotting.knob_plots import label_knob, steps_plot

        part = self.marginal(name)
        drawn = steps_plot(part.positions, part.masses, axes) if isinstance(part, Atoms) else part.plot(axes)
        return label_knob(drawn, name)

    def _chance(self, name: str, option: Option) -> float:
        return math.fsum(branch.probability for branch in self.branches if branch.options[name] == option)


def _describe(part: Marginal) -> str:
    """The densest window of a knob, or its most likely option or step."""
    if isinstance(part, Options):
        return f"{part.densest()}, probability {part.density(part.densest()):.3g}"
    low, high = part.densest()
    if isinstance(part, Distribution):
        return f"{low:.6g} to {high:.6g}"
    return f"{low:g}, probability {part.masses.max():.3g}"


def _mix(one: Distribution | Atoms, other: Distribution | Atoms, weight: float) -> Distribution | Atoms:
    if isinstance(one, Atoms):
        assert isinstance(other, Atoms)
        return Atoms(one.positions, (1 - weight) * one.masses + weight * other.masses, one.spacing)
    assert isinstance(other, Distribution)
    return one.mix(other, weight)
