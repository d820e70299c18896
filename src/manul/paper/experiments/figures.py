"""The paper's figures from the tables of results, with the published numbers for comparison."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from manul.actions.ranges import fraction
from manul.paper.experiments import methods, published
from manul.paper.experiments.result_tables import Row, power_of_two
from manul.paper.experiments.timing import BANDWIDTH, LEAVES
from manul.plotting import COLOURS, GREY
from manul.utils.atomic_files import write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOUR = {
    methods.PAPER: COLOURS[0],
    methods.MARGIN: COLOURS[0],
    methods.TREE: COLOURS[2],
    methods.LINEAR: COLOURS[1],
    methods.OURS: COLOURS[3],
    methods.DEFAULT: COLOURS[3],
    methods.ADAPTIVE: COLOURS[3],
    methods.AUTO: COLOURS[3],
    methods.INITIAL: "black",
    methods.RULES["path"]: COLOURS[3],
    methods.CONSTANT: GREY,
    methods.OPTIMUM: GREY,
    "VW CATS": COLOURS[4],
    "VW dTree": COLOURS[4],
    "VW dLinear": COLOURS[4],
}
STYLE: Any = {"svg.hashsalt": "manul", "font.size": 10, "axes.titlesize": 11}


def losses(rows: Sequence[Row], xlabel: str) -> Figure:
    """Plot the losses: a panel per data set and a line per method, with the interval and the published loss."""
    from matplotlib.figure import Figure

    sets = list(dict.fromkeys(row["dataset"] for row in rows))
    names = list(dict.fromkeys(row["player"] for row in rows))
    columns = min(3, len(sets))
    lines = math.ceil(len(sets) / columns)
    size = (10.0 if columns == 1 else 4.3 * columns + 1.5, (1.6 + 0.33 * len(names)) * lines + 0.4)
    figure = Figure(figsize=size, dpi=120, layout="constrained")
    grid = figure.subplots(lines, columns, squeeze=False, sharey=True)
    for axes, name in zip(grid.flat, sets, strict=False):
        _loss_panel(axes, [row for row in rows if row["dataset"] == name], names)
        axes.set_title(name, loc="left")
        axes.set_xlabel(xlabel)
    for axes in list(grid.flat)[len(sets) :]:
        axes.set_visible(False)
    handles, labels = grid[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper right", ncols=2, frameon=False)
    return figure


def _loss_panel(axes: Axes, rows: Sequence[Row], names: list[str]) -> None:
    highest = max(max(row["high"], row["published"] or 0) for row in rows)
    for row in rows:
        line, old = names.index(row["player"]), row["published"]
        error = [[row["loss"] - row["low"]], [row["high"] - row["loss"]]]
        colour = COLOUR.get(row["player"], COLOURS[0])
        axes.errorbar([row["loss"]], [line], xerr=error, fmt="o", markersize=6, capsize=4, color=colour, label="_")
        _annotate_loss(axes, row, line, highest)
        if old is not None:
            axes.plot(old, line, "D", markersize=7, fillstyle="none", color="black", label="_")
    axes.plot([], [], "o", color="black", label="here, with 95 % Clopper-Pearson interval")
    if any(row["published"] is not None for row in rows):
        axes.plot([], [], "D", fillstyle="none", color="black", label="published, same method")
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlim(0, highest * 1.22)
    axes.grid(axis="x", alpha=0.3)
    _hide_spines(axes)


def _annotate_loss(axes: Axes, row: Row, line: int, highest: float) -> None:
    """Write the loss to the right of its interval, or to the left if the published loss is in the way."""
    old = row["published"]
    in_the_way = old is not None and row["loss"] < old < row["high"] + 0.11 * highest
    at, offset, alignment = (row["low"], -8, "right") if in_the_way else (row["high"], 8, "left")
    style: dict[str, Any] = {"textcoords": "offset points", "va": "center", "ha": alignment, "fontsize": 8.5}
    axes.annotate(f"{row['loss']:.4f}", (at, line), (offset, 0), **style)


def grids(rows: Sequence[Row], dataset: str) -> Figure:
    """Plot the loss of every cell of the grid, for Cats.paper and for Cats, with the same colours."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 4.6), dpi=120, layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    cells = [row for row in rows if row["dataset"] == dataset and row["player"] in (methods.PAPER, methods.OURS)]
    limits: dict[str, Any] = {
        "vmin": min(row["loss"] for row in cells),
        "vmax": float(np.quantile([row["loss"] for row in cells], 0.8)),
    }
    for axes, name in zip(panels, (methods.PAPER, methods.OURS), strict=True):
        chosen = [row for row in cells if row["player"] == name]
        mesh = _heatmap(axes, chosen, limits)
        best = min(chosen, key=lambda row: float(row["loss"]))
        axes.plot(math.log2(best["leaves"]), math.log2(best["bandwidth"]), "o", color=COLOURS[1], label="lowest")
        axes.set_title(
            f"{name}: lowest {best['loss']:.4f} (dot), K = {best['leaves']}, h = {fraction(best['bandwidth'])}",
            loc="left",
        )
        axes.set_xlabel("leaves K")
        axes.set_xticks(range(2, 14), [power_of_two(power) for power in range(2, 14)])
        axes.set_yticks(range(-13, 0), [power_of_two(power) for power in range(-13, 0)])
    panels[0].set_ylabel("bandwidth h (share of the range)")
    figure.colorbar(mesh, ax=panels, label=f"progressive loss on {dataset}", extend="max")
    return figure


