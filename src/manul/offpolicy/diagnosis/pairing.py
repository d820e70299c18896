"""Do context, action and loss of a row belong together? Losses that were shifted by a row, contexts and losses that were shuffled.

Losses are predicted from the decision of their own row and from those of the rows before and after, by models of other rows. In a
correct log no other decision says more about a loss than its own, whatever the policy did and however rows depend on each other.
"""

from __future__ import annotations

import numpy as np

from manul.offpolicy.diagnosis.latest_rows import LatestRows
from manul.offpolicy.diagnosis.smooth_regression import Numbers, SmoothRegression, z_score
from manul.offpolicy.diagnosis.symptoms import Symptom
from manul.utils.validation import Floats

LEAST_ROWS = 200  # fewer show nothing
LEAST_OTHERS = 50  # losses that differ from the most common one: fewer are so rare that chance looks like an effect
NO_SIGN_ROWS = 1000  # with fewer, effects that matter may not show
CERTAIN = (
    5.0  # standard errors; a false alarm is rarer than 1 in a million if errors are normal, and they are not quite
)
A_SIGN, NO_SIGN = 2.0, 1.5  # standard errors
LARGE_GAIN = 0.01  # of the variance of the losses: smaller effects are harmless
_TIMES, _BINS = 8, 64  # parts of the log and of the range
_GREEDY = 2.0  # times the density of a uniform policy: more in half of the range is impossible
_WIDE = 0.15  # of the range: if preferred actions vary less, contexts hardly matter to the policy
_MUCH = 3.0  # times the probability that a single distribution of actions can have


def find_wrong_pairs(rows: LatestRows) -> list[Symptom]:
    """Losses that belong to the row before or after; contexts and losses that nothing goes along with."""
    if len(rows) < LEAST_ROWS or _other_losses(rows) < LEAST_OTHERS:
        return []
    errors = _Errors(rows)
    shifted = _shifted(rows, errors)
    if shifted:
        return shifted
    return [*_foreign_contexts(rows, errors), *_unexplained(rows, errors)]


def _other_losses(rows: LatestRows) -> int:
    """The rows with another loss than the most common one."""
    return len(rows) - int(np.unique(rows.losses, return_counts=True)[1].max())


class _Errors:
    """The errors of predictions of each loss, except for the first and last, from the decision or the context of a row nearby."""

    def __init__(self, rows: LatestRows) -> None:
        self.numbers, self.ranks = np.arange(1, len(rows) - 1), rows.ranks[1:-1]
        self.decision, self.context = SmoothRegression(rows.decisions), SmoothRegression(rows.columns)
        self.own = self.of_decision(0)

    def of_decision(self, offset: int) -> Floats:
        return _errors(self.decision, self.numbers + offset, self.ranks)

    def gain(self, offset: int) -> Floats:
        """By how much the action of a row improves a prediction from its context; contexts may contain the loss of the row before.

        A model of contexts that is worse than the mean loss, by chance, makes no action informative.
        """
        context = _errors(self.context, self.numbers + offset, self.ranks)
        nothing: Floats = self.ranks**2
        decision = self.own if offset == 0 else self.of_decision(offset)
        return (context if context.mean() < nothing.mean() else nothing) - decision


def _errors(model: SmoothRegression, numbers: Numbers, targets: Floats) -> Floats:
    errors: Floats = (targets - model.held_out_predictions(numbers, targets)) ** 2
    return errors


def _shifted(rows: LatestRows, errors: _Errors) -> list[Symptom]:
    own, outcome = errors.gain(0), rows.outcome
    for offset, where in ((-1, "before"), (1, "after")):
        gain = errors.gain(offset)
        if gain.mean() > LARGE_GAIN and z_score(gain - own) > CERTAIN:
            text = f"The {outcome.plural} depend on the action of the row {where} them more than on that of their own row. "
            other = "" if offset > 0 else f", or an action changes the {outcome.name} of the next decision"
            advice = f"They are shifted by one row{other}. Join decisions and {outcome.plural} again, by id."
            return [("error", f"shifted {outcome.plural}", text + advice)]
    return []


def _foreign_contexts(rows: LatestRows, errors: _Errors) -> list[Symptom]:
    """The policy chose by something, and the contexts explain neither its actions nor the losses."""
    if len(rows) < NO_SIGN_ROWS or not (rows.continuous and rows.columns.shape[1] and _chooses_by_context(rows)):
        return []
    if z_score(_explained_actions(rows, errors.context)) > A_SIGN:
        return []
    without = SmoothRegression(np.column_stack([rows.positions, np.log(rows.densities)]))
    if z_score(_errors(without, errors.numbers, errors.ranks) - errors.own) > A_SIGN:
        return []
    outcome = rows.outcome
    text = f"The logged policy prefers other actions in other rows, but the contexts explain neither them nor the {outcome.plural}. "
    advice = "Either the contexts belong to other rows, or the policy used something that the log lacks. Join contexts and decisions again."
    return [("warning", "contexts do not explain the actions", text + advice)]


def _explained_actions(rows: LatestRows, model: SmoothRegression) -> Floats:
    """How much of each action its context explains, by the neighbouring rows, because a policy that learns changes."""
    gains = []
    for part in np.array_split(np.arange(len(rows)), _TIMES):
        position = rows.positions[part, 0] - rows.positions[part, 0].mean()
        gains.append(position**2 - (position - model.held_out_predictions(part, position, blocks=len(part))) ** 2)
    return np.concatenate(gains)


def _chooses_by_context(rows: LatestRows) -> bool:
    """Whether rows of the same time prefer so many actions that no single distribution of actions can have all those densities."""
    totals, spreads = [], []
    for part in np.array_split(np.arange(len(rows)), _TIMES):
        part = part[rows.densities[part] >= _GREEDY]
        bins = np.minimum((rows.positions[part, 0] * _BINS).astype(np.int64), _BINS - 1)
        counts = np.bincount(bins, minlength=_BINS)
        sums = np.bincount(bins, rows.densities[part], _BINS)
        totals.append(float((sums / np.maximum(counts, 1)).sum()) / _BINS)
        spreads.append(float(rows.positions[part, 0].std()) if len(part) else 0.0)
    return float(np.median(totals)) > _MUCH and float(np.median(spreads)) > _WIDE


def _unexplained(rows: LatestRows, errors: _Errors) -> list[Symptom]:
    """A note: shuffled losses look like those of a world in which nothing matters, where it is harmless."""
    several = rows.positions.shape[1] > 1  # effects of many knobs are too small to be seen, and no sign says nothing
    if several or len(rows) < NO_SIGN_ROWS or z_score(errors.ranks**2 - errors.own) > NO_SIGN:
        return []
    losses = rows.without_trend(rows.losses)[1:-1]
    if z_score(losses**2 - _errors(errors.decision, errors.numbers, losses)) > NO_SIGN:
        return []
    outcome = rows.outcome
    text = (
        f"No effect of the contexts or the actions on the {outcome.plural} was found in the last {len(rows):,} rows. "
    )
    advice = f"If you expect one, check that each {outcome.name} is in the row of its decision; otherwise all is well."
    return [("note", f"unexplained {outcome.plural}", text + advice)]
