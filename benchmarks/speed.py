"""`make bench`: rounds per second of manul and of Vowpal Wabbit, on the same data in the same run.

Vowpal Wabbit's time is the CPU time of its learner alone (see manul/paper/experiments/vowpal_wabbit.py); manul's is the CPU
time of the whole loop: decide, observe the loss, learn, log. Both are the lowest of several runs.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections import defaultdict
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import manul
from benchmarks.loss import COMPARED_CELLS
from benchmarks.vowpal_wabbit import python_call_seconds
from manul.agents.learners import CoinBetting
from manul.agents.player_host import host_of
from manul.paper.experiments import vowpal_wabbit

BANDWIDTHS = [2.0**-i for i in range(2, 13)]
ROUNDS, CALLS, PASSES = 100_000, 5000, 5
WIDTH = 20


def seconds_per_round(make, world, repeats=5) -> float:
    """The lowest CPU time per round over several new agents."""
    best = float("inf")
    for _ in range(repeats):
        agent = make()
        started = time.process_time()
        manul.worlds.simulate_many([agent], world, threads=1)
        best = min(best, time.process_time() - started)
    return best / len(world)


def paper_agent(leaves, bandwidth, target="margin"):
    return manul.Cats.paper(leaves=leaves, bandwidth=bandwidth, learner=CoinBetting(target=target))


def online(world, cache) -> list[dict]:
    """Time cells of manul and Vowpal Wabbit in turn, several times, so that a slow minute of the machine affects both."""
    theirs, ours = defaultdict(list), defaultdict(list)
    for _ in range(PASSES):
        for cell in COMPARED_CELLS:
            leaves, bandwidth = cell
            vw_cell = vowpal_wabbit.Cell(kind="cats", leaves=leaves, bandwidth=bandwidth)
            theirs[cell].append(vowpal_wabbit.learn_seconds(cell=vw_cell, cache=cache, rounds=ROUNDS).per_round)
            for name, make in (
                ("Cats.paper, one regressor", partial(paper_agent, leaves, bandwidth)),
                ("Cats.paper, two regressors", partial(paper_agent, leaves, bandwidth, "costs")),
                ("Cats", partial(manul.Cats, leaves=leaves, bandwidth=bandwidth)),
            ):
                ours[name, *cell].append(seconds_per_round(make, world, 2))
    return [row(*key, min(times), min(theirs[key[1:]])) for key, times in ours.items()]


def discrete(world, cache) -> list[dict]:
    rows = []
    for name, kind, leaves, make in (
        ("DiscreteTree", "dtree", 128, manul.agents.DiscreteTree),
        ("DiscreteTree", "dtree", 8192, manul.agents.DiscreteTree),
        ("DiscreteLinear", "dlinear", 128, manul.agents.DiscreteLinear),
    ):
        theirs = vowpal_wabbit.learn_seconds(
            cell=vowpal_wabbit.Cell(kind=kind, leaves=leaves), cache=cache, rounds=ROUNDS
        ).per_round
        ours = seconds_per_round(partial(make, leaves=leaves), world)
        rows.append(row(name, leaves, 0.0, ours, theirs))
    return rows


def row(name, leaves, bandwidth, ours, theirs) -> dict:
    return {
        "agent": name,
        "leaves": leaves,
        "bandwidth": bandwidth,
        "manul_us": ours * 1e6,
        "vw_us": theirs * 1e6,
        "times_faster": theirs / ours,
    }


def by_bandwidth(world, cache) -> dict:
    """The time per round at K = 8192, from h = 1/4 to 1/4096, of each agent and of Vowpal Wabbit, measured in turn."""
    times = defaultdict(lambda: [float("inf")] * len(BANDWIDTHS))
    contexts, targets = world.contexts[:CALLS].astype(np.float64), world.targets[:CALLS].tolist()
    for _ in range(PASSES):
        for index, h in enumerate(BANDWIDTHS):
            cell = vowpal_wabbit.Cell(kind="cats", leaves=8192, bandwidth=h)
            for name, seconds in (
                ("Cats.paper, one regressor", seconds_per_round(partial(paper_agent, 8192, h), world, 2)),
                ("Cats.paper, two regressors", seconds_per_round(partial(paper_agent, 8192, h, "costs"), world, 2)),
                ("Cats.paper from Python", python_seconds(paper_agent(8192, h), contexts, targets)),
                ("Cats", seconds_per_round(partial(manul.Cats, leaves=8192, bandwidth=h), world, 2)),
                ("Vowpal Wabbit", vowpal_wabbit.learn_seconds(cell=cell, cache=cache, rounds=ROUNDS).per_round),
            ):
                times[name][index] = min(times[name][index], seconds)
    return dict(times)


def trained_nodes(world, rounds=20_000) -> list[float]:
    """The mean number of nodes that the paper's training updates in a round, by bandwidth."""
    counts = []
    for bandwidth in BANDWIDTHS:
        agent = paper_agent(8192, bandwidth)
        player = host_of(agent).start(agent, WIDTH)
        updates = 0
        for context, target in zip(world.contexts[:rounds], world.targets[:rounds], strict=True):
            action, density, _ = player.decide(context, 0.0, 1.0)
            updates += len(player.trace(context, action, density, abs(action - target), 0.0, 1.0))
        counts.append(updates / rounds)
    return counts


