"""Requests per second of different ways to serve HTTP, measured in turn.

    python -m benchmarks.http_paths [--seconds 3] [--rounds 3] [--connections 64]

`fast` is the service as it is: plain decisions and losses take the fast path. `router` sends them through the router.
`granian` runs the application of `router` on another server (pip install granian), without our limits.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import uvloop

from benchmarks.serve import MANUL, cpu_seconds, free_port, post, running
from manul.service.engine.engine import Engine
from manul.service.http.application import Application
from manul.service.http.tokens import Tokens
from manul.service.store.store_registry import open_store

WAYS = ("fast", "router", "granian")
LOOP = {"name": "heat", "actions": [0, 1], "agent": {"kind": "cats", "leaves": 128, "bandwidth": 1 / 16}}


class Caller(asyncio.Protocol):
    """A connection that requests decisions and reports losses in turn, until it is stopped."""

    def __init__(self, counts: dict[str, int]) -> None:
        self.counts, self.running, self.data, self.reporting = counts, True, b"", False
        body = json.dumps({"context": np.random.default_rng(1).normal(size=20).round(4).tolist()})
        self.decide = request("/v1/loops/heat/decisions", body)
        self.done = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        transport.write(self.decide)

    def data_received(self, data: bytes) -> None:
        self.data += data
        head, separator, body = self.data.partition(b"\r\n\r\n")
        if not separator or len(body) < int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0]):
            return
        self.counts["requests"] += 1
        self.counts["bad"] += not head.startswith(b"HTTP/1.1 200")
        self.data, self.reporting = b"", not self.reporting
        if not self.running:
            self.transport.close()
            self.done.set_result(None)
        elif self.reporting:
            self.transport.write(request(f"/v1/loops/heat/decisions/{json.loads(body)['id']}/loss", '{"loss": 0.5}'))
        else:
            self.transport.write(self.decide)


def request(path: str, body: str) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    return f"{head}\r\n\r\n{body}".encode()


async def load(port: int, seconds: float, connections: int) -> dict[str, float]:
    counts, events = {"requests": 0, "bad": 0}, asyncio.get_running_loop()
    callers = [
        (await events.create_connection(lambda: Caller(counts), "127.0.0.1", port))[1] for _ in range(connections)
    ]
    began, before = time.perf_counter(), counts["requests"]
    await asyncio.sleep(seconds)
    rate = (counts["requests"] - before) / (time.perf_counter() - began)
    for caller in callers:
        caller.running = False
    await asyncio.gather(*(caller.done for caller in callers))
    return {"rate": rate, **counts}


class Hosted:
    """The application, with an engine that starts and stops in the event loop of another server."""

    def __init__(self, store: str) -> None:
        self.engine = Engine(open_store(store))

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "lifespan":
            await self.application(scope, receive, send)
            return
        await receive()
        await self.engine.start()
        self.application = Application(self.engine, Tokens())
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.engine.stop()
        await send({"type": "lifespan.shutdown.complete"})


def serve_by_granian(store: str, port: int) -> None:
    from granian.server.embed import Server

    sys.setswitchinterval(0.0005)
    uvloop.run(Server(Hosted(store), port=port, interface="asgi").serve())


def command(way: str, store: str, port: int) -> list[str]:
    options = ["serve", "--store", store, "--port", str(port)]
    if way == "granian":
        return [sys.executable, "-m", "benchmarks.http_paths", "--granian", store, str(port)]
    return [str(MANUL), *options] if way == "fast" else [sys.executable, "tests/service/router_only.py", *options]


def measure(way: str, seconds: float, connections: int) -> dict[str, float]:
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        store = str(Path(folder, "decisions.db"))
        with running(*command(way, store, port), port=port) as server:
            post(port, "/v1/loops", LOOP)
            before = cpu_seconds(server)
            result = uvloop.run(load(port, seconds, connections))
            return {**result, "cpu": 1e6 * (cpu_seconds(server) - before) / result["requests"]}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--way", action="append", choices=WAYS)
    parser.add_argument("--granian", nargs=2, metavar=("STORE", "PORT"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.granian is not None:
        serve_by_granian(arguments.granian[0], int(arguments.granian[1]))
        return
    ways = arguments.way or WAYS
    results: dict[str, list[dict[str, float]]] = {way: [] for way in ways}
    for _ in range(arguments.rounds):
        for way in ways:
            results[way].append(measure(way, arguments.seconds, arguments.connections))
    for way, runs in results.items():
        rate, cpu = (float(np.median([each[name] for each in runs])) for name in ("rate", "cpu"))
        bad = sum(each["bad"] for each in runs)
        print(f"{way}: {rate:,.0f} requests/s, {cpu:.0f} µs of CPU per request, {bad} errors")


if __name__ == "__main__":
    main()
