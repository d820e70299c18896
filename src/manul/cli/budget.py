"""`manul budget`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from manul.cli._options import NUMBER
from manul.cli._wording import echo

if TYPE_CHECKING:
    from manul.service.wire import Budget, Kept, Status

RETRIES = 2  # a person waits for the answer
LATEST = 7  # periods that are printed


@click.command(epilog="\b\nExample:\n  manul budget ads --amount 3000")
@click.argument("loop")
@click.option("--amount", type=NUMBER, help="Amount of the budget from now on, also in the current period.")
@click.option(
    "--url", default="http://127.0.0.1:8000", envvar="MANUL_URL", help="Address of the service; also MANUL_URL."
)
@click.option("--token", envvar="MANUL_TOKEN", help="Token, if the service has tokens; also MANUL_TOKEN.")
@click.option("--json", "as_json", is_flag=True, help="Print the budget, and what is kept, as JSON.")
def budget(loop: str, *, amount: float | None, url: str, token: str | None, as_json: bool) -> None:
    """Show the budget of LOOP and the rate that it keeps, or change the amount of the budget."""
    import msgspec

    from manul.service.client import Client

    with Client(url, token, retries=RETRIES) as client:
        status = client.status(loop) if amount is None else client.change_budget(loop, amount)
    if as_json:
        both = {"budget": status.budget, "kept": status.kept}
        echo(msgspec.json.format(msgspec.json.encode(both), indent=2).decode())
    else:
        echo(limits_text(status))


def limits_text(status: Status) -> str:
    """The budget of a loop, and what it keeps, as text."""
    lines = [] if status.budget is None else _budget_lines(status.name, status.budget)
    lines += [] if status.kept is None else _kept_lines(status.name, status.kept)
    return "\n".join(lines or [f"{status.name} has neither a budget nor a rate to keep."])


def _budget_lines(loop: str, state: Budget) -> list[str]:
    period = f"{state.period} decisions" if isinstance(state.period, int) else state.period
    lines = [
        f"{loop}: {state.formula}, at most {state.amount:g} per {period}",
        f"available   {state.available:.4g}",
        f"spent       {state.spent:.4g}, and {state.held:.4g} held back for {state.waiting:,} decisions",
        f"left        {state.left:.4g}",
        f"pace        {_known(state.pace)} of the plan, forecast {_known(state.forecast)}",
        f"price       {state.price:.3g}",
    ]
    lines += [] if state.trouble is None else [state.trouble]
    for each in state.latest[-LATEST:]:
        began = f"{each.started:,.0f}" if isinstance(state.period, int) else _time(each.started)
        lines.append(f"since {began}: {each.spent:.4g} of {each.available:.4g} spent, price {each.price:.3g}")
    return lines


def _kept_lines(loop: str, state: Kept) -> list[str]:
    return [
        f"{loop}: {state.formula} {state.sign} {state.value:g}",
        f"mean        {_known(state.mean)} of {state.outcomes:,} outcomes, price {state.price:.3g}",
        *([] if state.trouble is None else [state.trouble]),
    ]


def _known(number: float | None) -> str:
    return "not known" if number is None else f"{number:.4g}"


def _time(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"
