"""`manul convert`."""

from __future__ import annotations

import json
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from manul.cli._options import FILE, NUMBER, RANGE, format_option, knobs_option
from manul.cli._wording import echo


@click.command(epilog="\b\nExample:\n  manul convert log.vw log.parquet --actions 0 1 --losses 0 1")
@click.argument("source", metavar="IN", type=FILE)
@click.argument("target", metavar="OUT", type=FILE)
@click.option("--actions", "action_range", type=RANGE, metavar="LOW HIGH", help="Range of actions, recorded in OUT.")
@knobs_option("IN")
@click.option("--losses", "loss_range", type=RANGE, metavar="LOW HIGH", help="Range of losses, recorded in OUT.")
@click.option(
    "--rewards", "reward_range", type=RANGE, metavar="LOW HIGH", help="Range of rewards, if IN has rewards instead."
)
@click.option(
    "--features", type=FILE, help="Data file that vw read when it wrote IN with -p; its features are joined by row."
)
@format_option("IN", "format")
@click.option("--first", type=NUMBER, metavar="SHARE", help="Write only the first share of the rows, such as 0.8.")
@click.option("--last", type=NUMBER, metavar="SHARE", help="Write only the last share of the rows, such as 0.2.")
@click.option(
    "--estimate-density",
    is_flag=True,
    help="Estimate the densities of a log that has none, or wrong ones; the log must fit into memory.",
)
@click.option("--skip-bad", is_flag=True, help="Skip invalid rows and print how many there were.")
@click.option("--json", "as_json", is_flag=True, help="Print the counts as JSON.")
def convert(source: Path, target: Path, *, as_json: bool, **settings: Any) -> None:
    """Convert the log IN to the format of OUT.

    The file suffix selects the format: .parquet, .csv, .jsonl, .vw or .json (Vowpal Wabbit's text and JSON),
    each optionally followed by .gz. With --format, IN may have any name.
    """
    from manul.logs.convert import convert as convert_log

    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always", UserWarning)
        result = convert_log(source, target, **settings, progress=True)
    for note in notes:
        echo(note.message, err=True)
    echo(json.dumps({**asdict(result), "target": str(target)}) if as_json else result)
