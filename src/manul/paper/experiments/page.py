"""A self-contained page with all figures, results next to the published numbers, and the settings of the run."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files

from manul.actions.ranges import fraction
from manul.paper.experiments.result_tables import Row

STYLE = files("manul.paper.experiments").joinpath("data", "page.css").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Section:
    """A heading, a text, figures with their captions, findings and a table."""

    title: str
    text: str
    figures: Sequence[tuple[bytes, str]]
    findings: Sequence[str]
    table: str
    anchor: str


@dataclass(frozen=True)
class Page:
    command: str
    facts: Mapping[str, str]
    sections: Sequence[Section]
    has_published: bool

    def html(self) -> str:
        """Format the page as one file without external resources."""
        comparison = " and compared with the published numbers" if self.has_published else ""
        links = "".join(f'<a href="#{section.anchor}">{escape(section.title)}</a>' for section in self.sections)
        return "\n".join(
            [
                '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
                '<meta name="viewport" content="width=device-width, initial-scale=1">',
                f"<title>CATS, reproduced by manul</title>\n<style>{STYLE}</style>\n</head>\n<body>",
                "<h1>Efficient contextual bandits with continuous actions: reproduction of the experiments</h1>",
                "<p>Experiments of the paper by Majzoubi et al. (2020), section 5, "
                f"repeated with manul{comparison}. Losses are absolute errors on targets scaled to [0, 1].</p>",
                f"<nav>{links}<a href='#settings'>Settings</a></nav>",
                *map(_section, self.sections),
                '<h2 id="settings">Settings</h2>',
                f"<p><code>{escape(self.command)}</code></p>",
                _facts(self.facts),
                "</body>\n</html>\n",
            ]
        )


def loss_table(rows: Sequence[Row]) -> str:
    """The losses next to the published ones; losses that are lower than published are marked."""
    head = ("dataset", "method", "loss", "95 % interval", "K", "h", "published", "published K", "published h", "ratio")
    lines = []
    for row in rows:
        old = row.get("published")
        cells = [
            row["dataset"],
            row["player"],
            f"{row['loss']:.4f}",
            f"{row['low']:.4f} to {row['high']:.4f}",
            _count(row["leaves"]),
            fraction(row["bandwidth"]),
            "" if old is None else f"{old:.4f}",
            _count(row.get("published_leaves")),
            fraction(row.get("published_bandwidth")),
            "" if old is None else f"{row['loss'] / old:.2f}",
        ]
        marked = {2} if old is not None and row["loss"] < old else set()
        lines.append((cells, marked))
    used = [column for column in range(len(head)) if any(cells[column] for cells, _ in lines)]
    return _table(
        [head[column] for column in used],
        [([cells[p] for p in used], {used.index(m) for m in marked}) for cells, marked in lines],
    )


def slope_table(rows: Sequence[Row]) -> str:
    head = (
        "dataset",
        "method",
        "as a function of",
        "fastest (µs)",
        "slowest (µs)",
        "exponent",
        "µs per doubling",
        "R² of the line in log2",
    )
    lines = []
    for row in rows:
        numbers = (f"{row['fastest']:.2f}", f"{row['slowest']:.2f}", f"{row['exponent']:.3f}")
        growth = (f"{row['microseconds_per_doubling']:+.3f}", f"{row['doubling_explained']:.0%}")
        lines.append(([row["dataset"], row["player"], row["against"], *numbers, *growth], set[int]()))
    return _table(head, lines)


def _count(number: int | None) -> str:
    return "" if number is None else f"{number:,}"


def _table(head: Iterable[str], lines: Iterable[tuple[Sequence[str], set[int]]]) -> str:
    top = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = []
    for cells, marked in lines:
        parts = (
            f"<td{' class=better' if column in marked else ''}>{escape(cell)}</td>" for column, cell in enumerate(cells)
        )
        body.append(f"<tr>{''.join(parts)}</tr>")
    return f'<div class="wide"><table><thead><tr>{top}</tr></thead><tbody>{"".join(body)}</tbody></table></div>'


def _section(section: Section) -> str:
    figures = []
    for svg, caption in section.figures:
        source = f"data:image/svg+xml;base64,{b64encode(svg).decode()}"
        figures.append(
            f'<figure><img alt="{escape(caption)}" src="{source}"><figcaption>{escape(caption)}</figcaption></figure>'
        )
    heading = f'<h2 id="{section.anchor}">{escape(section.title)}</h2>\n<p>{escape(section.text)}</p>'
    return "\n".join([heading, *figures, _list(section.findings), section.table])


def _list(sentences: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(sentence)}</li>' for sentence in sentences)}</ul>"


def _facts(facts: Mapping[str, str]) -> str:
    return f"<dl>{''.join(f'<dt>{escape(name)}</dt><dd>{escape(value)}</dd>' for name, value in facts.items())}</dl>"
