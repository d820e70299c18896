"""`manul check`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from manul.cli._options import FILE, MODEL, File, format_option, knobs_option, range_options
from manul.cli._wording import echo


@click.command(epilog="\b\nExample:\n  manul check run.parquet")
@click.argument("log", type=FILE)
@click.option("--policy", type=File(*MODEL), help="Policy whose importance weights are tested.")
@range_options
@knobs_option("LOG")
@format_option("LOG")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def check(
    log: Path,
    policy: Path | None,
    knobs: Any,
    log_format: str | None,
    formula: str | None,
    *,
    as_json: bool,
    **ranges: Any,
) -> int:
    """Check whether LOG is suitable for off-policy evaluation; exit with 1 if it is not."""
    import manul
    from manul.offpolicy import doctor
    from manul.offpolicy.evaluation import report

    loaded = None if policy is None else manul.load(policy)
    stored = report.Stored([log], knobs, log_format, loaded)
    if formula is not None:
        ranges["outcome"] = report.priced(stored, formula, ranges.pop("losses"), ranges.pop("rewards"))
    findings = doctor(stored, loaded, **ranges, progress=sys.stderr.isatty())
    echo(report.findings_json(findings) if as_json else report.findings_text(findings))
    return 0 if report.fit(findings) else 1
