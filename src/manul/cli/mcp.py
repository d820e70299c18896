"""`manul mcp`."""

from __future__ import annotations

from pathlib import Path

import click

from manul.cli._options import FILE
from manul.errors import FileError, MissingDependency


@click.command(epilog="\b\nExample:\n  manul mcp --folder logs --url http://127.0.0.1:8000")
@click.option("--folder", type=FILE, default=".", help="Folder whose files the tools may read.")
@click.option(
    "--url", default="http://127.0.0.1:8000", envvar="MANUL_URL", help="Address of the service; also MANUL_URL."
)
@click.option("--token", envvar="MANUL_TOKEN", help="Token, if the service has tokens; also MANUL_TOKEN.")
@click.option("--write", is_flag=True, help="Also offer tools that pause loops and rollouts, and abort rollouts.")
def mcp(folder: Path, url: str, token: str | None, *, write: bool) -> None:
    """Serve tools to assistants over the Model Context Protocol, on standard input and output.

    The tools list loops, and show their status, reports and rollouts; they inspect files, check logs, and evaluate and
    compare policies. They read only files in --folder, and change nothing without --write. A token with the right
    `report` is enough to read.
    """
    try:
        from manul.cli._assistant_tools import Tools, server
    except ImportError as error:
        raise MissingDependency(f"manul mcp needs {error.name}. Install it: pip install 'manul[mcp]'.") from None
    if not folder.is_dir():
        raise FileError(f"{folder}: no such folder.")
    server(Tools(folder, url, token), write=write).run("stdio")
