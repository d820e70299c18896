"""The policy of an agent with several knobs in one context: what it plays, and the effect of each knob."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from manul.actions.distribution import Options, Scaled
from manul.actions.joint import JointDistribution
from manul.actions.kinds.knob import KnobValue
from manul.agents.auto_knobs import MOST_COMBINATIONS, AutoKnobs
from manul.contexts.schema import Context
from manul.inspection.knob_effects import KnobEffect, knob_effects
from manul.outcomes import Outcome

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = 4  # of a figure


@dataclass(frozen=True)
class KnobsInContext:
    """The policy in one context.

    `distribution` is that of the whole policy, or given the best options if there are too many combinations to list.
    """

    context: Context
    distribution: JointDistribution
    effects: tuple[KnobEffect, ...]

    @property
    def best(self) -> dict[str, KnobValue]:
        """The best action."""
        return {effect.name: effect.best for effect in self.effects}

    @property
    def outcome(self) -> Outcome:
        """The outcome that the agent learns from, which is shown."""
        return self.effects[0].outcome

    def window(self, name: str) -> tuple[float, float] | None:
        """The interval with the highest density of a knob, given the best options; None for a choice."""
        best = self.best
        for branch in self.distribution.branches:
            if name in branch.others and all(best[choice] == option for choice, option in branch.options.items()):
                low, high = branch.others[name].densest()
                return float(low), float(high)
        part = self.distribution.marginal(name)
        if self.distribution.branches or isinstance(part, Options):
            return None
        low, high = part.densest()  # with limits
        return float(low), float(high)

    def as_dict(self) -> dict[str, Any]:
        """Return all fields as plain values.

        >>> import manul
        >>> agent = manul.Auto(actions={"price": (10, 50), "template": manul.Choice(["a", "b"])})
        >>> knobs_in_context(agent, [0.5]).as_dict()["knobs"]["template"]["distribution"]
        {'probabilities': [('a', 0.5), ('b', 0.5)]}
        """
        space = self.distribution.space
        means = space.wrap(self.distribution.mean())
        knobs = {effect.title: {**self._knob(effect.name, means), **effect.as_dict()} for effect in self.effects}
        return {"context": self.context, "best": space.unwrap(self.best), "knobs": knobs}

    def _knob(self, name: str, means: Mapping[str, KnobValue]) -> dict[str, Any]:
        part = self.distribution.marginal(name)
        if isinstance(part, Options):
            return {"distribution": {"probabilities": list(part.probabilities.items())}}
        stated = (
            {"edges": part.edges, "densities": part.mean_densities(part.edges)}
            if isinstance(part, Scaled)
            else asdict(part)
        )
        return {"window": self.window(name), "expected_action": means[name], "distribution": stated}


def knobs_in_context(agent: AutoKnobs, context: Context, shown: Context = None) -> KnobsInContext:
    """The policy of an agent in a context; `shown` is the context before a feature map, if there is one.

    >>> import manul
    >>> knobs_in_context(manul.Auto(actions={"price": (10, 50), "days": manul.Stepped(1, 14, 1)}), [0.5]).window("price")
    (10.0, 50.0)
    """
    effects = knob_effects(agent, context)
    chosen = {effect.name: [effect.best] for effect in effects if effect.knob.is_option}
    combinations = math.prod(len(effect.values) for effect in effects if effect.name in chosen)
    distribution = agent.distribution(context, within=None if combinations <= MOST_COMBINATIONS else chosen)
    return KnobsInContext(context if shown is None else shown, distribution, effects)


def knobs_figure(policies: Sequence[KnobsInContext]) -> Figure:
    """Draw, for each context, the distribution of each knob and below it the predicted loss, or reward, along the knob."""
    from manul import plotting

    names = [effect.name for effect in policies[0].effects]
    across = min(len(names), COLUMNS)
    groups = [names[first : first + across] for first in range(0, len(names), across)]
    panels = iter(plotting.new_grid(2 * across * len(groups) * len(policies), across))
    drawn = None
    for policy in policies:
        effects = {effect.name: effect for effect in policy.effects}
        outcomes = [outcome for effect in policy.effects for outcome in effect.outcomes]
        margin = 0.05 * (max(outcomes) - min(outcomes) or 1.0)
        for group in groups:
            upper, lower = ([next(panels) for _ in range(across)] for _ in range(2))
            for name, density, curve in zip(group, upper, lower, strict=False):
                drawn = policy.distribution.plot_marginal(name, density)
                effects[name].plot(curve).set_ylim(min(outcomes) - margin, max(outcomes) + margin)
            upper[0].set_title(plotting.shorten(json.dumps(policy.context, ensure_ascii=False)), loc="left")
            for unused in (*upper[len(group) :], *lower[len(group) :]):
                unused.remove()
    assert drawn is not None
    return drawn.figure.canvas.figure
