"""`manul token`."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("rights", type=click.Choice(["decide", "report", "admin"]), nargs=-1, required=True)
@click.option("--file", type=Path, default="tokens", show_default=True, help="File for `manul serve --token-file`.")
def token(rights: tuple[str, ...], file: Path) -> None:
    """Make a token with RIGHTS, add its hash to a file, and print it: it cannot be read again."""
    from manul.service import tokens

    made = tokens.new_token()
    with file.open("a") as lines:
        lines.write(tokens.line(made, rights) + "\n")
    click.echo(made)
