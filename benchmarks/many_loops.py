"""Resident memory and shutdown time with many loops of the default agent, each with a few losses.

python -m benchmarks.many_loops [--loops 1000] [--outcomes 5]
"""

from __future__ import annotations

import argparse
import http.client
import json
import subprocess
import tempfile
import time
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


def ask(connection: http.client.HTTPConnection, path: str, body: object) -> dict[str, str]:
    connection.request("POST", f"/v1/loops{path}", json.dumps(body))
    response = json.loads(connection.getresponse().read())
    assert "error" not in response, response
    return dict(response)


def use_loop(connection: http.client.HTTPConnection, name: str, outcomes: int) -> None:
    ask(connection, "", {"name": name, "actions": [0, 1]})
    for number in range(outcomes):
        decision = ask(connection, f"/{name}/decisions", {"context": [number / outcomes, 1.0]})
        ask(connection, f"/{name}/decisions/{decision['id']}/loss", {"loss": 0.5})


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--loops", type=int, default=1000)
    parser.add_argument("--outcomes", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        store = str(Path(folder, "decisions.db"))
        command = [MANUL, "serve", "--store", store, "--port", str(port)]
        for turn in ("new", "restarted"):
            began = time.perf_counter()
            process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
            connection = connect(port)
            start = time.perf_counter() - began
            empty = memory(process.pid)
            for number in range(arguments.loops if turn == "new" else 0):
                use_loop(connection, f"loop-{number}", arguments.outcomes)
            full, began = memory(process.pid), time.perf_counter()
            process.terminate()
            process.wait()
            stop = time.perf_counter() - began
            print(
                f"{turn}: listens after {start:.1f} s with {empty:.0f} MiB, {full:.0f} MiB in use, stops in {stop:.1f} s"
            )


if __name__ == "__main__":
    main()
