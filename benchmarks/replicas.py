"""Decisions with losses per second, with one or several replicas on one store, compared with a bare ASGI application.

    python -m benchmarks.serve --postgres --measure losses

Each connection decides, reports the loss of that decision, and decides again; both are on disk before they are answered. The load
generator, the replicas and PostgreSQL share the processors of one machine, so that the CPU time of each per decision and loss says
more than the rate. `learned_seconds` is the time after the load until the model has learned all losses.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.serve import AGENTS, MANUL, WIDTH, cpu_seconds, free_port, post, running, teach

ROUNDS = 3


def cpu_of_service(servers: Sequence[int], store: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The CPU seconds of the replicas, and of PostgreSQL with all its processes, also those that have ended."""
    seconds = [sum(map(cpu_seconds, servers)), 0.0]
    if "host=" in store:
        postmaster = int(Path(store.partition("host=")[2], "data", "postmaster.pid").read_text().split()[0])
        fields = Path(f"/proc/{postmaster}/stat").read_text().rpartition(")")[2].split()
        seconds[1] = cpu_seconds(postmaster) + (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")
        for child in Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split():
            with suppress(FileNotFoundError):
                seconds[1] += cpu_seconds(int(child))
    return np.array(seconds)


def load(ports: Sequence[int], path: str, body: Path, *, seconds: float, connections: int) -> dict[str, float]:
    flags = ["--losses", "--seconds", str(seconds), "--connections", str(connections)]
    command = [sys.executable, "-m", "benchmarks.load", ",".join(map(str, ports)), path, str(body), *flags]
    return dict(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))


def seconds_until_learned(port: int, loop: str) -> float:
    began = time.perf_counter()
    while True:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/loops/{loop}") as response:
            status = json.load(response)
        if status["model"] >= status["events"]:
            return time.perf_counter() - began
        time.sleep(0.02)


def measure(
    folder: Path, store: str, agent: str, *, replicas: int, seconds: float, connections: int
) -> dict[str, float]:
    body = folder / "decision.json"
    body.write_text(json.dumps({"context": np.random.default_rng(1).normal(size=WIDTH).round(4).tolist()}))
    name, ports, peer = f"{agent}-{replicas}", [free_port() for _ in range(replicas)], free_port()
    path = f"/v1/loops/{name}/decisions"
    options: dict[str, Any] = {"seconds": seconds / ROUNDS, "connections": connections}
    with ExitStack() as stack:
        stack.enter_context(running(sys.executable, "-m", "benchmarks.bare", str(peer), port=peer))
        commands = [(str(MANUL), "serve", "--store", store, "--port", str(port)) for port in ports]
        servers = [
            stack.enter_context(running(*command, port=port)) for command, port in zip(commands, ports, strict=True)
        ]
        post(ports[0], "/v1/loops", {"name": name, "actions": [0, 1], "agent": AGENTS[agent]})
        teach(ports[0], name)
        load(ports, path, body, seconds=0.5, connections=connections)
        bare, ours, used = [], [], []
        for _ in range(ROUNDS):
            bare.append(load([peer], path, body, **options))
            before = cpu_of_service(servers, store)
            ours.append(load(ports, path, body, **options))
            used.append(cpu_of_service(servers, store) - before)
        learned = seconds_until_learned(ports[0], name)
    count = sum(each["requests"] for each in ours)
    server, database = 1e6 * np.sum(used, axis=0) / count
    return {
        "bare_per_second": float(np.median([each["rate"] for each in bare])),
        "per_second": float(np.median([each["rate"] for each in ours])),
        "share_of_bare": float(np.median([o["rate"] / b["rate"] for o, b in zip(ours, bare, strict=True)])),
        "p50_ms": float(np.median([each["p50"] for each in ours])),
        "p99_ms": max(each["p99"] for each in ours),
        "server_cpu_us": float(server),
        "database_cpu_us": float(database),
        "generator_cpu_us": 1e6 * sum(each["generator"] for each in ours) / count,
        "learned_seconds": learned,
        "bad": sum(each["bad"] for each in ours),
    }
