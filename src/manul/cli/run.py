"""`manul run`."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from manul.cli._options import AGENT, FILE, MODEL, NUMBER, RANGE, WHOLE, Choice, File, Share


@click.command(epilog="\b\nExample:\n  manul run cars.csv --target price --log run.parquet --out policy.manul")
@click.argument("table", type=FILE)
@click.option("--target", help="The column with the best action of each row; the label of a .vw table by default.")
@click.option("--agent", type=AGENT, help="Who plays; auto, or cats where leaves or a bandwidth are given, by default.")
@click.option("--leaves", type=WHOLE, help="How many actions a tree tells apart, a power of two; 512 by default.")
@click.option(
    "--bandwidth",
    type=Share(),
    help="How far around its action a policy plays, in units of the target; written as a fraction such as 1/16, "
    "a share of the range of actions. 1/32 by default.",
)
@click.option("--epsilon", type=NUMBER, default=0.05, show_default=True, help="The share of uniform exploration.")
@click.option("--actions", type=RANGE, metavar="LOW HIGH", help="The range of actions; the targets' by default.")
@click.option(
    "--loss",
    type=Choice(("absolute", "squared")),
    default="absolute",
    show_default=True,
    help="The distance to the target as a share of the range, or its square.",
)
@click.option(
    "--shuffle", is_flag=True, help="Play the rows in another order than that of the file, drawn by the seed."
)
@click.option("--seed", type=WHOLE, default=0, show_default=True, help="The same seed gives the same result.")
@click.option("--log", type=FILE, help="File for what was decided, in any format of manul convert.")
@click.option("--out", type=File(*MODEL), help="File for the policy that was learned.")
@click.option("--json", "as_json", is_flag=True, help="Print the result for programs.")
def run(
    table: Path,
    target: str | None,
    actions: tuple[float, float] | None,
    log: Path | None,
    out: Path | None,
    bandwidth: float | Fraction | None,
    *,
    shuffle: bool,
    seed: int,
    as_json: bool,
    **settings: Any,
) -> None:
    """Learn online which action each row of TABLE calls for: .csv, .tsv, .parquet, .arff or .vw, also gzipped."""
    from manul.logs.formats import format_of
    from manul.worlds.table_run import Example, play

    if log is not None:
        format_of(log)
    example = Example.read(table, target=target, actions=actions)
    _note(example, table)
    example = example.shuffled(seed) if shuffle else example
    outcome = play(example, bandwidth=bandwidth, seed=seed, progress=True, **settings)
    if log is not None:
        outcome.log.write(log)
    if out is not None:
        outcome.policy.save(out)
    written = {"log": None if log is None else str(log), "policy": None if out is None else str(out)}
    if as_json:
        click.echo(json.dumps({**outcome.as_dict(), **written}))
    else:
        click.echo("\n".join([str(outcome), *(f"{name:<14} {path}" for name, path in written.items() if path)]))


def _note(example: Any, table: Path) -> None:
    if example.left_out:
        click.echo(f"{example.left_out:,} rows of {table} have no target and were left out.", err=True)
    if example.moved:
        click.echo(f"{example.moved:,} targets lie outside the actions and were moved to the nearer end.", err=True)
    if example.usual is not None:
        low, high = example.usual
        click.echo(f"99 % of the targets lie in {low:g} to {high:g}: try --actions {low:g} {high:g}.", err=True)
    for name in example.renamed:
        click.echo(f"The column {name!r} is called '{name}_' here: a log has a column of that name itself.", err=True)
