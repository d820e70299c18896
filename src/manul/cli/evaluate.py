"""`manul evaluate`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from manul.cli._options import ESTIMATOR, FILE, MODEL, NUMBER, PICTURE, RANGE, WHOLE, Choice, File

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
    show_default=True,
    help="How to estimate; may be given several times.",
)
@click.option(
    "--interval",
    type=Choice(("bootstrap", "normal", "clopper-pearson", "bernstein", "sequence")),
    default="bootstrap",
    show_default=True,
    help="How to bound the estimate; sequence holds however often one looks.",
)
@click.option("--level", type=NUMBER, default=0.95, show_default=True, help="How often the interval holds.")
@click.option("--seed", type=WHOLE, default=0, show_default=True, help="The same seed gives the same result.")
@click.option("--actions", type=RANGE, metavar="LOW HIGH", help="The range of actions, where the log does not say.")
@click.option("--losses", type=RANGE, metavar="LOW HIGH", help="The range of losses, where the log does not say.")
@click.option("--plot", type=File(*PICTURE), help="Draw the estimates into a picture.")
@click.option("--json", "as_json", is_flag=True, help="Print the estimates for programs.")
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
    """Estimate what POLICY would have lost on LOGS of another."""
    import manul
    from manul.offpolicy.evaluation import report

    loaded, stored = manul.load(policy), report.Stored(logs)
    found = [
        manul.evaluate(loaded, stored, estimator, interval, level=level, seed=seed, actions=actions, losses=losses)
        for estimator in estimators
    ]
    if plot is not None:
        _draw(found, plot)
    click.echo(report.estimates_json(found) if as_json else report.estimates_table(found))


def _draw(estimates: Sequence[Estimate], path: Path) -> None:
    from manul.utils import plotting

    axes = None
    for estimate in estimates:
        axes = estimate.plot(axes)
    assert axes is not None
    plotting.save(axes, path)
