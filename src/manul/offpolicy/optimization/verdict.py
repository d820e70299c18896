"""What a log says about the chosen policy against the logged one: proven, likely, or not shown."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Literal, NamedTuple

import numpy as np

from manul.actions.decision import Within
from manul.agents.rollout.rollout_plan import RolloutPlan
from manul.agents.rollout.sample_size import decisions_needed
from manul.logs.rows import Rows
from manul.offpolicy.estimate import Objection
from manul.offpolicy.evaluation.empirical_likelihood import UNKNOWN_BOUND
from manul.offpolicy.evaluation.exact_mass import ExactMass
from manul.offpolicy.evaluation.gain import Gain
from manul.offpolicy.evaluation.intervals import NONE, Terms
from manul.offpolicy.evaluation.objections import ENOUGH, Evidence
from manul.offpolicy.evaluation.paired_values import PairedValue
from manul.offpolicy.evaluation.weight_bounds import LARGEST_BOUND
from manul.offpolicy.optimization.critic_candidates import WindowTerms
from manul.outcomes import LOSSES, Outcome
from manul.utils.html_cards import card
from manul.utils.validation import Floats

LEVEL, ERROR = 0.95, 0.05
TRY = "Try it on a share of the decisions to find out"
MOST_DECISIONS = 1e9  # a rollout that takes longer is no advice


class VerdictRewards(NamedTuple):
    """The estimated mean reward of a policy, of the logged one, and of its greedy part, each with its standard error."""

    value: tuple[float, float]
    logged: tuple[float, float]
    greedy: tuple[float, float] | None


@dataclass(frozen=True)
class Verdict:
    """The gain of the chosen policy over the logged one: positive is better.

    `value` is the estimated loss of the policy, `logged` the mean logged loss, and `greedy` that of the logged policy
    without its uniform exploration, which needs floors in the log; each comes with its standard error. `low` and `high`
    are the 95 % interval of the gain by empirical likelihood, which says what is proven; if the log keeps what its actions
    were drawn from, it is `exact`, and each end has 95 % on its own. `gain` and `error` are doubly robust, and say what is
    likely. The policy is one of several `choices`, which share the 5 %: the best of many looks better than it is. Of the
    `rows`, `effective_size` match the decisions of the policy; nothing is shown unless the verdict is `supported` by enough
    of them, or proven by an `exact` interval. Nothing is shown if one of the `objections` is an error, and nothing is proven
    if the densities of the log are `estimated`. With several knobs, the gain is often that of a model, which the log cannot
    confirm; `error`, `low` and `high` are then NaN. `rollout` is about how many decisions a rollout with the usual settings
    takes, if the gain is the estimated one; None if it would not succeed, or the log cannot tell. If the `outcome` is a
    reward, `value`, `logged` and `greedy` are negative rewards all the same, and `reward` has the rewards.
    """

    value: tuple[float, float]
    gain: float
    error: float
    low: float
    high: float
    logged: tuple[float, float]
    greedy: tuple[float, float] | None
    rows: int
    effective_size: float
    supported: bool
    choices: int = 1
    objections: tuple[Objection, ...] = ()
    estimated: bool = False
    outcome: Outcome = LOSSES
    exact: bool = False
    rollout: float | None = None

    @property
    def reward(self) -> VerdictRewards | None:
        """The mean rewards of the policy and of the logged one; None if the log has losses."""
        if not self.outcome.higher:
            return None
        shown = self.outcome.from_loss
        greedy = None if self.greedy is None else (shown(self.greedy[0]), self.greedy[1])
        return VerdictRewards((shown(self.value[0]), self.value[1]), (shown(self.logged[0]), self.logged[1]), greedy)

    @property
    def status(self) -> Literal["proven", "likely", "not shown", "rests on a model"]:
        """What the log shows of the gain."""
        if self._errors:
            return "not shown"
        if self.rests_on_model:
            return "rests on a model"
        if not self.supported and not (self.exact and self.low > 0):
            return "not shown"
        if self.low > 0 and not self.estimated:
            return "proven"
        return "likely" if self.gain > self._margin else "not shown"

    @property
    def rests_on_model(self) -> bool:
        """Whether the gain is that of a model, because the log has too few decisions like those of the policy."""
        return math.isnan(self.error)

    @property
    def usable(self) -> bool:
        """Whether no objection is an error."""
        return not self._errors

    @property
    def _errors(self) -> list[str]:
        return [objection.sentence for objection in self.objections if objection.severity == "error"]

    @property
    def _margin(self) -> float:
        """How far the true gain may be from the estimate, with 95 % confidence for all choices together."""
        return NormalDist().inv_cdf(1 - (1 - LEVEL) / (2 * self.choices)) * self.error

    @property
    def _matching(self) -> str:
        return f"{self.effective_size:,.0f} of {self.rows:,} decisions match those of the policy"

    def _repr_html_(self) -> str:
        return card("Verdict", [("status", self.status)], notes=[self])

    def __str__(self) -> str:
        if self._errors:
            return f"This log cannot show a gain over the logged policy. {' '.join(self._errors)}"
        if self.rests_on_model:
            advice = f"The log cannot confirm it: {self._too_few} "
            advice += self._trial if self.gain > 0 else "Keep the logged policy, or log more decisions."
            return f"Expected gain over the logged policy: {self.gain:.3g}, by a model. {advice}"
        expected = f"Expected gain over the logged policy: {self.gain:.3g} ± {self._margin:.2g}"
        if not self.supported and self.status != "proven":
            return (
                f"This log cannot tell whether the policy is better than the logged one: {self._too_few} {self._trial}"
            )
        if self.status == "proven":
            return f"{expected}; proven by this log: at least {self.low:.2g}, with 95 % confidence. {self._matching}."
        shown = "likely" if self.status == "likely" else "not shown by this log"
        if self.estimated:
            return f"{expected}; {shown}. The densities of this log were estimated, so nothing is proven. {self._matching}."
        if self.status == "likely":
            shown = "likely, but not proven by this log"
        return f"{expected}; {shown}. {self._matching}. {self._trial}"

    @property
    def _trial(self) -> str:
        """What to do if the log does not prove the gain: a rollout, and how long it would take."""
        if self.rollout is None:
            return f"{TRY}."
        digits = 10 ** max(math.floor(math.log10(self.rollout)) - 1, 0)
        return (
            f"{TRY}: with such a gain, a rollout takes about {math.ceil(self.rollout / digits) * digits:,} decisions."
        )

    @property
    def _too_few(self) -> str:
        if self.effective_size < ENOUGH:
            return f"{self._matching}, and {ENOUGH:g} are needed."
        return f"{self._matching}, but the log misses many others that the policy would make."


class VerdictSums:
    """Sums over the rows of a log, from which a verdict is computed; weights above `cap` are capped in the value.

    `choices` is the number of candidates from which the policy was chosen, and `error` the chance that an exact end is wrong, by
    default an equal share of the 5 %.
    """

    def __init__(self, losses: Within, cap: float, choices: int = 1, error: float | None = None) -> None:
        self._losses, self._cap, self._choices, self._error = losses, cap, choices, error or ERROR / choices
        self._value, self._greedy, self._gain = PairedValue(), PairedValue(), Gain()
        self._evidence, self._floors_known = Evidence(), True
        self._judged: float | None = None
        self._exact: ExactMass | None = ExactMass("logged")

    def add(self, rows: Rows, terms: WindowTerms) -> None:
        """Add held-out rows with the weights, windows and predictions of the policy."""
        losses, weights = rows.shares, terms.weights
        self._value.add(np.minimum(weights, self._cap), losses, terms.predicted, terms.expected)
        self._gain.add(weights, losses, self._bound(rows, weights, terms.halves))
        self._evidence.add(rows, Terms(weights * losses, weights, weights, losses))
        if terms.judged is not None:
            self._judged = (self._judged or 0.0) + float(terms.judged.sum())
        if terms.exact is None:
            self._exact = None
        elif self._exact is not None:
            self._exact.add(losses, terms.exact)
        greedy = greedy_weights(rows)
        self._floors_known = self._floors_known and greedy is not None
        if greedy is not None:
            self._greedy.add(greedy, losses)

    def verdict(self) -> Verdict:
        """The verdict, in units of the loss."""
        least, most = self._interval()
        proven = self._exact is not None and most < 0
        if self._judged is not None and not self._evidence.supported and not proven:
            return self._model_verdict(self._judged / self._evidence.rows)
        low, high = self._losses
        unit, interval = high - low, "empirical-likelihood" if self._exact is None else "exact-mass"
        greedy = self._greedy if self._floors_known and self._greedy.mean_weight > 0 else None
        every = self._evidence.objections(self._gain.above + 1, interval, (least, most))
        return Verdict(
            value=(low + unit * self._value.value, unit * self._value.error),
            gain=self._value.gain * unit,
            error=self._value.gain_error * unit,
            low=-most * unit,
            high=-least * unit,
            logged=(low + unit * self._value.logged, unit * self._value.logged_error),
            greedy=None if greedy is None else (low + unit * greedy.value, unit * greedy.error),
            objections=every,
            exact=self._exact is not None,
            rollout=self._rollout(self._value.gain) if self._evidence.supported else None,
            **self._support,
        )

    def _rollout(self, gain: float) -> float | None:
        deviation = self._value.logged_error * math.sqrt(self._evidence.rows)
        decisions = decisions_needed(RolloutPlan(), self._value.logged, gain, deviation)
        return decisions if decisions < MOST_DECISIONS else None

    def _interval(self) -> Within:
        """The interval of the loss of the policy minus that of the logged one; the choices share the error.

        Proven is one-sided: an exact interval leaves the whole error to each end.
        """
        if self._exact is not None:
            return self._exact.ends(1 - 2 * self._error)
        return self._gain.interval(1 - (1 - LEVEL) / self._choices)

    @property
    def _support(self) -> dict[str, Any]:
        evidence = self._evidence
        return {
            "rows": evidence.rows,
            "effective_size": evidence.effective_size,
            "supported": evidence.supported,
            "choices": self._choices,
        }

    def _model_verdict(self, judged: float) -> Verdict:
        (low, high), nothing = self._losses, math.nan
        unit, every = high - low, self._evidence.objections(1.0, NONE, (nothing, nothing), has_model=True)
        return Verdict(
            value=(low + unit * judged, nothing),
            gain=(self._value.logged - judged) * unit,
            error=nothing,
            low=nothing,
            high=nothing,
            logged=(low + unit * self._value.logged, unit * self._value.logged_error),
            greedy=None,
            objections=every,
            rollout=self._rollout(self._value.logged - judged),
            **self._support,
        )

    def _bound(self, rows: Rows, weights: Floats, halves: Floats) -> float:
        known = rows.floors if rows.space.is_number else None
        floors = np.zeros(len(weights)) if known is None else np.nan_to_num(known)
        floors = np.where(floors > 0, np.maximum(floors, 0.5 / (halves * LARGEST_BOUND)), 0.0)
        bounds = np.divide(0.5 / halves, floors, out=np.full(len(weights), UNKNOWN_BOUND), where=floors > 0)
        return max(min(float(bounds.max()), LARGEST_BOUND), float(weights.max()))


def greedy_weights(rows: Rows) -> Floats | None:
    """The importance weights of the logged policy without its uniform exploration; None if a floor is not known.

    The logged density is floor + (1 - epsilon) greedy density, with epsilon = floor times the length of the range.
    """
    if rows.floors is None or not rows.space.is_number or np.isnan(rows.floors).any():
        return None
    lows, highs = rows.ends()
    greedy = 1.0 - rows.floors * (highs - lows)
    explained = (rows.densities - rows.floors) / rows.densities
    return np.divide(explained, greedy, out=np.zeros(len(greedy)), where=greedy > 1e-9)
