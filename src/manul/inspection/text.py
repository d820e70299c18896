"""Prints an inspection as text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from manul.inspection.context_table import effect_text, value_text
from manul.inspection.knob_effects import KnobEffect
from manul.inspection.knobs_in_context import KnobsInContext
from manul.outcomes import Outcome

if TYPE_CHECKING:
    from manul.inspection.feature_effects import Effects, FeatureEffect
    from manul.inspection.inspect import Feature, Inspection, PolicyInContext, Route

FEATURES_SHOWN = 15


def text(inspection: Inspection) -> str:
    """Format the settings, the features, the model of Auto and the policy in each context."""
    parts = [_settings_text(inspection), _features_text(inspection.features), _report_text(inspection)]
    parts += map(effects_text, inspection.effects)
    return "\n\n".join(part for part in (*parts, *map(_played_text, inspection.played)) if part)


def effects_text(effects: Effects) -> str:
    """Format the effect of each feature, and of each category."""
    title = f"effects on the {effects.action}, averaged over {effects.rows:,} contexts (accumulated local effects)"
    rows: list[Sequence[str]] = [("feature", "values", "change", "95 % interval")]
    for effect in effects.features[:FEATURES_SHOWN]:
        rows += _category_rows(effect) if effect.kind == "category" else [_number_row(effect)]
    lines = [title, *_table(rows)]
    if len(effects) > FEATURES_SHOWN:
        lines.append(f"  and {len(effects) - FEATURES_SHOWN:,} features with smaller effects")
    if any(_shows_swing(effect) for effect in effects.features[:FEATURES_SHOWN]):
        lines.append("  changes without a sign: the largest rise or fall, or the mean size of changes that cancel out")
    if any(effect.kind == "category" for effect in effects.features[:FEATURES_SHOWN]):
        lines.append("  categories: compared with the mean over the contexts, in the order of their mean action")
    if effects.left_out:
        lines.append(
            f"  left out, because they have fewer than two values: {', '.join(effects.left_out[:FEATURES_SHOWN])}"
        )
    return "\n".join(lines)


def _number_row(effect: FeatureEffect) -> tuple[str, ...]:
    values = f"{value_text(effect.values[0].value)} to {value_text(effect.values[-1].value)}"
    change, interval = effect_text(effect.change), f"{effect_text(effect.low)} to {effect_text(effect.high)}"
    if _shows_swing(effect):
        assert effect.swing is not None
        change, interval = effect_text(effect.swing)[1:], ""
        if effect.swing_low is not None and effect.swing_high is not None:
            interval = f"{effect_text(effect.swing_low)[1:]} to {effect_text(effect.swing_high)[1:]}"
    return effect.name, values, change, interval, effect.shape


def _shows_swing(effect: FeatureEffect) -> bool:
    """Whether the change from the first value to the last does not say what the feature does."""
    return effect.swing is not None and effect.shape != effect.direction


def _category_rows(effect: FeatureEffect) -> Iterator[tuple[str, ...]]:
    for number, each in enumerate(effect.values):
        name, interval = "" if number else effect.name, f"{effect_text(each.low)} to {effect_text(each.high)}"
        yield name, value_text(each.value), effect_text(each.effect), interval, each.direction


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
        elif name == "actions" and _has_knobs(value):
            yield from ((f"knob {knob}", _knob_text(description)) for knob, description in value)
        elif value is not None:
            yield name, _format(value)


def _has_knobs(actions: Any) -> bool:
    return isinstance(actions, list) and isinstance(actions[0], list)


def _knob_text(description: Any) -> str:
    if isinstance(description, list):
        return "{:g} to {:g}".format(*description)
    if "options" in description:
        return ", ".join(map(str, description["options"]))
    if description.keys() == {"low", "high", "step"}:
        return "{low:g} to {high:g} in steps of {step:g}".format(**description)
    return _format(description)


def _features_text(features: Sequence[Feature]) -> str:
    if not features:
        return ""
    few = f", the strongest {FEATURES_SHOWN} of {len(features):,}" if len(features) > FEATURES_SHOWN else ""
    rows = [(feature.name, f"{feature.weight:+.4f}") for feature in features[:FEATURES_SHOWN]]
    return "\n".join([f"features by weight{few} (numeric features: per standard deviation)", *_table(rows)])


def _report_text(inspection: Inspection) -> str:
    report = inspection.report
    if report is None:
        return ""
    rows = [(member.name, f"error {member.error:.4f}", f"weight {member.weight:.3f}") for member in report.members]
    if report.trees:
        rows.append((f"{report.trees} trees", "correction", f"weight {report.forest:.3f}"))
    facts = [
        (
            "bandwidth",
            f"{report.bandwidth_share:g} of each range" if report.bandwidth is None else f"{report.bandwidth:g}",
        ),
        ("noise", f"{report.noise:.4f}"),
    ]
    outcome = inspection.outcome
    facts += [(f"clipped {outcome.plural}", f"{report.clipped:,}")] if report.clipped else []
    facts += [("epsilon", f"{report.epsilon:.4g}")]
    facts += [("rounds since drift", f"{report.memory:,}"), ("drift alarms", f"{report.alarms}")]
    return "\n".join([f"model of the {outcome.name}", *_table(facts), *_table(rows)])


def _played_text(policy: PolicyInContext | KnobsInContext) -> str:
    return knobs_text(policy) if isinstance(policy, KnobsInContext) else _policy_text(policy)


def knobs_text(policy: KnobsInContext) -> str:
    """Format the best action, what is played, and the predicted loss or reward along each knob."""
    outcome = policy.outcome.name
    rows = [("knob", "best", "window", f"effect on the {outcome}")]
    rows += [(each.title, _value(each.best), _window(policy, each), f"{each.size:.4f}") for each in policy.effects]
    parts = ["\n".join([f"context {json.dumps(policy.context, ensure_ascii=False)}", *_table(rows)])]
    for effect in policy.effects:
        title = f"predicted {outcome} by {effect.title}" + (
            ", with the other knobs at their best" if effect.name else ""
        )
        parts.append("\n".join([title, *_table(_effect_rows(effect, outcome))]))
    return "\n\n".join(parts)


def _window(policy: KnobsInContext, effect: KnobEffect) -> str:
    window, part = policy.window(effect.name), policy.distribution.marginal(effect.name)
    if window is None:
        return f"{_value(effect.best)}, probability {part.density(effect.best):.3g}"  # type: ignore[arg-type]
    low, high = window
    return f"{low:g} to {high:g}" if low < high else f"{low:g}"


def _effect_rows(effect: KnobEffect, outcome: str) -> Iterator[tuple[str, ...]]:
    count = len(effect.values)
    few = range(count) if effect.knob.is_option or count <= 16 else range(0, count, count // 8)
    rows = [
        (effect.values[number], effect.outcomes[number], "") for number in few if effect.values[number] != effect.best
    ]
    rows.append((effect.best, effect.best_outcome, "best"))
    yield effect.title, outcome
    for value, number, mark in sorted(rows, key=lambda row: effect.knob.position(row[0], effect.name)):
        yield _value(value), f"{number:.4f}", mark


def _value(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _policy_text(policy: PolicyInContext) -> str:
    low, high = policy.window
    rows = [("window", f"{low:g} to {high:g}"), ("density", f"{policy.density:g}")]
    rows.append(("mean action", f"{policy.distribution.mean():g}"))
    lines = [f"context {json.dumps(policy.context, ensure_ascii=False)}", *_table(rows)]
    if policy.route is not None:
        lines += ["", "path through the tree", *_table(_route_rows(policy.route))]
        lines.append(f"  leaf {policy.route.leaf} of {policy.route.leaves:,}, centre {policy.route.action:g}")
    if policy.outcomes is not None:
        curve = _curve_rows(policy.outcomes, policy.outcome)
        lines += ["", f"predicted {policy.outcome.name}", *_table(curve)]
    return "\n".join(lines)


def _route_rows(route: Route) -> Iterator[tuple[str, ...]]:
    yield "node", "margin", "side"
    for step in route.steps:
        yield str(step.node), f"{step.margin:+.4f}", step.side + (" (forced)" if step.forced else "")


def _curve_rows(curve: Sequence[tuple[float, float]], outcome: Outcome) -> Iterator[tuple[str, ...]]:
    mark, extreme = ("highest", max) if outcome.higher else ("lowest", min)
    best = extreme(range(len(curve)), key=lambda number: curve[number][1])
    yield "action", outcome.name
    for number in sorted({*range(len(curve) // 16, len(curve), len(curve) // 8), best}):
        action, value = curve[number]
        yield f"{action:g}", f"{value:.4f}", mark if number == best else ""


def _format(value: object) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else str(value)


def _table(rows: Iterable[Sequence[str]]) -> list[str]:
    cells = list(rows)
    widths = [max(len(row[column]) for row in cells if column < len(row)) for column in range(max(map(len, cells)))]
    return [
        "  " + "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False)).rstrip() for row in cells
    ]
