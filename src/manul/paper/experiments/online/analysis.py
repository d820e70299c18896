"""Compares the best cell of every method with the published one, and explains the order of the methods."""

from __future__ import annotations

from collections.abc import Sequence

from manul.actions.ranges import fraction
from manul.paper.experiments import methods as players
from manul.paper.experiments import published
from manul.paper.experiments.result_tables import Row

ORDER = (
    players.PAPER,
    players.MARGIN,
    players.TREE,
    players.LINEAR,
    "VW CATS",
    "VW dTree",
    "VW dLinear",
    players.OURS,
    players.DEFAULT,
    players.ADAPTIVE,
    players.AUTO,
    players.CONSTANT,
    players.OPTIMUM,
)
# The published program is Vowpal Wabbit, which trains one regressor per node like Cats.paper with margin.
COUNTERPART = {
    players.MARGIN: players.PAPER,
    "VW CATS": players.PAPER,
    "VW dTree": players.TREE,
    "VW dLinear": players.LINEAR,
}


def best(rows: Sequence[Row]) -> list[Row]:
    """The row with the lowest loss of each method on each data set, with the published best of the same method."""
    lowest: dict[tuple[str, str], Row] = {}
    cells: dict[tuple[str, str], int] = {}
    for row in rows:
        key = row["dataset"], row["player"]
        cells[key] = cells.get(key, 0) + 1
        if key not in lowest or row["loss"] < lowest[key]["loss"]:
            lowest[key] = row
    ranked = sorted(lowest, key=lambda key: ORDER.index(key[1]))
    return [{**lowest[key], "cells": cells[key], **_published(*key)} for key in ranked]


def _published(dataset: str, player: str) -> Row:
    cell = published.best(dataset, COUNTERPART.get(player, player))
    if cell is None:
        return {"published": None, "published_leaves": None, "published_bandwidth": None}
    return {"published": cell.loss, "published_leaves": cell.leaves, "published_bandwidth": cell.bandwidth}


def explain(rows: Sequence[Row], dataset: str) -> list[str]:
    """Explain the order of the methods on a data set in sentences."""
    by_player = {row["player"]: row for row in best(rows) if row["dataset"] == dataset}
    constant, optimum = by_player[players.CONSTANT], by_player[players.OPTIMUM]
    methods = [by_player[name] for name in (players.PAPER, players.TREE, players.LINEAR)]
    sentences = [_order_sentence(methods, dataset)]
    near = [row for row in methods if row["loss"] > 0.5 * (constant["loss"] + optimum["loss"])]
    if near:
        sentences.append(_near_constant(near, methods, constant, optimum))
    sentences.append(_many_leaves([row for row in rows if row["dataset"] == dataset]))
    sentences.append(_ours_sentence(by_player))
    return sentences


def _near_constant(near: list[Row], methods: list[Row], constant: Row, optimum: Row) -> str:
    losses = [row["loss"] for row in methods]
    cells = ", ".join(f"{row['player']} at {_cell(row)}" for row in near)
    return (
        f"Why they are so close: the loss of the best constant action is {constant['loss']:.4f}, that of the best linear policy in "
        f"hindsight {optimum['loss']:.4f}, both with smoothing and exploration. The losses of the three methods differ by at most "
        f"{max(losses) - min(losses):.4f} and are close to that of the constant ({cells}). A round informs a leaf or an action only "
        "if the chosen action is near it, with importance weights of up to K/ε, or 1/(2hε) with smoothing, so a finer grid or a "
        "narrower window costs more in learning than it gains in precision. The order depends on how quickly each method finds a "
        "few good actions near the median, not on what its policies can express, so it changes with the data, the seed and the "
        "number of rounds."
    )


def _many_leaves(rows: Sequence[Row]) -> str:
    searched = [row for row in rows if row["player"] in (players.PAPER, players.TREE, players.LINEAR)]
    most = min(
        max(row["leaves"] for row in searched if row["player"] == name) for name in {row["player"] for row in searched}
    )
    losses: dict[str, float] = {}
    for row in searched:
        if row["leaves"] == most:
            losses[row["player"]] = min(row["loss"], losses.get(row["player"], 1.0))
    text = ", ".join(f"{name} {loss:.4f}" for name, loss in losses.items())
    lowest = min(losses, key=lambda name: losses[name])
    reason = ". Smoothing helps here: one round of CATS trains all leaves of a window"
    return f"With many leaves, K = {most:,}, the lowest losses are {text}{reason if lowest == players.PAPER else ''}."


def _order_sentence(methods: list[Row], dataset: str) -> str:
    here = " < ".join(
        f"{row['player']} {row['loss']:.4f}" for row in sorted(methods, key=lambda row: float(row["loss"]))
    )
    known = [row for row in methods if row["published"] is not None]
    if not known:
        return f"Order on {dataset}: {here}."
    there = " < ".join(
        f"{row['player']} {row['published']:.4f}" for row in sorted(known, key=lambda row: float(row["published"]))
    )
    return f"Order on {dataset}, here: {here}; as published: {there}."


def _ours_sentence(by_player: dict[str, Row]) -> str:
    default, paper = by_player[players.DEFAULT], by_player[players.PAPER]
    others = ", ".join(f"{name} {by_player[name]['loss']:.4f}" for name in (players.ADAPTIVE, players.AUTO))
    comparison = "below" if default["loss"] < paper["loss"] else "not below"
    return (
        f"The loss of Cats with one fixed setting is {default['loss']:.4f}, {comparison} the best of {paper['cells']} cells of "
        f"Cats.paper. Cats trains the nodes on the path to the chosen leaf, with bounded doubly robust costs. Without settings: {others}."
    )


def _cell(row: Row) -> str:
    window = f", h = {fraction(row['bandwidth'])}" if row["bandwidth"] is not None else ""
    return f"K = {row['leaves']}{window}"
