"""Plots of a policy in one context: the predicted loss or reward of each action and, below it, what is played."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from manul.agents import Mapped
from manul.agents.auto_knobs import AutoKnobs
from manul.contexts.schema import Context
from manul.inspection.inspect import PolicyInContext, policy_in_context
from manul.inspection.knobs_in_context import KnobsInContext, knobs_figure
from manul.policies.policy import Policy

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_context(policy: Policy | AutoKnobs | Mapped, context: Context) -> Figure:
    """Draw the loss, or reward, that the policy predicts for each action in a context, if it is an `Auto`, and the density.

    With several knobs, each knob has its panels, and the prediction along a knob is that with the others at their best.

    >>> import manul
    >>> agent = manul.Auto(actions=(10, 50))
    >>> decision = agent.decide([0.5])
    >>> [axes.get_ylabel() for axes in plot_context(agent, [0.5]).axes]
    ['predicted loss', 'density']
    """
    played = policy_in_context(policy, context)
    return knobs_figure([played]) if isinstance(played, KnobsInContext) else _one_knob(played)


def _one_knob(played: PolicyInContext) -> Figure:
    from manul import plotting

    if played.curve is None:
        return played.distribution.plot().figure.canvas.figure
    upper, lower = plotting.new_column(2)
    title = plotting.shorten(json.dumps(played.context, ensure_ascii=False, default=str))
    played.plot_curve(upper).set_title(f"{title}; the dot is the middle of the window", loc="left")
    upper.set_xlabel("")
    played.distribution.plot(lower)
    return upper.figure.canvas.figure
