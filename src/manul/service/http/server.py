"""Runs the application on uvicorn: logs as JSON lines, and an orderly end on SIGTERM."""

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

import uvicorn
import uvloop

from manul.errors import ManulError, ParameterError
from manul.service.configuration import Configuration
from manul.service.engine.engine import Engine
from manul.service.http.application import Application
from manul.service.http.connection import Connection, Connections
from manul.service.http.origins import Origins
from manul.service.http.tokens import Tokens, read
from manul.service.insights.archive import archive
from manul.service.store.opening import opened

log = logging.getLogger("manul.service")
OWN_FIELDS = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "color_message", "taskName"}


class JsonLines(logging.Formatter):
    """One JSON object per line: time, level, message, and whatever else was said."""

    def format(self, record: logging.LogRecord) -> str:
        """A record as a line."""
        said = {"time": round(record.created, 3), "level": record.levelname.lower(), "message": record.getMessage()}
        said |= {name: value for name, value in vars(record).items() if name not in OWN_FIELDS}
        if record.exc_info:
            said["trace"] = self.formatException(record.exc_info)
        return json.dumps(said, default=str)


def start_logging(level: str = "info") -> None:
    """Logs to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)


def serve(configuration: Configuration) -> None:
    """Serve until told to stop; returns once everything is kept."""
    start_logging(configuration.log_level)
    # The writer and the learner take short turns beside the event loop; at Python's 5 ms each would wait for long.
    sys.setswitchinterval(0.0005)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_served(configuration))


@contextmanager
def bound(host: str, port: int) -> Iterator[list[socket.socket]]:
    """Sockets of every address that a host name stands for."""
    with ExitStack() as opened_sockets:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
            sockets = [opened_sockets.enter_context(socket.socket(each[0], each[1])) for each in found]
            for made, each in zip(sockets, found, strict=True):
                _bind(made, each[4])
        except OSError as error:
            raise _unbound(host, port, error) from None
        yield sockets


def _bind(made: socket.socket, address: Any) -> None:
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if made.family == socket.AF_INET6:
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    made.bind(address)


def _unbound(host: str, port: int, error: OSError) -> ParameterError:
    if error.errno == errno.EADDRINUSE:
        return ParameterError(
            f"port must be free; got {port}, where something listens already. Try another with --port."
        )
    return ParameterError(
        f"host and port must be ones to listen on; got {host} and {port}: {error.strerror}. Try --host 127.0.0.1."
    )


async def _served(configuration: Configuration) -> None:
    tokens = Tokens() if configuration.token_file is None else read(configuration.token_file)
    configuration.check(tokens=bool(tokens))
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, reload_tokens, tokens, configuration.token_file)
    allow_files()
    with bound(configuration.host, configuration.port) as sockets:
        engine = Engine(
            opened(configuration.store),
            configuration.limits,
            snapshot_seconds=configuration.snapshot_seconds,
            snapshot_events=configuration.snapshot_events,
        )
        await engine.start()
        # What was made so far stays; looking through it again and again would hold up requests for tens of milliseconds.
        gc.collect()
        gc.freeze()
        archiving = asyncio.create_task(_archive(engine, configuration))
        try:
            origins = Origins(configuration.host, configuration.allowed_host)
            await Server(Application(engine, tokens, origins=origins)).serve(sockets)
        finally:
            archiving.cancel()
            await engine.stop()
            gc.unfreeze()
            log.info("stopped")


def reload_tokens(tokens: Tokens, path: Path | None) -> None:
    """Read the token file again, on SIGHUP; a file that cannot be used leaves the tokens as they are."""
    if path is None:
        log.info("there is no token file to read again")
        return
    try:
        tokens.replace(read(path))
        log.info("read the token file again")
    except ManulError as error:
        log.error("the token file cannot be used; the tokens stay as they were", extra={"why": str(error)})


def allow_files() -> None:
    """Let the process open as many files and connections as the system allows."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


async def _archive(engine: Engine, configuration: Configuration) -> None:
    """Moves old decisions out of the store once an hour."""
    while configuration.archive is not None:
        before = engine.now() - 86_400 * configuration.archive_after
        for loop in list(engine.loops.values()):
            try:
                await asyncio.to_thread(archive, engine.store, engine.writer, loop, configuration.archive, before)
            except (ManulError, OSError) as error:
                log.warning(
                    "a loop could not be archived; it will be tried again", extra={"loop": loop.name, "why": str(error)}
                )
        await asyncio.sleep(3600)


class Server(uvicorn.Server):
    """Serves an application: says where it listens, closes what takes too long, and leaves the end to us."""

    def __init__(self, application: Application) -> None:
        self._application, self._connections = application, Connections(application)
        super().__init__(
            uvicorn.Config(
                self._connections,
                loop="none",
                http=Connection,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                timeout_keep_alive=application.limits.idle_seconds,  # type: ignore[arg-type]
                timeout_graceful_shutdown=5,
                server_header=False,
                proxy_headers=False,
            )
        )

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """End in order on SIGTERM and SIGINT; uvicorn's own way would raise them again before anything is kept."""
        events = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            events.add_signal_handler(number, self.handle_exit, number, None)
        yield

    async def startup(self, sockets: Any = None) -> None:
        """Listen, and say where."""
        await super().startup(sockets)
        for server in self.servers:
            for each in server.sockets:
                host, port = each.getsockname()[:2]
                log.info("listening", extra={"host": host, "port": port, "loops": len(self._application.engine.loops)})

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second; every other time is often enough for connections."""
        if counter % 2 == 0:
            self._connections.expire(asyncio.get_running_loop().time())
        return await super().on_tick(counter)
