"""Prints an inspection as text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from manul.agents.critic_report import Report
    from manul.inspection.inspect import Feature, Inspection, PolicyInContext, Route

FEATURES_SHOWN = 15


def text(inspection: Inspection) -> str:
    """Format the settings, the features, the model of Auto and the policy in each context.

    >>> from manul.inspection.inspect import Feature, Inspection
    >>> print(text(Inspection("Cats", {"leaves": 8}, 2, 1, 512, (Feature("age", 0.5, 0.0),), None, ())))
    Cats
      leaves          8
      decisions       2
      rounds learned  1
      memory          0.5 KiB
    <BLANKLINE>
    features by weight (numeric features: per standard deviation)
      age  +0.5000  raises the action
    """
    parts = [_settings_text(inspection), _features_text(inspection.features), _report_text(inspection.report)]
    return "\n\n".join(part for part in (*parts, *map(_policy_text, inspection.played)) if part)


def _settings_text(inspection: Inspection) -> str:
    rows = list(_setting_rows(inspection.parameters))
    counts = (("decisions", inspection.decisions), ("rounds learned", inspection.rounds))
    rows += [(name, f"{count:,}") for name, count in counts if count is not None]
    return "\n".join([inspection.kind, *_table([*rows, ("memory", f"{inspection.memory / 1024:,.1f} KiB")])])


def _setting_rows(parameters: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in parameters.items():
        if name == "agent" and isinstance(value, dict):
            yield name, value["kind"]
            yield from _setting_rows({key: setting for key, setting in value.items() if key != "kind"})
        elif name == "features" and isinstance(value, dict) and value.get("name") == "Columns":
            yield name, ", ".join(column["name"] for column in value["columns"])
        elif value is not None:
            yield name, _format(value)


def _features_text(features: Sequence[Feature]) -> str:
    if not features:
        return ""
    few = f", the strongest {FEATURES_SHOWN} of {len(features):,}" if len(features) > FEATURES_SHOWN else ""
    rows = [(feature.name, f"{feature.weight:+.4f}", feature.meaning) for feature in features[:FEATURES_SHOWN]]
    return "\n".join([f"features by weight{few} (numeric features: per standard deviation)", *_table(rows)])


def _report_text(report: Report | None) -> str:
    if report is None:
        return ""
    rows = [(member.name, f"error {member.error:.4f}", f"weight {member.weight:.3f}") for member in report.members]
    rows += [(f"{report.trees} trees", "correction", f"weight {report.forest:.3f}")]
    facts = [("bandwidth", f"{report.bandwidth:g}"), ("noise", f"{report.noise:.4f}")]
    facts += [("clipped losses", f"{report.clipped:,}")] if report.clipped else []
    facts += [("epsilon", f"{report.epsilon:.4g}")]
    facts += [("rounds since drift", f"{report.memory:,}"), ("drift alarms", f"{report.alarms}")]
    return "\n".join(["model of the loss", *_table(facts), *_table(rows)])


def _policy_text(policy: PolicyInContext) -> str:
    low, high = policy.window
    rows = [("window", f"{low:g} to {high:g}"), ("density", f"{policy.density:g}")]
    rows.append(("mean action", f"{policy.distribution.mean():g}"))
    lines = [f"context {json.dumps(policy.context, ensure_ascii=False)}", *_table(rows)]
    if policy.route is not None:
        lines += ["", "path through the tree", *_table(_route_rows(policy.route))]
        lines.append(f"  leaf {policy.route.leaf} of {policy.route.leaves:,}, centre {policy.route.action:g}")
    if policy.curve is not None:
        lines += ["", "predicted loss", *_table(_curve_rows(policy.curve))]
    return "\n".join(lines)


def _route_rows(route: Route) -> Iterator[tuple[str, ...]]:
    yield "node", "margin", "side"
    for step in route.steps:
        yield str(step.node), f"{step.margin:+.4f}", step.side + (" (forced)" if step.forced else "")


def _curve_rows(curve: Sequence[tuple[float, float]]) -> Iterator[tuple[str, ...]]:
    best = min(range(len(curve)), key=lambda number: curve[number][1])
    yield "action", "loss"
    for number in sorted({*range(len(curve) // 16, len(curve), len(curve) // 8), best}):
        action, loss = curve[number]
        yield f"{action:g}", f"{loss:.4f}", "lowest" if number == best else ""


def _format(value: object) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else str(value)


def _table(rows: Iterable[Sequence[str]]) -> list[str]:
    cells = list(rows)
    widths = [max(len(row[column]) for row in cells if column < len(row)) for column in range(max(map(len, cells)))]
    return [
        "  " + "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False)).rstrip() for row in cells
    ]
