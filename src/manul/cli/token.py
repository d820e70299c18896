"""`manul token`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from manul.cli._options import FILE, Choice, Number


@click.command(epilog="\b\nExample:\n  manul token decide report --file tokens")
@click.argument("rights", type=Choice(("decide", "report", "admin")), nargs=-1, required=True)
@click.option("--file", type=FILE, default="tokens", help="Token file for `manul serve --token-file`.")
@click.option(
    "--loop",
    "loops",
    multiple=True,
    metavar="NAME",
    help="Loop that it is for, or a prefix such as 'price-*'; may be repeated. All loops by default.",
)
@click.option("--rate", type=Number(0.1), help="Requests per second, instead of `manul serve --max-rate`.")
@click.option("--json", "as_json", is_flag=True, help="Print the token as JSON.")
def token(rights: tuple[str, ...], file: Path, loops: tuple[str, ...], rate: float | None, *, as_json: bool) -> None:
    """Create a token with RIGHTS, add its hash to a file, and print the token; it is not shown again."""
    from manul.service.http import tokens

    secret = tokens.add(file, rights, loops, rate)
    granted = {"token": secret, "rights": rights, "loops": loops or None, "rate": rate, "file": str(file)}
    click.echo(json.dumps(granted) if as_json else secret)
