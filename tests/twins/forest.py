"""The forest in plain NumPy, the reference for the core: targets, the choice of columns, one tree, and its predictions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from manul.agents.player_host import host_of
from tests.twins import critic

TREES, NODES, BINS, ACTION_BINS, RESERVE = 48, 255, 128, 256, 512
UNIT = 2.0**-20
STEP, HALF_KEPT, SHRINKAGE, LEAST, DEPTH = 0.12, 8192, np.float32(20), 16, 10
Floats = NDArray[np.float64]
NODE = np.dtype([("column", "i4"), ("threshold", "f4"), ("left", "i4"), ("value", "i4")])


STATE = ("made", "credit", "sweeps", "column", "left", "written", "waited", "growing", "slices", "rounds", "started")


def field(state: dict, name: str) -> int:
    """One of the forest's own numbers."""
    return int(state["forest"][STATE.index(name)])


@dataclass(frozen=True)
class Rounds:
    """The remembered rounds a tree learns from, newest first: contexts, bins of actions, losses and predictions."""

    contexts: NDArray[np.float32]
    actions: NDArray[np.int64]
    losses: Floats
    networks: Floats


def rounds(state: dict, width: int, count: int) -> Rounds:
    """The last `count` rounds of a saved Auto."""
    total, _, centre, _, gain = state["units"]
    capacity = len(state["actions"])
    slots = (int(total) - 1 - np.arange(count)) % capacity
    contexts = state["contexts"].reshape(capacity, -1)[slots, :width]
    actions = np.clip(np.floor(state["actions"][slots].astype(float) * ACTION_BINS), 0, ACTION_BINS - 1)
    losses = (state["losses"][slots].astype(float) - centre) * gain
    return Rounds(contexts, actions.astype(int), losses, state["predictions"][slots].astype(float))


def trees(state: dict) -> list[NDArray[np.void]]:
    """The trees of a saved Auto, in the order of their places."""
    nodes = state["trees"].view(NODE).reshape(TREES, NODES)
    return list(nodes[: min(field(state, "made"), TREES)])


def leaves(tree: NDArray[np.void], contexts: NDArray[np.float32], actions: NDArray[np.int64]) -> NDArray[np.int64]:
    """The leaf of each context and action."""
    rows = np.column_stack([contexts, actions.astype(np.float32)])
    at = np.zeros(len(rows), dtype=int)
    for _ in range(DEPTH + 1):
        nodes = tree[at]
        at = nodes["left"] + (rows[np.arange(len(rows)), nodes["column"]] > nodes["threshold"])
    return at


def values(tree: NDArray[np.void], contexts: NDArray[np.float32], actions: NDArray[np.int64]) -> NDArray[np.int64]:
    """The value of each context and action, in units of 2^-20."""
    return tree["value"][leaves(tree, contexts, actions)].astype(np.int64)


def trust(mixing: Floats) -> float:
    """The weight of the networks' predictions in the targets."""
    count, _, _, covariance, variance, *_ = mixing
    return 1.0 if count < 50 or variance <= 0 else float(np.clip(covariance / variance, 0, 1))


def weight(mixing: Floats) -> float:
    """The weight of the forest in the critic."""
    *_, judged, error, square = mixing
    return 0.0 if judged < 50 or square <= 0 else float(np.clip(error / square, 0, 1))


def targets(data: Rounds, before: list[NDArray[np.void]], made: int, trusted: float) -> NDArray[np.int64]:
    """What the next tree is trained on: the residual, or the oldest tree moved towards it."""
    predicted = sum((values(tree, data.contexts, data.actions) for tree in before), np.zeros(len(data.losses), int))
    oldest = values(before[made % TREES], data.contexts, data.actions) if made >= TREES else 0 * predicted
    residual = data.losses - trusted * data.networks - (predicted - oldest) * UNIT
    start = len(data.losses) / (len(data.losses) + HALF_KEPT) * oldest * UNIT
    return np.trunc(np.clip(start + STEP * (residual - start), -4, 4) / UNIT).astype(np.int64)


def edges(state: dict, width: int) -> list[NDArray[np.float32]]:
    """The edges of the bins of each column."""
    table = state["edges"].reshape(width, BINS)
    return [row[:count] for row, count in zip(table, state["edge_counts"], strict=True)]


