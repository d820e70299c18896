"""Agents and policies of every kind that a `.manul` file can hold, each after some learning."""

from functools import cache

import numpy as np

import manul
from manul.utils import model_files

ROUNDS = 60
ROWS = np.random.default_rng(0).normal(size=(ROUNDS, 3))
NAMED = [{"city": "ab"[n % 2], "size": n / 7, "new": n % 3 == 0, "tags": ["x", "y"][: n % 3]} for n in range(ROUNDS)]
CONSTANT = manul.policies.Constant(choices=9)
LINEAR = manul.policies.Linear()
TREE = manul.policies.Tree(leaves=8)
FADING = manul.schedules.Fading(first=0.1, last=0.02, rounds=20)

AGENTS = {
    "auto": lambda: manul.Auto(seed=7, epsilon=0.05),
    "auto-fading": lambda: manul.Auto(seed=7),
    "cats": lambda: manul.Cats(leaves=8, bandwidth=1 / 8, half_life=50, table_bits=10),
    "cats-fading": lambda: manul.Cats(leaves=8, bandwidth=1 / 8, epsilon=FADING, table_bits=10),
    "cats-paper": lambda: manul.Cats.paper(leaves=8, bandwidth=1 / 8),
    "adaptive": lambda: manul.AdaptiveCats(leaves=8, bandwidths=(1 / 4, 1 / 8)),
    "adaptive-fading": lambda: manul.AdaptiveCats(leaves=8, bandwidths=(1 / 4, 1 / 8), epsilon=FADING),
    "discrete-tree": lambda: manul.agents.DiscreteTree(leaves=8),
    "discrete-linear": lambda: manul.agents.DiscreteLinear(leaves=4),
    "smoothed-linear": lambda: manul.agents.SmoothedGreedy(policies=LINEAR, bandwidth=1 / 8),
    "smoothed-tree": lambda: manul.agents.SmoothedGreedy(policies=TREE, bandwidth=1 / 8),
    "smoothed-constant": lambda: manul.agents.SmoothedGreedy(policies=CONSTANT, bandwidth=1 / 8),
    "smoothed-constant-fading": lambda: manul.agents.SmoothedGreedy(policies=CONSTANT, bandwidth=1 / 8, epsilon=FADING),
    "pareto-linear": lambda: manul.agents.ParetoGreedy(policies=LINEAR, bandwidths=(1 / 2, 1 / 8)),
    "pareto-constant": lambda: manul.agents.ParetoGreedy(policies=CONSTANT, bandwidths=(1 / 2, 1 / 8)),
    "mapped-crosses": lambda: manul.Mapped(agent=AGENTS["cats"](), features=manul.maps.Crosses()),
    "mapped-fourier": lambda: manul.Mapped(agent=AGENTS["adaptive"](), features=manul.maps.Fourier(count=4)),
}
NATIVE_NAMES = [
    "auto",
    "cats",
    "cats-paper",
    "adaptive",
    "discrete-tree",
    "discrete-linear",
    "smoothed-linear",
    "mapped-crosses",
]


@cache
def saved(name: str) -> bytes:
    """The bytes of a file of one of `KINDS`."""
    agent, contexts = KINDS[name]()
    return model_files.dumps(agent) if contexts is None else model_files.dumps(learned(agent, contexts))


def learned(agent, contexts):
    """The agent after a round in each context."""
    for number, context in enumerate(contexts):
        agent.learn(context, agent.decide(context), abs(number % 5 - 2) / 2)
    return agent


def _tree_policy():
    log = manul.simulate(AGENTS["cats"](), manul.worlds.linear(rounds=200, width=3)).log
    return manul.policies.train_tree(log, leaves=8, bandwidth=1 / 8)


def _columns():
    table = {name: [row[name] for row in NAMED] for name in ("city", "size")}
    return manul.Mapped(agent=AGENTS["cats"](), features=manul.maps.Columns.fit(table))


def _transformer():
    from sklearn.preprocessing import StandardScaler

    return manul.Mapped(agent=AGENTS["cats"](), features=manul.maps.Transformer(StandardScaler().fit(ROWS)))


KINDS = {
    **{name: lambda make=make: (make(), ROWS) for name, make in AGENTS.items()},
    **{f"{name}-named": lambda name=name: (AGENTS[name](), NAMED) for name in NATIVE_NAMES},
    "auto-fresh": lambda: (manul.Auto(epsilon=0.05), None),
    "tree-policy": lambda: (_tree_policy(), None),
    "mapped-columns": lambda: (_columns(), [{name: row[name] for name in ("city", "size")} for row in NAMED]),
    "mapped-transformer": lambda: (_transformer(), ROWS),
}
