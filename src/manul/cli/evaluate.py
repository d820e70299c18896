"""`manul evaluate`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from manul.cli._options import ESTIMATOR, FILE, INTEGER, MODEL, NUMBER, PICTURE, RANGE, Choice, File

if TYPE_CHECKING:
    from manul.types import Estimate


@click.command(epilog="\b\nExample:\n  manul evaluate policy.manul run.parquet --estimator ips --estimator snips")
@click.argument("policy", type=File(*MODEL))
@click.argument("logs", type=FILE, nargs=-1, required=True)
@click.option(
    "--estimator",
    "estimators",
    type=ESTIMATOR,
    multiple=True,
    default=["snips"],
    help="Estimator; may be repeated.",
)
@click.option(
    "--interval",
    type=Choice(("bootstrap", "normal", "clopper-pearson", "bernstein", "sequence")),
    default="bootstrap",
    help="Kind of confidence interval; `sequence` stays valid if you look repeatedly.",
)
@click.option("--level", type=NUMBER, default=0.95, help="Confidence level.")
@click.option("--seed", type=INTEGER, default=0, help="Random seed.")
@click.option("--actions", type=RANGE, metavar="LOW HIGH", help="Range of actions, if the log does not record it.")
@click.option("--losses", type=RANGE, metavar="LOW HIGH", help="Range of losses, if the log does not record it.")
@click.option("--plot", type=File(*PICTURE), help="Write a plot of the estimates.")
@click.option("--json", "as_json", is_flag=True, help="Print the estimates as JSON.")
def evaluate(
    policy: Path,
    logs: tuple[Path, ...],
    estimators: tuple[str, ...],
    interval: str,
    level: float,
    seed: int,
    actions: tuple[float, float] | None,
    losses: tuple[float, float] | None,
    plot: Path | None,
    *,
    as_json: bool,
) -> None:
    """Estimate the mean loss of POLICY from LOGS of decisions made by another policy."""
    import manul
    from manul.logs.batching import declared_ranges
    from manul.offpolicy.evaluation import report

    loaded, stored = manul.load(policy), report.Stored(logs)
    actions, losses = declared_ranges(stored, actions, losses)
    estimates = [
        manul.evaluate(loaded, stored, estimator, interval, level=level, seed=seed, actions=actions, losses=losses)
        for estimator in estimators
    ]
    if plot is not None:
        _plot(estimates, plot)
    click.echo(report.estimates_json(estimates) if as_json else report.estimates_table(estimates))


def _plot(estimates: Sequence[Estimate], path: Path) -> None:
    from manul.utils import plotting

    axes = None
    for estimate in estimates:
        axes = estimate.plot(axes)
    assert axes is not None
    plotting.save(axes, path)
