"""Auto with limits in expectation: a budget, or a second outcome that must be kept, which `Auto` creates for such arguments.

The account of a budget and the prices change with every decision and outcome, so they are kept in Python, beside the player: periods
follow calendars, and their errors are sentences. The core only sees prices, which are arrays of its model.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from manul import _core
from manul.actions.decision import A, Decision, Decisions, Narrowing, Within
from manul.actions.kinds.knob import SPREAD
from manul.actions.levels import DrawnWindows
from manul.agents.auto import Auto
from manul.agents.budget_account import Account, Booking
from manul.agents.budget_report import BudgetReport, KeepReport
from manul.agents.critic_report import Report
from manul.agents.kept_bound import KeptBound
from manul.agents.pacing import Expectation, slot_of
from manul.contexts.batches import NamedBatch
from manul.contexts.schema import Context, Contexts
from manul.errors import InputError, ParameterError
from manul.outcomes import Outcome, PartValue
from manul.outcomes.budgets import Budget, Kept, Moment
from manul.outcomes.parts import ACTION, PartsReader
from manul.utils import model_files
from manul.utils.formula_bounds import Bounds, bounds
from manul.utils.validation import Floats, check_number

STEPS = 40  # of a bisection: to 1e-12 of the range
_KINDS: dict[str, Bounds] = {"yes/no": (0.0, 1.0), "count": (0.0, math.inf), "amount": (0.0, math.inf)}
_ARRAYS = ("bound", "bound_unit")


class LimitedAuto(Auto[A]):
    """Auto for a range of numbers, with a budget or a bound on the mean of a second outcome."""

    def _check_settings(self, bandwidth: float | None) -> None:
        super()._check_settings(bandwidth)
        self._account: Account | None = None
        self._bound: KeptBound | None = None
        if self._spend_at_most is not None:
            names = ("late", "carry", "decline", "zone")
            budget = Budget.of(self.outcome, self._spend_at_most, **{name: getattr(self, name) for name in names})
            self._spending = PartsReader(budget.spending, self.space)
            self._check_late(budget)
            self.decline = self._check_decline(budget)
            self._account = Account(replace(budget, decline=self.decline))
        if self._keep is not None:
            kept = Kept.of(self.outcome, self._keep)
            self._keeping = PartsReader(kept.outcome, self.space)
            self._bound = KeptBound(kept, has_budget=self._account is not None)
        if not _core.AutoPlayer(width=0, **self._player_settings).report()["hints"]:
            rule = "what is earned, spent and kept must be linear in counts and amounts, so that their means say what is expected"
            raise ParameterError(f"{rule}, got {self._formulas}.", "spend_at_most" if self._account else "keep")

    @property
    def _formulas(self) -> str:
        others = (self.spending, self.kept)
        formulas = [self.outcome.formula, *(other.formula for other in others if other is not None)]
        return ", ".join(map(repr, formulas))

    def _check_late(self, budget: Budget) -> None:
        if budget.late == "reserve" and math.isinf(self._most_spent(self.actions, {})):
            rule = f"late='reserve' needs a cost with an upper bound, but {budget.argument[0]!r} has none"
            raise ParameterError(f"{rule}. Use late='carry'.", "late")

    def _check_decline(self, budget: Budget) -> float:
        if budget.decline is not None:
            low, high = self._range.low, self._range.high
            action = check_number("decline", budget.decline, low, high, "Widen actions, or choose another one.")
            most = self._most_spent((action, action), {})
            if 0 < most < math.inf:  # of an amount, such as a price that others set, nobody but the caller knows
                rule = f"decline must spend nothing, but {budget.argument[0]!r} may be {most:g} at {action:g}"
                raise ParameterError(f"{rule}. Choose another action.", "decline")
            return action
        for end in self.actions:
            if self._most_spent((end, end), {}) <= 0:
                return float(end)
        rule = f"decline must be given, an action that spends nothing by {budget.argument[0]!r}"
        raise ParameterError(f"{rule}, for when the budget is gone. Neither end of actions is one.", "decline")

    @property
    def spend_at_most(self) -> Any:
        return None if self._account is None else self._account.budget.argument

    @spend_at_most.setter
    def spend_at_most(self, spend_at_most: Any) -> None:
        if self._account is None:
            raise ParameterError("spend_at_most cannot be added to an agent. Make a new one.", "spend_at_most")
        self._account.budget = self._account.budget.with_amount(spend_at_most)

    @property
    def keep(self) -> Any:
        return None if self._bound is None else self._bound.kept.argument

    @property
    def spending(self) -> Outcome | None:
        return None if self._account is None else self._account.budget.spending

    @property
    def kept(self) -> Outcome | None:
        return None if self._bound is None else self._bound.kept.outcome

    def decide(
        self, context: Context, within: Narrowing | None = None, *, at: datetime | None = None, levels: bool = False
    ) -> Decision[A]:
        """Draw an action for a `context`, as `Auto.decide`, that what is left of the budget `at` a time, now by default, can pay.

        The decision has the range that is left as `within`, and a number as `id`, which `learn` needs. If nothing is left, the
        action is `decline`.
        """
        account = self._account
        if account is None:
            drawn = super().decide(context, within, levels=levels)
            self._note(self._expected())
            return drawn._replace(id=self._host.decisions - 1)
        moment = account.moment(at)
        drawn, expected, booking = self._draw_within(account, moment, context, within, super().decide, levels=levels)
        if booking is None:
            self._host.player.decisions += 1
        number = account.book(moment, expected, booking)
        self._note(expected)
        return drawn._replace(id=number)

    def _draw_within(
        self,
        account: Account,
        moment: Moment,
        context: Context,
        within: Narrowing | None,
        draw: Callable[..., Decision[A]],
        *,
        levels: bool,
    ) -> tuple[Decision[A], Expectation, Booking | None]:
        """A decision in what is left of the budget, what is expected of it, and what is held back for it, None if it declines."""
        ends = self.actions if within is None else self._narrow(within)
        left, fields = account.left(moment), self._spending_fields(context)
        affordable = self._affordable(ends, left, fields)
        expected = Expectation()
        if affordable != ends:  # the price follows what would be spent if there were enough
            self._window(context, ends)
            expected = self._expected()
        if affordable is None:
            return self._declined(levels=levels), expected, None
        drawn = draw(context, within if affordable == ends else affordable, levels=levels)
        if affordable == ends:
            expected = self._expected()
        booking = Booking(moment.period, slot_of(moment), *self._held(float(drawn.action), fields))  # type: ignore[arg-type]
        return drawn, expected, booking

    def _note(self, expected: Expectation) -> None:
        if self._bound is not None:
            self._bound.decide(expected)
        self._set_prices()

    def _set_prices(self, account: Account | None = None) -> None:
        """Take the prices of the bound and of an account, its own by default."""
        account = self._account if account is None else account
        pacing = None if account is None else account.pacing
        kept = 0.0 if self._bound is None else self._bound.price
        prices = (0.0, kept, 0.0) if pacing is None else (pacing.price, kept, pacing.usual_price)
        if self._host.player is not None:
            self._host.player.prices = prices

    def _expected(self) -> Expectation:
        """What is expected of the latest decision."""
        return Expectation(*self._host.player.expectation)

    def _expect(self, context: Context, within: Narrowing | None) -> Expectation:
        self._window(context, self._narrow(within))
        return self._expected()

    def _spending_fields(self, context: Context) -> dict[str, float]:
        reader = self._spending
        return dict(zip(reader.fields, reader.context_numbers(context).tolist(), strict=True)) if reader.fields else {}

    def _most_spent(self, ends: Within, fields: Mapping[str, float]) -> float:
        """The most that any action in a range can spend."""
        ranges = {name: _KINDS[kind] for name, kind in self.outcome.parts.items()}
        ranges |= {name: (value, value) for name, value in fields.items()}
        return bounds(self._spending.formula, {**ranges, ACTION: (float(ends[0]), float(ends[1]))})[1]

    def _affordable(self, ends: Within, left: float, fields: Mapping[str, float]) -> Within | None:
        """The part of a range, around the action that declines, in which no action can spend more than is left; None if there is none.

        A cost without an upper bound, such as an amount, only needs that something is left.
        """
        if math.isinf(self._most_spent(self.actions, fields)):
            return ends if left > 0 else None
        if self._most_spent(ends, fields) <= left:
            return ends
        assert self.decline is not None
        anchor = min(max(self.decline, ends[0]), ends[1])
        if self._most_spent((anchor, anchor), fields) > left:
            return None
        high = _farthest(anchor, ends[1], lambda end: self._most_spent((anchor, end), fields) <= left)
        low = _farthest(anchor, ends[0], lambda end: self._most_spent((end, high), fields) <= left)
        return (low, high) if high - low >= self._range.span / SPREAD else None

    def _declined(self, *, levels: bool) -> Decision[Any]:
        """The decision that spends nothing; a single action counts as spread over a small part of the range, as in rollouts."""
        assert self.decline is not None
        low, high = self._declined_range
        density = 1 / (high - low)
        drawn = self._drawn(np.array([low, high, 0.0, 0.0]) if levels else None, low, high)
        return Decision(self.decline, density, (low, high), density, drawn=drawn)

    @property
    def _declined_range(self) -> Within:
        assert self.decline is not None
        width = self._range.span / SPREAD
        low = min(max(self.decline - width / 2, self._range.low), self._range.high - width)
        return low, low + width

    def _held(self, action: float, fields: Mapping[str, float]) -> tuple[float, float, float]:
        """What is held back for an action, the variance of its cost, at most that of all or nothing, and what is expected."""
        assert self._account is not None
        most, late = self._most_spent((action, action), fields), self._account.budget.late
        expected = self._host.player.expected_spending(action)
        if late is None or math.isnan(expected):  # before the first costs are known, all of it
            return most if math.isfinite(most) else 0.0, 0.0, expected
        held = min(self._account.pacing.calibration.ratio * expected, most)
        return held, max(held * (most - held), 0.0) if late == "reserve" else 0.0, expected

    def learn(
        self,
        context: Context,
        decision: Decision[A],
        loss: float | None = None,
        *,
        reward: float | None = None,
        parts: Mapping[str, PartValue] | None = None,
    ) -> None:
        """Learn from the `parts` of a `decision` as `Auto.learn`, which are needed to know what was spent and kept."""
        spent, kept = self._read_limits(context, decision, parts)
        if not self._is_declined(decision):
            told: Any = {"loss": loss, "reward": reward, "parts": parts}
            super().learn(context, decision, **told)
        self._settle(decision.id, decision.arm, spent, kept)

    def _is_declined(self, decision: Decision[A]) -> bool:
        within = decision.within
        return self._account is not None and isinstance(within, tuple | list) and (*within,) == self._declined_range

    def _read_limits(self, context: Any, decision: Decision[A], parts: Any) -> tuple[float, float]:
        if parts is None:
            raise InputError(
                f"pass parts= to learn, because they say what is spent or kept: {self._formulas}.", "parts"
            )
        known = parts if isinstance(parts, Mapping) else {}
        spent = 0.0 if self._account is None else _value(self._spending, decision.action, context, known)
        kept = 0.0 if self._bound is None else _value(self._keeping, decision.action, context, known)
        return spent, kept

    def _settle(self, number: Any, arm: Any, spent: float, kept: float, *, warns: bool = True) -> None:
        if number is None or arm == "baseline":  # of a log, or of somebody else
            return
        if self._account is not None:
            self._account.settle(number, spent)
        if self._bound is not None:
            self._bound.learn(kept, stacklevel=3, warns=warns)
        self._set_prices()

    def decide_many(
        self,
        contexts: Contexts,
        within: Any = None,
        *,
        at: datetime | Sequence[datetime] | None = None,
        levels: bool = False,
    ) -> Decisions[A]:
        """Draw an action for each of the `contexts`, as many calls of `decide` do; `at` is one time, or one for each."""
        batch = self._host.batch(contexts)
        ranges = [None] * len(batch) if within is None else list(within)
        times = [at] * len(batch) if at is None or isinstance(at, datetime) else list(at)
        for name, given in (("within", ranges), ("at", times)):
            if len(given) != len(batch):
                raise InputError(f"{name} must have one value per context, got {len(given)} for {len(batch)}.", name)
        before = copy.deepcopy((self._account, self._bound)), self._host.decisions
        try:
            drawn = [self.decide(batch[row], ranges[row], at=times[row], levels=levels) for row in range(len(batch))]
        except Exception:
            self._return_to(*before)
            raise
        decisions = self._columns(drawn)
        self._batches.draw(decisions)
        return decisions

    def _columns(self, drawn: Sequence[Decision[A]]) -> Decisions[A]:
        """The decisions as columns."""
        ends = [self.actions if each.within is None else each.within for each in drawn]
        lows, highs = np.array(ends, np.float64).reshape(-1, 2).T.copy()
        narrowed = any(each.within is not None for each in drawn)
        windows = [each.drawn.windows for each in drawn if isinstance(each.drawn, DrawnWindows)]
        return Decisions(
            np.array([each.action for each in drawn], np.float64),
            np.array([each.density for each in drawn], np.float64),
            lows if narrowed else None,
            highs if narrowed else None,
            floors=np.array([each.floor for each in drawn], np.float64),
            ids=np.array([each.id for each in drawn], np.int64),
            drawn=self._drawn(np.concatenate(windows), lows, highs) if windows else None,
        )

    def _return_to(self, limits: tuple[Account | None, KeptBound | None], decisions: int) -> None:
        """Undo decisions."""
        self._account, self._bound = limits
        if self._host.player is not None:
            self._host.player.decisions = decisions
        self._set_prices()

    def learn_many(
        self,
        contexts: Contexts,
        decisions: Decisions[A],
        losses: npt.ArrayLike | None = None,
        *,
        rewards: npt.ArrayLike | None = None,
        parts: Mapping[str, npt.ArrayLike] | None = None,
    ) -> None:
        """Learn from the `parts` of many `decisions`, as many calls of `learn` do; if one of them is invalid, from none."""
        if parts is None:
            self._read_limits(None, decisions[0], None)
        batch = self._host.batch(contexts)
        named = batch if isinstance(batch, NamedBatch) else contexts
        spent = np.zeros(len(batch)) if self._account is None else _values(self._spending, decisions, named, parts)
        kept = np.zeros(len(batch)) if self._bound is None else _values(self._keeping, decisions, named, parts)
        outcomes: dict[str, Any] = {"losses": losses, "rewards": rewards}
        learned = np.array([not self._is_declined(each) for each in decisions], np.bool_)
        if learned.all():
            super().learn_many(contexts, decisions, **outcomes, parts=parts)
        elif learned.any():
            places = np.flatnonzero(learned).tolist()
            rows: Any = [batch[place] for place in places] if isinstance(batch, NamedBatch) else batch[places]
            some = {name: None if column is None else np.asarray(column)[places] for name, column in outcomes.items()}
            columns: Any = parts
            told: Any = {name: [column[place] for place in places] for name, column in columns.items()}
            super().learn_many(rows, decisions[np.array(places)], **some, parts=told)
        ids = [None] * len(batch) if decisions.ids is None else decisions.ids.tolist()
        arms = [None] * len(batch) if decisions.arms is None else decisions.arms.tolist()
        for row in zip(ids, arms, spent.tolist(), kept.tolist(), strict=True):
            self._settle(*row)

    def report(self, context: Context = None, *, points: int = 64) -> Report:
        """The state as in `Auto.report`, with that of the budget and of what is kept."""
        budget = None if self._account is None else BudgetReport.of(self._account)
        kept = None if self._bound is None else KeepReport.of(self._bound)
        return replace(super().report(context, points=points), budget=budget, kept=kept)

    def _parts_in_core(self) -> dict[str, Any] | None:
        """The formulas of the outcome and of the limits as the core takes them."""
        settings = super()._parts_in_core()
        assert settings is not None
        assert self._reader is not None
        formulas = {} if self._account is None else {"spent": self._spending.formula}
        if self._bound is not None:
            formulas["kept"] = self._bound.kept.gain()
        return {**settings, **self._reader.core_programs(formulas)}

    def _contents(self) -> model_files.Contents:
        kind, settings, arrays = super()._contents()
        is_begun = self._account is not None and self._account.period > -math.inf  # also before the first context
        return kind, settings, {**arrays, **self._own_arrays()} if arrays or is_begun else arrays

    def _own_arrays(self) -> model_files.Arrays:
        own = {} if self._account is None else self._account.state()
        if self._bound is not None:
            own |= {"bound": self._bound.numbers.copy(), "bound_unit": self._bound.unit.numbers.copy()}
        return own

    def _description(self) -> tuple[str, model_files.Parameters]:
        return "Auto", super()._description()[1]

    def _restore(self, player: Any, arrays: model_files.Arrays) -> None:
        self._restore_own(arrays)
        own = self._own_arrays()
        super()._restore(player, {name: array for name, array in arrays.items() if name not in own})

    def _are_of_player(self, arrays: model_files.Arrays) -> bool:
        if not arrays or not arrays.keys() <= self._own_arrays().keys():
            return bool(arrays)
        self._restore_own(arrays)
        return False

    def _restore_own(self, arrays: model_files.Arrays) -> None:
        own = {} if self._account is None else self._account.state()
        if not {*own, *(_ARRAYS if self._bound is not None else ())} <= arrays.keys():
            raise model_files.mismatch_error()
        if self._account is not None:
            self._account.restore({name: arrays[name] for name in own})
        if self._bound is not None:
            bound, unit = model_files.vectors(
                {name: arrays[name] for name in _ARRAYS}, bound=("f8", 6), bound_unit=("f8", 3)
            )
            self._bound.numbers, self._bound.unit.numbers = bound.copy(), unit.copy()

    def __repr__(self) -> str:
        return super().__repr__().replace("LimitedAuto", "Auto", 1)


class Ledger:
    """The limits of an agent whose decisions are counted once they are stored, such as that of a loop: decisions are drawn from
    a copy of its account, and counted and settled in the order in which the store has them."""

    def __init__(self, agent: LimitedAuto[Any]) -> None:
        self._agent = agent

    @property
    def account(self) -> Account | None:
        """The account of the budget, if there is one."""
        return self._agent._account

    @property
    def bound(self) -> KeptBound | None:
        """What is kept, if anything."""
        return self._agent._bound

    @property
    def has_most(self) -> bool:
        """Whether there is an upper bound of what a decision can cost, for any context."""
        agent = self._agent
        return agent._account is None or math.isfinite(
            agent._most_spent(agent.actions, dict.fromkeys(agent._spending.fields, 1.0))
        )

    def draw(
        self, account: Account | None, moment: Moment | None, key: int, context: Context, within: Any, *, levels: bool
    ) -> tuple[Decision[Any], Expectation, Booking | None]:
        """Draw the decision that a `key` seeds, at a moment, from an account that is like the agent's own."""
        agent = self._agent

        def draw(context: Context, within: Any, *, levels: bool) -> Decision[Any]:
            return agent.decide_again(key, context, within, levels=levels)

        if account is None:
            drawn = draw(context, within, levels=levels)
            return drawn, agent._expected(), None
        assert moment is not None
        agent._set_prices(account)
        try:
            return agent._draw_within(account, moment, context, within, draw, levels=levels)
        finally:
            agent._set_prices()

    def expect(self, context: Context, within: Any) -> Expectation:
        """What is expected of a decision."""
        return self._agent._expect(context, within)

    def book(self, number: int, moment: Moment | None, expected: Expectation, booking: Booking | None) -> None:
        """Count a decision that was drawn."""
        agent = self._agent
        if agent._account is not None:
            assert moment is not None
            agent._account.book(moment, expected, booking, number=number)
        if agent._bound is not None:
            agent._bound.decide(expected)
        agent._set_prices()

    def costs(self, action: float, context: Any, parts: Mapping[str, float]) -> tuple[float, float]:
        """What was spent and kept; raises InputError if the parts do not say it."""
        return self._agent._read_limits(context, Decision(action, 1.0), parts)

    def settle(self, number: int, action: float, context: Any, parts: Mapping[str, float]) -> None:
        """Count the outcome of a decision."""
        self._agent._settle(number, None, *self.costs(action, context, parts), warns=False)

    def set_amount(self, amount: float) -> None:
        """Change the amount of the budget."""
        formula, _, period = self._agent.spend_at_most
        self._agent.spend_at_most = (formula, amount, period)

    def take(self, other: Ledger) -> None:
        """Continue with the account and the bound of another agent, which this one replaces."""
        agent, before = self._agent, other._agent
        agent._account, agent._bound = before._account, before._bound
        agent._set_prices()


def _farthest(start: float, end: float, fits: Callable[[float], bool]) -> float:
    """The number between `start`, which fits, and `end` that is farthest from it and fits."""
    if fits(end):
        return end
    for _ in range(STEPS):
        middle = 0.5 * (start + end)
        start, end = (middle, end) if fits(middle) else (start, middle)
    return start


def _value(reader: PartsReader, action: Any, context: Any, parts: Mapping[str, Any]) -> float:
    return reader.value(action, context, {name: parts[name] for name in reader.outcome.parts if name in parts})


def _values(reader: PartsReader, decisions: Decisions[Any], contexts: Any, parts: Any) -> Floats:
    known = {name: parts[name] for name in reader.outcome.parts if name in parts}
    if not known:
        name = next(iter(reader.outcome.parts))
        raise InputError(f"parts must say {name!r}, which {reader.outcome.formula!r} needs.", "parts")
    return reader.values(decisions.actions, contexts, reader.table(known))
