"""`manul check`."""

from __future__ import annotations

from pathlib import Path

import click

from manul.cli._options import FILE, MODEL, RANGE, File


@click.command(epilog="\b\nExample:\n  manul check run.parquet")
@click.argument("log", type=FILE)
@click.option(
    "--policy", type=File(*MODEL), help="A policy to judge the effective sample by; a uniform one by default."
)
@click.option("--actions", type=RANGE, metavar="LOW HIGH", help="The range of actions, where the log does not say.")
@click.option("--losses", type=RANGE, metavar="LOW HIGH", help="The range of losses, where the log does not say.")
@click.option("--json", "as_json", is_flag=True, help="Print the findings for programs.")
def check(
    log: Path,
    policy: Path | None,
    actions: tuple[float, float] | None,
    losses: tuple[float, float] | None,
    *,
    as_json: bool,
) -> int:
    """Say whether LOG is fit for off-policy work; the exit status is 1 when it must not be used."""
    import manul
    from manul.offpolicy import doctor
    from manul.offpolicy.evaluation import report

    judged = None if policy is None else manul.load(policy)
    findings = doctor(report.Stored([log]), judged, actions=actions, losses=losses)
    click.echo(report.findings_json(findings) if as_json else report.findings_text(findings))
    return 0 if report.fit(findings) else 1
