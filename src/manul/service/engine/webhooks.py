"""Reports the moves of rollouts to the URLs of their owners, in order, until they are received."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from manul.service.engine.loop import Loop
from manul.service.engine.rollout_control import RolloutControl
from manul.service.errors import Problem
from manul.service.rollout_schema import RolloutMove, Webhook

log = logging.getLogger("manul.service")
# Seconds between two looks for moves, for one attempt to send, and the longest pause after failed attempts.
POLL_SECONDS, SEND_SECONDS, LONGEST_PAUSE = 1.0, 10.0, 300.0


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A move is only sent to the URL that the owner gave."""

    def redirect_request(self, *_: Any) -> None:
        """Refuse; the response then counts as a failure."""


_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirects)


def sign(secret: str, body: bytes) -> str:
    """The signature of a body, as in the header X-Manul-Signature.

    >>> sign("a secret of yours", b"{}")[:20]
    'sha256=58a28464c6b7d'
    """
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def send(webhook: Webhook, loop: str, move: RolloutMove) -> None:
    """Send a move; raises OSError if it is not received."""
    body = msgspec.json.encode({"loop": loop, **msgspec.structs.asdict(move)})
    headers = {"Content-Type": "application/json", "X-Manul-Signature": sign(webhook.secret, body)}
    request = urllib.request.Request(webhook.url, body, headers, method="POST")
    with _opener.open(request, timeout=SEND_SECONDS):
        pass


class Webhooks:
    """Sends the moves of all loops; only the leader does so. What was sent is noted as an event of the loop."""

    def __init__(self, control: RolloutControl, loops: Callable[[], Iterable[Loop]], leads: Callable[[], bool]) -> None:
        self._control, self._loops, self._leads = control, loops, leads
        self._failures: dict[int, tuple[int, float]] = {}

    async def run(self) -> None:
        """Run until cancelled."""
        while True:
            await asyncio.sleep(POLL_SECONDS)
            due = [loop for loop in self._loops() if self._leads() and self._is_due(loop)]
            await asyncio.gather(*(self._send_all(loop) for loop in due))

    def _is_due(self, loop: Loop) -> bool:
        rollout = loop.rollout
        _, after = self._failures.get(loop.number, (0, 0.0))
        return rollout is not None and bool(rollout.unsent) and not loop.paused and time.monotonic() >= after

    async def _send_all(self, loop: Loop) -> None:
        rollout = loop.rollout
        assert rollout is not None
        webhook, moves, sent = rollout.settings.webhook, rollout.unsent, rollout.notified
        assert webhook is not None
        try:
            for move in moves:
                await asyncio.to_thread(send, webhook, loop.name, move)
                sent += 1
            self._failures.pop(loop.number, None)
        except (OSError, ValueError) as error:
            self._note_failure(loop, error)
        try:
            if sent > rollout.notified and loop.rollout is rollout:
                await self._control.note_sent(loop, sent)
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