def by_leaves(world) -> dict:
    """The time per round at h = 1/4, from 4 to 8192 leaves."""
    return {2**d: seconds_per_round(partial(paper_agent, 2**d, 1 / 4), world) * 1e6 for d in range(2, 14)}


def adaptive(world) -> dict:
    """The time per round of AdaptiveCats with 12 bandwidths, and of Cats with the middle one."""
    several = seconds_per_round(lambda: manul.AdaptiveCats(leaves=128), world)
    one = seconds_per_round(lambda: manul.Cats(leaves=128, bandwidth=1 / 64), world)
    return {"adaptive_us": several * 1e6, "cats_us": one * 1e6, "adaptive_over_cats": several / one}


def single_calls(world) -> dict:
    """One decide and one learn call from Python, against Vowpal Wabbit's predict and learn with parsed examples."""
    contexts, targets = world.contexts[:CALLS].astype(np.float64), world.targets[:CALLS]
    cell = vowpal_wabbit.Cell(kind="cats", leaves=128, bandwidth=1 / 16)
    ours, theirs = [], []
    for _ in range(PASSES):
        theirs.append(python_call_seconds(cell=cell, contexts=contexts, targets=targets).per_round)
        ours += [python_seconds(paper_agent(128, 1 / 16), contexts, targets.tolist()) for _ in range(5)]
    return row("Cats.paper from Python", 128, 1 / 16, min(ours), min(theirs))


def python_seconds(agent, contexts, targets) -> float:
    """The CPU time of one decide and one learn call."""
    agent.decide(contexts[0])
    started = time.process_time()
    for context, target in zip(contexts, targets, strict=True):
        decision = agent.decide(context)
        agent.learn(context, decision, abs(decision.action - target))
    return (time.process_time() - started) / len(targets)


def fraction(bandwidth) -> str:
    return f"1/{round(1 / bandwidth)}" if bandwidth else "0"


def print_table(rows) -> None:
    print(f"{'agent':28} {'leaves':>6} {'bandwidth':>9} {'manul µs':>9} {'VW µs':>8} {'times':>6}")
    for r in rows:
        print(
            f"{r['agent']:28} {r['leaves']:6} {fraction(r['bandwidth']):>9} "
            f"{r['manul_us']:9.3f} {r['vw_us']:8.2f} {r['times_faster']:6.1f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/speed.json"))
    out = parser.parse_args().out
    world = manul.worlds.linear(rounds=ROUNDS, width=WIDTH)
    with TemporaryDirectory() as folder:
        table = Path(folder, "linear.vw")
        vowpal_wabbit.write_regression(path=table, contexts=world.contexts, targets=world.targets)
        cache = vowpal_wabbit.make_cache(file=table)
        rows = [*online(world, cache), *discrete(world, cache), single_calls(world)]
        print_table(rows)
        flat = by_bandwidth(world, cache)
    for name, seconds in flat.items():
        microseconds = ", ".join(f"{each * 1e6:.2f}" for each in seconds)
        print(
            f"{name} at K=8192, h from 1/4 to 1/4096: {microseconds} µs; largest/smallest {max(seconds) / min(seconds):.2f}"
        )
    nodes = trained_nodes(world)
    per_node, fixed = np.polyfit(nodes, flat["Cats.paper, one regressor"], 1) * 1e9
    print(
        f"nodes trained per round, from h = 1/4 to 1/4096: {', '.join(f'{each:.1f}' for each in nodes)}; "
        f"a round of one regressor takes {fixed:.0f} ns and {per_node:.0f} ns for each of them"
    )
    leaves = by_leaves(world)
    print("µs per round by leaves:", {k: round(v, 3) for k, v in leaves.items()})
    several = adaptive(world)
    print(f"AdaptiveCats with 12 bandwidths takes {several['adaptive_over_cats']:.1f} times as long as Cats")
    out.parent.mkdir(parents=True, exist_ok=True)
    machine = {"machine": platform.processor() or platform.machine(), "instruction_set": manul._core.instruction_set()}
    out.write_text(
        json.dumps({**machine, "rows": rows, "by_bandwidth": flat, "us_by_leaves": leaves, **several}, indent=2)
    )
    print(f"written to {out}")


if __name__ == "__main__":
    main()
