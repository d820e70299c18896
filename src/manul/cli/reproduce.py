"""`manul reproduce`."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import asdict
from typing import Any

import click

from manul.cli._options import FILE, INTEGER, Integer
from manul.cli._wording import echo


@click.command(
    epilog="\b\nExample:\n  manul reproduce online --data cars.csv --target price --rounds 1000 --out results"
)
@click.argument("experiments", nargs=-1, metavar="[online] [offline] [timing]")
@click.option("--out", type=FILE, default="results", help="Folder for tables, figures and index.html.")
@click.option("--datasets", multiple=True, help="Data sets of the paper, separated by commas.  [default: all six]")
@click.option(
    "--rounds", type=INTEGER, help="Maximum number of rounds per data set.  [default: all rows; 1,000,000 for ds]"
)
@click.option("--seed", type=INTEGER, default=0, help="Random seed.")
@click.option("--data", type=FILE, help="Folder with the data sets' files, or one table that manul run can read.")
@click.option("--target", help="Column to predict, if --data is one table.")
@click.option("--vw/--no-vw", default=None, help="Also run Vowpal Wabbit.  [default: if it is installed]")
@click.option("--threads", type=Integer(1), help="Number of cells to run in parallel.  [default: all cores]")
@click.option("--json", "as_json", is_flag=True, help="Print the tables and findings as JSON.")
def reproduce(experiments: tuple[str, ...], datasets: tuple[str, ...], *, as_json: bool, **settings: Any) -> None:
    """Repeat the paper's experiments and plot them next to its published numbers.

    An interrupted run resumes if it is started again with the same --out.
    """
    from manul.paper.experiments import reproduce as run

    names = [name for option in datasets for name in option.replace(",", " ").split()]
    command = shlex.join(["manul", *sys.argv[1:]])
    result = run(experiments, datasets=names or None, **settings, progress=True, command=command)
    echo(json.dumps(asdict(result), default=str) if as_json else result)
