"""Durable decisions per second, compared with a bare ASGI application that only decodes and encodes JSON.

    python -m benchmarks.serve [--seconds 5] [--connections 64] [--agent auto --agent cats] [--postgres] [--measure losses]

With --postgres the store is a PostgreSQL server that is started for the run. Decisions with losses (`benchmarks/replicas.py`) are
measured with 1, 2 and 4 replicas on PostgreSQL. Snapshots (`--measure snapshots`) are those of `auto` with a field of 40,000 users,
whose model has 75 MB: latency of decisions while they are saved, memory, and the times to stop and to start again.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

AGENTS: dict[str, Any] = {"auto": "auto", "cats": {"kind": "cats", "leaves": 128, "bandwidth": 1 / 16}}
MANUL = Path(sys.executable).with_name("manul")
MEASURES, REPLICAS = ("decisions", "losses", "snapshots"), (1, 2, 4)
LEARNED, BATCH, WIDTH = 2000, 1000, 20  # decisions learned before the measurement and per batch, features
USERS, SNAPSHOT_SECONDS, SAVED = 40_000, 2, "saved a snapshot"  # of the large model


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def cpu_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def running(*command: str, port: int, log: Any = subprocess.DEVNULL) -> Iterator[int]:
    """Run a server, and yield its process id once it listens."""
    process = subprocess.Popen(command, stderr=log)
    try:
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 0.1).close()
                break
            except OSError:
                time.sleep(0.05)
        yield process.pid
    finally:
        process.terminate()
        process.wait()


def megabytes(process: int) -> float:
    """The resident memory of a process."""
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


@contextmanager
def new_store(folder: str, *, postgres: bool) -> Iterator[str]:
    """A store for one run: a file, or a database on a temporary server."""
    if not postgres:
        yield str(Path(folder, "decisions.db"))
        return
    from tests.service.postgres import Server

    server = Server()
    try:
        yield server.database()
    finally:
        server.remove()


def post(port: int, path: str, body: Any) -> Any:
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", json.dumps(body).encode(), method="POST")
    with urllib.request.urlopen(request) as response:
        return json.load(response)


def load(server: int, port: int, path: str, body: Path, **options: Any) -> dict[str, float]:
    """The results of the load generator, and the CPU time of the server per request in microseconds."""
    before = cpu_seconds(server)
    flags = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    process = subprocess.run(
        [sys.executable, "-m", "benchmarks.load", str(port), path, str(body), *flags],
        check=True,
        capture_output=True,
        text=True,
    )
    result = dict(json.loads(process.stdout))
    return {**result, "cpu": 1e6 * (cpu_seconds(server) - before) / result["requests"]}


def teach(port: int, loop: str) -> None:
    """Train the loop, because a model in use takes more time than an empty one."""
    contexts = np.random.default_rng(0).normal(size=(LEARNED, WIDTH)).round(3).tolist()
    decided = post(port, f"/v1/loops/{loop}/decisions/batch", {"decisions": [{"context": each} for each in contexts]})
    losses = [{"id": each["id"], "loss": abs(each["action"] - 0.3)} for each in decided["decisions"]]
    post(port, f"/v1/loops/{loop}/losses", {"losses": losses})


def measure(folder: Path, store: str, agent: str, seconds: float, connections: int) -> dict[str, float]:
    row = np.random.default_rng(1).normal(size=WIDTH).round(4).tolist()
    single, batch = folder / "single.json", folder / "batch.json"
    single.write_text(json.dumps({"context": row}))
    rows = np.random.default_rng(2).normal(size=(BATCH, WIDTH)).round(4).tolist()
    batch.write_text(json.dumps({"decisions": [{"context": each} for each in rows]}))
    port, peer = free_port(), free_port()
    path = f"/v1/loops/{agent}/decisions"
    with (
        running(sys.executable, "-m", "benchmarks.bare", str(peer), port=peer) as other,
        running(str(MANUL), "serve", "--store", store, "--port", str(port), port=port) as server,
    ):
        post(port, "/v1/loops", {"name": agent, "actions": [0, 1], "agent": AGENTS[agent]})
        teach(port, agent)
        shares, ours, bare = [], [], []
        for _ in range(3):
            bare.append(load(other, peer, path, single, seconds=seconds / 3, connections=connections))
            ours.append(load(server, port, path, single, seconds=seconds / 3, connections=connections))
            shares.append(ours[-1]["rate"] / bare[-1]["rate"])
        highest = float(np.median([each["rate"] for each in ours]))
        half = load(server, port, path, single, seconds=seconds, connections=connections, rate=highest / 2)
        peer_half = load(other, peer, path, single, seconds=seconds, connections=connections, rate=highest / 2)
        batches = load(server, port, f"{path}/batch", batch, seconds=seconds, connections=4)
    return {
        "bare_per_second": float(np.median([each["rate"] for each in bare])),
        "decisions_per_second": highest,
        "share_of_bare": float(np.median(shares)),
        "cpu_share_of_bare": float(np.median([b["cpu"] / o["cpu"] for b, o in zip(bare, ours, strict=True)])),
        "bare_cpu_us": float(np.median([each["cpu"] for each in bare])),
        "cpu_us": float(np.median([each["cpu"] for each in ours])),
        "p50_ms": ours[-1]["p50"],
        "p99_ms_at_half_rate": half["p99"],
        "bare_p99_ms_at_that_rate": peer_half["p99"],
        "batched_decisions_per_second": BATCH * batches["rate"],
        "cpu_us_per_batched_decision": batches["cpu"] / BATCH,
        "bad": sum(each["bad"] for each in (*ours, half, batches)),
    }


def teach_users(port: int, first: int, count: int) -> None:
    contexts = [{"user": f"user-{number % USERS}", "age": number % 80} for number in range(first, first + count)]
    path = "/v1/loops/users"
    decided = post(port, f"{path}/decisions/batch", {"decisions": [{"context": each} for each in contexts]})
    losses = [{"id": each["id"], "loss": abs(each["action"] - 0.3)} for each in decided["decisions"]]
    post(port, f"{path}/losses", {"losses": losses})


def wait_until_learned(port: int) -> None:
    while True:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/loops/users") as response:
            status = json.load(response)
        if status["model"] == status["events"]:
            return
        time.sleep(0.1)


def measure_snapshots(folder: Path, store: str, seconds: float, connections: int) -> dict[str, float]:
    """Latency of decisions at half the highest rate while a large model is saved again and again."""
    body, port = folder / "user.json", free_port()
    body.write_text(json.dumps({"context": {"user": "user-7", "age": 31}}))
    serve = (str(MANUL), "serve", "--store", store, "--port", str(port), "--snapshot-seconds", str(SNAPSHOT_SECONDS))
    path = "/v1/loops/users/decisions"
    done = threading.Event()

    def keep_teaching() -> None:
        for turn in itertools.count():
            if done.wait(0.25):
                return
            teach_users(port, 20 * turn, 20)

    teacher, log = threading.Thread(target=keep_teaching), folder / "service.log"
    with log.open("w") as lines, running(*serve, port=port, log=lines) as server:
        post(port, "/v1/loops", {"name": "users", "actions": [0, 1], "agent": "auto"})
        for first in range(0, USERS, BATCH):
            teach_users(port, first, BATCH)
        wait_until_learned(port)
        highest = load(server, port, path, body, seconds=seconds / 3, connections=connections)["rate"]
        teacher.start()
        before = log.read_text().count(SAVED)
        half = load(server, port, path, body, seconds=5 * seconds, connections=connections, rate=highest / 2)
        saved = log.read_text().count(SAVED) - before
        done.set()
        teacher.join()
        memory, began = megabytes(server), time.monotonic()
    stopped = time.monotonic()
    with running(*serve, port=port) as server:
        wait_until_learned(port)
        started, memory_after = time.monotonic(), megabytes(server)
    return {
        "decisions_per_second": highest,
        "p99_ms_at_half_rate": half["p99"],
        "worst_ms_at_half_rate": half["worst"],
        "snapshots": saved,
        "memory_mb": memory,
        "stop_seconds": stopped - began,
        "start_seconds": started - stopped,
        "memory_mb_after_start": memory_after,
        "bad": half["bad"],
    }


def cases(arguments: argparse.Namespace) -> Iterator[tuple[str, dict[str, float]]]:
    """Measure each case; yields its name and results."""
    from benchmarks import replicas

    options: dict[str, Any] = {"seconds": arguments.seconds, "connections": arguments.connections}
    if "snapshots" in (arguments.measure or MEASURES):
        with tempfile.TemporaryDirectory() as folder, new_store(folder, postgres=arguments.postgres) as store:
            yield "snapshots of a large model", measure_snapshots(Path(folder), store, **options)
    for agent in arguments.agent or sorted(AGENTS):
        if "decisions" in (arguments.measure or MEASURES):
            with tempfile.TemporaryDirectory() as folder, new_store(folder, postgres=arguments.postgres) as store:
                yield agent, measure(Path(folder), store, agent, **options)
        for count in (arguments.replicas or REPLICAS) if arguments.postgres else [1]:
            if "losses" in (arguments.measure or MEASURES):
                with tempfile.TemporaryDirectory() as folder, new_store(folder, postgres=arguments.postgres) as store:
                    name = f"{agent} with losses, {count} replicas"
                    yield name, replicas.measure(Path(folder), store, agent, replicas=count, **options)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--agent", action="append", choices=sorted(AGENTS))
    parser.add_argument("--measure", action="append", choices=MEASURES)
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--replicas", action="append", type=int)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    results = {}
    for case, result in cases(arguments):
        results[case] = result
        print(f"{case}: " + ", ".join(f"{name} {value:,.2f}" for name, value in result.items()), flush=True)
    if arguments.out is not None:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
