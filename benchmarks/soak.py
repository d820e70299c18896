"""A long mixed load: memory must not grow by more than 10 % once the agent remembers as many rounds as it can.

python -m benchmarks.soak --minutes 60
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

from benchmarks.serve import MANUL, free_port, post, running

MOST_GROWTH = 1.10
REMEMBERED = 32_768  # rounds of Auto


def memory(process: int) -> float:
    """The resident memory of a process in MiB."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * 4096 / 2**20


def learned(port: int) -> int:
    """The rounds that the loop has learned."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/loops/soak") as response:
        return int(json.load(response)["learned"])


def call(port: int, seed: int, until: float) -> None:
    rng = random.Random(seed)
    path = "/v1/loops/soak"
    while time.monotonic() < until:
        requests = [{"context": [rng.gauss(0, 1) for _ in range(20)]} for _ in range(rng.choice([1, 1, 1, 50]))]
        decided = post(port, f"{path}/decisions/batch", {"decisions": requests})["decisions"]
        losses = [
            {"id": each["id"], "loss": min(1.0, abs(each["action"] - 0.3))} for each in decided if rng.random() < 0.8
        ]
        if losses:
            post(port, f"{path}/losses", {"losses": losses})


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=60.0)
    minutes = parser.parse_args().minutes
    port = free_port()
    with (
        tempfile.TemporaryDirectory() as folder,
        running(str(MANUL), "serve", "--store", f"{folder}/soak.db", "--port", str(port), port=port) as server,
    ):
        post(port, "/v1/loops", {"name": "soak", "actions": [0, 1], "wait": 5, "default_loss": 1.0})
        until = time.monotonic() + 60 * minutes
        callers = [threading.Thread(target=call, args=(port, seed, until)) for seed in range(3)]
        for caller in callers:
            caller.start()
        settled = []
        while time.monotonic() < until:
            time.sleep(10.0)
            size, rounds = memory(server), learned(port)
            print(f"{rounds:,} rounds: {size:.0f} MiB", flush=True)
            if rounds >= REMEMBERED:
                settled.append(size)
        for caller in callers:
            caller.join()
    if len(settled) < 2:
        sys.exit(f"failed: fewer than {REMEMBERED:,} rounds. Run it for more minutes.")
    print(f"from {settled[0]:.0f} to {settled[-1]:.0f} MiB")
    if settled[-1] > MOST_GROWTH * settled[0]:
        sys.exit(f"failed: memory grew by more than 10 % after {REMEMBERED:,} rounds.")


if __name__ == "__main__":
    main()
