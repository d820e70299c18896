"""The state of limits in expectation, as `report()` has it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from manul.agents.budget_account import Account, Past
from manul.agents.kept_bound import KeptBound
from manul.agents.pacing import SLOTS
from manul.utils.validation import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class BudgetReport:
    """A budget in its current period: what is `available`, what was `spent`, and what is `held` back for decisions that wait for
    their cost, of which there are `waiting`.

    `pace` is what was spent divided by what was planned so far, and `forecast` what will be spent by the end at this pace. `price`
    is how much a decision must earn beyond its cost for each unit that it spends. `planned` is what should be spent by the end of
    each twentieth of the period, and `spent_by_slot` what was spent so far. `periods` are the latest ones that are over.
    """

    available: float
    spent: float
    held: float
    waiting: int
    pace: float
    forecast: float
    price: float
    planned: Floats = field(repr=False)
    spent_by_slot: Floats = field(repr=False)
    periods: tuple[Past, ...] = field(repr=False)

    @classmethod
    def of(cls, account: Account) -> BudgetReport:
        """The report of an account."""
        plan, used = account.pacing.plan(), account.spent + account.held
        so_far = float(np.interp(account.share * SLOTS, np.arange(SLOTS + 1), [0.0, *plan]))
        known = so_far > 0 and account.available > 0
        return cls(
            available=account.available,
            spent=account.spent,
            held=account.held,
            waiting=len(account.open),
            pace=used / (account.available * so_far) if known else math.nan,
            forecast=min(used / so_far, max(account.available, used)) if known else math.nan,
            price=account.pacing.price,
            planned=account.available * plan,
            spent_by_slot=np.cumsum(account.slots[0])[: int(account.share * SLOTS) + 1],
            periods=tuple(account.past),
        )

    def __str__(self) -> str:
        held = f" and {self.held:.4g} held back" if self.held else ""
        plan = "" if math.isnan(self.pace) else f", {self.pace:.2f} of the plan, forecast {self.forecast:.4g}"
        return f"budget: {self.spent:.4g} of {self.available:.4g} spent{held}{plan}, price {self.price:.3g}."

    def plot(self, axes: Axes | None = None) -> Axes:
        """Plot what was spent in the current period, and what was planned; `axes` are those of matplotlib to draw on."""
        from manul.plotting.budget_plots import pacing_plot

        return pacing_plot(self.planned, self.spent_by_slot, axes)

    def plot_periods(self, axes: Axes | None = None) -> Axes:
        """Plot the share of the budget that each of the latest periods spent, and its mean price; `axes` are as in `plot`."""
        from manul.plotting.budget_plots import periods_plot

        return periods_plot(
            [past.spent / past.available for past in self.periods], [past.price for past in self.periods], axes
        )


@dataclass(frozen=True)
class KeepReport:
    """A bound on the mean of a second outcome: the `value` to keep, the `mean` of about the latest 1,000 of all `outcomes`, and the
    `price` of what is kept.

    `reachable` is what decisions that aim at nothing else would keep, as far as the agent knows; `doubt` says that the bound is
    out of reach.
    """

    formula: str
    sign: str
    value: float
    mean: float
    price: float
    reachable: float
    outcomes: int
    doubt: str | None

    @classmethod
    def of(cls, bound: KeptBound) -> KeepReport:
        """The report of a bound."""
        doubt = bound.doubt if bound.is_out_of_reach else None
        formula, sign, value = bound.kept.argument
        return cls(formula, sign, value, bound.mean, bound.price, bound.reachable, bound.outcomes, doubt)

    def __str__(self) -> str:
        said = f"keep {self.formula} {self.sign} {self.value:g}: mean {self.mean:.4g} of {self.outcomes} outcomes, price {self.price:.3g}."
        return said if self.doubt is None else f"{said} {self.doubt}"
