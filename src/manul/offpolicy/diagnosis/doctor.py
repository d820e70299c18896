"""Checks whether a log is suitable for off-policy evaluation.

The main test is an identity: for any logging policy, 1 / (density * length of the range) averages 1 over all rows, and
within any part of the range it averages that part's share. Both sides are tested with bets (`intervals.Wealth`), which are
valid for any number of rows and for policies that learn while they log.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from manul.logs.batching import Logs, Rows, declared_ranges, pieces
from manul.offpolicy.diagnosis.bookkeeping import Bookkeeping
from manul.offpolicy.diagnosis.filled_losses import FilledEnd
from manul.offpolicy.diagnosis.leaks import Leaks
from manul.offpolicy.diagnosis.policy_weights import EffectiveSize, MeanTest, PolicyWeights
from manul.offpolicy.diagnosis.symptoms import Drift, Duplicates, Outside, Symptom
from manul.offpolicy.evaluation.progress_bar import with_progress
from manul.types import Floats, Policy, Within
from manul.utils.rewards import AnyRange
from manul.utils.validation import check_has_rows

SEVERITIES = ("error", "warning", "note")
BINS = 10  # parts of the range that are tested separately
FAILURE = 1e-4  # the probability of a false alarm, for each group of tests
FEW_ACTIONS = 100  # a piece with fewer distinct actions has discrete actions


@dataclass(frozen=True)
class Finding:
    """A problem with a log; a log with an `error` must not be used.

    >>> print(Finding("warning", "duplicated rows", "3 rows occur twice."))
    warning: duplicated rows. 3 rows occur twice.
    """

    severity: str
    title: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.severity}: {self.title}. {self.sentence}"


def doctor(
    log: Logs,
    policy: Policy | None = None,
    *,
    actions: Within | None = None,
    losses: AnyRange | None = None,
    progress: bool = False,
) -> list[Finding]:
    """List the problems of a log for off-policy evaluation, most severe first, in one pass and constant memory.

    With a policy, its importance weights are tested: their mean, their effective sample size and the largest. Without
    one, a note says how many rows explored if they are few, as in logs of agents whose epsilon fades.

    >>> import manul
    >>> log = manul.simulate(manul.Cats(leaves=16, bandwidth=1/8), manul.worlds.linear(rounds=5000)).log
    >>> doctor(log)
    []
    """
    declared, scale = declared_ranges(log, actions, losses)
    span = declared or (0.0, 1.0)
    outside, support, drift, duplicates = Outside(span, scale), _Support(), Drift(), Duplicates()
    book, leaks, end, estimated = Bookkeeping(), Leaks(), FilledEnd(), False
    weights = None if policy is None else PolicyWeights(policy)
    for rows in with_progress(pieces(book.read(log)), log, progress=progress):
        estimated = estimated or rows.estimated
        good = outside.add(rows)
        support.add(good, span)
        leaks.add(good, span, continuous=support.continuous)
        if weights is not None:
            weights.add(good)
        drift.add(rows)
        duplicates.add(rows)
        end.add(rows)
    check_has_rows(outside.rows)
    symptoms = support.findings(span)
    wrong = any(title == "wrong densities" for _, title, _ in symptoms)
    symptoms += [*outside.findings(), *leaks.findings(wrong_densities=wrong), *book.findings(), *end.findings()]
    symptoms += [*duplicates.findings(continuous=support.continuous), *drift.findings(FAILURE)]
    symptoms += support.size.findings() if weights is None else weights.findings(FAILURE)
    if estimated:
        symptoms.append(("note", "estimated densities", _ESTIMATED))
    return sorted((Finding(*symptom) for symptom in symptoms), key=lambda finding: SEVERITIES.index(finding.severity))


_ESTIMATED = "The densities were estimated, not logged. Estimates are only as good as the density model, and intervals ignore its error."


class _Support:
    """Tests how much of the range the rows cover, as a whole and in each part."""

    def __init__(self) -> None:
        self.whole, self.bins = MeanTest(), [MeanTest() for _ in range(BINS)]
        self.size, self.largest, self.continuous = EffectiveSize(), 1.0, True

    def add(self, rows: Rows, span: Within) -> None:
        if not len(rows.actions):
            return
        lows, highs = rows.ends(span)
        shares = 1 / (rows.densities * (highs - lows))
        bins = np.minimum(((rows.actions - lows) / (highs - lows) * BINS).astype(np.int64), BINS - 1)
        if not self.whole.count:
            self.continuous = len(np.unique(rows.actions)) > min(FEW_ACTIONS, len(rows.actions) // 2)
        self.largest = max(self.largest, float(shares.max()), _largest_share(rows, highs - lows))
        self.size.add(shares)
        self.whole.add(shares)
        for index, part in enumerate(self.bins):
            inside = shares[bins == index] * BINS
            part.add(inside, zeros=len(shares) - len(inside))

    def findings(self, span: Within) -> list[Symptom]:
        failure = FAILURE / (2 * (BINS + 1))
        low, high = self.whole.ends(self.largest, failure)
        ends = [part.ends(self.largest * BINS, failure) for part in self.bins] if self.continuous else []
        thick, thin = (
            [i for i, (low, _) in enumerate(ends) if low > 1],
            [i for i, (_, high) in enumerate(ends) if high < 1],
        )
        symptoms = []
        if low > 1 or thick:
            symptoms.append(self._wrong_densities(low, thick, span))
        if len(thin) > BINS / 2 or (high < 1 and not thin):
            symptoms.append(self._missing_exploration(high))
        elif thin:
            symptoms.append(_missing_support(thin, span))
        return symptoms

    def _wrong_densities(self, low: float, thick: list[int], span: Within) -> Symptom:
        part = "" if low > 1 else f" for actions {_ranges(thick, span)}"
        worst = self.whole.mean if low > 1 else max(self.bins[index].mean for index in thick)
        return (
            "error",
            "wrong densities",
            f"The mean of 1 / (density * length of the range) must be 1, but is {worst:.3g}{part}, more than chance explains. "
            "Estimates would be wrong by about that factor. Log the density of the whole mixture: an explored action "
            "inside the greedy window has the density of both parts.",
        )

    def _missing_exploration(self, high: float) -> Symptom:
        return (
            "error",
            "missing exploration",
            f"The logged actions cover about {100 * self.whole.mean:.3g} % of the range, at most {100 * min(high, 1.0):.3g} %. The "
            "rest was never tried, or the densities are too large. Use an epsilon above 0 and log the mixture's density.",
        )


def _largest_share(rows: Rows, spans: Floats) -> float:
    """The largest 1 / (density * length) that the logged policy could have given, if the log has its floors."""
    if rows.floors is None:
        return 0.0
    floors = rows.floors * spans
    explored = floors[floors > 0]
    return float(1 / explored.min()) if len(explored) else 0.0


def _missing_support(thin: list[int], span: Within) -> Symptom:
    return (
        "error",
        "actions with no support",
        f"Actions {_ranges(thin, span)} are much rarer than the logged densities imply, so policies that choose them "
        "cannot be evaluated. Declare the explored range with actions=(low, high).",
    )


def _ranges(bins: list[int], span: Within) -> str:
    step = (span[1] - span[0]) / BINS
    starts = [index for index in bins if index - 1 not in bins]
    stops = [index for index in bins if index + 1 not in bins]
    ends = zip(starts, stops, strict=True)
    return ", ".join(f"{span[0] + first * step:g} to {span[0] + (last + 1) * step:g}" for first, last in ends)
