"""Clients of `manul serve`: `Client`, and `AsyncClient` for programs on asyncio.

Every decision has an id and every loss a key, either the caller's or a generated one, so that a retry after a lost response
changes nothing and gets the same answer.
"""

from manul.errors import MissingDependency

try:
    import httpx  # noqa: F401
    import msgspec  # noqa: F401
except ImportError as error:
    raise MissingDependency(f"manul.Client needs {error.name}. Install it: pip install 'manul[client]'.") from None

from manul.service.client.clients import AsyncClient, Client

__all__ = ["AsyncClient", "Client"]
