"""The account of a budget: what was spent in the current period, and what is held back for decisions whose cost is not known yet."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from manul.agents.pacing import SLOTS, Expectation, Pacing, slot_of
from manul.errors import InputError
from manul.outcomes.budgets import EXPLAIN_LATE, Budget, Moment
from manul.utils import model_files

MARGIN = (
    3.0  # standard deviations: a normal sum is hardly ever above its mean by more, but models of parts are not exact
)
MOST_IN_FLIGHT = 16  # decisions whose cost is not known yet, if no way to count them is chosen
MOST_OPEN = 2**17  # decisions whose cost is awaited; that of older ones counts as expected
MOST_PERIODS = 64  # that are remembered
GROWING = ("account_open", "account_periods")  # arrays of any length


class Booking(NamedTuple):
    """What is held back for a decision in a slot of a period, the variance of its cost, and what was expected, NaN if that is not known."""

    period: float
    slot: int
    held: float
    variance: float
    expected: float = math.nan


class Past(NamedTuple):
    """A period that is over: its start, the budget it had, what was spent, what is still held back, and its mean price."""

    start: float
    available: float
    spent: float
    held: float
    price: float


class Account:
    """The account of a `budget`. Its `pacing` sets the price.

    >>> from manul import Bid
    >>> account = Account(Budget.of(Bid(), ("won * action", 100, 500)))
    >>> moment = account.moment(None)
    >>> account.left(moment)
    100.0
    >>> number = account.book(moment, Expectation(), Booking(moment.period, 0, 12.0, 0.0))
    >>> account.left(moment)
    88.0
    >>> account.settle(number, 7.0)
    >>> account.left(moment), account.spent
    (93.0, 7.0)
    """

    def __init__(self, budget: Budget) -> None:
        self._budget, self.pacing = budget, Pacing()
        self.decisions = 0
        self.period = -math.inf  # when the current one began
        self.share = 0.0  # of the period before the latest decision
        self.available, self.spent = budget.amount, 0.0
        self._held = self._variance = 0.0  # of open decisions of the period
        self._in_flight = 0
        self.open: dict[int, Booking] = {}
        self.past: list[Past] = []
        self.slots = np.zeros((2, SLOTS))  # of the period: what was spent, and the sum of prices

    @property
    def budget(self) -> Budget:
        return self._budget

    @budget.setter
    def budget(self, budget: Budget) -> None:
        carried = self.available - self._budget.amount  # exactly 0 if nothing is, also between amounts of other orders
        self.available = budget.amount + carried
        self._budget = budget

    @property
    def held(self) -> float:
        """What is held back for decisions of the current period."""
        margin = MARGIN * math.sqrt(max(self._variance, 0.0)) if self._budget.late == "reserve" else 0.0
        return self._held + margin

    def moment(self, at: object) -> Moment:
        """The time of the next decision; raises InputError if its period is over already, or if too many costs are not known."""
        moment = self._budget.moment(at, self.decisions)  # type: ignore[arg-type]
        if moment.period < self.period:
            rule = "at must not be before the current period of the budget"
            raise InputError(f"{rule}, which is later by {self.period - moment.period:g} seconds, got {at}.", "at")
        if self._budget.late is None and self._in_flight >= MOST_IN_FLIGHT and moment.period == self.period:
            rule = f"{self._in_flight} decisions wait for their cost, so late must be given"
            raise InputError(f"{rule}, or their outcomes learned first. {EXPLAIN_LATE}", "late")
        return moment

    def latest_moment(self, at: object) -> Moment:
        """The time of the next decision, as `moment`; one of a period that is over counts as the latest of the current one, and any
        number of costs may be unknown."""
        moment = self._budget.moment(at, self.decisions)  # type: ignore[arg-type]
        return moment if moment.period >= self.period else moment._replace(period=self.period, share=self.share)

    def fork(self) -> Account:
        """A copy that can be booked on, but knows no open decisions."""
        other = Account(self._budget)
        vars(other).update(
            vars(self), open={}, past=list(self.past), slots=self.slots.copy(), pacing=self.pacing.copy()
        )
        return other

    def advance(self, moment: Moment) -> None:
        """Go on to a moment, in which there is no decision."""
        if moment.period > self.period:
            self._begin(moment)
        self.share = moment.share if moment.share > self.share or moment.period != self.period else self.share

    def owe(self, period: float, spent: float) -> None:
        """Begin with what was spent in a period before the account was opened; if decisions are counted, they begin anew."""
        self.period, self.spent = 0.0 if isinstance(self._budget.period, int) else period, spent

    def left(self, moment: Moment) -> float:
        """What is left of the budget for a decision at a moment."""
        if moment.period == self.period or math.isinf(self.period):
            return self.available - self.spent - self.held
        return self._budget.amount + self._carried(moment)

    def _carried(self, moment: Moment) -> float:
        """What a later period gets from the current one."""
        rest = self.available - self.spent - self._held
        if self._budget.carry:
            return rest + self._budget.amount * (self._budget.periods_between(self.period, moment.period) - 1)
        return min(rest, 0.0) if self._budget.late == "carry" else 0.0

    def book(self, moment: Moment, expected: Expectation, booking: Booking | None, *, number: int | None = None) -> int:
        """Count a decision at a moment, for which a booking, if it can spend anything, holds back its cost; returns its `number`,
        by default that of the count."""
        if moment.period != self.period:
            self._begin(moment)
        left, slot = self.left(moment), slot_of(moment)
        self.slots[1, slot] += self.pacing.price
        self.pacing.learn(moment, expected, left=left, amount=self._budget.amount)
        self.share = moment.share
        number, self.decisions = self.decisions if number is None else number, self.decisions + 1
        if booking is not None:
            self.open[number] = booking
            self._hold(booking, 1)
        while len(self.open) > MOST_OPEN:
            self.open.pop(next(iter(self.open)))
        return number

    def settle(self, number: int, cost: float) -> None:
        """Count what the decision with a number has spent, unless that is known already."""
        booking = self.open.pop(number, None)
        if booking is None:
            return
        self.pacing.calibration.learn(booking.expected, cost)
        if booking.period == self.period:
            self._hold(booking, -1)
            self.spent += cost
            self.slots[0, booking.slot] += cost
            return
        if self._budget.carry or self._budget.late == "carry":
            self.available -= cost - booking.held
        for place, past in enumerate(self.past):
            if past.start == booking.period:
                self.past[place] = past._replace(spent=past.spent + cost, held=past.held - booking.held)

    def _hold(self, booking: Booking, sign: int) -> None:
        self._in_flight += sign
        self._held = self._held + sign * booking.held if self._in_flight else 0.0
        self._variance = self._variance + sign * booking.variance if self._in_flight else 0.0

    def _begin(self, moment: Moment) -> None:
        if not math.isinf(self.period):
            counts = self.pacing.current[1].sum()
            price = float(self.slots[1].sum() / max(counts, 1.0))
            self.past.append(Past(self.period, self.available, self.spent, self._held, price))
            del self.past[:-MOST_PERIODS]
            self.available = self._budget.amount + self._carried(moment)
            self.pacing.end_period()
        self.period, self.spent = moment.period, 0.0
        self._held = self._variance = 0.0
        self._in_flight = 0
        self.slots = np.zeros((2, SLOTS))

    def state(self) -> model_files.Arrays:
        """The state as arrays of a file."""
        money = [self.available, self.spent, self._held, self._variance]
        about = [self.decisions, self._in_flight, self.period, self.share, *money]
        numbers = np.array([[number, *booking] for number, booking in self.open.items()], np.float64)
        pacing = self.pacing
        return {
            "account": np.array(about, np.float64),
            "account_slots": self.slots.copy(),
            "account_open": numbers.reshape(-1, 6),
            "account_periods": np.array(self.past, np.float64).reshape(-1, 5),
            "pacing": pacing.numbers.copy(),
            "pacing_profile": np.stack([pacing.profile, pacing.current]),
            "pacing_unit": pacing.unit.numbers.copy(),
            "pacing_calibration": pacing.calibration.numbers.copy(),
        }

    def restore(self, arrays: model_files.Arrays) -> None:
        """Restore the state of a file."""
        shapes = {name: array.shape for name, array in self.state().items()}
        for name, shape in shapes.items():
            array = arrays[name]
            fits = array.ndim == len(shape) and array.shape[array.ndim - len(shape[1:]) :] == shape[1:]
            if array.dtype != np.float64 or not fits or (name not in GROWING and array.shape != shape):
                raise model_files.mismatch_error()
        if not _are_valid(arrays):
            raise model_files.mismatch_error()
        about = arrays["account"].tolist()
        self.decisions, self._in_flight = int(about[0]), int(about[1])
        self.period, self.share, self.available, self.spent, self._held, self._variance = about[2:]
        self.slots = arrays["account_slots"].copy()
        rows = arrays["account_open"].tolist()
        self.open = {int(row[0]): Booking(row[1], int(row[2]), *row[3:]) for row in rows}
        self.past = [Past(*row) for row in arrays["account_periods"].tolist()]
        self.pacing.numbers, self.pacing.unit.numbers = arrays["pacing"].copy(), arrays["pacing_unit"].copy()
        self.pacing.calibration.numbers = arrays["pacing_calibration"].copy()
        self.pacing.profile, self.pacing.current = (each.copy() for each in arrays["pacing_profile"])


def _are_valid(arrays: model_files.Arrays) -> bool:
    """Whether the numbers of a file can be those of an account."""
    (period,), about = arrays["account"][2:3], np.delete(arrays["account"], 2)
    others = {
        **arrays,
        "account": about,
        "account_open": arrays["account_open"][:, :5],
    }  # an expectation may be unknown
    numbers = np.concatenate([array.ravel() for array in others.values()])
    counts, slots, profile = about[:2], arrays["account_open"][:, 2], arrays["pacing_profile"]
    are_counts = (counts >= 0).all() and (counts <= model_files.MOST_ROUNDS).all()
    are_slots = (slots >= 0).all() and (slots < SLOTS).all()
    return bool(period < math.inf and np.isfinite(numbers).all() and are_counts and are_slots and (profile >= 0).all())
