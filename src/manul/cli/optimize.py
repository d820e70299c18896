"""`manul optimize`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from manul.cli._options import AGENT, FILE, MODEL, NUMBER, PICTURE, RANGE, WHOLE, Choice, File, List
from manul.errors import ParameterError

_TRIES = {"bandwidths": "1/4,1/16", "leaves": "16,128"}
ROWS_AT_ONCE = 131_072


@click.command(
    epilog="\b\nExample:\n  manul optimize run.parquet --bandwidths 1/4,1/16 --leaves 16,128 --out better.manul"
)
@click.argument("log", type=FILE)
@click.option(
    "--grid",
    type=Choice(("paper", "authors")),
    default="paper",
    show_default=True,
    help="The paper's cells; its authors ran them without a bandwidth of half the range.",
)
@click.option(
    "--bandwidths", type=List(NUMBER), help="Other bandwidths than the grid's, as shares of the range: 1/4,1/16."
)
@click.option("--leaves", type=List(WHOLE), help="Other leaves than the grid's: 16,128. Goes with --bandwidths.")
@click.option("--agent", "agents", type=AGENT, multiple=True, help="Another agent to try; may be given several times.")
@click.option(
    "--rule", type=Choice(("path", "paper", "margin")), default="path", show_default=True, help="How trees learn."
)
@click.option("--penalty", default="1", show_default=True, help="Constant of the penalty, or 'paper'.")
@click.option("--draw", is_flag=True, help="Deploy the policy before a round drawn at random, not the last one.")
@click.option(
    "--actions", type=RANGE, metavar="LOW HIGH", help="The range of actions, where the log does not say; else 0 1."
)
@click.option(
    "--losses", type=RANGE, metavar="LOW HIGH", help="The range of losses, where the log does not say; else 0 1."
)
@click.option("--epsilon", type=NUMBER, default=0.0, show_default=True, help="How much the policy explores.")
@click.option("--seed", type=WHOLE, default=0, show_default=True, help="The same seed gives the same result.")
@click.option("--out", type=File(*MODEL), help="File for the policy; the table goes beside it as CSV.")
@click.option("--plot", type=File(*PICTURE), help="Draw the objective over bandwidth and leaves into a picture.")
@click.option("--resume", type=FILE, help="Folder to go on from, should the run be stopped.")
@click.option(
    "--engine", type=Choice(("local", "ray")), default="local", show_default=True, help="This machine or a Ray cluster."
)
@click.option("--json", "as_json", is_flag=True, help="Print the table for programs.")
def optimize(
    log: Path,
    grid: str,
    bandwidths: list[float] | None,
    leaves: list[int] | None,
    agents: tuple[str, ...],
    penalty: str,
    out: Path | None,
    plot: Path | None,
    *,
    as_json: bool,
    **settings: Any,
) -> None:
    """Train every cell of a grid on LOG, and keep the policy of lowest penalised loss."""
    import manul

    readable: Any = manul.Log
    best = manul.optimize(
        readable.batches(log, ROWS_AT_ONCE),
        grid=_grid(grid, bandwidths, leaves, agents),
        penalty=_constant(penalty),
        progress=True,
        **settings,
    )
    if out is not None:
        best.save(out)
    if plot is not None:
        manul.plotting.save(best.plot(), plot)
    click.echo(json.dumps(_described(best, out)) if as_json else best.table)


def _grid(name: str, bandwidths: list[float] | None, leaves: list[int] | None, agents: tuple[str, ...]) -> Any:
    import manul

    if (bandwidths is None) != (leaves is None):
        given, other = ("leaves", "bandwidths") if bandwidths is None else ("bandwidths", "leaves")
        raise ParameterError(f"{other} must be given with {given}; got nothing. Try --{other} {_TRIES[other]}.")
    if bandwidths is not None and leaves is not None:
        return manul.Grid(bandwidths=bandwidths, leaves=leaves, others=agents)
    return manul.Grid(cells=manul.Grid.paper(half=name == "paper").cells, others=agents)


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
