"""Peak memory of `manul optimize` and `manul evaluate` on a Parquet log, and on one several times as long.

    python -m benchmarks.memory [--rows 2000000] [--times 10]

Each command runs in a separate process; the system reports its peak when it ends. The longer log may use 1.2 times as much.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from multiprocessing import Process
from pathlib import Path
from tempfile import TemporaryDirectory

BATCH = 100_000
LIMIT = 1.2


def write_log(path: Path, rows: int) -> None:
    import manul
    from manul.logs.log import LogWriter

    agent = manul.Cats.paper(leaves=4, bandwidth=1 / 4)
    with LogWriter(path) as writer:
        for seed in range(rows // BATCH):
            writer.write(manul.simulate(agent, manul.worlds.linear(rounds=BATCH, width=8, seed=seed)).log)


def peak_megabytes(command: list[str]) -> float:
    # Until its own program runs, a process counts the memory of its parent, so the parent must stay small.
    process = subprocess.Popen(
        [sys.executable, "-m", "manul", *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status):
        raise RuntimeError(f"manul {' '.join(command)} failed")
    return usage.ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--times", type=int, default=10)
    options = parser.parse_args()
    rows, longer = options.rows, options.times * options.rows
    with TemporaryDirectory() as folder:
        policy, short, long = Path(folder, "policy.manul"), Path(folder, "short.parquet"), Path(folder, "long.parquet")
        for path, count in ((short, rows), (long, longer)):
            writer = Process(target=write_log, args=(path, count))
            writer.start()
            writer.join()
        grid = ["--bandwidths", "1/4,1/16", "--leaves", "16,128", "--out", str(policy)]
        for name, command in {
            "optimize": lambda log: ["optimize", str(log), *grid],
            "evaluate": lambda log: ["evaluate", str(policy), str(log)],
        }.items():
            few, many = peak_megabytes(command(short)), peak_megabytes(command(long))
            verdict = "ok" if many <= LIMIT * few else "MISS"
            print(f"{name}: {few:.0f} MB at {rows:,} rows, {many:.0f} MB at {longer:,}: {many / few:.2f} {verdict}")


if __name__ == "__main__":
    main()
