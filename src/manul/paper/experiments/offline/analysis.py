"""Test losses before and after, beside the published ones, and whether the intervals touch."""

from __future__ import annotations

from collections.abc import Sequence

from manul.actions.ranges import fraction
from manul.paper.experiments import published
from manul.paper.experiments.offline.sweep import INITIAL, RULES
from manul.paper.experiments.result_tables import Row


def compared(rows: Sequence[Row]) -> list[Row]:
    """The rows with the published loss of the same policy."""
    return [{**row, **_published(row)} for row in rows]


def _published(row: Row) -> Row:
    known = published.offline().get(row["dataset"])
    if known is None or row["player"] not in (INITIAL, *RULES.values()):
        return {"published": None, "published_half": None}
    if row["player"] == INITIAL:
        return {"published": known.initial, "published_half": known.initial_half}
    return {"published": known.optimised, "published_half": known.optimised_half}


def explained(rows: Sequence[Row], dataset: str) -> list[str]:
    """What CATS_Off made of the log, in sentences."""
    by_player = {row["player"]: row for row in rows if row["dataset"] == dataset}
    before = by_player[INITIAL]
    told = []
    for name in RULES.values():
        after = by_player[name]
        apart = after["high"] < before["low"]
        cell = f"K = {after['leaves']}, h = {fraction(after['bandwidth'])}"
        told.append(
            f"{dataset}: {name} chose {cell} and loses {after['loss']:.4f} [{after['low']:.4f}, {after['high']:.4f}] on the test "
            f"rows, against {before['loss']:.4f} [{before['low']:.4f}, {before['high']:.4f}] for the policy that logged; the "
            f"intervals {'do not touch' if apart else 'touch'}."
        )
    return told
