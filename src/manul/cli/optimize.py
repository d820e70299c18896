"""`manul optimize`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from manul.cli._options import (
    AGENT,
    FILE,
    INTEGER,
    MODEL,
    NUMBER,
    PICTURE,
    RANGE,
    Choice,
    File,
    List,
    format_option,
    formula_option,
)
from manul.cli._wording import echo
from manul.errors import ParameterError

_EXAMPLES = {"bandwidths": "1/4,1/16", "leaves": "16,128"}
ROWS_AT_ONCE = 131_072


@click.command(
    epilog="\b\nExample:\n  manul optimize run.parquet --bandwidths 1/4,1/16 --leaves 16,128 --out better.manul"
)
@click.argument("log", type=FILE)
@click.option(
    "--candidate",
    "candidates",
    type=Choice(("auto", "cats")),
    multiple=True,
    help="Policies to try: the critic of Auto, or a grid of trees; may be repeated.  [default: both, or only the grid]",
)
@click.option(
    "--grid",
    type=Choice(("small", "paper", "authors")),
    help="A small grid of trees, that of the paper, or the one its authors ran, which has no bandwidth of half the range.",
)
@click.option(
    "--bandwidths", type=List(NUMBER), help="Bandwidths instead of a named grid, as shares of the range: 1/4,1/16."
)
@click.option("--leaves", type=List(INTEGER), help="Numbers of leaves, required with --bandwidths: 16,128.")
@click.option("--agent", "agents", type=AGENT, multiple=True, help="Another agent to try; may be repeated.")
@click.option("--rule", type=Choice(("path", "paper", "margin")), default="path", help="Training rule of the trees.")
@click.option(
    "--penalty",
    default="measured",
    help="Penalty of trees: 'measured' from the weights, or the constant of Algorithm 3, 1 or 'paper' (its theorem's).",
)
@click.option(
    "--draw", is_flag=True, help="Return the policy as it was before a random round instead of after the last."
)
@click.option("--actions", type=RANGE, metavar="LOW HIGH", help="Range of actions.  [default: the log's, or 0 1]")
@click.option("--losses", type=RANGE, metavar="LOW HIGH", help="Range of losses.  [default: the log's, or 0 1]")
@click.option("--rewards", type=RANGE, metavar="LOW HIGH", help="Range of rewards, if the log has rewards instead.")
@formula_option
@format_option("LOG")
@click.option("--epsilon", type=NUMBER, default=0.0, help="Exploration rate of the resulting policy.")
@click.option("--seed", type=INTEGER, default=0, help="Random seed.")
@click.option("--out", type=File(*MODEL), help="File for the policy; the table is written next to it as CSV.")
@click.option("--plot", type=File(*PICTURE), help="Write a heat map of the objective over bandwidth and leaves.")
@click.option("--resume", type=FILE, help="Folder for checkpoints; an interrupted run resumes from it.")
@click.option(
    "--engine",
    type=Choice(("local", "ray")),
    default="local",
    help="Run on this machine or on a Ray cluster.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the table as JSON.")
def optimize(
    log: Path,
    candidates: tuple[str, ...],
    grid: str | None,
    bandwidths: list[float] | None,
    leaves: list[int] | None,
    agents: tuple[str, ...],
    log_format: str | None,
    formula: str | None,
    penalty: str,
    out: Path | None,
    plot: Path | None,
    *,
    as_json: bool,
    **settings: Any,
) -> int:
    """Train the critic of Auto and a grid of trees on LOG, and keep the policy with the lowest estimated loss.

    The last line says whether LOG proves that the policy is better than the logged one; the exit status is 1 if LOG
    cannot show what the policy loses. CATS_Off of the paper is
    --candidate cats --grid paper --penalty 1.
    """
    import manul
    from manul.offpolicy.evaluation import report
    from manul.offpolicy.optimization.optimize import check_plot

    readable: Any = manul.Log
    batches = readable.batches(log, ROWS_AT_ONCE, format=log_format)
    chosen: dict[str, Any] = {"candidates": candidates or None, "grid": _grid(grid, bandwidths, leaves, agents)}
    if plot is not None:
        check_plot(batches, **chosen)
    if formula is not None:
        settings["outcome"] = report.priced(batches, formula, settings.pop("losses"), settings.pop("rewards"))
    best = manul.optimize(
        batches,
        **chosen,
        penalty=_parse_penalty(penalty),
        progress=True,
        **settings,
    )
    if out is not None:
        best.save(out)
    if plot is not None:
        manul.plotting.save(best.plot(), plot)
    echo(json.dumps(report.finite(_as_dict(best, out))) if as_json else best)
    return 0 if best.usable else 1


def _grid(name: str | None, bandwidths: list[float] | None, leaves: list[int] | None, agents: tuple[str, ...]) -> Any:
    import manul

    if (bandwidths is None) != (leaves is None):
        given, other = ("leaves", "bandwidths") if bandwidths is None else ("bandwidths", "leaves")
        raise ParameterError(f"--{given} requires --{other}, such as --{other} {_EXAMPLES[other]}.", other)
    if bandwidths is not None and leaves is not None:
        return manul.offpolicy.Grid(bandwidths=bandwidths, leaves=leaves, others=agents)
    if name is None and not agents:
        return None
    grids = {"paper": manul.offpolicy.Grid.paper(), "authors": manul.offpolicy.Grid.paper(half=False)}
    return manul.offpolicy.Grid(cells=grids.get(name or "small", manul.offpolicy.Grid.small()).cells, others=agents)


def _parse_penalty(penalty: str) -> Any:
    try:
        return float(penalty)
    except ValueError:
        return penalty


def _as_dict(best: Any, out: Path | None) -> dict[str, Any]:
    return {
        "policy": None if out is None else str(out),
        "chosen": _row(best, best.chosen),
        "table": [_row(best, row) for row in best.table],
        "verdict": None if best.verdict is None else _verdict(best.verdict),
        "without_densities": None if best.without_densities is None else str(best.without_densities),
    }


def _row(best: Any, row: Any) -> Any:
    """The losses of a candidate, and its rewards if the log has them."""
    stated = row.stated(best.outcome)
    rewards = {"value": stated.estimate, "penalty": stated.penalty, "objective": stated.objective}
    return {**row._asdict(), "reward": rewards} if best.outcome.higher else row._asdict()


def _verdict(verdict: Any) -> dict[str, Any]:
    from manul.offpolicy.evaluation import report

    return {"status": verdict.status, **report.plain(verdict)}
