"""Theorem cats-log-time: one example changes at most two nodes on each level."""

import numpy as np

from manul.policies import theory


def changed_nodes(costs: np.ndarray, rng: np.random.Generator) -> int:
    """Count the nodes whose sides differ in cost when a coin routes every node."""
    changed = 0
    while len(costs) > 1:
        left, right = costs[::2], costs[1::2]
        changed += int((left != right).sum())
        costs = np.where(rng.random(len(left)) < 0.5, left, right)
    return changed


def most_changed_nodes(leaves: int, trials: int) -> int:
    rng = np.random.default_rng(leaves)
    windows = np.sort(rng.integers(0, leaves + 1, size=(trials, 2)), axis=1)
    places = np.arange(leaves)
    return max(changed_nodes(((low <= places) & (places < high)).astype(int), rng) for low, high in windows)


def test_no_window_of_costs_changes_more_nodes_than_the_theorem_counts() -> None:
    for leaves in (2, 64, 256):
        assert most_changed_nodes(leaves, trials=2000) <= theory.updates_per_example(leaves=leaves)


def test_some_window_of_costs_changes_as_many_nodes_as_the_theorem_counts() -> None:
    for leaves in (2, 4, 8):
        assert most_changed_nodes(leaves, trials=2000) == theory.updates_per_example(leaves=leaves)


def test_squaring_the_leaves_only_doubles_the_levels() -> None:
    small, large = (theory.updates_per_example(leaves=leaves) for leaves in (64, 64**2))
    assert large + 1 == 2 * (small + 1)
