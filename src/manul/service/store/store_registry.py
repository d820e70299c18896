"""The registry of stores, which opens a store by its path or URL."""

from __future__ import annotations

from collections.abc import Callable

from manul.service.store import Store
from manul.utils.registry import Registry

STORES = Registry[Callable[[str], Store]]("store", "manul.service.store", suggestion="decisions.db")


def register_store(scheme: str, opener: Callable[[str], Store]) -> None:
    """Register an `opener`, a function that opens the store at a URL, for the URLs of a `scheme`: `manul serve --store SCHEME://...`.

    >>> import manul
    >>> manul.register.store("file", lambda url: STORES["sqlite"](url.removeprefix("file://")))
    >>> "file" in STORES.names()
    True
    >>> STORES.remove("file")
    """
    STORES.add(scheme, opener, module=opener.__module__)


def open_store(address: str) -> Store:
    """Open the store at a URL by its scheme, or the SQLite file at a path."""
    scheme, separator, _ = address.partition("://")
    return STORES[scheme if separator else "sqlite"](address)
