"""Estimates of the loss of a policy from a log, and objections to them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from manul.outcomes import LOSSES, Outcome
from manul.utils.html_cards import card

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Objection:
    """A reason not to trust an estimate; with an `error`, the estimate must not be used, and is not printed or drawn.

    >>> print(Objection("warning", "small sample", "12 of 5,000 decisions match: not enough to say."))
    warning: small sample. 12 of 5,000 decisions match: not enough to say.
    """

    severity: Literal["error", "warning"]
    title: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.severity}: {self.title}. {self.sentence}"


class Reward(NamedTuple):
    """A mean reward with its confidence interval; higher is better."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Estimate:
    """The estimated loss of a policy with its confidence interval, diagnostics of the weights, and `objections`, if any.

    `effective_size` is the effective sample size: the number of decisions by the policy itself that would be as
    informative. The log has `rows`; the `estimator`, the kind of `interval` and its confidence `level` are those of
    `evaluate`. `largest_weight` is the largest importance weight; a `mean_weight` far from 1 means that the logged
    densities are wrong. `bandwidth` is the half-width of the window around the actions of a deterministic policy, and
    `smoothing` says it in words, also for several knobs. Texts and plots show the `outcome` of the log; if it has
    rewards, `value`, `low` and `high` are negative rewards all the same, and `reward` has the rewards.

    >>> print(Estimate(0.25, 0.2, 0.3, effective_size=120.0, largest_weight=4.0, mean_weight=1.0, rows=1000))
    0.25 [0.2, 0.3] (95 % empirical-likelihood, snips), 1,000 rows, effective sample size 120
    """

    value: float
    low: float
    high: float
    effective_size: float
    largest_weight: float
    mean_weight: float
    rows: int
    estimator: str = "snips"
    interval: str = "empirical-likelihood"
    level: float = 0.95
    bandwidth: float | None = None
    objections: tuple[Objection, ...] = ()
    outcome: Outcome = LOSSES
    smoothing: str = ""

    @property
    def reward(self) -> Reward | None:
        """The estimated mean reward and its interval; None if the log has losses.

        >>> sizes = {"effective_size": 120.0, "largest_weight": 4.0, "mean_weight": 1.0, "rows": 1000}
        >>> Estimate(-43.0, -46.0, -40.0, **sizes, outcome=Outcome.of(rewards="auto")).reward
        Reward(value=43.0, low=40.0, high=46.0)
        """
        return Reward(*self.numbers) if self.outcome.higher else None

    @property
    def numbers(self) -> tuple[float, float, float]:
        """The value and its interval, as they are printed."""
        return self.outcome.from_loss(self.value), *self.outcome.flip((self.low, self.high))

    def __str__(self) -> str:
        value, low, high = self.numbers
        name = f"mean {self.outcome.name} " if self.outcome.higher else ""
        ends = f"{name}{value:.4g} [{low:.4g}, {high:.4g}] ({100 * self.level:g} % {self.interval}, {self.estimator})"
        if not self.usable:
            ends = f"{name or 'loss '}cannot be known ({self.estimator})"
        elif self.interval == "none":
            ends = f"{name}{value:.4g} (no interval, {self.estimator})"
        size = f"{self.rows:,} rows, effective sample size {self.effective_size:,.0f}"
        smoothed = f", smoothed over {self.smoothing}" if self.smoothing else ""
        return "\n".join([f"{ends}, {size}{smoothed}", *map(str, self.objections)])

    def _repr_html_(self) -> str:
        value, low, high = self.numbers
        interval = "none" if self.interval == "none" else f"{low:.4g} to {high:.4g}, {self.interval}"
        name = f"mean {self.outcome.name} (higher is better)" if self.outcome.higher else "value"
        rows: list[tuple[str, object]] = [(name, value), (f"{100 * self.level:g} % interval", interval)]
        rows = [*(rows if self.usable else [(name, "cannot be known")]), ("estimator", self.estimator)]
        rows += [("rows", f"{self.rows:,}"), ("effective sample size", f"{self.effective_size:,.0f}")]
        rows += [("smoothed over", self.smoothing)] if self.smoothing else []
        return card(
            "Estimate", [*rows, *((each.severity, f"{each.title}. {each.sentence}") for each in self.objections)]
        )

    @property
    def usable(self) -> bool:
        """Whether no objection is an error."""
        return all(objection.severity != "error" for objection in self.objections)

    def plot(self, axes: Axes | None = None, *, label: str | None = None) -> Axes:
        """Draw the estimate and its interval beside a `label`; several estimates may share `axes`.

        If one cannot be known, its row is empty.
        """
        from manul.plotting import interval_plot

        value, low, high = self.numbers
        name = label or self.estimator
        if not self.usable:
            value, low, high, name = math.nan, math.nan, math.nan, f"{name}: cannot be known"
        return interval_plot(value, low, high, axes, label=name, outcome=self.outcome)
