"""`manul run`."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from manul.cli._options import AGENT, FILE, INTEGER, MODEL, RANGE, Choice, Epsilon, File, Share
from manul.cli._wording import echo

TABLE_FORMATS = ("csv", "tsv", "parquet", "arff", "vw")


@click.command(epilog="\b\nExample:\n  manul run cars.csv --target price --log run.parquet --out policy.manul")
@click.argument("table", type=FILE)
@click.option(
    "--target",
    "targets",
    multiple=True,
    help="Column with the best action of each row; give it again for each of several knobs.  [default for .vw: the label]",
)
@click.option("--agent", type=AGENT, help="Agent to run.  [default: auto; cats if --leaves or --bandwidth is given]")
@click.option("--leaves", type=INTEGER, help="Number of leaves of the tree, a power of two.  [default: 512]")
@click.option(
    "--bandwidth",
    type=Share(),
    help="Half-width of the window around the chosen action: a number in units of the target, or a fraction such as "
    "1/16 of the range of actions.  [default: 1/32]",
)
@click.option(
    "--epsilon",
    type=Epsilon(),
    help="Share of rounds that explore uniformly: a number, or FIRST:LAST:ROUNDS, which fades from FIRST to LAST and is half of "
    "FIRST after ROUNDS rounds, or a schedule of a plugin as JSON.  "
    "[default: auto, which is 0.05:0.002:1000, for the agent auto; otherwise 0.05]",
)
@click.option(
    "--actions", type=RANGE, metavar="LOW HIGH", help="Range of actions.  [default: the range of the targets]"
)
@click.option(
    "--loss",
    type=Choice(("absolute", "squared")),
    default="absolute",
    help="Distance to the target divided by the range of actions, or its square.",
)
@click.option(
    "--losses",
    type=Choice(("known", "auto")),
    help="Whether the agent knows that losses are in [0, 1], or learns their scale.  [default: known]",
)
@click.option(
    "--rewards",
    type=Choice(("known", "auto")),
    help="Report rewards, which are negative losses, instead; their range is known, or the agent learns their scale.",
)
@click.option(
    "--format",
    "table_format",
    type=Choice(TABLE_FORMATS),
    help="Format of TABLE, such as vw for Vowpal Wabbit's text.  [default: by the suffix]",
)
@click.option("--shuffle", is_flag=True, help="Shuffle the rows.")
@click.option("--seed", type=INTEGER, default=0, help="Random seed.")
@click.option("--log", type=FILE, help="File for the log of decisions, in any format of manul convert.")
@click.option("--out", type=File(*MODEL), help="File for the learned policy.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def run(
    table: Path,
    targets: tuple[str, ...],
    actions: tuple[float, float] | None,
    log: Path | None,
    out: Path | None,
    bandwidth: float | Fraction | None,
    table_format: str | None,
    *,
    shuffle: bool,
    seed: int,
    as_json: bool,
    **settings: Any,
) -> None:
    """Run an agent online over the rows of TABLE: .csv, .tsv, .parquet, .arff or .vw, optionally gzipped."""
    from manul.logs.formats import format_of
    from manul.worlds.table_report import describe_columns
    from manul.worlds.table_run import TargetTable, run_agent

    if log is not None:
        format_of(log, writing=True)
    rows = TargetTable.read(table, target=targets, actions=actions, suffix=table_format and f".{table_format}")
    if not as_json:
        echo(f"{describe_columns(rows)}\n")
    _print_notes(rows, table)
    rows = rows.shuffle(seed) if shuffle else rows
    result = run_agent(rows, bandwidth=bandwidth, seed=seed, progress=True, **settings)
    if out is not None:
        result.policy.save(out)
    if log is not None:  # last, because not every format can hold every log
        result.log.write(log)
    files = {"log": None if log is None else str(log), "policy": None if out is None else str(out)}
    if as_json:
        echo(json.dumps({**result.as_dict(), **files}))
    else:
        echo("\n".join([str(result), *(f"{name:<14} {path}" for name, path in files.items() if path)]))
        if result.objection is not None:
            echo(f"\n{result.objection}")


def _print_notes(rows: Any, table: Path) -> None:
    if rows.skipped:
        count = f"{rows.skipped:,} row{'' if rows.skipped == 1 else 's'}"
        echo(f"{table}: skipped {count} whose target is missing or infinite.", err=True)
    if rows.clipped:
        echo(f"{rows.clipped:,} targets are outside the range of actions and were clipped to it.", err=True)
    if rows.typical_targets is not None:
        low, high, share = rows.typical_targets
        echo(
            f"{math.floor(1000 * share) / 10:g} % of the targets are between {low:.12g} and {high:.12g}, less than half of the range of "
            f"actions. Consider --actions {low:.12g} {high:.12g}; the other targets are then clipped to that range.",
            err=True,
        )
    for column in rows.profiles:
        for sentence in column.warnings:
            echo(f"{table}: {sentence}", err=True)
    for name in rows.renamed_columns:
        echo(f"Column {name!r} was renamed to '{name}_' because every log has a column {name!r}.", err=True)
