"""Estimates and findings as tables for people and as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from manul.logs.log import Log
from manul.offpolicy.diagnosis.doctor import Finding
from manul.types import Estimate

_BATCH = 65_536


class Stored:
    """Logs in files as batches, read anew each time they are gone through: nothing is held.

    >>> list(Stored([]))
    []
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self.paths = paths

    def __iter__(self) -> Iterator[Log]:
        for path in self.paths:
            yield from Log.batches(path, _BATCH)  # type: ignore[attr-defined,unused-ignore]


def estimates_table(estimates: Sequence[Estimate]) -> str:
    """One line per estimate.

    >>> made = Estimate(0.25, 0.2, 0.3, effective_size=120.0, largest_weight=4.0, mean_weight=1.0, rows=1000)
    >>> print(estimates_table([made]))
    estimator   loss    low   high  interval        rows  worth  mean weight  largest
    snips      0.2500 0.2000 0.3000  95% bootstrap  1,000    120        1.000      4.0
    """
    header = "estimator   loss    low   high  interval        rows  worth  mean weight  largest"
    lines = [
        f"{each.estimator:<10} {each.value:.4f} {each.low:.4f} {each.high:.4f}  {100 * each.level:g}% {each.interval}  "
        f"{each.rows:,} {each.effective_size:>6,.0f} {each.mean_weight:>12.3f} {each.largest_weight:>8.1f}"
        for each in estimates
    ]
    return "\n".join([header, *lines])


def estimates_json(estimates: Sequence[Estimate]) -> str:
    """All fields of each estimate.

    >>> estimates_json([])
    '{"estimates": []}'
    """
    return json.dumps({"estimates": [asdict(each) for each in estimates]})


def fit(findings: Sequence[Finding]) -> bool:
    """Whether a log may be used: nothing that was found is an error.

    >>> fit([Finding("warning", "duplicated rows", "3 rows occur twice.")])
    True
    """
    return all(finding.severity != "error" for finding in findings)


def findings_text(findings: Sequence[Finding]) -> str:
    """One paragraph per finding, and what follows from them.

    >>> print(findings_text([]))
    Fit for off-policy work: nothing was found.
    """
    if not findings:
        return "Fit for off-policy work: nothing was found."
    verdict = "It can be used with care." if fit(findings) else "Not fit for off-policy work."
    return "\n".join([*map(str, findings), verdict])


def findings_json(findings: Sequence[Finding]) -> str:
    """Whether the log is fit, and all findings.

    >>> findings_json([])
    '{"fit": true, "findings": []}'
    """
    return json.dumps({"fit": fit(findings), "findings": [asdict(finding) for finding in findings]})
