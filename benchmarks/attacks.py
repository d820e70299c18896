"""Attacks without a token: the growth of the service's resident memory, and the response time of /healthz meanwhile.

    python -m benchmarks.attacks [--attack headers] [--seconds 15]

Exits with status 1 if memory grows by more than 100 MB or /healthz takes more than a second.
"""

from __future__ import annotations

import argparse
import http.client
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from benchmarks.serve import MANUL, free_port, running
from benchmarks.soak import memory

HOST = b"Host: 127.0.0.1\r\n"
GET = b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n"
HEAD = b"POST /v1/loops HTTP/1.1\r\n" + HOST
MOST_GROWTH, MOST_SECONDS = 100.0, 1.0  # MB of memory, and for /healthz


class Attacker:
    """Sends bytes over one connection until all are sent, the service closes the connection, or the time is up."""

    def __init__(self, port: int, until: float, *, reads: bool = True) -> None:
        self.until, self.reads = until, reads
        self.socket = socket.create_connection(("127.0.0.1", port), 5)
        self.socket.setblocking(False)

    def send(self, start: bytes, piece: bytes, total: int) -> int:
        waiting, sent = start, 0
        while sent < total and time.monotonic() < self.until:
            try:
                count = self.socket.send(waiting)
                sent, waiting = sent + count, waiting[count:] or piece
            except BlockingIOError:
                time.sleep(0.002)
            except OSError:
                return sent
            self.read()
        return sent

    def read(self) -> None:
        try:
            while self.reads and self.socket.recv(2**20):
                pass
        except OSError:
            return

    def hold(self) -> None:
        while time.monotonic() < self.until:
            time.sleep(0.1)
            self.read()


def flood(port: int, until: float, start: bytes, piece: bytes, total: int, *, reads: bool = True) -> None:
    attacker = Attacker(port, until, reads=reads)
    attacker.send(start, piece, total)
    attacker.hold()


def many(count: int, attack: Callable[[], None]) -> None:
    threads = [threading.Thread(target=attack, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def hold_connections(port: int, until: float, count: int, sent: bytes) -> None:
    """Open many connections that send a few bytes and then nothing."""
    connections: list[socket.socket] = []
    while time.monotonic() < until:
        if len(connections) < count:
            try:
                connections.append(socket.create_connection(("127.0.0.1", port), 5))
                connections[-1].sendall(sent)
            except OSError:
                time.sleep(0.1)
        else:
            time.sleep(0.1)


SMALL, VALUE = b"a: b\r\n" * 2000, b"a" * 16384
BODY = HEAD + b"Content-Length: 1000000\r\n\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
ATTACKS: dict[str, Callable[[int, float], None]] = {
    "100 MB of small headers": lambda port, until: flood(port, until, HEAD, SMALL, 100_000_000),
    "one endless header value": lambda port, until: flood(port, until, HEAD + b"X: ", VALUE, 100_000_000),
    "11 MB of pipelined requests": lambda port, until: flood(port, until, b"", GET * 200, 11_000_000),
    "11 MB pipelined, responses not read": lambda port, until: flood(
        port, until, b"", GET * 200, 11_000_000, reads=False
    ),
    "50 connections of empty chunked requests": lambda port, until: many(
        50, lambda: flood(port, until, b"", (CHUNKED + b"0\r\n\r\n") * 100, 11_000_000)
    ),
    "50 connections of small headers": lambda port, until: many(
        50, lambda: flood(port, until, HEAD, SMALL, 20_000_000)
    ),
    "50 connections of pipelined requests": lambda port, until: many(
        50, lambda: flood(port, until, b"", GET * 200, 11_000_000)
    ),
    "50 connections of trailers": lambda port, until: many(
        50, lambda: flood(port, until, CHUNKED + b"0\r\n", SMALL, 20_000_000)
    ),
    "50 connections of small chunks": lambda port, until: many(
        50, lambda: flood(port, until, CHUNKED, b"6\r\n[[[[[[\r\n" * 1000, 20_000_000)
    ),
    "1,000 idle connections": lambda port, until: hold_connections(port, until, 1000, b""),
    "1,000 incomplete request heads": lambda port, until: hold_connections(port, until, 1000, HEAD),
    "1,000 incomplete request bodies": lambda port, until: hold_connections(port, until, 1000, BODY + b"[" * 100_000),
    "1,000 endless chunks": lambda port, until: hold_connections(
        port, until, 1000, CHUNKED + b"FFFFF\r\n" + b"[" * 100_000
    ),
    "2,000 connections": lambda port, until: hold_connections(port, until, 2000, GET),
}


def slowest_health(port: int, until: float) -> float:
    """The seconds of the slowest response; a response other than 200 counts as 99."""
    slowest = 0.0
    while time.monotonic() < until:
        began = time.monotonic()
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        try:
            connection.request("GET", "/healthz")
            good = connection.getresponse().status == 200
        except OSError:
            good = False
        connection.close()
        slowest = max(slowest, time.monotonic() - began if good else 99.0)
        time.sleep(0.05)
    return slowest


def measure(attack: Callable[[int, float], None], manul: str, seconds: float) -> tuple[float, float, float]:
    """The growth of resident memory in MB, at its peak and a second after the attack, and the slowest /healthz in seconds."""
    port, largest = free_port(), 0.0
    with (
        tempfile.TemporaryDirectory() as folder,
        running(manul, "serve", "--store", f"{folder}/decisions.db", "--port", str(port), port=port) as server,
    ):
        slowest_health(port, time.monotonic() + 1)
        before, until = memory(server), time.monotonic() + seconds
        thread = threading.Thread(target=attack, args=(port, until), daemon=True)
        # /healthz is requested from a separate process, because the threads of the attacker would delay the requests.
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            slowest = pool.submit(slowest_health, port, until)
            thread.start()
            while not slowest.done():
                largest = max(largest, memory(server) - before)
                time.sleep(0.02)
        thread.join(10)
        time.sleep(1)
        return largest, memory(server) - before, slowest.result()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--attack", action="append", help="Run the attacks whose name contains this text; repeatable.")
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--manul", default=str(MANUL), help="The manul command to attack.")
    arguments = parser.parse_args()
    failed = False
    for name, attack in ATTACKS.items():
        if arguments.attack is None or any(part in name for part in arguments.attack):
            largest, after, slowest = measure(attack, arguments.manul, arguments.seconds)
            failed |= largest > MOST_GROWTH or slowest > MOST_SECONDS
            print(f"{name}: {largest:.0f} MB at most, {after:.0f} after, /healthz {slowest:.2f} s", flush=True)
    if failed:
        sys.exit(
            f"failed: memory may grow by at most {MOST_GROWTH:.0f} MB, and /healthz must respond within {MOST_SECONDS:.0f} s."
        )


if __name__ == "__main__":
    main()
