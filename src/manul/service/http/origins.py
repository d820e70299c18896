"""Who may ask where there are no tokens: programs of this machine and the service's own pages, but no other site.

A browser sends requests that any page asks for. Without tokens, nothing but `Host`, `Origin` and `Sec-Fetch-Site` tells
such a request from one of the dashboard: a page of another site (cross-site request forgery), or one whose name was
made to stand for this machine (DNS rebinding).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from urllib.parse import urlsplit

from manul.service.configuration import is_loopback
from manul.service.errors import Forbidden

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
# Probes reach these by any name; they tell nothing and change nothing.
ALWAYS = frozenset({"/healthz", "/readyz"})


class Origins:
    """The names that the service is known by: loopback, the one it listens on, and others that it was told."""

    def __init__(self, host: str = "localhost", allowed: Iterable[str] = ()) -> None:
        self._names = {host.lower()}
        self._allowed = {name.lower() for name in allowed}
        self._is_known = lru_cache(maxsize=256)(self._find)

    def check(self, method: str, path: str, headers: Mapping[bytes, bytes]) -> None:
        """Refuses a request for another name, and one that changes something and comes from another site."""
        host = headers.get(b"host", b"")[:300].decode("latin-1")
        if host and not self._is_known(host) and path not in ALWAYS:
            raise Forbidden(
                f"host must be a loopback address without tokens; got {host[:80]!r}. Allow it with --allowed-host."
            )
        if method not in SAFE and not self._is_own(host, headers):
            raise Forbidden("request must come from the service's own pages without tokens; got one of another site.")

    def _find(self, host: str) -> bool:
        name = host_name(host)
        return name in self._names or name in self._allowed or is_loopback(name)

    def _is_own(self, host: str, headers: Mapping[bytes, bytes]) -> bool:
        site = headers.get(b"sec-fetch-site")
        if site is not None:
            return site in (b"same-origin", b"none")
        origin = headers.get(b"origin")
        if origin is None:
            return True
        given = origin.decode("latin-1").partition("://")[2].lower()
        return given == host.lower() or host_name(given) in self._allowed


def host_name(given: str) -> str:
    """The name in a host and port; empty if there is none.

    >>> host_name("Localhost:8000"), host_name("[::1]:8000"), host_name("a b")
    ('localhost', '::1', '')
    """
    try:
        return urlsplit(f"//{given}").hostname or "" if not set(given) & set(" /?#@\\") else ""
    except ValueError:
        return ""
