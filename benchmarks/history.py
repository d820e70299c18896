"""The CPU time of the service per decision and loss must not grow with the length of the history in the store.

    python -m benchmarks.history [--pairs 400] [--passes 5] [--events 1000 100000 1000000] [--out results/history.json]

Services with histories of each length run in parallel and are measured in turns, so that a slow period of the machine
affects all of them. The limit is 1.3 times the CPU time with the shortest history.
"""

from __future__ import annotations

import argparse
import http.client
import json
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from benchmarks.serve import AGENTS, MANUL, WIDTH, cpu_seconds, free_port, new_store, running
from manul.service.engine.loop import Loop
from manul.service.loop_settings import NewLoop
from manul.service.store import Event, Store, Transaction
from manul.service.store.blocks import pack_columns
from manul.service.store.store_registry import open_store

LIMIT, BLOCK, CHUNK = 1.3, 10, 10_000
SETTINGS = {"name": "heat", "actions": [0, 1], "agent": AGENTS["cats"]}


def fill(place: str, events: int) -> None:
    """A loop with as many decisions and losses, and a snapshot that contains them."""
    store = open_store(place)
    settings = msgspec.json.encode(msgspec.convert(SETTINGS, NewLoop))
    with store.transaction() as transaction:
        loop = transaction.add_loop("heat", settings, time.time(), apprentice=False)
    assert loop is not None
    for first in range(1, events + 1, CHUNK):
        with store.transaction() as transaction:
            add(transaction, loop, range(first, min(first + CHUNK, events + 1)))
    keep_snapshot(store, events)
    reserve(store, loop, events)
    store.close()


def add(transaction: Transaction, loop: int, numbers: range) -> None:
    rng, now = np.random.default_rng(numbers.start), time.time()
    for first in numbers[::BLOCK]:
        some = range(first, min(first + BLOCK, numbers.stop))
        contexts = rng.normal(size=(len(some), WIDTH))
        ones = np.ones(len(some))
        transaction.add_block(loop, pack_columns(now, 0, some, 0.5 * ones, ones, contexts, [None] * len(some)))
    transaction.add_events(loop, [Event(0, number, "loss", 0.25, now) for number in numbers])


def keep_snapshot(store: Store, events: int) -> None:
    loop = Loop(store.loops()[0], store)
    loop.read_first()
    snapshot = loop.model.snapshot()._replace(event=events, learned=events)
    with store.transaction() as transaction:
        transaction.add_snapshot(loop.number, snapshot, keep=2)


def reserve(store: Store, loop: int, count: int) -> None:
    """Reserve the decision numbers of the history, so that they are not used again."""
    store.refill(loop, count)
    store.reserve(loop, count)


def play(port: int, pairs: int) -> None:
    """Make decisions and report their losses, one after another."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    body = json.dumps({"context": np.random.default_rng(0).normal(size=WIDTH).round(4).tolist()})
    for _ in range(pairs):
        decision = ask(connection, "/v1/loops/heat/decisions", body)
        ask(connection, f"/v1/loops/heat/decisions/{decision['id']}/loss", '{"loss": 0.5}')
    connection.close()


def ask(connection: http.client.HTTPConnection, path: str, body: str) -> Any:
    connection.request("POST", path, body)
    response = connection.getresponse()
    content = json.loads(response.read())
    assert response.status == 200, content
    return content


def measure(kind: str, sizes: list[int], pairs: int, passes: int) -> dict[int, float]:
    """The microseconds of CPU time per decision and loss, by length of history."""
    with ExitStack() as stack:
        services = {}
        for events in sizes:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            place = stack.enter_context(new_store(folder, postgres=kind == "postgres"))
            fill(place, events)
            port = free_port()
            command = (str(MANUL), "serve", "--store", place, "--port", str(port))
            services[events] = stack.enter_context(running(*command, port=port)), port
            play(port, pairs)
        times: dict[int, list[float]] = {events: [] for events in sizes}
        for _ in range(passes):
            for events, (process, port) in services.items():
                before = cpu_seconds(process)
                play(port, pairs)
                times[events].append(1e6 * (cpu_seconds(process) - before) / pairs)
    return {events: float(np.median(several)) for events, several in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=400)
    parser.add_argument("--passes", type=int, default=5)
    parser.add_argument("--events", type=int, nargs="+", default=[1000, 100_000, 1_000_000])
    parser.add_argument("--store", action="append", choices=["sqlite", "postgres"])
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    results = {}
    for kind in arguments.store or ["sqlite", "postgres"]:
        cpu = results[kind] = measure(kind, arguments.events, arguments.pairs, arguments.passes)
        for events, microseconds in cpu.items():
            ratio = microseconds / cpu[arguments.events[0]]
            print(f"{kind}, {events:,} events: {microseconds:,.0f} µs of CPU per decision and loss, ratio {ratio:.2f}")
    if arguments.out is not None:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(json.dumps(results, indent=2))
    if any(max(cpu.values()) > LIMIT * cpu[arguments.events[0]] for cpu in results.values()):
        sys.exit(f"failed: CPU time per decision and loss may be at most {LIMIT} times that with the shortest history.")


if __name__ == "__main__":
    main()
