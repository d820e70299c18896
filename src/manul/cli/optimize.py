"""`manul optimize`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

ROWS_AT_ONCE = 131_072


@click.command()
@click.argument("log", type=Path)
@click.option("--grid", type=click.Choice(["paper", "authors"]), default="paper", show_default=True,
              help="The paper's cells; its authors ran them without a bandwidth of half the range.")  # fmt: skip
@click.option(
    "--rule", type=click.Choice(["path", "paper"]), default="path", show_default=True, help="How trees learn."
)
@click.option("--penalty", default="1", show_default=True, help="Constant of the penalty, or 'paper'.")
@click.option("--draw", is_flag=True, help="Deploy the policy before a round drawn at random, not the last one.")
@click.option("--actions", type=float, nargs=2, default=(0.0, 1.0), show_default=True, help="Range of actions.")
@click.option("--losses", type=float, nargs=2, default=(0.0, 1.0), show_default=True, help="Range of losses.")
@click.option("--epsilon", type=float, default=0.0, show_default=True, help="How much the policy explores.")
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed gives the same result.")
@click.option("--out", type=Path, help="File for the policy; the table goes beside it as CSV.")
@click.option("--resume", type=Path, help="Folder to go on from, should the run be stopped.")
@click.option("--engine", type=click.Choice(["local", "ray"]), default="local", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print the table for programs.")
def optimize(log: Path, grid: str, penalty: str, out: Path | None, *, as_json: bool, **settings: Any) -> None:
    """Train every cell of a grid on LOG, and keep the policy of lowest penalised loss."""
    import manul

    readable: Any = manul.Log
    best = manul.optimize(
        readable.batches(log, ROWS_AT_ONCE),
        grid=manul.Grid.paper(half=grid == "paper"),
        penalty=_constant(penalty),
        progress=True,
        **settings,
    )
    if out is not None:
        best.save(out)
    click.echo(json.dumps(_described(best, out)) if as_json else best.table)


def _constant(penalty: str) -> Any:
    try:
        return float(penalty)
    except ValueError:
        return penalty


def _described(best: Any, out: Path | None) -> dict[str, Any]:
    return {
        "policy": None if out is None else str(out),
        "chosen": best.chosen._asdict(),
        "table": [row._asdict() for row in best.table],
    }