def _heatmap(axes: Axes, cells: Sequence[Row], limits: dict[str, Any]) -> Any:
    values = np.full((13, 12), np.nan)
    for row in cells:
        values[round(math.log2(row["bandwidth"])) + 13, round(math.log2(row["leaves"])) - 2] = row["loss"]
    return axes.pcolormesh(np.arange(2, 14), np.arange(-13, 0), values, cmap="viridis", rasterized=True, **limits)


def times(rows: Sequence[Row], dataset: str) -> Figure:
    """Plot the time per round against the bandwidth, against the leaves, and of the comparators against the leaves."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, NullFormatter

    chosen = [row for row in rows if row["dataset"] == dataset]
    figure = Figure(figsize=(14, 4.8), dpi=120, layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    _curves(left, chosen, BANDWIDTH, (methods.PAPER, methods.OURS, "VW CATS"), dataset)
    left.set_title(f"{dataset}: against h, K = {power_of_two(13)}", loc="left")
    _curves(middle, chosen, LEAVES, (methods.PAPER, methods.OURS), dataset, with_published=False)
    middle.set_title("against K, h = 1/4", loc="left")
    _curves(right, chosen, LEAVES, tuple(COLOUR), dataset)
    right.set_title("CATS (h = 1/4), dTree and dLinear against K", loc="left")
    for axes in (left, right):
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
    left.set_ylim(bottom=min(0.1, left.get_ylim()[0]))
    middle.set_ylim(bottom=0)
    handles = {
        label: handle
        for axes in (left, middle, right)
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=5, frameon=False)
    return figure


def _curves(
    axes: Axes, rows: Sequence[Row], against: str, names: Sequence[str], dataset: str, *, with_published: bool = True
) -> None:
    from matplotlib.ticker import NullLocator

    for name in names:
        points = sorted(
            (row[against], row["microseconds"]) for row in rows if (row["player"], row["against"]) == (name, against)
        )
        if points:
            dashes = {"VW dTree": "--", "VW dLinear": ":"}.get(name, "-")
            axes.plot(
                *zip(*points, strict=True), marker="o", markersize=4, color=COLOUR[name], linestyle=dashes, label=name
            )
        old = sorted(_published_times(dataset, name, against)) if with_published else []
        if old:
            axes.plot(*zip(*old, strict=True), color=COLOUR[name], alpha=0.45, linewidth=1, marker="D", markersize=4,
                      fillstyle="none", linestyle="--", label=f"{name}, published")  # fmt: skip
    axes.set_xscale("log", base=2)
    powers = range(-13, -1, 2) if against == BANDWIDTH else range(1, 14, 2)
    axes.set_xticks([2.0**power for power in powers], [power_of_two(power) for power in powers])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("bandwidth h (share of the range)" if against == BANDWIDTH else "leaves K")
    axes.set_ylabel("CPU time (µs per round)")
    axes.grid(alpha=0.3)
    _hide_spines(axes)


def _published_times(dataset: str, name: str, against: str) -> list[tuple[float, float]]:
    cells = [cell for cell in published.online() if (cell.dataset, cell.player) == (dataset, name)]
    if against == BANDWIDTH:
        return [(cell.bandwidth or 0.0, cell.microseconds) for cell in cells if cell.leaves == 2**13]
    return [(cell.leaves, cell.microseconds) for cell in cells if cell.bandwidth in (None, 1 / 4)]


def _hide_spines(axes: Axes) -> None:
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def save(figure: Figure, path: Path) -> bytes:
    """Write a figure as PNG and SVG, and return the SVG."""
    import matplotlib as mpl

    with mpl.rc_context(STYLE):
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
        contents = {}
        for kind, metadata in ((".png", {"Software": None}), (".svg", {"Date": None, "Creator": None})):
            buffer = io.BytesIO()
            figure.savefig(buffer, format=kind[1:], metadata=metadata)
            contents[kind] = buffer.getvalue()
            write_whole(path.with_suffix(kind), contents[kind])
    return contents[".svg"]
