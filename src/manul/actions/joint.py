"""The distribution of an action with several knobs: for each combination of options, a product over the other knobs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from manul.actions.distribution import Atoms, Options
from manul.actions.kinds.knob import Levels, Marginal
from manul.actions.space import ActionSpace
from manul.utils.html_cards import card

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Branch:
    """A combination of options, its probability, and the distributions of the other knobs given the options."""

    options: Mapping[str, Any]
    probability: float
    others: Mapping[str, Any]

    def density(self, action: Mapping[str, Any]) -> float:
        """The joint density of an action with these options."""
        total = self.probability
        for name, part in self.others.items():
            total *= part.density(action[name]) * (part.spacing if isinstance(part, Atoms) else 1.0)
        return total


@dataclass(frozen=True)
class JointDistribution:
    """The distribution of an action with several knobs, or with one that has steps or options.

    >>> import manul
    >>> agent = manul.Auto(actions={"price": (10, 50), "template": manul.Choice(["a", "b"])})
    >>> distribution = agent.distribution([0.5])
    >>> distribution.density({"price": 20.0, "template": "b"})
    0.0125
    """

    space: ActionSpace[Any]
    branches: tuple[Branch, ...]

    def density(self, action: Any) -> float:
        """The joint density of an action: of the knobs with steps or options, the probability."""
        self.space.positions(action)
        values = self.space.wrap(action)
        return math.fsum(
            branch.density(values)
            for branch in self.branches
            if all(values[name] == option for name, option in branch.options.items())
        )

    def marginal(self, name: str = "") -> Marginal:
        """The distribution of one knob, by its name if it has one.

        >>> import manul
        >>> manul.Auto(actions={"days": manul.Stepped(1, 4, 1)}).distribution([0.5]).marginal("days").masses
        array([0.25, 0.25, 0.25, 0.25])
        """
        self.space.check_names({name: None}, "distribution")
        knob = dict(self.space.knobs)[name]
        if knob.is_option:
            chances = {option: self._chance(name, option) for option in knob.sweep(0)}
            return Options({option: chance for option, chance in chances.items() if chance > 0})
        mixed: Any = None
        total = 0.0
        for branch in self.branches:
            total += branch.probability
            part = branch.others[name]
            share = branch.probability / total if total else 0.0
            mixed = part if mixed is None else mixed.mix(part, share)
        result: Marginal = mixed
        return result

    @classmethod
    def single(cls, space: ActionSpace[Any], action: Any, within: Any = None) -> JointDistribution:
        """The distribution that a single action of a narrower range counts as: for each knob, its `spread`.

        >>> space = ActionSpace({"price": (0, 1024), "size": (0, 1024)})
        >>> JointDistribution.single(space, {"price": 512.0, "size": 2.0}).density({"price": 512.25, "size": 2.0})
        1.0
        """
        values, ranges = space.wrap(action), space.stated_by_knob(within)
        options = {name: values[name] for name, knob in space.knobs if knob.is_option}
        others = {name: knob.spread(values[name], ranges.get(name)) for name, knob in space.knobs if not knob.is_option}
        return cls(space, (Branch(options, 1.0, others),))

    def mix(self, other: JointDistribution, weight: float) -> JointDistribution:
        """The mixture with `weight` on the other distribution."""
        parts = ((self, 1 - weight), (other, weight))
        mixed = (replace(each, probability=share * each.probability) for part, share in parts for each in part.branches)
        return JointDistribution(self.space, tuple(mixed))

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

    def mean(self) -> Any:
        """The expected value of each knob, and the most likely option of a choice."""
        marginals = {name: self.marginal(name) for name in self.space.names}
        means = {name: part.densest() if isinstance(part, Options) else part.mean() for name, part in marginals.items()}
        return self.space.unwrap(means)

    def sample(self, rng: np.random.Generator) -> Any:
        """One action drawn with a NumPy generator."""
        ends = np.cumsum([branch.probability for branch in self.branches])
        branch = self.branches[min(int(np.searchsorted(ends, rng.random() * ends[-1], side="right")), len(ends) - 1)]
        values = {
            name: branch.options[name] if name in branch.options else branch.others[name].sample(rng)
            for name in self.space.names
        }
        return self.space.unwrap(values)

    def _repr_html_(self) -> str:
        rows = [(name or "action", _describe(self.marginal(name))) for name in self.space.names]
        return card("JointDistribution", rows)

    def plot(self) -> list[Axes]:
        """Draw the distribution of each knob."""
        from manul.plotting import new_grid

        panels = new_grid(len(self.space.knobs))
        for name, axes in zip(self.space.names, panels, strict=True):
            self.plot_marginal(name, axes)
        return panels

    def plot_marginal(self, name: str = "", axes: Axes | None = None) -> Axes:
        """Draw the distribution of one knob: a density, or the probabilities of steps or options."""
        from manul.plotting.knob_plots import label_knob, steps_plot

        part = self.marginal(name)
        drawn = steps_plot(part.positions, part.masses, axes) if isinstance(part, Atoms) else part.plot(axes)
        return label_knob(drawn, name or "action")

    def _chance(self, name: str, option: Any) -> float:
        return math.fsum(branch.probability for branch in self.branches if branch.options[name] == option)


def _describe(part: Marginal) -> str:
    """The densest window of a knob, or its most likely option or step."""
    if isinstance(part, Options):
        return f"{part.densest()}, probability {part.density(part.densest()):.3g}"
    low, high = part.densest()
    if isinstance(part, Atoms):
        return f"{low:g}, probability {part.masses.max():.3g}"
    return f"{low:.6g} to {high:.6g}"


def branch(space: ActionSpace[Any], chosen: Mapping[int, int], probability: float, levels: Sequence[Levels]) -> Branch:
    """A combination of options, by the numbers of choices and options, and the other knobs with these levels given it.

    >>> from manul import Choice
    >>> space = ActionSpace({"price": (10, 50), "template": Choice(["a", "b"])})
    >>> branch(space, {1: 0}, 0.5, [[(0.0, 1.0, 1.0)], []]).options
    {'template': 'a'}
    """
    numbered = list(enumerate(space.knobs))
    options = {name: knob.value(chosen[place]) for place, (name, knob) in numbered if knob.is_option}
    others = {name: knob.marginal(levels[place]) for place, (name, knob) in numbered if not knob.is_option}
    return Branch(options, probability, others)
