"""The price of what a budget pays for: it rises while more is spent than planned, so that the budget lasts to the end of its period.

A decision is worth its value less the price of what it is expected to spend. What is planned follows the profile of a period: what
the decisions of each of its slots spend at the usual price. It is no profile of what was spent, which would repeat itself.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from manul.outcomes.budgets import Moment
from manul.utils.validation import Floats

SLOTS = 20  # of a period
HIGHEST = 20.0  # price, in units of what is earned by what is spent
MEMORY = 1000.0  # decisions that the unit of the price depends on
STEP = 0.05  # of the price, for a decision that spends the planned amount too much
FADING, POWER = 1000.0, 0.25  # decisions, and how fast steps become shorter after them
CALIBRATED, DOUBT = 2000.0, 200.0  # decisions that calibrate what is expected, and those that would make it half right
RENEWED = 0.3  # share of the latest period in the profile
MOST_PLANNED = 4.0  # times the mean amount of a decision


class Expectation(NamedTuple):
    """What is expected of a decision: its value, what it spends and keeps, what it would spend at the usual price, and the most
    that any action keeps. NaN if that is not known."""

    value: float = math.nan
    spent: float = math.nan
    kept: float = math.nan
    usual: float = math.nan
    most_kept: float = math.nan


class Unit:
    """What is earned for one of what is spent or kept: the unit of its price. Its state are `numbers`."""

    def __init__(self) -> None:
        self.numbers = np.zeros(3)  # decisions, mean absolute value, mean amount

    @property
    def decisions(self) -> float:
        return float(self.numbers[0])

    @property
    def amount(self) -> float:
        """The mean of what is spent or kept."""
        return float(self.numbers[2])

    @property
    def value(self) -> float:
        _, value, amount = self.numbers.tolist()
        return value / amount if amount > 0 else 0.0

    def learn(self, value: float, amount: float) -> None:
        """Take account of the expected `value` and `amount` of a decision."""
        decisions, mean_value, mean_amount = self.numbers.tolist()
        rate = max(1 / (decisions + 1), 1 / MEMORY)
        self.numbers[:] = (
            decisions + 1,
            mean_value + rate * (abs(value) - mean_value),
            mean_amount + rate * (abs(amount) - mean_amount),
        )


class Calibration:
    """What was spent relative to what was expected: models of parts that hardly ever happen expect too little. Its state are `numbers`."""

    def __init__(self) -> None:
        self.numbers = np.zeros(
            3
        )  # decisions, what they were expected to spend, and what they have spent; the latest count more

    @property
    def ratio(self) -> float:
        """What is spent for one that is expected."""
        decisions, expected, spent = self.numbers.tolist()
        return (spent / expected * decisions + DOUBT) / (decisions + DOUBT) if expected > 0 else 1.0

    def learn(self, expected: float, spent: float) -> None:
        """Take account of what a decision was expected to spend, and has spent."""
        if not math.isnan(expected):
            self.numbers[:] = (1 - 1 / CALIBRATED) * self.numbers + (1.0, expected, spent)


class Pacing:
    """The price and the profile of a budget's periods.

    >>> pacing = Pacing()
    >>> for number in range(100):
    ...     moment = Moment(0.0, 100.0, number / 100)
    ...     pacing.learn(moment, Expectation(value=1.0, spent=2.0, usual=2.0), left=100.0 - number, amount=100.0)
    >>> 0 < pacing.price < 3
    True
    """

    def __init__(self) -> None:
        self.unit, self.calibration = Unit(), Calibration()
        # In units: the price now, and its slow mean; whether a profile is known; the share of the period before its first decision.
        self.numbers = np.array([0.0, 0.0, 0.0, -1.0])
        self.profile = np.zeros((2, SLOTS))  # what is spent at the usual price, and decisions
        self.current = np.zeros((2, SLOTS))  # the same of the period that is not over

    @property
    def price(self) -> float:
        """The value that a decision must have for one that it spends, beyond the one itself."""
        return float(self.numbers[0]) * self.unit.value

    @property
    def usual_price(self) -> float:
        """The mean price of about a period."""
        return float(self.numbers[1]) * self.unit.value

    @property
    def is_known(self) -> bool:
        """Whether a period is over, so that there is a profile."""
        return bool(self.numbers[2])

    def copy(self) -> Pacing:
        """Another one with the same state."""
        other = Pacing()
        other.unit.numbers, other.calibration.numbers = self.unit.numbers.copy(), self.calibration.numbers.copy()
        other.numbers, other.profile, other.current = self.numbers.copy(), self.profile.copy(), self.current.copy()
        return other

    def learn(self, moment: Moment, expected: Expectation, *, left: float, amount: float) -> None:
        """Move the price after a decision: `left` of the budget's `amount` was left before it."""
        if self.numbers[3] < 0:
            self.numbers[3] = moment.share
        if not math.isnan(expected.spent):
            self.unit.learn(expected.value, expected.spent)
            planned = self.planned(moment, left)
            decisions = self.decisions(moment)
            if planned is not None and decisions > 0:
                mean = amount / decisions
                step = STEP / (1 + self.unit.decisions / FADING) ** POWER
                spent = self.calibration.ratio * expected.spent
                price = self.numbers[0] + step * (spent - min(planned, MOST_PLANNED * mean)) / mean
                self.numbers[0] = min(max(price, 0.0), HIGHEST)
                self.numbers[1] += (self.numbers[0] - self.numbers[1]) / min(decisions, self.unit.decisions)
        slot = slot_of(moment)
        self.current[1, slot] += 1
        self.current[0, slot] += 0.0 if math.isnan(expected.usual) else expected.usual

    def planned(self, moment: Moment, left: float) -> float | None:
        """What the next decision may spend, so that what is `left` lasts; None if it is not known how many follow."""
        share = moment.share * SLOTS - slot_of(moment)
        if self.is_known:
            slot, (spent, decisions) = slot_of(moment), (self._profile, self.profile[1])
            each = spent[slot] / decisions[slot] if decisions[slot] > 0 else spent.sum() / decisions.sum()
            rest = (1 - share) * spent[slot] + spent[slot + 1 :].sum()
            return float(max(left, 0.0) * each / max(rest, each)) if each > 0 else 0.0
        follow = self.decisions(moment) * (1 - moment.share)
        return max(left, 0.0) / max(follow, 1.0) if follow > 0 else None

    def decisions(self, moment: Moment) -> float:
        """How many decisions a whole period has."""
        if self.is_known:
            return float(self.profile[1].sum())
        over = moment.share - self.numbers[3]
        return float(self.current[1].sum() / over) if over > 0 else 0.0

    def plan(self) -> Floats:
        """The share of the budget that is planned to be spent at the end of each slot."""
        spent = self._profile if self.is_known else np.ones(SLOTS)
        return np.asarray(np.cumsum(spent) / spent.sum())

    @property
    def _profile(self) -> Floats:
        """What the slots spend, relative to each other; what is spent is not known in periods before the first costs."""
        spent: Floats = self.profile[0] if self.profile[0].sum() > 0 else self.profile[1]
        return spent

    def end_period(self) -> None:
        """Learn the profile of a period that is over."""
        before = int(self.numbers[3] * SLOTS)  # slots before the agent's first decision are not known
        latest = self.current
        if before > 0 and not self.is_known:
            latest[:, :before] = latest[:, before:].mean(axis=1, keepdims=True)
        self.profile = (1 - RENEWED) * self.profile + RENEWED * latest if self.is_known else latest
        self.numbers[2], self.current = 1.0, np.zeros((2, SLOTS))
        self.numbers[0] = self.numbers[
            1
        ]  # the last price was about the rest of the budget, which is nothing to begin with


def slot_of(moment: Moment) -> int:
    """The slot of a period in which a moment is."""
    return min(int(moment.share * SLOTS), SLOTS - 1)
