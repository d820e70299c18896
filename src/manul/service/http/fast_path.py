"""A fast path for the two busiest routes: no task, no ASGI messages, one write.

Only plain, authorised requests that arrive in one piece take it. All others go through the router, which gives the same
responses. Header lines are parsed by the same library as there, and remembered with what they allow: clients repeat them.
"""

from __future__ import annotations

import re
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import httptools

from manul.service.http import answers
from manul.service.http.answers import Answer
from manul.service.http.bodies import FREE_BYTES, MAX_DIGITS
from manul.service.http.handlers import encode_answer, parse_decision, parse_loss
from manul.service.http.tokens import Access, Right

if TYPE_CHECKING:
    from manul.service.http.application import Application
    from manul.service.http.connection import Connection

# Strict: a line that matches has no character with a special meaning in HTTP.
LINE = re.compile(rb"POST (/v1/loops/([\w.-]+)/decisions(?:/([\w.~-]+)/loss)?) HTTP/1\.1\r\n")
END = b"\r\n\r\n"
# Headers that change how the request is parsed or the connection is used.
UNUSUAL = frozenset({b"transfer-encoding", b"connection", b"upgrade", b"expect"})
# Heads to remember, and the most bytes of one.
REMEMBERED, LONGEST = 1024, 1024


class Head(NamedTuple):
    """The head of a plain request: the loop, the headers, the length of the body, and what the caller may do."""

    loop: str
    headers: dict[bytes, bytes]
    length: int
    access: Access


class Heads:
    """Remembers heads, until the tokens change; None stands for one that needs the router.

    The keys are whole heads or, of reports, what is left without the id of the decision.
    """

    def __init__(self, application: Application) -> None:
        self._application, self._changes, self.loops = application, 0, application.engine.loops
        self._known: dict[bytes, Head | None] = {}

    def find(self, text: bytes) -> tuple[Head | None, str | None]:
        """The head, and the id of the decision whose loss is reported."""
        changes = self._application.tokens.changes
        if changes != self._changes:
            self._known.clear()
            self._changes = changes
        head = self._known.get(text)
        if head is not None:
            return head, None
        line = LINE.match(text)
        if line is None:
            return None, None
        key = text if line[3] is None else b"%b %b" % (line[2], text[line.end() :])
        if key not in self._known:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            self._known[key] = self._parse(line, text[line.end() :])
        return self._known[key], None if line[3] is None else line[3].decode()

    def _parse(self, line: re.Match[bytes], lines: bytes) -> Head | None:
        collected: list[tuple[bytes, bytes]] = []
        collector = SimpleNamespace(on_header=lambda *header: collected.append(header))
        parser = httptools.HttpRequestParser(collector)
        try:
            parser.feed_data(b"POST / HTTP/1.1\r\n" + lines)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            return None
        headers = {name.lower(): value for name, value in collected}
        length = headers.get(b"content-length", b"")
        plain = len(headers) == len(collected) and UNUSUAL.isdisjoint(headers) and parser.should_keep_alive()
        if not plain or not length.isdigit() or len(length) > MAX_DIGITS:
            return None
        loop = line[2].decode()
        right: Right = "report" if line[3] else "decide"
        access = self._application.authorise(line[1].decode(), headers, right, loop)
        most = min(FREE_BYTES, self._application.limits.body)
        return None if access is None or int(length) > most else Head(loop, headers, int(length), access)


def read(heads: Heads, data: bytes) -> tuple[Head, str | None, bytes] | None:
    """The head, the id of the decision whose loss is reported, and the body of a request; None if it needs the router."""
    end = data.find(END, 0, LONGEST) + len(END)
    if end < len(END):
        return None
    head, id_ = heads.find(data[:end])
    if head is None or end + head.length != len(data) or head.loop not in heads.loops:
        return None
    return head, id_, data[end:]


class FastExchange:
    """A plain request, and its response once the decision or the loss is stored durably."""

    started = True
    __slots__ = ("_began", "_connection", "_gone", "_head", "_id", "_request_id", "complete")

    def __init__(self, connection: Connection, head: Head, id_: str | None) -> None:
        self._connection, self._head, self._id = connection, head, id_
        self._request_id = connection.application.request_id(head.headers.get(b"x-request-id"))
        self._began = time.perf_counter()
        self.complete = self._gone = False

    def ask(self, body: bytes) -> None:
        engine = self._connection.application.engine
        try:
            self._head.access.take()
            asked = parse_decision(body) if self._id is None else parse_loss(self._id, body)
            asked.respond = self._answer
            engine.groups.add(engine.loops[self._head.loop], asked)
        except Exception as error:
            self._answer(error)

    def disconnect(self) -> None:
        self._gone = True

    def _answer(self, answer: Any) -> None:
        connection, application, error = self._connection, self._connection.application, None
        try:
            if isinstance(answer, Exception):
                raise answer
            response = Answer(200, encode_answer(answer))
        except Exception as caught:
            error, response = caught, answers.refusal(answers.problem_of(caught))
        self.complete, seconds = True, time.perf_counter() - self._began
        route = "decide" if self._id is None else "report_loss"
        application.note(
            route, response.status, seconds, self._request_id, error, loop=self._head.loop, headers=self._head.headers
        )
        if not self._gone and not connection.transport.is_closing():
            server = connection.server
            connection.transport.write(
                answers.encode(response, self._request_id, server.date, close=connection.stopping)
            )
            connection.end_response(keep_alive=True)
