"""`manul backup`."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from manul.cli._options import FILE
from manul.errors import MissingDependency


@click.command(epilog="\b\nExample:\n  manul backup decisions.db backup.zip")
@click.argument("store")
@click.argument("file", type=FILE)
@click.option("--json", "as_json", is_flag=True, help="Print the counts as JSON.")
def backup(store: str, file: Path, *, as_json: bool) -> None:
    """Back up STORE to FILE while the service runs.

    STORE is a SQLite file or a postgresql:// URL. FILE contains a consistent copy of its loops, decisions, losses and
    models as of the start of the backup; manul restore writes it to a new store of either kind. The token file and the
    folder of --archive are not in it.
    """
    try:
        from manul.service.store.backup import backup as backup_store
    except ImportError as error:
        raise MissingDependency(f"manul backup needs {error.name}. Install it: pip install 'manul[serve]'.") from None
    result = backup_store(store, file, progress=True)
    click.echo(json.dumps({**asdict(result), "file": str(file)}) if as_json else result)
