"""How long an agent takes outside of Python: to load in Node, and to decide there, as a ratio to Python.

    make js/dist/manul.wasm
    python -m benchmarks.edge

Loading is the time from the bytes of a file to the first decision, in a new process, with the compilation of manul.wasm: the
best of some processes, by the clock and, because a busy machine makes that long, of CPU time of all threads. A decision is CPU
time, the best of some turns, of the same agent with the same contexts in Python and in Node.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import manul
from manul.utils import model_files

PROCESSES, TURNS, LEARNED = 5, 5, 400
MOST_LOAD, MOST_RATIO = 100.0, 4.0  # milliseconds for 1 MB, and times the time of Python
SCRIPT = Path(__file__).parent.parent / "js" / "test" / "bench.js"


def row(number: int) -> list[float]:
    return [number % 7 / 7, number % 11 / 11, 1.0 * (number % 3 == 0)]


def fields(number: int) -> dict[str, Any]:
    return {"city": ["Oslo", "Bergen", "Moss"][number % 3], "age": number % 70, "new": number % 2 == 0, "cost": 9.0}


KNOBS = {"price": (10, 50), "discount": (0, 0.5), "template": manul.Choice(["plain", "bold"])}
AGENTS: dict[str, tuple[Callable[[], Any], Callable[[int], Any]]] = {
    "Cats, rows": (lambda: manul.Cats(leaves=64, bandwidth=1 / 16), row),
    "Cats, named": (lambda: manul.Cats(leaves=64, bandwidth=1 / 16, table_bits=14), fields),
    "Auto, rows": (lambda: manul.Auto(), row),
    "Auto, named": (lambda: manul.Auto(), fields),
    "Auto, knobs and limits": (lambda: manul.Auto(actions=KNOBS, limits=["discount <= 1 - cost / price"]), fields),
}


def learned(make: Callable[[], Any], context: Callable[[int], Any]) -> Any:
    agent = make()
    for number in range(LEARNED):
        decision = agent.decide(context(number))
        agent.learn(context(number), decision, number % 5 / 5)
    return agent


def in_python(agent: Any, contexts: list[Any]) -> float:
    """Microseconds of CPU time a decision."""
    best = float("inf")
    for _ in range(TURNS):
        start = time.process_time()
        for context in contexts:
            agent.decide(context)
        best = min(best, time.process_time() - start)
    return 1e6 * best / len(contexts)


def in_node(path: Path, contexts: Path) -> dict[str, float]:
    runs = [
        json.loads(subprocess.run(["node", SCRIPT, path, contexts, str(TURNS)], check=True, capture_output=True).stdout)
        for _ in range(PROCESSES)
    ]
    return {name: min(run[name] for run in runs) for name in runs[0]}


def main() -> int:
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    print(f"{'agent':24}{'MB':>6}{'load, ms':>10}{'of CPU':>8}{'Python, us':>12}{'Node, us':>10}{'ratio':>8}")
    failed = False
    with TemporaryDirectory() as folder:
        for name, (make, context) in AGENTS.items():
            agent = learned(make, context)
            data = model_files.dumps(agent)
            contexts = [context(number) for number in range(1000)]
            model, listed = Path(folder, "agent.manul"), Path(folder, "contexts.json")
            model.write_bytes(data)
            listed.write_text(json.dumps(contexts))
            python, node = in_python(agent, contexts), in_node(model, listed)
            ratio, size = node["decide"] / python, len(data) / 1e6
            print(
                f"{name:24}{size:6.2f}{node['load']:10.1f}{node['cpu']:8.1f}{python:12.2f}{node['decide']:10.2f}{ratio:8.2f}",
                flush=True,
            )
            failed |= ratio > MOST_RATIO or min(node["load"], node["cpu"]) > MOST_LOAD * max(1.0, size)
    print(f"limits: {MOST_LOAD:.0f} ms for 1 MB, {MOST_RATIO:.0f} times Python: {'missed' if failed else 'kept'}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
