"""Which requests are allowed without tokens: those of local programs and the service's own pages, but of no other site.

A browser sends requests on behalf of any page. Without tokens, only `Host`, `Origin` and `Sec-Fetch-Site` distinguish a
request of the dashboard from one of another site (cross-site request forgery), or of a site whose name was made to resolve
to this machine (DNS rebinding).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from urllib.parse import urlsplit

from manul.service.configuration import is_loopback
from manul.service.errors import Forbidden

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
# Probes may reach these under any host name; they reveal nothing and change nothing.
ALWAYS = frozenset({"/healthz", "/readyz"})


class Origins:
    """The accepted host names: loopback, the one that the service listens on, and those of --allowed-host."""

    def __init__(self, host: str = "localhost", allowed: Iterable[str] = ()) -> None:
        self._names = {host.lower()}
        self._allowed = {name.lower() for name in allowed}
        self._is_known = lru_cache(maxsize=256)(self._find)

    def check(self, method: str, path: str, headers: Mapping[bytes, bytes]) -> None:
        """Refuse a request for another host, and a request from another site that could change something."""
        host = headers.get(b"host", b"")[:300].decode("latin-1")
        if host and not self._is_known(host) and path not in ALWAYS:
            raise Forbidden(
                f"Without tokens, requests must be for a loopback address, got {host[:80]!r}. Allow it with --allowed-host."
            )
        if method not in SAFE and not self._is_own(host, headers):
            raise Forbidden(
                "A web page of another site sent this request, which requires tokens. Start with --token-file."
            )

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
        sender = origin.decode("latin-1").partition("://")[2].lower()
        return sender == host.lower() or host_name(sender) in self._allowed


def host_name(host: str) -> str:
    """The name in a `Host` header; empty if there is none."""
    try:
        return urlsplit(f"//{host}").hostname or "" if not set(host) & set(" /?#@\\") else ""
    except ValueError:
        return ""
