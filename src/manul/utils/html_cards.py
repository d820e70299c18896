"""Small HTML cards of values for notebooks: a title, a table and a curve as SVG, with all texts escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

import numpy as np
import numpy.typing as npt

WIDTH, HEIGHT, POINTS = 360, 90, 200  # of a curve, in pixels
LONGEST = 200  # characters of a value
_COLOUR = "#0072B2"


def card(title: str, rows: Iterable[tuple[str, object]], picture: str = "", notes: Iterable[object] = ()) -> str:
    """A title, a table of names and values, notes in whole sentences, one in each line, and a picture."""
    cells = "".join(f"<tr>{_cell('th', name)}{_cell('td', value)}</tr>" for name, value in rows)
    return f"<div><b>{escape(title)}</b><table>{cells}</table>{_lines(notes)}{picture}</div>"


def table(title: str, names: Sequence[str], rows: Iterable[Sequence[object]], notes: Iterable[object] = ()) -> str:
    """A title, a table with one column per name, and notes below it, one in each line."""
    head = "".join(_cell("th", name) for name in names)
    body = "".join(f"<tr>{''.join(_cell('td', value) for value in row)}</tr>" for row in rows)
    return f"<div><b>{escape(title)}</b><table><tr>{head}</tr>{body}</table>{_lines(notes)}</div>"


def text_block(text: object) -> str:
    """A text with its line breaks."""
    return f"<pre>{escape(str(text))}</pre>"


def curve(across: npt.ArrayLike, up: npt.ArrayLike, *, filled: bool = False) -> str:
    """A curve from zero or its lowest point up, with the ends of both axes, as SVG."""
    x, y = (np.asarray(values, dtype=np.float64) for values in (across, up))
    if len(x) > 2 * POINTS:
        picked = np.linspace(0, len(x) - 1, POINTS).astype(np.int64)
        x, y = x[picked], y[picked]
    left, right, low, high = float(x.min()), float(x.max()), min(float(y.min()), 0.0), float(y.max())
    places = (x - left) / (right - left or 1.0) * WIDTH
    heights = HEIGHT - (y - low) / (high - low or 1.0) * (HEIGHT - 4)
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(places, heights, strict=True))
    area = f"0,{HEIGHT} {points} {WIDTH},{HEIGHT}"
    fill = f'<polygon points="{area}" fill="{_COLOUR}" fill-opacity="0.2"/>' if filled else ""
    line = f'<polyline points="{points}" fill="none" stroke="{_COLOUR}" stroke-width="1.5"/>'
    labels = "".join(
        f'<text x="{place}" y="{HEIGHT + 14}" font-size="11" text-anchor="{anchor}" fill="currentColor">{end:.6g}</text>'
        for place, anchor, end in ((0, "start", left), (WIDTH, "end", right))
    )
    top = f'<text x="2" y="10" font-size="11" fill="currentColor">{high:.4g}</text>'
    return f'<svg width="{WIDTH}" height="{HEIGHT + 18}" xmlns="http://www.w3.org/2000/svg">{fill}{line}{labels}{top}</svg>'


def _lines(notes: Iterable[object]) -> str:
    return "".join(f"<div>{escape(str(note))}</div>" for note in notes)


def _cell(tag: str, value: object) -> str:
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    short = text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
    return f'<{tag} style="text-align:left">{escape(short)}</{tag}>'
