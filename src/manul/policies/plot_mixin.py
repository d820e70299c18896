"""The plot method of policies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy.typing as npt

from manul.policies.policy import Policy

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class PlotMixin:
    """A policy with a `plot` method."""

    def plot(
        self: Policy,
        feature: int | str,
        contexts: object,
        targets: npt.ArrayLike | None = None,
        axes: Axes | None = None,
    ) -> Axes:
        """Plot the policy as a function of one `feature`, by number or name, with the others at typical values.

        `contexts` are as in `decide_many`, or a log; `targets` are the best actions, if known, drawn as dots. `axes`
        are those of matplotlib to draw on.
        """
        from manul.plotting import policy_map

        return policy_map(self, contexts, feature, targets, axes)
