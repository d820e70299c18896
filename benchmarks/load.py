"""A load generator: several connections with one request at a time each, at full speed or at a given rate.

    python -m benchmarks.load PORT[,PORT...] PATH BODY_FILE --connections 64 --seconds 5 [--rate 2000] [--losses]

Prints one line of JSON: requests per second, latencies in ms, the number of responses other than 200, and the generator's own CPU seconds.
With --losses, each connection reports the loss of every decision before it decides again; the rate counts such pairs, and the
latencies are those of single requests.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import uvloop

HEAD = "POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
LOSS = b'{"loss":0.25}'


class Connection(asyncio.Protocol):
    def __init__(self, load: Load) -> None:
        self.load, self.began, self.body_left = load, 0.0, 0
        self.busy = self.has_decided = False

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def send(self, began: float) -> None:
        self.busy, self.began, self.head = True, began, b""
        self.transport.write(self.load.request)

    def send_loss(self, began: float, id_: bytes) -> None:
        self.busy, self.began, self.head = True, began, b""
        path = f"{self.load.arguments.path}/{id_.decode()}/loss"
        self.transport.write(HEAD.format(path=path, length=len(LOSS)).encode() + LOSS)

    def data_received(self, data: bytes) -> None:
        if self.body_left == 0:
            data = self.head + data
            end = data.find(b"\r\n\r\n")
            if end < 0:
                self.head = data
                return
            start = data.index(b"content-length: ") + 16
            length = int(data[start : data.index(b"\r\n", start)])
            self.body_left = length - (len(data) - end - 4)
            self.good, self.response = data.startswith(b"HTTP/1.1 200"), data[end + 4 :]
        else:
            self.body_left -= len(data)
            self.response += data
        if self.body_left == 0:
            self.busy = False
            self.load.finish(self)


class Load:
    def __init__(self, arguments: argparse.Namespace) -> None:
        body = Path(arguments.body).read_bytes()
        head = HEAD.format(path=arguments.path, length=len(body))
        self.request, self.arguments = head.encode() + body, arguments
        self.latencies: list[float] = []
        self.cycles = 0
        self.bad = 0
        self.running = True
        self.due: list[float] = []

    def finish(self, connection: Connection) -> None:
        now = time.perf_counter()
        self.latencies.append(now - connection.began)
        self.bad += not connection.good
        if self.arguments.losses and connection.good:
            connection.has_decided = not connection.has_decided
            if connection.has_decided:
                connection.send_loss(now, connection.response.split(b'"', 4)[3])
                return
        self.cycles += 1
        if self.running and self.arguments.rate is None:
            connection.send(now)
        elif self.due:
            connection.send(self.due.pop(0))
        else:
            self.idle.append(connection)

    async def run(self) -> dict[str, float]:
        loop = asyncio.get_running_loop()
        ports = [int(port) for port in self.arguments.ports.split(",")]
        opened = [
            await loop.create_connection(lambda: Connection(self), "127.0.0.1", ports[place % len(ports)])
            for place in range(self.arguments.connections)
        ]
        connections = [connection for _, connection in opened]
        self.idle = list(connections)
        began, cpu = time.perf_counter(), time.process_time()
        if self.arguments.rate is None:
            for connection in connections:
                connection.send(began)
            await asyncio.sleep(self.arguments.seconds)
        else:
            await self.send_at_rate(began)
        seconds = time.perf_counter() - began
        count = self.cycles
        self.running = False
        while any(connection.busy for connection in connections):
            await asyncio.sleep(0.01)
        milliseconds = 1000 * np.array(self.latencies)
        return {
            "rate": count / seconds,
            "requests": self.cycles,
            "p50": float(np.quantile(milliseconds, 0.5)),
            "p99": float(np.quantile(milliseconds, 0.99)),
            "worst": float(milliseconds.max()),
            "bad": self.bad,
            "generator": time.process_time() - cpu,
        }

    async def send_at_rate(self, began: float) -> None:
        """Latency is measured from the time a request was due, even if no connection was free."""
        total, sent = int(self.arguments.rate * self.arguments.seconds), 0
        while sent < total:
            now = time.perf_counter()
            while sent < total and began + sent / self.arguments.rate <= now:
                due = began + sent / self.arguments.rate
                if self.idle:
                    self.idle.pop().send(due)
                else:
                    self.due.append(due)
                sent += 1
            await asyncio.sleep(0.0005)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("ports")
    parser.add_argument("path")
    parser.add_argument("body")
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rate", type=float)
    parser.add_argument("--losses", action="store_true")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        print(json.dumps(runner.run(Load(parser.parse_args()).run())))


if __name__ == "__main__":
    main()
