"""`manul inspect`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from manul.cli._options import FILE, MODEL, PICTURE, File, format_option
from manul.cli._wording import echo


@click.command(epilog="""\b\nExample:\n  manul inspect policy.manul --context '{"age": 4, "fuel": "diesel"}'""")
@click.argument("file", type=File(*MODEL))
@click.option(
    "--context",
    "contexts",
    metavar="JSON",
    multiple=True,
    help="""Show the policy in this context, such as '[1, 2, 3]' or '{"city": "Oslo"}'; may be repeated.""",
)
@click.option(
    "--data",
    type=FILE,
    help="Show the effect of each feature on the action, averaged over the contexts in this table or log.",
)
@format_option("the file of --data", "data_format")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option("--plot", type=File(*PICTURE), help="Write a plot.")
def inspect(
    file: Path,
    contexts: tuple[str, ...],
    data: Path | None,
    data_format: str | None,
    *,
    as_json: bool,
    plot: Path | None,
) -> None:
    """Show what the agent or policy in FILE has learned."""
    from manul.inspection import inspect as inspection

    result = inspection.inspect(file, *map(inspection.parse_context, contexts), data=data, data_format=data_format)
    if plot is not None:
        from manul import plotting

        plotting.save(result.plot(), plot)
    echo(json.dumps(result.as_dict(), ensure_ascii=False, indent=2) if as_json else result)
