"""`manul inspect`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from manul.cli._options import MODEL, PICTURE, File


@click.command(epilog="""\b\nExample:\n  manul inspect policy.manul --context '{"age": 4, "fuel": "diesel"}'""")
@click.argument("file", type=File(*MODEL))
@click.option(
    "--context",
    "contexts",
    metavar="JSON",
    multiple=True,
    help="""Say what is played there: '[1, 2, 3]' or '{"city": "Oslo"}'.""",
)
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON, for programs.")
@click.option("--plot", type=File(*PICTURE), help="Draw it into a picture.")
def inspect(file: Path, contexts: tuple[str, ...], *, as_json: bool, plot: Path | None) -> None:
    """Say what the agent or policy in FILE has learned."""
    from manul.inspection import inspect as inspection

    found = inspection.inspect(file, *map(inspection.parsed_context, contexts))
    if plot is not None:
        from manul.utils import plotting

        plotting.save(found.plot(), plot)
    click.echo(json.dumps(found.as_dict(), ensure_ascii=False, indent=2) if as_json else found)
