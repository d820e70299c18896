"""The effect of each knob: the loss that Auto predicts along one knob or over a pair, with the others at the best action."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from manul.actions.kinds.knob import Knob, KnobValue, Number
from manul.agents.auto_knobs import AutoKnobs
from manul.agents.player_host import host_of
from manul.contexts.schema import Context
from manul.errors import ParameterError, remedy
from manul.outcomes import LOSSES, Outcome
from manul.utils.validation import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

POINTS, CELLS = 65, 32  # per knob along a line, and at most in a heat map


@dataclass(frozen=True)
class KnobEffect:
    """The predicted loss of values of one knob, with the others at the best action.

    `best` is the value of the best action, which may lie between the values, and `best_loss` its predicted loss. Texts
    and plots show the `outcome`.
    """

    name: str
    knob: Knob
    values: tuple[KnobValue, ...]
    losses: tuple[float, ...]
    best: KnobValue
    best_loss: float
    outcome: Outcome = LOSSES

    @property
    def title(self) -> str:
        """The name of the knob for people."""
        return self.name or "action"

    @property
    def outcomes(self) -> tuple[float, ...]:
        """The predicted losses, or rewards, as they are shown."""
        return tuple(map(self.outcome.from_loss, self.losses))

    @property
    def best_outcome(self) -> float:
        """The predicted loss, or reward, of the best value, as it is shown."""
        return self.outcome.from_loss(self.best_loss)

    @property
    def size(self) -> float:
        """The difference between the largest and the lowest predicted loss."""
        return max(self.losses) - min(self.losses)

    def as_dict(self) -> dict[str, Any]:
        """Return all fields as plain values; the loss of each value is a pair in `curve`, its reward in `reward_curve`."""
        curve = list(zip(self.values, self.losses, strict=True))
        plain = {"best": self.best, "best_loss": self.best_loss, "effect": self.size, "curve": curve}
        if not self.outcome.higher:
            return plain
        rewards = list(zip(self.values, self.outcomes, strict=True))
        return {**plain, "best_reward": self.best_outcome, "reward_curve": rewards}

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw the predicted loss, or reward, along the knob and mark the best value."""
        from manul.plotting import knob_plots, label_options

        places: Any = self.knob.places(self.values)
        marked = self.knob.places([self.best])[0], self.best_outcome
        dots = self.knob.is_discrete
        drawn = knob_plots.loss_plot(places, self.outcomes, marked, axes, dots=dots, outcome=self.outcome)
        knob_plots.label_knob(drawn, self.title)
        return label_options(drawn, self.values) if self.knob.is_option else drawn


@dataclass(frozen=True, eq=False)
class PairEffect:
    """The predicted loss over two knobs, with the others at the best action: `losses[i, j]` is that of value j of the first
    knob and value i of the second."""

    names: tuple[str, str]
    knobs: tuple[Knob, Knob]
    values: tuple[tuple[KnobValue, ...], tuple[KnobValue, ...]]
    losses: Floats
    best: tuple[KnobValue, KnobValue]
    outcome: Outcome = LOSSES

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw the predicted loss, or reward, as a heat map and mark the best pair of values."""
        from manul.plotting import knob_plots, label_options

        parts = list(zip(self.knobs, self.values, self.best, strict=True))
        edges = [_edges(knob, values) for knob, values, _ in parts]
        place = [knob.places([best])[0] for knob, _, best in parts]
        ends, marked = (edges[0], edges[1]), (place[0], place[1])
        shown = self.outcome.from_loss(self.losses)
        drawn = knob_plots.loss_map(ends, shown, marked, axes, outcome=self.outcome)
        for knob, values, up in zip(self.knobs, self.values, (False, True), strict=True):
            if knob.is_option:
                label_options(drawn, values, up=up)
        drawn.set_xlabel(self.names[0])
        drawn.set_ylabel(self.names[1])
        return drawn


def knob_effects(agent: AutoKnobs, context: Context, *, points: int = POINTS) -> tuple[KnobEffect, ...]:
    """The effect of each knob in a context.

    >>> import manul
    >>> agent = manul.Auto(actions={"price": (10, 50), "template": manul.Choice(["a", "b"])})
    >>> price, template = knob_effects(agent, [0.5])
    >>> price.values[0], price.best, template.values
    (10.0, 30.0, ('a', 'b'))
    """
    best = agent.space.wrap(agent.best(context))
    return tuple(_effect(agent, context, best, name, knob, points) for name, knob in agent.space.knobs)


def pair_effect(agent: AutoKnobs, context: Context, one: str, other: str, *, cells: int = CELLS) -> PairEffect:
    """The effect of two knobs together in a context.

    >>> import manul
    >>> agent = manul.Auto(actions={"price": (10, 50), "days": manul.Stepped(1, 14, 1)})
    >>> pair_effect(agent, [0.5], "price", "days").losses.shape
    (14, 32)
    """
    knobs = dict(agent.space.knobs)
    for name in (one, other):
        if name not in knobs:
            advice = remedy(str(name), knobs, f"The knobs are {', '.join(knobs)}.")
            raise ParameterError(f"unknown knob {name!r}. {advice}", "knob")
    if one == other:
        raise ParameterError(f"a pair must have two knobs, got {one!r} twice.", "knob")
    best = agent.best(context)
    values = tuple(knobs[one].middles(cells)), tuple(knobs[other].middles(cells))
    actions = [{**best, one: across, other: up} for up in values[1] for across in values[0]]
    losses = _losses(agent, context, actions).reshape(len(values[1]), len(values[0]))
    pair = best[one], best[other]
    return PairEffect((one, other), (knobs[one], knobs[other]), values, losses, pair, agent.outcome)


def _effect(
    agent: AutoKnobs, context: Context, best: Mapping[str, KnobValue], name: str, knob: Knob, points: int
) -> KnobEffect:
    values = tuple(knob.sweep(points))
    *losses, lowest = _losses(agent, context, [*({**best, name: value} for value in values), dict(best)]).tolist()
    return KnobEffect(name, knob, values, tuple(losses), best[name], lowest, agent.outcome)


def _losses(agent: AutoKnobs, context: Context, actions: list[dict[str, Any]]) -> Floats:
    _, seen = host_of(agent).player_and_context(agent, context)
    contexts: Any = [seen] * len(actions) if isinstance(seen, dict) else np.tile(seen, (len(actions), 1))
    return agent.predict_losses(contexts, [agent.space.unwrap(action) for action in actions])


def _edges(knob: Knob, values: tuple[Any, ...]) -> Floats:
    if isinstance(knob, Number) and not knob.is_discrete:
        return knob.edges(len(values))
    middles = np.array(knob.places(values))
    between = (middles[1:] + middles[:-1]) / 2
    return np.array([2 * middles[0] - between[0], *between, 2 * middles[-1] - between[-1]])
