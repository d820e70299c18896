"""CPU time per round of this checkout and of another, measured in turn: whether a change has made the core slower.

    git worktree add ../before COMMIT && make -C ../before .venv/dev
    python -m benchmarks.compare ../before/.venv/bin/python [--runs 4]

Both sides run the same program in processes of their own; the lowest time of each cell counts.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys

PROGRAM = """
import json, time
import numpy as np
import manul

def lowest(run, times=3):
    seconds = []
    for _ in range(times):
        began = time.process_time()
        run()
        seconds.append(time.process_time() - began)
    return min(seconds)

long, short = (manul.worlds.linear(rounds=rounds, width=20) for rounds in (100_000, 10_000))
margin = manul.learners.CoinBetting(target="margin")
cells = {}
for leaves, bandwidth in ((4, 1 / 4), (128, 1 / 16), (1024, 1 / 64), (8192, 1 / 64)):
    settings = {"leaves": leaves, "bandwidth": bandwidth}
    paper = lambda: manul.simulate(manul.Cats.paper(**settings, learner=margin), long)
    cells[f"Cats.paper, one regressor, {leaves} leaves"] = lowest(paper) / 100_000
    cells[f"Cats, {leaves} leaves"] = lowest(lambda: manul.simulate(manul.Cats(**settings), long)) / 100_000
cells["Auto"] = lowest(lambda: manul.simulate(manul.Auto(), short), 2) / 10_000
agent, rows = manul.Cats(leaves=128, bandwidth=1 / 16), np.random.default_rng(0).normal(size=(20_000, 20))
named = manul.Cats(leaves=128, bandwidth=1 / 16)
fields = [{"age": float(i % 70), "city": f"c{i % 9}", "on": True} for i in range(20_000)]

def rounds(agent, contexts):
    for context in contexts:
        agent.learn(context, agent.decide(context), 0.5)

cells["Cats, decide and learn from Python, a row"] = lowest(lambda: rounds(agent, rows)) / 20_000
cells["Cats, decide and learn from Python, a mapping"] = lowest(lambda: rounds(named, fields)) / 20_000
batch = lambda: agent.learn_many(rows, agent.decide_many(rows), np.full(20_000, 0.5))
cells["Cats, decide_many and learn_many"] = lowest(batch, 5) / 20_000
print(json.dumps(cells))
"""


def measure(python: str) -> dict[str, float]:
    """Seconds per round of every cell."""
    done = subprocess.run([python, "-c", PROGRAM], check=True, capture_output=True, text=True)
    return dict(json.loads(done.stdout))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("other", help="Python of the other checkout's environment")
    parser.add_argument("--runs", type=int, default=4)
    arguments = parser.parse_args()
    runs = [(measure(arguments.other), measure(sys.executable)) for _ in range(arguments.runs)]
    for cell in runs[0][0]:
        before, now = (1e6 * min(run[side][cell] for run in runs) for side in (0, 1))
        print(f"{cell:48} other {before:7.3f} µs, this {now:7.3f} µs, ratio {now / before:.3f}")


if __name__ == "__main__":
    main()