def columns(usable: list[int], gains: Floats, made: int, seed: int) -> list[int]:
    """The columns of the next tree without the action: all, or the 16 with the largest gains and 16 at random."""
    chosen = list(usable)
    if len(chosen) <= 32:
        return chosen
    for i in range(32):
        if i < 16:
            other = i + int(np.argmax(gains[chosen[i:]]))
        else:
            bits = np.random.Philox(key=seed, counter=[made * 16 + i - 16, 9, 0, 0]).random_raw()
            other = i + int((int(bits) >> 11) * 2.0**-53 * (len(chosen) - i))
        chosen[i], chosen[other] = chosen[other], chosen[i]
    return chosen[:32]


def grow(data: Rounds, target: NDArray[np.int64], cuts: list[NDArray[np.float32]], used: list[int]) -> NDArray[np.void]:
    """A tree, leaf by leaf: always the split with the largest gain next."""
    width = len(cuts)
    bins = np.column_stack([*(np.searchsorted(c, data.contexts[:, i]) for i, c in enumerate(cuts)), data.actions])
    counts = [*(len(c) + 1 for c in cuts), ACTION_BINS]
    tree = np.array([(width, np.inf, number, 0) for number in range(NODES)], dtype=NODE)
    open_leaves = [(0, np.arange(len(target)), 0)]  # node, rounds, depth
    splits = [best_split(bins, target, open_leaves[0], [*used, width], counts)]
    nodes, limit = 1, min(128, len(target) // 32)
    while len(open_leaves) < limit and max(split[0] for split in splits) > 0:
        chosen = int(np.argmax([split[0] for split in splits]))
        _, column, bin_ = splits[chosen]
        node, rows, depth = open_leaves[chosen]
        tree[node] = (column, bin_ if column == width else cuts[column][bin_], nodes, 0)
        left = bins[rows, column] <= bin_
        children = [(nodes, rows[left], depth + 1), (nodes + 1, rows[~left], depth + 1)]
        if len(children[0][1]) <= len(children[1][1]):
            children.reverse()  # the larger one takes the place of its parent, or the right one if both are equal
        open_leaves[chosen : chosen + 1], open_leaves[len(open_leaves) :] = [children[0]], [children[1]]
        nodes += 2
        splits[chosen] = best_split(bins, target, children[0], [*used, width], counts)
        splits.append(best_split(bins, target, children[1], [*used, width], counts))
    for node, rows, _ in open_leaves:
        tree["value"][node] = int(np.trunc(int(target[rows].sum()) / (len(rows) + 20)))
    return tree


def best_split(bins, target, leaf, used, counts) -> tuple[float, int, int]:
    """The gain, column and bin of the best split of a leaf; the candidates are compared in single precision."""
    _, rows, depth = leaf
    best, found = np.float32(-1), (0.0, 0, 0)
    if len(rows) < 2 * LEAST or depth >= DEPTH:
        return found
    total, size = target[rows].sum(), len(rows)
    for column in used:
        count = np.bincount(bins[rows, column], minlength=counts[column]).cumsum()[:-1]
        summed = np.array([target[rows][bins[rows, column] == b].sum() for b in range(counts[column])]).cumsum()[:-1]
        left, right = summed.astype(np.float32), np.float32(total) - summed.astype(np.float32)
        on_left, on_right = count.astype(np.float32) + SHRINKAGE, (size - count).astype(np.float32) + SHRINKAGE
        gains = (left * left * on_right + right * right * on_left) / (on_left * on_right)
        gains[(count < LEAST) | (size - count < LEAST)] = -1
        if len(gains) and gains.max() > best:
            bin_ = int(np.argmax(gains))
            best, found = gains.max(), (exact_gain(int(summed[bin_]), int(count[bin_]), int(total), size), column, bin_)
    return found


def exact_gain(left: int, on_left: int, total: int, size: int) -> float:
    def score(summed: int, count: int) -> float:
        return (summed * UNIT) * (summed * UNIT) / (count + 20.0)

    return score(left, on_left) + score(total - left, size - on_left) - score(total, size)


def curve(agent, context: Floats) -> Callable[[Floats], Floats]:
    """What the critic of an Auto predicts for actions in a context, in standard units: networks and trees, mixed."""
    state, networks = host_of(agent).state(), critic.curve(agent, context)
    share, trusted = weight(state["mixing"]), trust(state["mixing"])
    rows = np.tile(np.asarray(context, np.float32), (ACTION_BINS, 1))
    by_bin = sum((values(tree, rows, np.arange(ACTION_BINS)) for tree in trees(state)), np.zeros(ACTION_BINS)) * UNIT

    def losses_of(actions: Floats) -> Floats:
        bins = np.clip(np.float32(actions) * ACTION_BINS, 0, ACTION_BINS - 1).astype(int)
        return (1 - share * (1 - trusted)) * networks(actions) + share * by_bin[bins]

    return losses_of
