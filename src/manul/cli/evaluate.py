"""`manul evaluate`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from manul.cli._options import (
    ESTIMATOR,
    FILE,
    INTEGER,
    INTERVAL,
    MODEL,
    NUMBER,
    PICTURE,
    File,
    format_option,
    range_options,
)
from manul.cli._wording import echo

if TYPE_CHECKING:
    from manul.offpolicy.estimate import Estimate


@click.command(epilog="\b\nExample:\n  manul evaluate policy.manul run.parquet --estimator ips --estimator snips")
@click.argument("policy", type=File(*MODEL))
@click.argument("logs", type=FILE, nargs=-1, required=True, metavar="[POLICIES]... LOGS...")
@click.option(
    "--estimator",
    "estimators",
    type=ESTIMATOR,
    multiple=True,
    help="Estimator; may be repeated.  [default: snips; with several knobs dr or dm]",
)
@click.option(
    "--interval",
    type=INTERVAL,
    help="Kind of confidence interval; `sequence` stays valid if you look repeatedly.  "
    "[default: exact-mass if LOG has density_levels, otherwise empirical-likelihood; for dr normal]",
)
@click.option("--largest-weight", type=NUMBER, help="Upper bound of the weights, if the log has no column floor.")
@click.option(
    "--against", help="Compare with the logged policy (`logged`) or the policy of this name, by paired differences."
)
@click.option("--by", metavar="COLUMN", help="Compare within each value of this column of the contexts.")
@click.option(
    "--clusters", metavar="COLUMN", help="Compare with clusters, such as users, whose decisions depend on each other."
)
@click.option("--level", type=NUMBER, default=0.95, help="Confidence level.")
@click.option("--seed", type=INTEGER, default=0, help="Random seed of the bootstrap.")
@range_options
@format_option("LOGS")
@click.option("--plot", type=File(*PICTURE), help="Write a plot of the estimates.")
@click.option("--json", "as_json", is_flag=True, help="Print the estimates as JSON.")
def evaluate(
    policy: Path,
    logs: tuple[Path, ...],
    estimators: tuple[str, ...],
    interval: str | None,
    largest_weight: float | None,
    against: str | None,
    by: str | None,
    clusters: str | None,
    level: float,
    seed: int,
    actions: tuple[float, float] | None,
    losses: tuple[float, float] | None,
    rewards: tuple[float, float] | None,
    formula: str | None,
    log_format: str | None,
    plot: Path | None,
    *,
    as_json: bool,
) -> int:
    """Estimate the mean loss or reward of POLICY from LOGS of another policy; exit with 1 if it cannot be trusted.

    With several policies, or with --against, --by or --clusters, compare them with the logged policy or another one.
    """
    import manul
    from manul.offpolicy.evaluation import report

    policies = [policy, *(path for path in logs if path.suffix in MODEL)]
    paths = [path for path in logs if path.suffix not in MODEL]
    if not paths:
        raise click.UsageError("missing argument LOGS")
    loaded = [manul.load(path) for path in policies]
    stored = report.Stored(paths, file_format=log_format, policy=loaded[0])
    shared: dict[str, Any] = {"level": level, "actions": actions, "losses": losses, "rewards": rewards}
    shared |= {"outcome": report.priced(stored, formula, losses, rewards)} if formula is not None else {}
    if formula is not None:
        del shared["losses"], shared["rewards"]
    shared |= {"largest_weight": largest_weight, "progress": sys.stderr.isatty()}
    if len(policies) > 1 or against or by or clusters:
        if estimators or interval or plot:
            raise click.UsageError(
                "--estimator, --interval and --plot apply to one policy; a comparison has none of them"
            )
        named = dict(zip(_names(policies), loaded, strict=True))
        comparison = manul.compare(named, stored, against or "logged", by=by, clusters=clusters, **shared)
        echo(report.comparison_json(comparison) if as_json else str(comparison))
        return 0 if comparison.usable else 1
    estimates = [
        manul.evaluate(loaded[0], stored, estimator, interval, seed=seed, **shared)
        for estimator in estimators or [None]
    ]
    if plot is not None:
        _plot(estimates, plot)
    echo(report.estimates_json(estimates) if as_json else report.estimates_table(estimates))
    return 0 if all(estimate.usable for estimate in estimates) else 1


def _names(paths: Sequence[Path]) -> list[str]:
    """The names of the policies: their file names without the suffix, or their paths if two files have one name."""
    names = [path.stem for path in paths]
    return names if len(set(names)) == len(names) else [str(path) for path in paths]


def _plot(estimates: Sequence[Estimate], path: Path) -> None:
    from manul import plotting

    axes = None
    for estimate in estimates:
        axes = estimate.plot(axes)
    assert axes is not None
    plotting.save(axes, path)
