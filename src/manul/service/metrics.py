"""Counts in the text format of Prometheus."""

from __future__ import annotations

from manul.service.engine import Engine
from manul.service.status import status

LOOP = {
    "decisions": ("counter", "Decisions in the store."),
    "learned": ("counter", "Outcomes that the model has learned."),
    "waiting": ("gauge", "Decisions without an outcome."),
    "mean_loss": ("gauge", "Mean loss of all outcomes."),
    "late": ("counter", "Losses that came after the end of the wait."),
    "defaulted": ("counter", "Default losses."),
    "refused": ("counter", "Outcomes that the model could not learn from."),
    "events": ("counter", "Events in the store."),
    "model": ("counter", "The last event that the model contains."),
}


def text(engine: Engine) -> str:
    """All metrics."""
    statuses = [status(engine.store, loop) for loop in list(engine.loops.values())]
    lines = []
    for name, (kind, meaning) in LOOP.items():
        values = [(each.name, getattr(each, name)) for each in statuses]
        lines += _metric(
            f"manul_{name}", kind, meaning, {f'{{loop="{loop}"}}': value for loop, value in values if value is not None}
        )
    lines += _metric("manul_commits", "counter", "Transactions written.", {"": engine.writer.commits})
    lines += _metric(
        "manul_store_failing", "gauge", "1 while the store takes no writes.", {"": int(engine.writer.failing)}
    )
    return "\n".join(lines) + "\n"


def _metric(name: str, kind: str, meaning: str, values: dict[str, float]) -> list[str]:
    suffix = "_total" if kind == "counter" else ""
    head = [f"# HELP {name}{suffix} {meaning}", f"# TYPE {name}{suffix} {kind}"]
    return head + [f"{name}{suffix}{labels} {value!r}" for labels, value in values.items()]
