"""`manul restore`."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from manul.cli._options import FILE
from manul.errors import MissingDependency


@click.command(epilog="\b\nExample:\n  manul restore monday.zip restored.db")
@click.argument("file", type=FILE)
@click.argument("store")
@click.option("--loop", metavar="NAME", help="Restore only this loop, to a store that does not have it.")
@click.option("--json", "as_json", is_flag=True, help="Print the counts as JSON.")
def restore(file: Path, store: str, *, loop: str | None, as_json: bool) -> None:
    """Restore the backup FILE to STORE.

    STORE is a SQLite file or a postgresql:// URL, not necessarily of the kind that was backed up. It must be new or
    without loops (with --loop, without this one), and no service may use it. The whole FILE is checked first; if
    anything fails, STORE does not change.
    """
    try:
        from manul.service.store.backup import restore as restore_store
    except ImportError as error:
        raise MissingDependency(f"manul restore needs {error.name}. Install it: pip install 'manul[serve]'.") from None
    result = restore_store(file, store, loop=loop, progress=True)
    click.echo(json.dumps({**asdict(result), "file": str(file)}) if as_json else result)
