"""Explains why narrow windows are faster than wide ones in the paper's training: `python -m benchmarks.updates`.

With 8192 leaves and 20 features, by bandwidth: the number of nodes trained per round, the time to decide and to learn, and
the time of the same updates from a list, without the search for their nodes. Deciding and the list together are the time
of a round if the search were free. Requires g++.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).parent
FLAGS = [
    "-std=c++20",
    "-O3",
    "-march=native",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-Wno-psabi",
]


def measure() -> list[list[float]]:
    """Compile and run updates.cpp; returns lines of (1/bandwidth, nodes, ns to decide, to learn, from the list)."""
    with TemporaryDirectory() as folder:
        program = Path(folder, "updates")
        core = HERE.parent / "src/core"
        subprocess.run(
            ["g++", *FLAGS, "-DMANUL_SIMD=native", f"-I{core}", HERE / "updates.cpp", "-o", program], check=True
        )
        output = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    return [[float(each) for each in line.split()] for line in output.splitlines()]


def main() -> None:
    lines = measure()
    print(f"{'bandwidth':>9} {'nodes':>6} {'decide':>7} {'learn':>7} {'list':>7}  ns")
    for inverse, nodes, decide, learn, listed in lines:
        print(f"{f'1/{inverse:.0f}':>9} {nodes:6.1f} {decide:7.0f} {learn:7.0f} {listed:7.0f}")
    rounds = [decide + learn for _, _, decide, learn, _ in lines]
    free = [decide + listed for _, _, decide, _, listed in lines]
    print(f"largest/smallest: {max(rounds) / min(rounds):.2f}; if the search were free: {max(free) / min(free):.2f}")


if __name__ == "__main__":
    main()
