"""The state of the critic of Auto, with one knob or several."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from manul.actions.decision import Within
from manul.agents.budget_report import BudgetReport, KeepReport
from manul.outcomes import AnyRange, Outcome
from manul.utils.html_cards import card, curve
from manul.utils.validation import Floats

DOUBTED = 0.05  # a hint whose experts have less weight; those without it have about 0.01 at first
MEMBERS = ("deep", "shallow", "sharp", "scout")


@dataclass(frozen=True)
class Member:
    """One network of the ensemble: its recent error, in units of the loss, and its share in the prediction."""

    name: str
    error: float
    weight: float


@dataclass(frozen=True)
class FormulaReport:
    """How the formula of an outcome does: its `weight` in decisions, where predictions of the loss itself have the rest; how much
    of the variance of values reported beside the parts it has `explained`, None without any; and `doubts` in words."""

    weight: float
    explained: float | None
    doubts: tuple[str, ...]

    def __str__(self) -> str:
        said = "" if self.explained is None else f"; it explains the reported values: {self.explained:.2f}"
        return " ".join((f"formula: weight {self.weight:.2f}{said}.", *self.doubts))


@dataclass(frozen=True)
class Report:
    """The state of an Auto, to explain its decisions.

    `members` are the networks; `forest` is the weight of the correction by `trees` regression trees, from 0 to 1.
    `bandwidth`, in action units, is narrower where the predicted loss is steep; with several knobs it is None, and
    `bandwidth_share` is the share of each range instead. `noise` is the standard deviation of the loss around the
    prediction. `epsilon` is the share of uniform exploration in the next decision. `alarms` counts the detected changes
    of the world: `last_alarm` is the round of the last one, and `memory` the number of rounds since. `clipped` counts
    the outliers among losses without a stated range, which were clipped. `early` is the share in the prediction of the
    models for the first rounds, and `constant` the share of the best constant action in the rest. `prior` is the share of a
    prior in the prediction, None without one and after evidence has dropped it. `actions` and `losses` are the predicted
    loss curve of one context, if given. `formula` is about an outcome whose parts are predicted, `budget` and `kept` are about
    limits in expectation.
    """

    members: tuple[Member, ...]
    forest: float
    trees: int
    bandwidth: float | None
    noise: float
    epsilon: float
    rounds: int
    memory: int
    alarms: int
    last_alarm: int | None
    clipped: int = 0
    actions: Floats | None = None
    losses: Floats | None = None
    bandwidth_share: float | None = None
    formula: FormulaReport | None = None
    early: float = 0.0
    constant: float = 0.0
    prior: float | None = None
    budget: BudgetReport | None = None
    kept: KeepReport | None = None

    def _repr_html_(self) -> str:
        whole = {
            "bandwidth": self.bandwidth,
            "share of each range": self.bandwidth_share,
            "share of the prior": self.prior,
        }
        rows: list[tuple[str, object]] = [("rounds", f"{self.rounds:,}"), ("memory", f"{self.memory:,} rounds")]
        rows += [("noise", self.noise), ("epsilon", self.epsilon), ("changes detected", self.alarms)]
        rows += [(name, value) for name, value in whole.items() if value is not None]
        notes = [each for each in (self.formula, self.budget, self.kept) if each is not None]
        drawn = None if self.actions is None or self.losses is None else curve(self.actions, self.losses)
        return card("Report", rows, "" if drawn is None else f"<div>predicted losses</div>{drawn}", notes)


def loss_unit(losses: AnyRange) -> Within:
    """The losses that the core calls 0 and 1."""
    return (0.0, 1.0) if isinstance(losses, str) else losses


def formula_report(state: Mapping[str, Any], outcome: Outcome) -> FormulaReport | None:
    """The report of the formula in a critic's state in the core; None if it predicts no parts."""
    if not state["hints"]:
        return None
    doubts = [
        f"The hint that {part!r} {outcome.hints[part]} with the action seems wrong: predictions without it are better."
        for part, weight in zip(outcome.modelled, state["hints"], strict=True)
        if part in outcome.hints and weight < DOUBTED
    ]
    explained = state["explained"] if state["reported"] else None
    if state["formula"] == 0 and explained is not None:
        doubts.append(f"The formula explains the {outcome.plural} badly: {explained:.2f} of their variance.")
    return FormulaReport(state["formula"], explained, tuple(doubts))


def critic_report(state: Mapping[str, Any], unit: Within, epsilon: float, **curve: Any) -> Report:
    """The report of a critic's state in the core; `unit` are the losses that the core calls 0 and 1."""
    span = unit[1] - unit[0]
    errors = [error * span for error in state["errors"]]
    return Report(
        members=tuple(map(Member, MEMBERS, errors, state["weights"])),
        forest=state["forest"],
        trees=int(state["trees"]),
        bandwidth=state["bandwidth"],
        noise=state["noise"] * span,
        epsilon=epsilon,
        rounds=int(state["rounds"]),
        memory=int(state["memory"]),
        alarms=int(state["alarms"]),
        last_alarm=int(state["last_alarm"]) or None,
        clipped=int(state["clipped"]),
        early=state["early"],
        constant=state["constant"],
        prior=None if math.isnan(state["prior"]) else state["prior"],
        **curve,
    )
