"""Compares the test losses before and after optimisation with each other and with the published ones."""

from __future__ import annotations

from collections.abc import Sequence

from manul.actions.ranges import fraction
from manul.paper.experiments import published
from manul.paper.experiments.methods import INITIAL, RULES
from manul.paper.experiments.result_tables import Row


def compare(rows: Sequence[Row]) -> list[Row]:
    """Add the published loss of the same policy to each row."""
    return [{**row, **_published(row)} for row in rows]


def _published(row: Row) -> Row:
    known = published.offline().get(row["dataset"])
    if known is None or row["player"] not in (INITIAL, *RULES.values()):
        return {"published": None, "published_half": None}
    if row["player"] == INITIAL:
        return {"published": known.initial, "published_half": known.initial_half}
    return {"published": known.optimised, "published_half": known.optimised_half}


def explain(rows: Sequence[Row], dataset: str) -> list[str]:
    by_player = {row["player"]: row for row in rows if row["dataset"] == dataset}
    before = by_player[INITIAL]
    sentences = []
    for name in RULES.values():
        after = by_player[name]
        apart = after["high"] < before["low"]
        cell = f"K = {after['leaves']}, h = {fraction(after['bandwidth'])}"
        sentences.append(
            f"{dataset}: {name} chose {cell}. Its test loss is {after['loss']:.4f} [{after['low']:.4f}, {after['high']:.4f}], that of "
            f"the logging policy {before['loss']:.4f} [{before['low']:.4f}, {before['high']:.4f}]; the intervals "
            f"{'do not overlap' if apart else 'overlap'}."
        )
    return sentences
