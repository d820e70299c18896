"""The state of limits in expectation, as `report()` has it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from manul.agents.budget_account import Account, Past
from manul.agents.kept_bound import KeptBound
from manul.agents.pacing import SLOTS
from manul.utils.validation import Floats


@dataclass(frozen=True)
class BudgetReport:
    """A budget in its current period: `available`, what was `spent`, and what is `held` back for decisions whose cost is not known yet.

    `pace` is what was spent relative to what was planned so far, `forecast` what will be spent at the end if it stays so, and `price`
    the value that a decision must earn for one that it spends, beyond the one itself. `waiting` decisions have no cost yet. `planned` is what
    was planned to be spent by the end of each twentieth of the period, and `spent_by_slot` what was. `periods` are the latest ones that are over.
    """

    available: float
    spent: float
    held: float
    pace: float
    price: float
    forecast: float
    waiting: int
    planned: Floats = field(repr=False)
    spent_by_slot: Floats = field(repr=False)
    periods: tuple[Past, ...] = field(repr=False)

    @classmethod
    def of(cls, account: Account) -> BudgetReport:
        """The report of an account."""
        pacing, used = account.pacing, account.spent + account.held
        decided = np.flatnonzero(pacing.current[1])
        plan = pacing.plan()
        over = float(plan[decided[-1]]) if len(decided) else 0.0  # as if the last slot were over
        pace = used / (account.available * over) if over > 0 and account.available > 0 else math.nan
        return cls(
            available=account.available,
            spent=account.spent,
            held=account.held,
            pace=pace,
            price=pacing.price,
            forecast=min(used / over, max(account.available, used)) if over > 0 else math.nan,
            waiting=len(account.open),
            planned=account.available * plan,
            spent_by_slot=np.cumsum(account.slots[0])[: decided[-1] + 1 if len(decided) else 0],
            periods=tuple(account.past),
        )

    def __str__(self) -> str:
        held = f" and {self.held:.4g} held back" if self.held else ""
        return (
            f"budget: {self.spent:.4g} of {self.available:.4g} spent{held}, {self.pace:.2f} of the plan, "
            f"forecast {self.forecast:.4g}, price {self.price:.3g}."
        )


@dataclass(frozen=True)
class KeepReport:
    """A bound on the mean of a second outcome: the `mean` of about the latest 1,000 outcomes, the `value` to keep, and its `price`.

    `reachable` is what decisions that aim at nothing else would keep, as far as the agent knows; `doubt` says that the bound is out of reach.
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
        numbers = bound.mean, bound.price, bound.reachable, bound.outcomes
        return cls(*bound.kept.argument, *numbers, doubt)

    def __str__(self) -> str:
        said = f"keep {self.formula} {self.sign} {self.value:g}: mean {self.mean:.4g} of {self.outcomes} outcomes, price {self.price:.3g}."
        return said if self.doubt is None else f"{said} {self.doubt}"
