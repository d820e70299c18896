"""Formats estimates and findings as text or JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from manul.actions.space import ActionSpace, several_knobs
from manul.contexts.schema import ContextSchema
from manul.errors import ParameterError
from manul.logs.log import Declares, Log
from manul.offpolicy.diagnosis.doctor import Finding
from manul.offpolicy.estimate import Estimate
from manul.offpolicy.evaluation.comparison_table import Comparison, ComparisonRow
from manul.outcomes import LOSSES, Outcome
from manul.utils.formulas import parse

if TYPE_CHECKING:
    from manul.offpolicy.optimization.verdict import Verdict

_BATCH = 65_536
_HEADER = ("estimator", "loss", "low", "high", "interval", "rows", "effective size", "mean weight", "largest weight")


class _Likeness(NamedTuple):
    """What a policy says of logs: not the range of numbers or of losses, which another policy may have had."""

    space: ActionSpace | None
    schema: ContextSchema
    outcome: Outcome

    @classmethod
    def of(cls, policy: Declares) -> _Likeness:
        return cls(several_knobs(policy), policy.schema, replace(policy.outcome, range="auto"))


class Stored:
    """Logs in files, read in batches each time they are iterated over; nothing is kept in memory.

    A `policy` that declares them says the types of contexts and the knobs that the files do not.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        knobs: ActionSpace | None = None,
        file_format: str | None = None,
        policy: object = None,
    ) -> None:
        self.paths, self.knobs, self.file_format = paths, knobs, file_format
        self.like = _Likeness.of(policy) if isinstance(policy, Declares) else None

    def __iter__(self) -> Iterator[Log]:
        for path in self.paths:
            yield from Log.batches(path, _BATCH, knobs=self.knobs, like=self.like, format=self.file_format)  # type: ignore[attr-defined,unused-ignore]


def priced(
    log: Iterable[Log], formula: str, losses: tuple[float, float] | None, rewards: tuple[float, float] | None
) -> Outcome:
    """The outcome of a log with another formula; a part of which the log does not know the kind is an amount.

    The range is that of `losses` or `rewards` if given, and otherwise that of the computed values.
    """
    first = next(iter(log))
    known = first.outcome
    kinds: dict[str, Any] = {name: known.parts.get(name, "amount") for name in first.parts or {}}
    used = parse(formula).names
    if not any(name in used for name in kinds):
        has = f"only {', '.join(kinds)}" if kinds else "none"
        raise ParameterError(f"formula {formula!r} uses no part of the log, which has {has}.", "formula")
    span = Outcome.of(losses=losses, rewards=rewards).range if losses or rewards else "auto"
    return replace(
        known, range=span, formula=formula, parts={name: kind for name, kind in kinds.items() if name in used}, hints={}
    )


def estimates_table(estimates: Sequence[Estimate]) -> str:
    """Format one line per estimate, and below them the objections."""
    outcome = estimates[0].outcome if estimates else LOSSES
    rows: list[tuple[str, ...]] = [tuple(outcome.keyword if name == "loss" else name for name in _HEADER)]
    for estimate in estimates:
        ends = (f"{number:.4f}" if estimate.usable else "unknown" for number in estimate.numbers)
        known = estimate.interval != "none"
        interval = f"{100 * estimate.level:g}% {estimate.interval}" if known else "none"
        weights = f"{estimate.effective_size:,.0f}", f"{estimate.mean_weight:.3f}", f"{estimate.largest_weight:.1f}"
        rows.append((estimate.estimator, *ends, interval, f"{estimate.rows:,}", *weights))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    aligned = [[f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)] for row in rows]
    objections = dict.fromkeys(str(objection) for estimate in estimates for objection in estimate.objections)
    better = [f"reward: the mean {outcome.name} of the policy; higher is better"] if outcome.higher else []
    return "\n".join(["  ".join(cells) for cells in aligned] + better + list(objections))


def estimates_json(estimates: Sequence[Estimate]) -> str:
    """Format all fields of each estimate as JSON, and `reward` if the log has rewards."""
    return json.dumps({"estimates": finite([plain(each) for each in estimates])})


def comparison_json(comparison: Comparison) -> str:
    """Format all fields of each row of a comparison as JSON."""
    rows = [
        plain(row) | {"verdict": row.verdict, "objections": [asdict(objection) for objection in row.objections]}
        for row in comparison
    ]
    return json.dumps({"level": comparison.level, "comparisons": finite(rows)})


def plain(result: Estimate | ComparisonRow | Verdict) -> dict[str, object]:
    """All fields of a result: those of losses, whether the log has `rewards`, and the `reward` if it has."""
    fields = asdict(result) if is_dataclass(result) else result._asdict()
    del fields["outcome"]
    reward = {} if result.reward is None else {"reward": result.reward._asdict()}
    return {**fields, "rewards": result.outcome.higher, **reward}


def finite(value: object) -> object:
    """The value with null for numbers that JSON does not have."""
    if isinstance(value, dict):
        return {name: finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def fit(findings: Sequence[Finding]) -> bool:
    """Return whether a log is suitable: no finding is an error."""
    return all(finding.severity != "error" for finding in findings)


def findings_text(findings: Sequence[Finding]) -> str:
    """Format one line per finding, and a verdict."""
    if not findings:
        return "No problems found: the log is suitable for off-policy evaluation."
    usable = "The log can be used with care." if fit(findings) else "The log is not suitable for off-policy evaluation."
    if all(finding.severity == "note" for finding in findings):
        usable = "No problems found: the log is suitable for off-policy evaluation."
    return "\n".join([*map(str, findings), usable])


def findings_json(findings: Sequence[Finding]) -> str:
    """Format the verdict and all findings as JSON."""
    return json.dumps({"fit": fit(findings), "findings": [asdict(finding) for finding in findings]})
