"""Train a better policy on a log, and estimate its loss on held-out rows.

python examples/log_to_policy.py run.parquet better.manul
"""

import sys
from pathlib import Path

import manul


def main(log_path: str, policy_path: str) -> None:
    if not Path(log_path).exists():
        logging_agent = manul.Cats(leaves=4, bandwidth=1 / 4)
        manul.simulate(logging_agent, manul.worlds.linear(rounds=20_000)).log.write(log_path)
    train, held_out = manul.Log.read(log_path).split(0.8)
    best = manul.optimize(train, grid=manul.offpolicy.Grid(bandwidths=[1 / 4, 1 / 16], leaves=[16, 128]), progress=True)
    print(best.table)
    print("logged   ", f"{held_out.losses.mean():.4f}")
    print("optimised", manul.evaluate(best.policy, held_out, estimator="snips"))
    best.save(policy_path)


if __name__ == "__main__":
    main(*sys.argv[1:3])
