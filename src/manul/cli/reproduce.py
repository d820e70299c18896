"""`manul reproduce`."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import click

EXAMPLE = """\b
Example:
  manul reproduce online offline timing --datasets ds --rounds 100000 --out results
  manul reproduce online --data mine.csv --target price --out results"""


@click.command(epilog=EXAMPLE)
@click.argument("experiments", nargs=-1, metavar="[online] [offline] [timing]")
@click.option(
    "--out", type=Path, default="results", show_default=True, help="Folder for tables, figures and index.html."
)
@click.option("--datasets", multiple=True, help="Sets of the paper, with commas or repeated; all six unless given.")
@click.option("--rounds", type=int, help="At most so many rounds per set; all rows, or 1,000,000 of ds, unless given.")
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed gives the same losses.")
@click.option(
    "--data", type=Path, help="A folder with files of the sets, or one table: CSV, ARFF or Parquet, also .gz."
)
@click.option("--target", help="The column to predict, where --data is one table.")
@click.option("--vw/--no-vw", default=None, help="Vowpal Wabbit beside the others; where it is installed, unless said.")
@click.option(
    "--threads", type=click.IntRange(min=1), help="How many cells are played at once; all cores unless given."
)
def reproduce(
    experiments: tuple[str, ...],
    out: Path,
    datasets: tuple[str, ...],
    rounds: int | None,
    seed: int,
    data: Path | None,
    target: str | None,
    threads: int | None,
    *,
    vw: bool | None,
) -> None:
    """Repeat the paper's experiments, and draw them beside its published numbers.

    A run that was stopped goes on when it is started again with the same --out.
    """
    from manul.experiments import reproduce as run

    named = [name for each in datasets for name in each.replace(",", " ").split()]
    result = run(
        experiments,
        out=out,
        datasets=named or None,
        rounds=rounds,
        seed=seed,
        data=data,
        target=target,
        vw=vw,
        threads=threads,
        progress=True,
        command=shlex.join(["manul", *sys.argv[1:]]),
    )
    click.echo(result)
