"""The CPU time of the server per refresh of the dashboard, with a million decisions and losses in the store.

python -m benchmarks.dashboard [--decisions 1000000] [--refreshes 200]
"""

from __future__ import annotations

import argparse
import http.client
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.serve import MANUL, free_port, post, running

BATCH, WIDTH = 1000, 20
LOOP = "/v1/loops/priced"
# The page requests the first every 2 s, the next two every 6 and 10 s; /healthz is for comparison.
ROUTES = {
    "summary": f"{LOOP}/summary",
    "policy": f"{LOOP}/policy?feature=3",
    "loops": "/v1/loops",
    "healthz": "/healthz",
}
ROUNDS = 10  # of measurement per route


def fill(port: int, decisions: int) -> None:
    """Make decisions in batches, and report their losses."""
    contexts = np.random.default_rng(0).normal(size=(BATCH, WIDTH)).round(3).tolist()
    body = {"decisions": [{"context": each} for each in contexts]}
    for _ in range(decisions // BATCH):
        decided = post(port, f"{LOOP}/decisions/batch", body)["decisions"]
        losses = [{"id": each["id"], "loss": abs(each["action"] - 0.3)} for each in decided]
        post(port, f"{LOOP}/losses", {"losses": losses})


def wait_until_learned(port: int) -> Any:
    """Wait until the loop has learned from every decision, and return its status."""
    while True:
        status = get(http.client.HTTPConnection("127.0.0.1", port), LOOP)
        if status["learned"] == status["decisions"]:
            return status
        time.sleep(0.5)


def get(connection: http.client.HTTPConnection, path: str) -> Any:
    connection.request("GET", path)
    return json.loads(connection.getresponse().read())


def cpu_milliseconds(process: int) -> float:
    """The CPU time of all threads of a process so far."""
    return sum(int(each.read_text().split()[0]) for each in Path(f"/proc/{process}/task").glob("*/schedstat")) / 1e6


def measure(server: int, port: int, path: str, times: int) -> dict[str, float]:
    """The CPU time per request of the server, the lowest and the median of several rounds, and the median latency."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    waits, costs = [], []
    for _ in range(ROUNDS):
        before = cpu_milliseconds(server)
        for _ in range(times // ROUNDS):
            began = time.perf_counter()
            get(connection, path)
            waits.append(1000 * (time.perf_counter() - began))
        costs.append((cpu_milliseconds(server) - before) / (times // ROUNDS))
    return {"least_cpu_ms": min(costs), "cpu_ms": float(np.median(costs)), "median_ms": float(np.median(waits))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--decisions", type=int, default=1_000_000)
    parser.add_argument("--refreshes", type=int, default=200)
    parser.add_argument("--agent", default="cats", choices=["auto", "cats"])
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    agents: dict[str, Any] = {"auto": "auto", "cats": {"kind": "cats", "leaves": 128, "bandwidth": 1 / 16}}
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        serve = (str(MANUL), "serve", "--store", str(Path(folder, "decisions.db")), "--port", str(port))
        with running(*serve, port=port) as server:
            post(port, "/v1/loops", {"name": "priced", "actions": [0, 1], "agent": agents[arguments.agent]})
            results: dict[str, Any] = {}
            for decisions in (10_000, arguments.decisions):
                fill(port, decisions - (10_000 if results else 0))
                stored = wait_until_learned(port)["decisions"]
                # The first refresh starts a diagnosis of the log in a thread; later ones use its result.
                measure(server, port, ROUTES["summary"], ROUNDS)
                time.sleep(5)
                results[f"{stored:,}"] = {
                    name: measure(server, port, path, arguments.refreshes) for name, path in ROUTES.items()
                }
        for stored, routes in results.items():
            for name, measurements in routes.items():
                text = ", ".join(f"{key} {value:.2f}" for key, value in measurements.items())
                print(f"{stored} decisions, {name}: {text}")
    if arguments.out is not None:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
