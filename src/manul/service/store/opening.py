"""Opens a store by its path or URL."""

from __future__ import annotations

from collections.abc import Callable

from manul.service.store import Store
from manul.utils.registry import Registry

STORES = Registry[Callable[[str], Store]]("store", "manul.service.store", usual="decisions.db")


def register_store(scheme: str, opener: Callable[[str], Store]) -> None:
    """Registers what opens a store from a URL of a scheme, so that `manul serve --store SCHEME://...` takes it.

    >>> import manul
    >>> manul.register_store("file", lambda url: STORES["sqlite"](url.removeprefix("file://")))
    >>> "file" in STORES.names()
    True
    >>> STORES.remove("file")
    """
    STORES.add(scheme, opener, module=opener.__module__)


def opened(place: str) -> Store:
    """SQLite for a path, and for a URL what is registered for its scheme."""
    scheme, separator, _ = place.partition("://")
    return STORES[scheme if separator else "sqlite"](place)
