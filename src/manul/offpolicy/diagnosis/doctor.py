"""Checks whether a log is suitable for off-policy evaluation.

The main test is an identity: for any logging policy, 1 / (density * length of the range) averages 1 over all rows, and
within any part of the range it averages that part's share. Both sides are tested with bets (`intervals.Wealth`), which are
valid for any number of rows and for policies that learn while they log.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from manul.logs.batching import Logs, Rows, declared_ranges, pieces
from manul.offpolicy.diagnosis.symptoms import Drift, Duplicates, Outside, Symptom
from manul.offpolicy.evaluation import policy_densities
from manul.offpolicy.evaluation.intervals import ClopperPearson, Wealth
from manul.types import Floats, Policy, Within
from manul.utils.rewards import AnyRange
from manul.utils.validation import check_has_rows

SEVERITIES = ("error", "warning", "note")
BINS = 10  # parts of the range that are tested separately
FAILURE = 1e-4  # the probability of a false alarm, for each group of tests
FEW_ACTIONS = 100  # a piece with fewer distinct actions has discrete actions
SMALL, TINY = 100, 30  # effective sample sizes below which a warning and an error are due


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
    log: Logs, policy: Policy | None = None, *, actions: Within | None = None, losses: AnyRange | None = None
) -> list[Finding]:
    """List the problems of a log for off-policy evaluation, most severe first.

    The effective sample size is that of a uniform policy unless one is given.

    >>> import manul
    >>> log = manul.simulate(manul.Cats(leaves=16, bandwidth=1/8), manul.worlds.linear(rounds=5000)).log
    >>> doctor(log)
    []
    """
    declared, scale = declared_ranges(log, actions, losses)
    span = declared or (0.0, 1.0)
    outside, support, drift, duplicates = Outside(span, scale), _Support(), Drift(), Duplicates()
    sample, estimated = _Sample(policy), False
    for rows in pieces(log):
        estimated = estimated or rows.estimated
        good = outside.add(rows)
        support.add(good, span)
        sample.add(good, span)
        drift.add(rows)
        duplicates.add(rows)
    check_has_rows(outside.rows)
    symptoms = [*outside.findings(), *support.findings(span), *sample.findings()]
    symptoms += [*duplicates.findings(continuous=support.continuous), *drift.findings(FAILURE)]
    if estimated:
        symptoms.append(("note", "estimated densities", _ESTIMATED))
    return sorted((Finding(*symptom) for symptom in symptoms), key=lambda finding: SEVERITIES.index(finding.severity))


_ESTIMATED = "The densities were estimated, not logged. Estimates are only as good as the density model, and intervals ignore its error."


class _Mean:
    """Tests whether nonnegative values average 1."""

    def __init__(self) -> None:
        self.wealth, self.count, self.total = Wealth(), 0, 0.0

    def add(self, values: Floats, zeros: int = 0) -> None:
        self.wealth.add(values, zeros)
        self.count += len(values) + zeros
        self.total += float(values.sum())

    @property
    def mean(self) -> float:
        return self.total / self.count if self.count else 0.0

    def ends(self, largest: float, failure: float) -> Within:
        upper = ClopperPearson()
        upper.count, upper.total = self.count, self.total
        return self.wealth.lower(failure, largest), upper.ends(1 - 2 * failure, largest)[1]


class _Support:
    """Tests how much of the range the rows cover, as a whole and in each part."""

    def __init__(self) -> None:
        self.whole, self.bins = _Mean(), [_Mean() for _ in range(BINS)]
        self.largest, self.continuous = 1.0, True

    def add(self, rows: Rows, span: Within) -> None:
        if not len(rows.actions):
            return
        lows, highs = rows.ends(span)
        shares = 1 / (rows.densities * (highs - lows))
        bins = np.minimum(((rows.actions - lows) / (highs - lows) * BINS).astype(np.int64), BINS - 1)
        if not self.whole.count:
            self.continuous = len(np.unique(rows.actions)) > min(FEW_ACTIONS, len(rows.actions) // 2)
        self.largest = max(self.largest, float(shares.max()))
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
            f"The logged actions cover about {100 * self.whole.mean:.2g} % of the range, at most {100 * min(high, 1.0):.2g} %. The "
            "rest was never tried, or the densities are too large. Use an epsilon above 0 and log the mixture's density.",
        )


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


class _Sample:
    """Tests the effective sample size of a policy, or of the uniform one."""

    def __init__(self, policy: Policy | None) -> None:
        self.policy, self.total, self.squares, self.rows = policy, 0.0, 0.0, 0

    def add(self, rows: Rows, span: Within) -> None:
        lows, highs = rows.ends(span)
        densities = 1 / (highs - lows) if self.policy is None else policy_densities.densities(self.policy, rows)
        weights = densities / rows.densities
        self.rows += len(weights)
        self.total += float(weights.sum())
        self.squares += float((weights * weights).sum())

    def findings(self) -> list[Symptom]:
        size = self.total**2 / self.squares if self.squares else 0.0
        if size >= SMALL:
            return []
        name = "a uniform policy" if self.policy is None else "this policy"
        return [
            (
                "error" if size < TINY else "warning",
                "small effective sample",
                f"The effective sample size for {name} is {size:,.0f} of {self.rows:,} rows, and at least {SMALL} are needed. "
                "Log more rows, or use a larger epsilon.",
            )
        ]
