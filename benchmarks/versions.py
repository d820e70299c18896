"""Speed of this version as a ratio to another one: both do the same work in turn, in processes of their own.

    python -m benchmarks.versions ../before/.venv/bin/python

The argument is the Python of an environment with the other version. Each work prints the CPU seconds of both, the best of some
turns, and their ratio; the load of the machine is said first, because a busy one makes the ratios noisy.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import manul

TURNS = 7
RNG = np.random.default_rng(0)
ROWS = RNG.random((3000, 20)).astype(np.float32)
NAMED = [{"age": float(each % 50), "city": "ab"[each % 2]} for each in range(20_000)]


def play(agent: manul.Cats | manul.Auto, rounds: int) -> None:
    for row in ROWS[:rounds]:
        decision = agent.decide(row)
        action = decision.action["price"] if isinstance(decision.action, dict) else decision.action
        agent.learn(row, decision, abs(action - row[0]))


def cats() -> None:
    play(manul.Cats(leaves=16, bandwidth=1 / 8), 3000)


def auto() -> None:
    play(manul.Auto(), 1000)


def several_knobs() -> None:
    play(manul.Auto(actions={"price": (0, 1), "template": manul.Choice(["plain", "bold"])}), 200)


def named_batches() -> None:
    agent = manul.Cats(leaves=16, bandwidth=1 / 8)
    agent.learn_many(NAMED, agent.decide_many(NAMED), np.full(len(NAMED), 0.5))


def uniform_log() -> manul.Log:
    actions = RNG.random(len(ROWS))
    return manul.Log(ROWS, actions, np.ones(len(ROWS)), np.abs(actions - ROWS[:, 0]))


def evaluate() -> None:
    agent, log = manul.Cats(leaves=16, bandwidth=1 / 8), uniform_log()
    for _ in range(5):
        manul.evaluate(agent, log)


def optimize() -> None:
    manul.optimize(uniform_log())


WORKS: dict[str, Callable[[], None]] = {
    each.__name__: each for each in (cats, auto, several_knobs, named_batches, evaluate, optimize)
}


def seconds(python: str, work: str) -> float:
    run = subprocess.run([python, __file__, "--once", work], check=True, capture_output=True, text=True)
    return float(run.stdout.split()[-1])


def once(work: str) -> float:
    """CPU seconds of a work: the best of five, after the first, which also imports."""
    taken = []
    for _ in range(6):
        began = time.process_time()
        WORKS[work]()
        taken.append(time.process_time() - began)
    return min(taken[1:])


def main(other: str) -> None:
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores, best of {TURNS} turns")
    for work in WORKS:
        turns = [(seconds(other, work), seconds(sys.executable, work)) for _ in range(TURNS)]
        before, now = (min(each) for each in zip(*turns, strict=True))
        print(f"{work:14} {before:.4f} s -> {now:.4f} s   {now / before:.3f}", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--once"]:
        print(once(sys.argv[2]))
    elif len(sys.argv) == 2 and Path(sys.argv[1]).exists():
        main(sys.argv[1])
    else:
        sys.exit("pass the Python of an environment with the other version")
