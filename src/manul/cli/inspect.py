"""`manul inspect`."""

from __future__ import annotations

import json
from pathlib import Path

import click


@click.command()
@click.argument("file", type=Path)
@click.option(
    "--context",
    "contexts",
    metavar="JSON",
    multiple=True,
    help="""Say what is played there: '[1, 2, 3]' or '{"city": "Oslo"}'.""",
)
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON, for programs.")
@click.option("--plot", type=Path, metavar="PICTURE", help="Draw it into a .png, .svg or .pdf file.")
def inspect(file: Path, contexts: tuple[str, ...], *, as_json: bool, plot: Path | None) -> None:
    """Say what a saved agent or policy has learned."""
    from manul import inspection

    found = inspection.inspect(file, *map(inspection.parsed_context, contexts))
    if plot is not None:
        from manul import plots

        plots.save(found.plot(), plot)
    click.echo(json.dumps(found.as_dict(), ensure_ascii=False, indent=2) if as_json else found)
