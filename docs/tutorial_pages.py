"""Makes the page and the notebook of each tutorial from its script: `python docs/tutorial_pages.py [NAME ...]`.

A tutorial is a script in `examples/tutorials/`, in the percent format: `# %% [markdown]` begins text, and `# %%` begins code.
It is run once; what each piece of code prints, the value of its last expression (unless it is a part of a figure) and its
figures go into the page `docs/tutorials/NAME.md` and into the notebook beside the script. The tests run the scripts again and
compare.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import os
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("agg")
import matplotlib.pyplot as plt

HERE = Path(__file__).parent
SCRIPTS = HERE.parent / "examples" / "tutorials"
PAGES, IMAGES = HERE / "tutorials", HERE / "tutorials" / "images"
NOTICE = "<!-- Made by docs/tutorial_pages.py from examples/tutorials/{name}.py. Edit the script, not this page. -->\n"


@dataclass
class Cell:
    """A piece of a script: text, or code with what it printed and the figures it made, as PNG files."""

    kind: str
    source: str
    printed: str = ""
    figures: list[bytes] = field(default_factory=list)


def read(script: str) -> list[Cell]:
    """The cells of a script in the percent format."""
    cells: list[Cell] = []
    for line in script.splitlines():
        if line.startswith("# %%"):
            cells.append(Cell("markdown" if "[markdown]" in line else "code", ""))
        elif cells:
            text = line.removeprefix("#").removeprefix(" ") if cells[-1].kind == "markdown" else line
            cells[-1].source += text + "\n"
    for cell in cells:
        cell.source = cell.source.strip("\n")
    return [cell for cell in cells if cell.source]


def run(cells: list[Cell]) -> list[Cell]:
    """Run the code of the cells in one namespace, in a temporary folder."""
    names: dict[str, Any] = {"__name__": "__main__"}
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for cell in cells:
                if cell.kind == "code":
                    _run_cell(cell, names)
        finally:
            os.chdir(before)
            plt.close("all")
    return cells


def _run_cell(cell: Cell, names: dict[str, Any]) -> None:
    body = ast.parse(cell.source).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(ast.Module(body, []), "tutorial", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "tutorial", "eval"), names)
            if value is not None and not type(value).__module__.startswith("matplotlib"):
                print(value)
    cell.printed = output.getvalue().rstrip("\n")
    for number in plt.get_fignums():
        picture = io.BytesIO()
        plt.figure(number).savefig(picture, dpi=110, bbox_inches="tight", metadata={"Software": None})
        cell.figures.append(picture.getvalue())
    plt.close("all")


def page(name: str, cells: list[Cell]) -> tuple[str, dict[str, bytes]]:
    """The page of a tutorial, and its pictures by file name."""
    parts, pictures = [NOTICE.format(name=name)], {}
    for cell in cells:
        if cell.kind == "markdown":
            parts.append(cell.source + "\n")
            continue
        parts.append(f"```python\n{cell.source}\n```\n")
        if cell.printed:
            parts.append(f"```text\n{cell.printed}\n```\n")
        for figure in cell.figures:
            file = f"{name}-{len(pictures) + 1}.png"
            pictures[file] = figure
            parts.append(f"![{_caption(cell)}](images/{file})\n")
    parts.append(f"*This page is also a script and a notebook: `examples/tutorials/{name}.py` and `{name}.ipynb`.*\n")
    return "\n".join(parts), pictures


def _caption(cell: Cell) -> str:
    """The title of the last figure in the code, for those who do not see it."""
    titles = [line.split("title", 1)[1] for line in cell.source.splitlines() if "title(" in line or "title=" in line]
    return titles[-1].strip("(=)\"' f,") if titles else "What the code draws"


def notebook(cells: list[Cell]) -> str:
    """The notebook of a tutorial, with what the code printed and drew."""
    made = []
    for number, cell in enumerate(cells):
        source = cell.source.splitlines(keepends=True)
        common: dict[str, Any] = {"id": f"cell-{number}", "metadata": {}, "source": source}
        if cell.kind == "markdown":
            made.append({"cell_type": "markdown", **common})
            continue
        outputs: list[dict[str, Any]] = []
        if cell.printed:
            text = (cell.printed + "\n").splitlines(keepends=True)
            outputs.append({"output_type": "stream", "name": "stdout", "text": text})
        for figure in cell.figures:
            data = {"image/png": base64.b64encode(figure).decode(), "text/plain": ["<Figure>"]}
            outputs.append({"output_type": "display_data", "data": data, "metadata": {}})
        made.append({"cell_type": "code", **common, "execution_count": None, "outputs": outputs})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return (
        json.dumps({"cells": made, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}, indent=1, sort_keys=True)
        + "\n"
    )


def main(names: list[str]) -> None:
    """Make the pages and notebooks of some tutorials, or of all."""
    IMAGES.mkdir(exist_ok=True)
    for script in sorted(SCRIPTS.glob("*.py")):
        if names and script.stem not in names:
            continue
        cells = run(read(script.read_text()))
        text, pictures = page(script.stem, cells)
        (PAGES / f"{script.stem}.md").write_text(text)
        script.with_suffix(".ipynb").write_text(notebook(cells))
        for old in IMAGES.glob(f"{script.stem}-*.png"):
            old.unlink()
        for file, figure in pictures.items():
            (IMAGES / file).write_bytes(figure)
        print(f"{script.stem}: {len(cells)} cells, {len(pictures)} pictures")


if __name__ == "__main__":
    main(sys.argv[1:])
