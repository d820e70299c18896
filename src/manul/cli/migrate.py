"""`manul migrate`."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from manul.errors import MissingDependency


@click.command(epilog="\b\nExample:\n  manul migrate decisions.db")
@click.argument("store", envvar="MANUL_STORE")
@click.option("--json", "as_json", is_flag=True, help="Print the versions as JSON.")
def migrate(store: str, *, as_json: bool) -> None:
    """Bring STORE to the version of this manul.

    STORE is a SQLite file that no service uses, or a postgresql:// URL, and MANUL_STORE by default. A service does the
    same when it starts; this command does it before, and says whether it succeeded. There is no way back except a
    backup.
    """
    try:
        from manul.service.store.migration import migrate as migrate_store
    except ImportError as error:
        raise MissingDependency(f"manul migrate needs {error.name}. Install it: pip install 'manul[serve]'.") from None
    result = migrate_store(store)
    click.echo(json.dumps(asdict(result)) if as_json else result)
