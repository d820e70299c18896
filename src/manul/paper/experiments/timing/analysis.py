"""Fits the growth of the time per round with the bandwidth and with the leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from manul.paper.experiments import methods
from manul.paper.experiments.result_tables import Row, power_of_two
from manul.paper.experiments.timing.sweep import BANDWIDTH, LEAVES

MANY = 64  # below, the time of methods that are linear in the leaves is mostly overhead


@dataclass(frozen=True)
class Slope:
    """The slope of a fitted line, and the share of the variance that it explains."""

    slope: float
    explained: float


def fit_line(xs: npt.ArrayLike, ys: npt.ArrayLike) -> Slope:
    """Fit a line by least squares.

    >>> fit_line([0.0, 1.0, 2.0], [1.0, 3.0, 5.0])
    Slope(slope=2.0, explained=1.0)
    """
    x, y = np.asarray(xs, dtype=np.float64), np.asarray(ys, dtype=np.float64)
    slope, intercept = np.polyfit(x, y, 1)
    total = float(((y - y.mean()) ** 2).sum())
    residual = float(((y - slope * x - intercept) ** 2).sum())
    return Slope(round(float(slope), 12), round(1 - residual / total, 12) if total > 0 else 1.0)


def slopes(rows: Sequence[Row]) -> list[Row]:
    """The exponent of a power law and the µs per doubling, per data set, method and axis."""
    fits = []
    groups = dict.fromkeys((row["dataset"], row["player"], row["against"]) for row in rows)
    for dataset, player, against in groups:
        points = [row for row in rows if (row["dataset"], row["player"], row["against"]) == (dataset, player, against)]
        if len(points) < 3:
            continue
        logs, times = np.log2([row[against] for row in points]), np.array([row["microseconds"] for row in points])
        many = [index for index, row in enumerate(points) if row["leaves"] >= MANY]
        if player in methods.EVERY_LEAF and len(many) >= 2:
            logs, times = logs[many], times[many]
        doubling = fit_line(logs, times)
        power = fit_line(logs, np.log2(np.maximum(times, 1e-9)))
        fits.append(
            {
                "dataset": dataset,
                "player": player,
                "against": against,
                "exponent": power.slope,
                "exponent_explained": power.explained,
                "microseconds_per_doubling": doubling.slope,
                "doubling_explained": doubling.explained,
                "fastest": float(times.min()),
                "slowest": float(times.max()),
            }
        )
    return fits


def explain(rows: Sequence[Row], dataset: str) -> list[str]:
    fits = {(row["player"], row["against"]): row for row in slopes(rows) if row["dataset"] == dataset}
    sentences = []
    for player in (methods.PAPER, methods.OURS, "VW CATS"):
        if (player, BANDWIDTH) in fits:
            flat = fits[player, BANDWIDTH]
            sentences.append(
                f"{player} against h at K = 8192: time ∝ h^{flat['exponent']:.3f}, between {flat['fastest']:.2f} and "
                f"{flat['slowest']:.2f} µs while h grows from {power_of_two(-13)} to {power_of_two(-2)} (exponent 0: constant, "
                "1: proportional)."
            )
    for player in (methods.PAPER, methods.OURS, methods.TREE, "VW CATS"):
        if (player, LEAVES) in fits:
            steps = fits[player, LEAVES]
            sentences.append(
                f"{player} against K: {steps['microseconds_per_doubling']:+.3f} µs per doubling of K; a straight line in log K "
                f"explains {steps['doubling_explained']:.0%} of the variation (as a power law: K^{steps['exponent']:.2f})."
            )
    for player in (methods.LINEAR, "VW dTree", "VW dLinear"):
        if (player, LEAVES) in fits:
            steps = fits[player, LEAVES]
            limit = f" from K = {MANY} on" if player in methods.EVERY_LEAF else ""
            sentences.append(
                f"{player} against K{limit}: time ∝ K^{steps['exponent']:.2f}, up to {steps['slowest']:.0f} µs."
            )
    return sentences
