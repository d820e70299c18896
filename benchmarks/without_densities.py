"""Optimization on histories without densities: the loss of the policy against that of the history, and its estimate.

A historical rule is 0.15 above the best action, and either rounds to tenths or adds normal noise of deviation 0.1. Run:
python -m benchmarks.without_densities [LOGS]
"""

from __future__ import annotations

import sys

import numpy as np

import manul

NOISE, BIAS = 0.05, 0.15


def best_action(contexts):
    """The action without loss."""
    return 0.5 + 0.35 * np.sin(2 * np.pi * contexts[:, 0]) * contexts[:, 1]


def history(kind, rows, seed):
    """Contexts, actions and losses of a historical rule, which is "rounded" or "gaussian"."""
    rng = np.random.default_rng(seed)
    contexts = rng.random((rows, 4), np.float32)
    actions = best_action(contexts) + BIAS
    actions = np.round(10 * actions) / 10 if kind == "rounded" else actions + 0.1 * rng.standard_normal(rows)
    actions = np.clip(actions, 0, 1)
    return contexts, actions, losses_of(contexts, actions, rng)


def losses_of(contexts, actions, rng):
    """The distance to the best action, with noise."""
    distance = np.abs(actions - best_action(contexts))
    return np.clip(distance + NOISE * rng.standard_normal(len(actions)), 0, 1)


def true_loss(policy, seed, rows=2000):
    """The loss of a policy in new rounds, without and with noise."""
    rng = np.random.default_rng([seed, 1])
    contexts = rng.random((rows, 4), np.float32)
    actions = np.array([policy.distribution(context).sample(rng) for context in contexts])
    noiseless = float(np.abs(actions - best_action(contexts)).mean())
    return noiseless, float(losses_of(contexts, actions, rng).mean())


def run(kind, rows, seed):
    """The loss of the history and of the policy, and whether its estimate holds (None if it was refused)."""
    contexts, actions, losses = history(kind, rows, seed)
    log = manul.Log(contexts, actions, np.ones(rows), losses)
    result = manul.offpolicy.optimize_without_densities(log, seed=seed)
    noiseless, noisy = true_loss(result.policy, seed)
    estimate = result.estimate
    holds = None if estimate is None else bool(estimate.low <= noisy <= estimate.high)
    return float(np.abs(actions - best_action(contexts)).mean()), noiseless, holds


def main(logs=10):
    """Print a line per kind and length of history."""
    print("history     rows  loss   policy mean and worst   refused  held  missed")
    for kind in ("rounded", "gaussian"):
        for rows in (2000, 5000, 10_000):
            played, losses, holds = zip(*(run(kind, rows, seed) for seed in range(logs)), strict=True)
            counts = "     ".join(str(holds.count(value)) for value in (None, True, False))
            print(
                f"{kind:9} {rows:6,}  {np.mean(played):.3f}  {np.mean(losses):.3f}  {max(losses):.3f}           {counts}"
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
