"""`manul token`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from manul.cli._options import FILE, Choice


@click.command(epilog="\b\nExample:\n  manul token decide report --file tokens")
@click.argument("rights", type=Choice(("decide", "report", "admin")), nargs=-1, required=True)
@click.option("--file", type=FILE, default="tokens", help="Token file for `manul serve --token-file`.")
@click.option("--json", "as_json", is_flag=True, help="Print the token as JSON.")
def token(rights: tuple[str, ...], file: Path, *, as_json: bool) -> None:
    """Create a token with RIGHTS, add its hash to a file, and print the token; it is not shown again."""
    from manul.service.http import tokens

    secret = tokens.add(file, rights)
    click.echo(json.dumps({"token": secret, "rights": rights, "file": str(file)}) if as_json else secret)
