"""`manul convert`."""

from __future__ import annotations

import warnings
from pathlib import Path

import click


@click.command()
@click.argument("source", metavar="IN", type=Path)
@click.argument("target", metavar="OUT", type=Path)
@click.option("--actions", type=(float, float), metavar="LOW HIGH", help="The range of the actions.")
@click.option("--losses", type=(float, float), metavar="LOW HIGH", help="The range of the losses.")
@click.option(
    "--features", type=Path, help="The file that vw read when it wrote IN with -p: its features are joined, row by row."
)
@click.option("--skip-bad", is_flag=True, help="Leave out rows that cannot be used, and count them.")
def convert(
    source: Path,
    target: Path,
    actions: tuple[float, float] | None,
    losses: tuple[float, float] | None,
    features: Path | None,
    *,
    skip_bad: bool,
) -> None:
    """Write a log in another format.

    The suffixes say which: .parquet, .csv, .jsonl, .vw or .json (Vowpal Wabbit's text and JSON), each also with .gz.
    """
    from manul.conversion import convert as converted

    ranges = {"action_range": actions, "loss_range": losses}
    with warnings.catch_warnings(record=True) as noted:
        warnings.simplefilter("always", UserWarning)
        result = converted(source, target, **ranges, features=features, skip_bad=skip_bad, progress=True)
    for note in noted:
        click.echo(note.message, err=True)
    click.echo(result)
