"""`manul reproduce`."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import asdict
from pathlib import Path

import click

from manul.cli._options import FILE, WHOLE, Whole


@click.command(
    epilog="\b\nExample:\n  manul reproduce online --data cars.csv --target price --rounds 1000 --out results"
)
@click.argument("experiments", nargs=-1, metavar="[online] [offline] [timing]")
@click.option(
    "--out", type=FILE, default="results", show_default=True, help="Folder for tables, figures and index.html."
)
@click.option("--datasets", multiple=True, help="Sets of the paper, with commas or repeated; all six unless given.")
@click.option(
    "--rounds", type=WHOLE, help="At most so many rounds per set; all rows, or 1,000,000 of ds, unless given."
)
@click.option("--seed", type=WHOLE, default=0, show_default=True, help="The same seed gives the same losses.")
@click.option("--data", type=FILE, help="A folder with files of the sets, or one table, as manul run reads them.")
@click.option("--target", help="The column to predict, where --data is one table.")
@click.option("--vw/--no-vw", default=None, help="Vowpal Wabbit beside the others; where it is installed, unless said.")
@click.option("--threads", type=Whole(1), help="How many cells are played at once; all cores unless given.")
@click.option("--json", "as_json", is_flag=True, help="Print the tables and findings for programs.")
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
    as_json: bool,
) -> None:
    """Repeat the paper's experiments, and draw them beside its published numbers.

    A run that was stopped goes on when it is started again with the same --out.
    """
    from manul.paper.experiments import reproduce as run

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
    click.echo(json.dumps(asdict(result), default=str) if as_json else result)
