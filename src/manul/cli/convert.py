"""`manul convert`."""

from __future__ import annotations

import json
import warnings
from dataclasses import asdict
from pathlib import Path

import click

from manul.cli._options import FILE, NUMBER, RANGE


@click.command(epilog="\b\nExample:\n  manul convert log.vw log.parquet --actions 0 1 --losses 0 1")
@click.argument("source", metavar="IN", type=FILE)
@click.argument("target", metavar="OUT", type=FILE)
@click.option("--actions", type=RANGE, metavar="LOW HIGH", help="The range of actions, to be kept in OUT.")
@click.option("--losses", type=RANGE, metavar="LOW HIGH", help="The range of losses, to be kept in OUT.")
@click.option(
    "--features", type=FILE, help="The file that vw read when it wrote IN with -p: its features are joined, row by row."
)
@click.option(
    "--first", type=NUMBER, metavar="SHARE", help="Write only the first rows, such as 0.8 of them, to train on."
)
@click.option(
    "--last", type=NUMBER, metavar="SHARE", help="Write only the last rows, such as 0.2 of them, to evaluate on."
)
@click.option("--skip-bad", is_flag=True, help="Leave out rows that cannot be used, and count them.")
@click.option("--json", "as_json", is_flag=True, help="Print the counts for programs.")
def convert(
    source: Path,
    target: Path,
    actions: tuple[float, float] | None,
    losses: tuple[float, float] | None,
    features: Path | None,
    first: float | None,
    last: float | None,
    *,
    skip_bad: bool,
    as_json: bool,
) -> None:
    """Write the log IN in another format, as OUT.

    The suffixes say which: .parquet, .csv, .jsonl, .vw or .json (Vowpal Wabbit's text and JSON), each also with .gz.
    """
    from manul.logs.convert import convert as converted

    with warnings.catch_warnings(record=True) as noted:
        warnings.simplefilter("always", UserWarning)
        result = converted(
            source,
            target,
            action_range=actions,
            loss_range=losses,
            features=features,
            skip_bad=skip_bad,
            first=first,
            last=last,
            progress=True,
        )
    for note in noted:
        click.echo(note.message, err=True)
    click.echo(json.dumps({**asdict(result), "target": str(target)}) if as_json else result)
