"""What Auto and contexts with names cost per round, beside their limits: `python -m benchmarks.auto`."""

from __future__ import annotations

import time

import numpy as np

import manul


def auto_seconds(rounds: int, repeats: int = 3) -> float:
    """The least CPU time per round of Auto on the linear world with 20 features."""
    world, best = manul.worlds.linear(rounds=rounds), float("inf")
    for _ in range(repeats):
        agent = manul.Auto()
        started = time.process_time()
        manul.simulate_many([agent], world, threads=1)
        best = min(best, time.process_time() - started)
    return best / rounds


def mapping_seconds(rounds: int = 10_000) -> float:
    """The CPU time of decide and learn of Cats with a mapping of 20 fields: numbers, texts, flags and a list."""
    rng = np.random.default_rng(0)
    contexts = [
        {f"number {i}": value for i, value in enumerate(row)}
        | {
            "city": f"city {rng.integers(50)}",
            "plan": f"plan {rng.integers(3)}",
            "vip": bool(rng.integers(2)),
            "gap": None,
        }
        | {"tags": ["a", "b"]}
        for row in rng.standard_normal((rounds, 15)).tolist()
    ]
    agent = manul.Cats(leaves=128, bandwidth=1 / 32)
    started = time.process_time()
    for context in contexts:
        agent.learn(context, agent.decide(context), 0.5)
    return (time.process_time() - started) / rounds


def million_names(rounds: int = 200_000, leaves: int = 1024) -> tuple[int, float, float]:
    """A new name and four known ones per round, five new texts each: (bytes, early loss, late loss)."""
    rng, agent, losses = np.random.default_rng(0), manul.Cats(leaves=leaves, bandwidth=1 / 32), []
    for number in range(rounds):
        city = int(rng.integers(10))
        fresh = {f"id {i}": f"{number} {i}" for i in range(5)}
        context = {"city": str(city), **fresh}
        decision = agent.decide(context)
        losses.append(abs(decision.action - 0.05 - city / 10))
        agent.learn(context, decision, losses[-1])
    return agent.nbytes, float(np.mean(losses[:5000])), float(np.mean(losses[-5000:]))


if __name__ == "__main__":
    print(f"Auto, 20 features, 50,000 rounds: {auto_seconds(50_000) * 1e6:.1f} µs per round (limit 30)")
    print(f"Auto, its first thousand rounds: {auto_seconds(1000) * 1e6:.1f} µs per round (limit 100)")
    print(f"Cats, decide + learn, 20 fields: {mapping_seconds() * 1e6:.1f} µs (limit 15)")
    size, early, late = million_names()
    print(f"a million names on 1024 leaves: {size / 2**20:.0f} MiB, loss {early:.3f} at first, {late:.3f} at last")
