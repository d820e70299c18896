"""Resident memory and shutdown time with many loops of the default agent, each with a few losses; and the memory that is left after
as many were made and deleted one after another.

python -m benchmarks.many_loops [--loops 1000] [--outcomes 5]
"""

from __future__ import annotations

import argparse
import http.client
import json
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.serve import MANUL, free_port
from benchmarks.soak import memory


def connect(port: int) -> http.client.HTTPConnection:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    while True:
        try:
            connection.connect()
            return connection
        except OSError:
            time.sleep(0.05)


def ask(connection: http.client.HTTPConnection, path: str, body: object, method: str = "POST") -> dict[str, str]:
    connection.request(method, f"/v1/loops{path}", json.dumps(body))
    response = json.loads(connection.getresponse().read())
    assert "error" not in response, response
    return dict(response)


def use_loop(connection: http.client.HTTPConnection, name: str, outcomes: int) -> None:
    ask(connection, "", {"name": name, "actions": [0, 1]})
    for number in range(outcomes):
        decision = ask(connection, f"/{name}/decisions", {"context": [number / outcomes, 1.0]})
        ask(connection, f"/{name}/decisions/{decision['id']}/loss", {"loss": 0.5})


@contextmanager
def serving(store: str) -> Iterator[tuple[int, http.client.HTTPConnection]]:
    """A service on a store: its process id, and a connection."""
    port = free_port()
    process = subprocess.Popen([MANUL, "serve", "--store", store, "--port", str(port)], stderr=subprocess.DEVNULL)
    try:
        yield process.pid, connect(port)
    finally:
        process.terminate()
        process.wait()


def measure_many(store: str, turn: str, loops: int, outcomes: int) -> None:
    began = time.perf_counter()
    with serving(store) as (process, connection):
        start, empty = time.perf_counter() - began, memory(process)
        for number in range(loops):
            use_loop(connection, f"loop-{number}", outcomes)
        full, began = memory(process), time.perf_counter()
    stop = time.perf_counter() - began
    print(f"{turn}: listens after {start:.1f} s with {empty:.0f} MiB, {full:.0f} MiB in use, stops in {stop:.1f} s")


def measure_deleted(store: str, loops: int, outcomes: int) -> None:
    with serving(store) as (process, connection):
        sizes = []
        for number in range(loops):
            use_loop(connection, f"loop-{number}", outcomes)
            ask(connection, f"/loop-{number}", None, "DELETE")
            if (number + 1) % max(1, loops // 10) == 0 or number == 0:
                sizes.append(memory(process))
        print(
            f"made and deleted: {', '.join(f'{size:.0f}' for size in sizes)} MiB after the first and each tenth of {loops:,}"
        )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--loops", type=int, default=1000)
    parser.add_argument("--outcomes", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        store = str(Path(folder, "decisions.db"))
        measure_many(store, "new", arguments.loops, arguments.outcomes)
        measure_many(store, "restarted", 0, arguments.outcomes)
        measure_deleted(str(Path(folder, "deleted.db")), arguments.loops, arguments.outcomes)


if __name__ == "__main__":
    main()
