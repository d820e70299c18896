"""`manul check`."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("log", type=Path)
@click.option("--policy", type=Path, help="A policy to judge the effective sample by; a uniform one by default.")
@click.option("--actions", type=(float, float), help="The range of the actions, where the log does not say.")
@click.option("--losses", type=(float, float), help="The range of the losses, where the log does not say.")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
@click.pass_context
def check(
    context: click.Context,
    log: Path,
    policy: Path | None,
    actions: tuple[float, float] | None,
    losses: tuple[float, float] | None,
    *,
    as_json: bool,
) -> None:
    """Say whether a log is fit for off-policy work; the exit status is 1 when it must not be used."""
    import manul
    from manul.offpolicy import doctor, reports

    judged = None if policy is None else manul.load(policy)
    findings = doctor(reports.Stored([log]), judged, actions=actions, losses=losses)
    click.echo(reports.findings_json(findings) if as_json else reports.findings_text(findings))
    context.exit(0 if reports.fit(findings) else 1)
