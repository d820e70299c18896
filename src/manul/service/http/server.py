"""Runs the application, with logs as JSON lines and an orderly shutdown on SIGTERM."""

from __future__ import annotations

import asyncio
import errno
import gc
import json
import logging
import resource
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import uvloop

from manul.errors import ManulError, ParameterError
from manul.service.configuration import Configuration
from manul.service.engine.engine import Engine
from manul.service.errors import Problem
from manul.service.http.application import Application
from manul.service.http.connection import Server
from manul.service.http.origins import Origins
from manul.service.http.tokens import Tokens, read
from manul.service.http.traces import open_traces
from manul.service.insights.archive import archive
from manul.service.store import StoreFailure
from manul.service.store.store_registry import open_store

log = logging.getLogger("manul.service")
# Young objects that start a garbage collection. A batch of 1,000 decisions has thousands, which are in use as long as it is
# written: with Python's default of 700, a fifth of its CPU time is spent on looking at them again and again.
YOUNG_OBJECTS = 10_000
OWN_FIELDS = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "color_message", "taskName"}


class JsonLines(logging.Formatter):
    """Formats a log record as one line of JSON: time, level, message and extra fields."""

    def format(self, record: logging.LogRecord) -> str:
        fields = {"time": round(record.created, 3), "level": record.levelname.lower(), "message": record.getMessage()}
        fields |= {name: value for name, value in vars(record).items() if name not in OWN_FIELDS}
        if record.exc_info:
            fields["trace"] = self.formatException(record.exc_info)
        return json.dumps(fields, default=str)


def start_logging(level: str = "info") -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)


def serve(configuration: Configuration) -> None:
    """Serve until SIGTERM or SIGINT; returns once everything is stored."""
    start_logging(configuration.log_level)
    # The writer and learner threads need short turns; with Python's default of 5 ms each would delay the event loop.
    sys.setswitchinterval(0.0005)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(configuration))


@contextmanager
def listening_sockets(host: str, port: int) -> Iterator[list[socket.socket]]:
    with ExitStack() as stack:
        try:
            addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
            sockets = [stack.enter_context(socket.socket(each[0], each[1])) for each in addresses]
            for each, address in zip(sockets, addresses, strict=True):
                _bind(each, address[4])
        except OSError as error:
            raise _bind_error(host, port, error) from None
        yield sockets


def _bind(listener: socket.socket, address: Any) -> None:
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if listener.family == socket.AF_INET6:
        listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    listener.bind(address)


def _bind_error(host: str, port: int, error: OSError) -> ParameterError:
    if error.errno == errno.EADDRINUSE:
        return ParameterError(f"port {port} is already in use. Choose another with --port.", "port")
    return ParameterError(f"cannot listen on {host}, port {port}: {error.strerror}", "host")


async def _serve(configuration: Configuration) -> None:
    rate = configuration.limits.rate
    tokens = Tokens(rate=rate) if configuration.token_file is None else read(configuration.token_file, rate)
    configuration.check(tokens=bool(tokens))
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, reload_tokens, tokens, configuration.token_file)
    allow_files()
    with (
        open_traces(configuration.otel_endpoint) as traces,
        listening_sockets(configuration.host, configuration.port) as sockets,
    ):
        engine = Engine(
            open_store(configuration.store),
            configuration.limits,
            snapshot_seconds=configuration.snapshot_seconds,
            snapshot_events=configuration.snapshot_events,
            webhook_hosts=configuration.webhook_host,
            backups=configuration.backups,
        )
        if traces is not None:
            engine.writer.span = engine.learner.span = traces.span
        await engine.start()
        # Objects created so far live as long as the process; without this, collections would scan them for tens of milliseconds.
        gc.collect()
        gc.freeze()
        gc.set_threshold(YOUNG_OBJECTS)
        archiving = asyncio.create_task(_archive(engine, configuration))
        try:
            origins = Origins(configuration.host, configuration.allowed_host)
            await Server(Application(engine, tokens, origins=origins, traces=traces)).serve(sockets)
        finally:
            archiving.cancel()
            await engine.stop()
            gc.unfreeze()
            log.info("stopped")


def reload_tokens(tokens: Tokens, path: Path | None) -> None:
    """Reload the token file on SIGHUP; if the file is invalid, the tokens do not change."""
    if path is None:
        log.info("no token file to reload")
        return
    try:
        tokens.replace(read(path, tokens.rate))
        log.info("reloaded the token file")
    except ManulError as error:
        log.error("the token file is invalid; keeping the current tokens", extra={"why": str(error)})


def allow_files() -> None:
    """Raise the limit of open files to the system's maximum."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


async def _archive(engine: Engine, configuration: Configuration) -> None:
    while configuration.archive is not None:
        before = engine.now() - 86_400 * configuration.archive_after
        for loop in list(engine.loops.values()):
            try:
                await asyncio.to_thread(archive, engine.store, engine.writer, loop, configuration.archive, before)
            except (ManulError, OSError, Problem, StoreFailure) as error:
                log.warning(
                    "could not archive old decisions; next attempt in an hour",
                    extra={"loop": loop.name, "why": str(error)},
                )
        await asyncio.sleep(3600)
