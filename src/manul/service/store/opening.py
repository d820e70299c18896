"""Opens a store by its path or URL."""

from __future__ import annotations

from manul.errors import ParameterError
from manul.service.store import Store
from manul.service.store.sqlite import SqliteStore


def opened(place: str) -> Store:
    """SQLite for a path."""
    scheme, separator, _ = place.partition("://")
    if not separator:
        return SqliteStore(place)
    raise ParameterError(f"store must be the path of a file; got a URL with {scheme!r}. Try decisions.db.")
