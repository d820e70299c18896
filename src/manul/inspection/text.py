"""An inspection as a page of text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from manul.agents.auto import Report
    from manul.inspection.inspect import Feature, Inspection, Played, Route

SHOWN = 15


def text(found: Inspection) -> str:
    """The settings, the features, the beliefs and what is played, one after the other.

    >>> from manul.inspection.inspect import Feature, Inspection
    >>> print(text(Inspection("Cats", {"leaves": 8}, 2, 1, 512, (Feature("age", 0.5, 0.0),), None, ())))
    Cats
      leaves          8
      decisions       2
      rounds learned  1
      memory          0.5 KiB
    <BLANKLINE>
    features by weight (numbers: per standard deviation)
      age  +0.5000  pushes towards larger actions
    """
    parts = [_settings_text(found), _features_text(found.features), _report_text(found.report)]
    return "\n\n".join(part for part in (*parts, *map(_played_text, found.played)) if part)


def _settings_text(found: Inspection) -> str:
    rows = list(_setting_rows(found.parameters))
    counts = (("decisions", found.decisions), ("rounds learned", found.rounds))
    rows += [(name, f"{count:,}") for name, count in counts if count is not None]
    return "\n".join([found.kind, *_table([*rows, ("memory", f"{found.memory / 1024:,.1f} KiB")])])


def _setting_rows(parameters: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in parameters.items():
        if name == "agent" and isinstance(value, dict):
            yield name, value["kind"]
            yield from _setting_rows({each: it for each, it in value.items() if each != "kind"})
        elif name == "features" and isinstance(value, dict) and value.get("name") == "Columns":
            yield name, ", ".join(column["name"] for column in value["columns"])
        elif value is not None:
            yield name, _shown(value)


def _features_text(features: Sequence[Feature]) -> str:
    if not features:
        return ""
    few = f", the strongest {SHOWN} of {len(features):,}" if len(features) > SHOWN else ""
    rows = [(each.name, f"{each.weight:+.4f}", each.meaning) for each in features[:SHOWN]]
    return "\n".join([f"features by weight{few} (numbers: per standard deviation)", *_table(rows)])


def _report_text(report: Report | None) -> str:
    if report is None:
        return ""
    rows = [(member.name, f"error {member.error:.4f}", f"weight {member.weight:.3f}") for member in report.members]
    facts = [("bandwidth", f"{report.bandwidth:g}"), ("noise", f"{report.noise:.4f}")]
    facts += [("remembers", f"{report.memory:,} rounds"), ("drift alarms", f"{report.alarms}")]
    return "\n".join(["beliefs", *_table(facts), *_table(rows)])


def _played_text(played: Played) -> str:
    low, high = played.window
    rows = [("window", f"{low:g} to {high:g}"), ("density there", f"{played.density:g}")]
    rows.append(("expected action", f"{played.distribution.mean():g}"))
    lines = [f"in the context {json.dumps(played.context, ensure_ascii=False)}", *_table(rows)]
    if played.route is not None:
        lines += ["", "the way down the tree", *_table(_route_rows(played.route))]
        lines.append(f"  leaf {played.route.leaf} of {played.route.leaves:,}, played at {played.route.action:g}")
    if played.curve is not None:
        lines += ["", "the loss it expects", *_table(_curve_rows(played.curve))]
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


def _shown(value: object) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else str(value)


def _table(rows: Iterable[Sequence[str]]) -> list[str]:
    cells = list(rows)
    widths = [max(len(row[column]) for row in cells if column < len(row)) for column in range(max(map(len, cells)))]
    return [
        "  " + "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False)).rstrip() for row in cells
    ]
