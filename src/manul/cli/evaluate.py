"""`manul evaluate`."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("policy", type=Path)
@click.argument("logs", type=Path, nargs=-1, required=True)
@click.option(
    "--estimator", "estimators", multiple=True, default=["snips"], show_default=True, help="ips, snips or dr."
)
@click.option(
    "--interval", default="bootstrap", show_default=True, help="Or normal, clopper-pearson, bernstein, sequence."
)
@click.option("--level", type=float, default=0.95, show_default=True, help="How often the interval holds.")
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed gives the same result.")
@click.option("--losses", type=(float, float), help="The range of the losses, where the log does not say.")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def evaluate(
    policy: Path,
    logs: tuple[Path, ...],
    estimators: tuple[str, ...],
    interval: str,
    level: float,
    seed: int,
    losses: tuple[float, float] | None,
    *,
    as_json: bool,
) -> None:
    """Estimate what a policy would have lost on logs of another."""
    import manul
    from manul.offpolicy import reports

    loaded, stored = manul.load(policy), reports.Stored(logs)
    found = [
        manul.evaluate(loaded, stored, estimator, interval, level=level, seed=seed, losses=losses)
        for estimator in estimators
    ]
    click.echo(reports.estimates_json(found) if as_json else reports.estimates_table(found))
