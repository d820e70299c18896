"""Opens a store by its path or URL."""

from __future__ import annotations

from manul.errors import MissingDependency, ParameterError
from manul.service.store import Store
from manul.service.store.sqlite import SqliteStore


def opened(place: str) -> Store:
    """SQLite for a path, PostgreSQL for its URL."""
    scheme, separator, _ = place.partition("://")
    if not separator:
        return SqliteStore(place)
    if scheme in ("postgres", "postgresql"):
        return _postgres(place)
    raise ParameterError(
        f"store must be the path of a file or a postgresql:// URL; got a URL with {scheme!r}. Try decisions.db."
    )


def _postgres(url: str) -> Store:
    try:
        from manul.service.store.postgres import PostgresStore
    except ImportError as error:
        raise MissingDependency(
            f"a store in PostgreSQL needs {error.name}. Install it: pip install 'manul[serve]'."
        ) from None
    return PostgresStore(url)
