"""Reports the moves of rollouts to the URLs of their owners, in order, until they are received."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import http.client
import ipaddress
import logging
import socket
import threading
import time
from collections.abc import Collection
from contextlib import closing, suppress
from http.client import HTTPException
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

import msgspec

from manul.service.engine.loop import Loop
from manul.service.errors import Invalid, Problem
from manul.service.rollout_schema import RolloutMove, Webhook

if TYPE_CHECKING:
    from manul.service.engine.engine import Engine

log = logging.getLogger("manul.service")
INNER = "{host} is an inner address. Start the service with --webhook-host {host} to allow it"
# Seconds between two looks for moves, of silence that end an attempt to send, of any attempt, and the longest pause after
# failed attempts.
POLL_SECONDS, SEND_SECONDS, LONGEST_SEND, LONGEST_PAUSE = 1.0, 10.0, 20.0, 300.0


class _Connection(http.client.HTTPConnection):
    """A connection to an address that was checked, not to one that the name may lead to a moment later."""

    inner_hosts: Collection[str] = ()

    def connect(self) -> None:
        if self.host.lower() in self.inner_hosts:
            return super().connect()
        found = [str(each[4][0]) for each in socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)]
        if any(map(is_inner, found)):
            raise OSError(INNER.format(host=self.host))
        for address in found[:-1]:
            with suppress(OSError):
                self.sock = socket.create_connection((address, self.port), self.timeout)
                return None
        self.sock = socket.create_connection((found[-1], self.port), self.timeout)
        return None


class _SecureConnection(http.client.HTTPSConnection, _Connection):
    """The same with TLS."""


def is_inner(address: str) -> bool:
    """Whether an address is one of this machine or of its own network.

    >>> is_inner("10.0.0.7"), is_inner("::ffff:127.0.0.1"), is_inner("169.254.169.254"), is_inner("8.8.8.8")
    (True, True, True, False)
    """
    found = ipaddress.ip_address(address.partition("%")[0])
    found = (found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None) or found
    return not found.is_global or found.is_multicast


def check_host(url: str, inner_hosts: Collection[str]) -> None:
    """Refuse an inner address in a URL; what a name leads to is checked whenever a move is sent."""
    host = (urlsplit(url).hostname or "").lower()
    try:
        inner = is_inner(host)
    except ValueError:
        inner = host == "localhost" or host.endswith(".localhost")
    if inner and host not in inner_hosts:
        raise Invalid(
            f"webhook.url must not lead into the network of the service: {INNER.format(host=host)}.", "webhook.url"
        )


def sign(secret: str, body: bytes) -> str:
    """The signature of a body, as in the header X-Manul-Signature."""
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def send(webhook: Webhook, loop: str, move: RolloutMove, inner_hosts: Collection[str] = ()) -> None:
    """Send a move; raises OSError, ValueError or HTTPException if it is not received. Redirects are not followed."""
    body = msgspec.json.encode({"loop": loop, **msgspec.structs.asdict(move)})
    headers = {"Content-Type": "application/json", "X-Manul-Signature": sign(webhook.secret, body)}
    url = urlsplit(webhook.url)
    kind = _SecureConnection if url.scheme == "https" else _Connection
    with closing(kind(url.hostname or "", url.port, timeout=SEND_SECONDS)) as connection:
        connection.inner_hosts = inner_hosts
        connection.request("POST", urlunsplit(("", "", url.path or "/", url.query, "")), body, headers)
        status = connection.getresponse().status
    if not 200 <= status < 300:
        raise OSError(f"the receiver responded with status {status}")


async def send_in_background(webhook: Webhook, loop: str, move: RolloutMove, inner_hosts: Collection[str]) -> None:
    """Send a move in a thread of its own, so that a receiver that hangs blocks neither other threads nor the end of the
    process; raises OSError if it is not received."""
    waiting = asyncio.get_running_loop()
    sent: asyncio.Future[Exception | None] = waiting.create_future()

    def finish(error: Exception | None) -> None:
        if not sent.done():
            sent.set_result(error)

    def work() -> None:
        error: Exception | None = None
        try:
            send(webhook, loop, move, inner_hosts)
        except (OSError, ValueError, HTTPException) as problem:
            error = problem
        except Exception as problem:
            log.exception("a move cannot be sent")
            error = problem
        with suppress(RuntimeError):  # the service has stopped in the meantime
            waiting.call_soon_threadsafe(finish, error)

    threading.Thread(target=work, name="manul-webhook", daemon=True).start()
    try:
        error = await asyncio.wait_for(sent, LONGEST_SEND)
    except TimeoutError:  # a receiver may send a byte now and then
        raise OSError(f"no response within {LONGEST_SEND:g} seconds") from None
    if error is not None:
        raise OSError(str(error) or type(error).__name__)


class Webhooks:
    """Sends the moves of the loops that this replica learns. What was sent is noted as an event of the loop."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._failures: dict[int, tuple[int, float]] = {}

    async def run(self) -> None:
        engine = self._engine
        while True:
            await asyncio.sleep(POLL_SECONDS)
            loops = [loop for loop in list(engine.loops.values()) if engine.learner.learns(loop)]
            # Of a loop that does not learn, it could not be noted what was sent.
            due = [loop for loop in loops if self._is_due(loop) and engine.loop_trouble(loop) is None]
            for error in await asyncio.gather(*(self._send_all(loop) for loop in due), return_exceptions=True):
                if isinstance(error, Exception):  # such as a loop that was deleted in the meantime
                    log.error("moves of a rollout cannot be sent", exc_info=error)

    def _is_due(self, loop: Loop) -> bool:
        rollout = loop.model.rollout
        _, after = self._failures.get(loop.number, (0, 0.0))
        return rollout is not None and bool(rollout.unsent) and not loop.paused and time.monotonic() >= after

    async def _send_all(self, loop: Loop) -> None:
        rollout = loop.model.rollout
        assert rollout is not None
        webhook, moves, sent = rollout.settings.webhook, rollout.unsent, rollout.notified
        assert webhook is not None
        try:
            for move in moves:
                await send_in_background(webhook, loop.name, move, self._engine.webhook_hosts)
                sent += 1
            self._failures.pop(loop.number, None)
        except OSError as error:
            self._note_failure(loop, error)
        try:
            if sent > rollout.notified:
                await self._engine.rollouts.note_sent(loop, rollout.event, sent)
        except Problem as problem:
            log.warning("a move was sent, but this could not be noted; it will be sent again (%s)", problem)

    def _note_failure(self, loop: Loop, error: Exception) -> None:
        attempts = self._failures.get(loop.number, (0, 0.0))[0] + 1
        pause = min(LONGEST_PAUSE, 2.0**attempts)
        self._failures[loop.number] = attempts, time.monotonic() + pause
        log.warning(
            "the webhook of a rollout did not receive a move; retrying",
            extra={"loop": loop.name, "why": str(error), "seconds": pause},
        )
