"""What one refresh of the dashboard costs the server, with a million decisions and their losses in the store.

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
# The page asks for the first every 2 s, for the others every 6 and 10 s; the last does nothing, for comparison.
ROUTES = {
    "summary": f"{LOOP}/summary",
    "policy": f"{LOOP}/policy?feature=3",
    "loops": "/v1/loops",
    "healthz": "/healthz",
}
ROUNDS = 10


def fill(port: int, decisions: int) -> None:
    """Decisions in batches, each with its loss."""
    contexts = np.random.default_rng(0).normal(size=(BATCH, WIDTH)).round(3).tolist()
    body = {"decisions": [{"context": each} for each in contexts]}
    for _ in range(decisions // BATCH):
        made = post(port, f"{LOOP}/decisions/batch", body)["decisions"]
        losses = [{"id": each["id"], "loss": abs(each["action"] - 0.3)} for each in made]
        post(port, f"{LOOP}/losses", {"losses": losses})


def learned(port: int) -> Any:
    """The loop, once it has learned everything and the server rests."""
    while True:
        status = get(http.client.HTTPConnection("127.0.0.1", port), LOOP)
        if status["learned"] == status["decisions"]:
            return status
        time.sleep(0.5)


def get(connection: http.client.HTTPConnection, path: str) -> Any:
    connection.request("GET", path)
    return json.loads(connection.getresponse().read())


def cpu_milliseconds(process: int) -> float:
    """The time that all threads of a process have had so far."""
    return sum(int(each.read_text().split()[0]) for each in Path(f"/proc/{process}/task").glob("*/schedstat")) / 1e6


def refreshed(server: int, port: int, path: str, times: int) -> dict[str, float]:
    """The server's CPU time per request, in the best and the median of some rounds, and the median until the answer."""
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
            found: dict[str, Any] = {}
            for decisions in (10_000, arguments.decisions):
                fill(port, decisions - (10_000 if found else 0))
                stored = learned(port)["decisions"]
                # The first refresh begins an examination in a thread; the others find it done.
                refreshed(server, port, ROUTES["summary"], ROUNDS)
                time.sleep(5)
                found[f"{stored:,}"] = {
                    name: refreshed(server, port, path, arguments.refreshes) for name, path in ROUTES.items()
                }
        for stored, routes in found.items():
            for name, each in routes.items():
                said = ", ".join(f"{what} {value:.2f}" for what, value in each.items())
                print(f"{stored} decisions, {name}: {said}")
    if arguments.out is not None:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
