"""Migrations without a service: a store is brought to the version of this manul before new replicas start."""

from __future__ import annotations

from dataclasses import dataclass

from manul.errors import ParameterError
from manul.service.store.backup import access_of


@dataclass(frozen=True)
class Migration:
    """The version of a store before and after.

    >>> print(Migration(before=6, after=7)), print(Migration(before=7, after=7))
    The store had version 6 and has version 7 now.
    The store has version 7 already.
    (None, None)
    """

    before: int
    after: int

    def __str__(self) -> str:
        if self.before == self.after:
            return f"The store has version {self.after} already."
        if not self.before:
            return f"The tables of version {self.after} were created."
        return f"The store had version {self.before} and has version {self.after} now."


def migrate(store: str) -> Migration:
    """Bring a store to the current version, in one transaction.

    Args:
        store: The path of a SQLite file that no service uses, or the URL of a PostgreSQL database.

    >>> import tempfile
    >>> from manul.service.store.store_registry import open_store
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     open_store(f"{folder}/decisions.db").close()
    ...     print(migrate(f"{folder}/decisions.db"))
    The store has version 7 already.
    """
    migrating = access_of(store).migrating
    if migrating is None:
        raise ParameterError(f"store {store!r} cannot be migrated by manul. See what it is registered by.", "store")
    return Migration(*migrating(store))
