"""All plots of manul, and the look that they share: each function takes data, draws it on axes and returns them.

`save` writes the figure and, next to it, a CSV table of the plotted lines and heat maps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from manul.actions.ranges import fraction
from manul.actions.space import numbers_only, several_knobs
from manul.contexts.typical import sweep
from manul.errors import InputError, MissingDependency, ParameterError
from manul.outcomes import LOSSES, Outcome
from manul.utils.atomic_files import atomic_path, table_beside, write_csv
from manul.utils.validation import Floats, check_shape

try:
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, num2date
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator
except ImportError:
    raise MissingDependency("Plots need matplotlib. Install it: pip install 'manul[plot]'.") from None

if TYPE_CHECKING:
    from manul.policies.policy import Policy

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")  # Okabe and Ito: safe for the colour-blind
GREY = "#777777"
_STEPS = [1, 2, 2.5, 5, 10]  # between ticks, times a power of ten
_CHARACTER = 0.08  # the width of a digit beside a tick, in inches
FORMATS = (".png", ".svg", ".pdf")
CENTRE = "centre of the window"
_POINTS = 400  # per curve: enough for a smooth line at this size
_DOTS = 1500  # per scatter plot: more would merge into a blot


class _Figure(Figure):
    """A figure that a notebook shows, as its axes."""

    def _repr_png_(self) -> bytes:
        picture = BytesIO()
        self.savefig(picture, format="png", bbox_inches="tight", dpi=72)
        return picture.getvalue()

    def add_subplot(self, *args: Any, **settings: Any) -> Any:
        return super().add_subplot(*args, **{"axes_class": _Axes, **settings})


class _Axes(Axes):
    """Axes that a notebook shows as the picture of their figure."""

    def _repr_png_(self) -> bytes | None:
        figure = self.figure.canvas.figure
        return figure._repr_png_() if isinstance(figure, _Figure) else None


class _Panels(list[Axes]):
    """The axes of one figure, which a notebook shows."""

    def _repr_png_(self) -> bytes | None:
        figure = self[0].figure.canvas.figure
        return figure._repr_png_() if isinstance(figure, _Figure) else None


def feature_bars(names: Sequence[str], weights: Sequence[float], axes: Axes | None = None) -> Axes:
    """Draw the weights of features as bars, the first one at the top.

    >>> feature_bars(["age", "city=Oslo"], [0.5, -0.25]).get_xlabel()
    'weight'
    """
    axes = new_axes() if axes is None else axes
    for rank, (name, weight) in enumerate(zip(names, weights, strict=True), start=1):
        colour = COLOURS[0] if weight >= 0 else COLOURS[1]
        axes.plot([0, weight], [rank, rank], color=colour, linewidth=9, solid_capstyle="butt", label=f"_{name}")
    axes.vlines(0, 0.4, len(names) + 0.6, color=GREY, linewidth=1)
    style(axes, "weight", "rank").set_yticks(range(1, len(names) + 1), [shorten(name) for name in names])
    axes.set_ylim(len(names) + 0.6, 0.4)
    return axes


def density_plot(edges: npt.ArrayLike, densities: npt.ArrayLike, axes: Axes | None = None) -> Axes:
    """Draw a piecewise-constant density over the actions.

    >>> density_plot([0, 1, 3], [0.5, 0.25]).get_ylabel()
    'density'
    """
    axes = new_axes() if axes is None else axes
    ends, heights = np.asarray(edges, dtype=np.float64), np.asarray(densities, dtype=np.float64)
    steps = np.append(heights, heights[-1:])
    (line,) = axes.plot(ends, steps, drawstyle="steps-post", linewidth=1.8, label="_density")
    axes.fill_between(ends, steps, step="post", color=line.get_color(), alpha=0.2, linewidth=0)
    return style(from_zero(axes), "action", "density")


def atoms_plot(positions: npt.ArrayLike, densities: npt.ArrayLike, axes: Axes | None = None) -> Axes:
    """Draw the density of a discrete distribution.

    >>> atoms_plot([0, 1], [0.5, 0.25]).get_ylabel()
    'density'
    """
    axes = new_axes() if axes is None else axes
    (line,) = axes.plot(positions, densities, linestyle="none", marker="o", markersize=4, label="_density")
    axes.vlines(np.asarray(positions), 0, np.asarray(densities), color=line.get_color(), linewidth=1.2)
    return style(from_zero(axes), "action", "density")


def recent_rounds(rounds: int) -> int:
    """Return how many of the last rounds a recent mean covers: 5 %.

    >>> recent_rounds(1000)
    50
    """
    return max(1, rounds // 20)


def loss_curve(losses: npt.ArrayLike, axes: Axes | None = None, *, label: str | None = None) -> Axes:
    """Draw the running mean of the losses and the mean of the most recent rounds; several runs may share axes.

    >>> [line.get_label() for line in loss_curve([0.5, 0.25, 0.0]).lines]
    ['running mean', 'mean of last 1']
    """
    values = np.asarray(losses, dtype=np.float64)
    if not len(values):
        raise InputError("losses must not be empty.", "losses")
    axes = new_axes() if axes is None else axes
    span, prefix = recent_rounds(len(values)), "" if label is None else f"{label}: "
    rounds = np.unique(np.linspace(1, len(values), _POINTS).astype(np.int64))
    total = np.concatenate([[0.0], np.cumsum(values)])
    first = np.maximum(rounds - span, 0)
    (line,) = axes.plot(rounds, total[rounds] / rounds, linewidth=2.4, label=f"{prefix}running mean")
    recent = (total[rounds] - total[first]) / (rounds - first)
    axes.plot(rounds, recent, color=line.get_color(), linewidth=1, alpha=0.8, label=f"{prefix}mean of last {span:,}")
    return style(from_zero(axes), "rounds", "loss")


def level(value: float, axes: Axes, *, label: str) -> Axes:
    """Draw a horizontal reference line across the existing curves.

    >>> [line.get_label() for line in level(0.25, loss_curve([0.5, 0.0]), label="best").lines][-1]
    'best'
    """
    axes.plot(axes.dataLim.intervalx, [value, value], color=GREY, linestyle="--", linewidth=1.5, label=label)
    return style(from_zero(axes), axes.get_xlabel(), axes.get_ylabel())


def interval_plot(
    value: float, low: float, high: float, axes: Axes | None = None, *, label: str, outcome: Outcome = LOSSES
) -> Axes:
    """Draw an estimate of a loss, or of a reward, and its interval in a new row below the existing ones.

    >>> interval_plot(0.25, 0.2, 0.3, label="snips").lines[0].get_xdata()
    array([0.2 , 0.25, 0.3 ])
    """
    axes = new_axes() if axes is None else axes
    position = -len(axes.lines)
    if len(axes.figure.axes) == 1:
        axes.figure.canvas.figure.set_size_inches(10, 1.8 + 0.4 * len(axes.lines))
    axes.plot(np.array([low, value, high]), [position] * 3, linewidth=2.4, marker="|", markersize=14, label=label)
    style(axes, f"mean {outcome.name} (higher is better)" if outcome.higher else outcome.name, "estimate").margins(
        y=0.3
    )
    axes.set_yticks([-number for number in range(len(axes.lines))], [str(line.get_label()) for line in axes.lines])
    legend = axes.get_legend()
    if legend is not None:
        legend.remove()
    return axes


def policy_map(
    policy: Policy,
    contexts: object,
    feature: int | str,
    targets: npt.ArrayLike | None = None,
    axes: Axes | None = None,
) -> Axes:
    """Draw a policy as a function of one feature, with the others at their medians or most common values.

    `contexts` are rows of numbers or with named fields, a data frame, named columns, or a log; `feature` is a column number or a name.

    >>> import manul
    >>> world = manul.worlds.linear(rounds=100, width=2)
    >>> policy_map(manul.Cats(leaves=8, bandwidth=1/8), world.contexts, 0, world.targets).get_xlabel()
    'feature 0'
    """
    space = several_knobs(policy)
    if space is not None:
        raise numbers_only(space, "This plot")
    line = sweep(contexts, feature)
    axes = new_axes() if axes is None else axes
    if targets is not None:
        _scatter(axes, line.observed, np.asarray(targets, dtype=np.float64))
    lows, highs = _windows(policy, line.contexts)
    (_bars if line.labels else _band)(axes, line.positions, lows, highs)
    style(axes, f"feature {feature}" if isinstance(feature, int) else feature, "action")
    if line.dates:
        return label_dates(axes)
    if line.labels:
        return label_options(axes, line.labels)
    return label_values(axes, line.observed[np.isfinite(line.observed)].tolist())


def cell_map(
    cells: Sequence[tuple[float, int, float]],
    axes: Axes | None = None,
    *,
    outcome: Outcome = LOSSES,
    chosen: tuple[float, int, float] | None = None,
) -> Axes:
    """Draw cells (bandwidth, leaves, objective) as a heat map and mark the `chosen` one, by default the one with the lowest
    objective, or the highest if higher is better.

    >>> axes = cell_map([(1/4, 4, 0.2), (1/8, 8, 0.1)])
    >>> [label.get_text() for label in axes.get_yticklabels()]
    ['1/8', '1/4']
    """
    if not cells:
        raise InputError("Nothing to plot: the grid has no trees.", "cells")
    axes = new_axes() if axes is None else axes
    bandwidths, leaves = sorted({cell[0] for cell in cells}), sorted({cell[1] for cell in cells})
    objectives = np.full((len(bandwidths), len(leaves)), np.nan)
    for bandwidth, count, objective in cells:
        objectives[bandwidths.index(bandwidth), leaves.index(count)] = objective
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    mesh = axes.pcolormesh(_edges(leaves), _edges(bandwidths), objectives, cmap="viridis", label="_objective")
    # The narrowest bandwidths cost a hundred times the lowest, so the colours only span the better half.
    median, name = float(np.nanmedian(objectives)), "highest" if outcome.higher else "lowest"
    mesh.set_clim(**({"vmin": median} if outcome.higher else {"vmax": median}))
    label = f"objective: {outcome.name} minus penalty (higher is better)" if outcome.higher else "objective"
    axes.figure.colorbar(mesh, ax=axes, label=label, extend="min" if outcome.higher else "max")
    mark, stated = ("chosen", "chosen tree") if chosen else (name, f"tree with the {name} objective")
    bandwidth, count, objective = chosen or (max if outcome.higher else min)(cells, key=lambda cell: cell[2])
    axes.plot([count], [bandwidth], "o", color=COLOURS[1], linestyle="none", label=f"_{mark}")
    where = f"bandwidth {fraction(bandwidth)} and {count} leaves"
    axes.set_title(f"{stated}: {where}, objective {objective:.4f}")
    style(axes, "leaves", "bandwidth").minorticks_off()
    axes.set_xticks(leaves, [f"{count}" for count in leaves])
    axes.set_yticks(bandwidths, [fraction(bandwidth) for bandwidth in bandwidths])
    return axes


def _edges(centres: Sequence[float]) -> Floats:
    """The edges of cells with the given centres on a logarithmic scale."""
    powers = np.log2(centres)
    between = (powers[1:] + powers[:-1]) / 2
    half = (
        float(between[0] - powers[0]) if len(between) else 0.5,
        float(powers[-1] - between[-1]) if len(between) else 0.5,
    )
    return np.exp2([powers[0] - half[0], *between, powers[-1] + half[1]])


def save(plot: Axes | Figure, path: str | Path) -> None:
    """Write a figure and, next to it, a CSV table of the plotted data.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(density_plot([0, 1], [1]), Path(folder, "density.png"))
    ...     Path(folder, "density.csv").read_text().splitlines()
    ['series,action,density', 'density,0.0,1.0', 'density,1.0,1.0']
    """
    target = Path(path)
    if target.suffix not in FORMATS:
        raise ParameterError(f"path must end in {', '.join(FORMATS)}, got {target.name!r}.", "path")
    figure = plot if isinstance(plot, Figure) else plot.figure.canvas.figure
    with atomic_path(target) as partial:
        figure.savefig(partial, bbox_inches="tight", format=target.suffix[1:])
    _write_table(table_beside(target, "series"), list(_rows(figure)))


def _scatter(axes: Axes, values: npt.NDArray[np.float64], targets: npt.NDArray[np.float64]) -> None:
    check_shape("targets", targets, len(values))
    sample = slice(None, None, -(-len(values) // _DOTS))
    axes.plot(
        values[sample], targets[sample], ".", color=GREY, alpha=0.45, markersize=5, markeredgewidth=0, label="targets"
    )


def _windows(policy: Policy, contexts: Sequence[Any]) -> npt.NDArray[np.float64]:
    return np.array([policy.distribution(context).densest() for context in contexts]).T


def _band(axes: Axes, across: Floats, lows: Floats, highs: Floats) -> None:
    axes.plot(across, (lows + highs) / 2, linewidth=2.4, color=COLOURS[1], zorder=3, label=CENTRE)
    axes.fill_between(across, lows, highs, color=COLOURS[1], alpha=0.3, linewidth=0, label="window")
    for name, ends in (("low", lows), ("high", highs)):
        axes.plot(across, ends, color=COLOURS[1], linewidth=0.5, alpha=0.6, label=f"_window {name}")


def _bars(axes: Axes, across: Floats, lows: Floats, highs: Floats) -> None:
    axes.plot(across, (lows + highs) / 2, "o", color=COLOURS[1], zorder=3, label=CENTRE)
    axes.vlines(across, lows, highs, color=COLOURS[1], alpha=0.3, linewidth=12, label="window")
    for name, ends in (("low", lows), ("high", highs)):
        axes.plot(across, ends, "_", color=COLOURS[1], label=f"_window {name}")


def _rows(figure: Figure) -> Iterator[dict[str, str | float]]:
    for axes in (axes for axes in figure.axes if axes.get_label() != "<colorbar>"):
        across, up = axes.get_xlabel() or "x", axes.get_ylabel() or "y"
        for line in axes.lines:
            series = str(line.get_label()).lstrip("_")
            times = isinstance(next(iter(np.ravel(line.get_xdata(orig=True))), None), date)
            for x, y in np.asarray(line.get_xydata(), dtype=np.float64):
                place = num2date(x).isoformat() if times else float(x)  # type: ignore[no-untyped-call]
                yield {"series": series, across: place, up: float(y)}
        for mesh in axes.collections:
            if isinstance(mesh, QuadMesh):
                yield from _mesh_rows(mesh, across, up)


def _mesh_rows(mesh: QuadMesh, across: str, up: str) -> Iterator[dict[str, str | float]]:
    corners = np.asarray(mesh.get_coordinates(), dtype=np.float64)
    logarithmic = mesh.axes is not None and mesh.axes.get_xscale() == "log"
    powers = np.log2(corners) if logarithmic else corners
    middle = (powers[:-1, :-1] + powers[1:, 1:]) / 2
    centres = np.exp2(middle) if logarithmic else middle
    values = np.ma.filled(np.ma.asarray(mesh.get_array(), dtype=np.float64), np.nan)
    name = str(mesh.get_label()).lstrip("_")
    for (x, y), value in zip(centres.reshape(-1, 2), values.reshape(-1), strict=True):
        if np.isfinite(value):
            yield {"series": name, across: _round(x), up: _round(y), name: float(value)}


def _round(number: float) -> float:
    """Round away the digits that are lost in the conversion to plot coordinates and back."""
    return float(f"{number:.12g}")


def _write_table(path: Path, rows: list[dict[str, str | float]]) -> None:
    columns = list(dict.fromkeys(name for row in rows for name in row))
    write_csv(path, columns, ([row.get(name) for name in columns] for row in rows))


def new_axes() -> Axes:
    """Create empty axes on a new figure.

    >>> new_axes().get_title()
    ''
    """
    axes = new_figure(10, 4.8).subplots()
    axes.set_prop_cycle(color=COLOURS)
    return axes


def new_figure(width: float, height: float) -> Figure:
    """Create an empty figure, with its size in inches.

    >>> new_figure(10, 4.8).axes
    []
    """
    figure = _Figure(figsize=(width, height), dpi=120, layout="constrained")
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.12)  # type: ignore[union-attr,call-arg]
    return figure


def new_row(count: int) -> list[Axes]:
    """Create empty axes side by side on a new figure.

    >>> len(new_row(2))
    2
    """
    grid = new_figure(7 * count, 4.8).subplots(1, count, squeeze=False)
    return _Panels(grid[0])


def new_column(count: int) -> list[Axes]:
    """Create empty axes below each other on a new figure, with the same horizontal axis.

    >>> len(new_column(2))
    2
    """
    figure = new_figure(10, 3.2 * count)
    return _Panels(figure.subplots(count, 1, squeeze=False, sharex=True)[:, 0])


def new_grid(count: int, columns: int = 4) -> list[Axes]:
    """Create empty axes on a new figure, at most `columns` side by side.

    >>> len(new_grid(6))
    6
    """
    across = min(count, columns)
    down = -(-count // across)
    figure = new_figure(max(5 * across, 7), 3.6 * down)
    grid = [axes for row in figure.subplots(down, across, squeeze=False) for axes in row]
    for axes in grid[count:]:
        axes.remove()
    return _Panels(grid[:count])


def shorten(name: str) -> str:
    """Cut a name to 40 characters, to fit next to a plot.

    >>> len(shorten("a" * 100))
    40
    """
    return name if len(name) <= 40 else f"{name[:39]}…"


def from_zero(axes: Axes) -> Axes:
    """Let the vertical axis start at zero if nothing is below."""
    axes.autoscale(axis="y")
    if axes.dataLim.y0 >= 0:
        axes.set_ylim(bottom=0)
    return axes


def number_text(number: float, _place: float | None = None) -> str:
    """A number beside a tick, with a comma from 10,000 on, so that years are years.

    >>> number_text(2019), number_text(12500.0), number_text(0.25), number_text(5e-5)
    ('2019', '12,500', '0.25', '0.00005')
    """
    if 1e-7 <= abs(number) < 1e-4:
        return f"{number:.9f}".rstrip("0")
    return f"{number:,.10g}" if abs(number) >= 10_000 else f"{number:.10g}"


def spread_ticks(axes: Axes, *, whole: bool = False) -> Axes:
    """Put as many ticks on a linear horizontal axis as have room for their numbers, or only at whole numbers.

    >>> (axes := new_axes()).set_xlim(0, 1)
    (0.0, 1.0)
    >>> len(spread_ticks(axes).get_xticks())
    11
    """
    if axes.get_xscale() != "linear" or not isinstance(axes.xaxis.get_major_locator(), MaxNLocator):
        return axes
    texts = [number_text(tick) for tick in MaxNLocator(9, steps=_STEPS).tick_values(*axes.get_xlim())]
    room = int(_width(axes) / (_CHARACTER * (max(map(len, texts)) + 1.5)))
    axes.xaxis.set_major_locator(MaxNLocator(min(max(room, 2), 10), steps=_STEPS, integer=whole))
    return axes


def label_values(axes: Axes, values: Sequence[Any]) -> Axes:
    """Put the ticks of the horizontal axis at whole numbers if the values are whole, and at dates if they are times.

    >>> import datetime
    >>> days = [datetime.datetime(2024, 1, 1), datetime.datetime(2025, 1, 1)]
    >>> (axes := new_axes()).plot(days, [0, 1])[0] in label_values(axes, days).lines
    True
    """
    if any(isinstance(value, date | np.datetime64) for value in values):
        return label_dates(axes)
    if all(float(value).is_integer() for value in values):
        spread_ticks(axes, whole=True)
    return axes


def label_dates(axes: Axes) -> Axes:
    """Write dates at the ticks of the horizontal axis.

    >>> import datetime
    >>> lines = (axes := new_axes()).plot([datetime.date(2019, 1, 1), datetime.date(2024, 1, 1)], [0, 1])
    >>> "2020" in [tick.get_text() for tick in label_dates(axes).get_xticklabels()]
    True
    """
    locator = AutoDateLocator(minticks=3, maxticks=7)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
    return axes


def label_options(axes: Axes, options: Sequence[Any], *, up: bool = False) -> Axes:
    """Write options at 0, 1, … of the horizontal axis, or of the vertical one with `up`.

    >>> [tick.get_text() for tick in label_options(new_axes(), ["plain", True]).get_xticklabels()]
    ['plain', 'True']
    """
    labels = [shorten(str(option)) for option in options]
    if up:
        axes.set_yticks(range(len(labels)), labels)
        axes.set_ylim(-0.5, len(labels) - 0.5)
        return axes
    room = _width(axes) / _CHARACTER / len(labels)
    crowded = max(map(len, labels)) + 1 > room
    axes.set_xticks(range(len(labels)), labels, rotation=30 if crowded else 0, ha="right" if crowded else "center")
    axes.set_xlim(-0.5, len(labels) - 0.5)
    return axes


def _width(axes: Axes) -> float:
    return axes.get_position().width * float(axes.figure.canvas.figure.get_figwidth())


def style(axes: Axes, across: str, up: str) -> Axes:
    """Name the axes, the horizontal one `across` and the vertical one `up`, and apply the look that all plots share."""
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.xaxis.set_major_formatter(number_text)
    axes.yaxis.set_major_formatter(number_text)
    axes.margins(x=0.01)
    spread_ticks(axes)
    axes.grid(visible=True, color="#DDDDDD", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    if axes.get_legend_handles_labels()[1]:
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False, borderaxespad=0)
    return axes
