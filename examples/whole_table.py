"""The same loop at full speed over a table, with Cats and with Auto, which needs no tuning.

python examples/whole_table.py
"""

import manul


def main(rounds: int = 20_000) -> None:
    world = manul.worlds.linear(rounds=rounds)  # or worlds.Regression(contexts, targets)
    agents = {"Cats": manul.Cats(leaves=1024, bandwidth=1 / 16, seed=7), "Auto": manul.Auto(seed=7)}
    runs = manul.worlds.simulate_many(list(agents.values()), world)
    for name, run in zip(agents, runs, strict=True):
        print(f"{name:<5} mean loss {run.mean_loss:.4f}, {len(run.log):,} rows logged")
    print(f"optimum of bandwidth 1/16 {world.optimum(bandwidth=1 / 16, epsilon=0.05):.4f}")


if __name__ == "__main__":
    main()
