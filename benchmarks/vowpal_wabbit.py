"""Vowpal Wabbit as the benchmarks run it beyond the paper's experiments: off-policy, and call by call through Python."""

from __future__ import annotations

import importlib
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from manul.paper.experiments.vowpal_wabbit import (
    REPEATS,
    Array,
    Cell,
    Contexts,
    Timing,
    cache_path,
    drive,
    require_package,
    timing,
)


def off_policy(cell: Cell) -> list[str]:
    """The command-line options to learn from a log; CATS only."""
    options = ["--cats", str(cell.leaves), "--bandwidth", str(cell.bandwidth), "--min_value", "0"]
    return [*options, "--max_value", "1", "--epsilon", str(cell.epsilon), "--coin"]


def write_log(*, path: Path, contexts: Array, actions: Array, densities: Array, losses: Array) -> None:
    """Write rows `ca action:loss:density | 0:x0 1:x1 …`.

    >>> file = Path(tempfile.mkdtemp()) / "one.vw"
    >>> write_log(path=file, contexts=np.array([[1.5]]), actions=np.array([0.5]), densities=np.ones(1), losses=np.zeros(1))
    >>> file.read_text()
    'ca 0.5:0:1 | 0:1.5\\n'
    """
    features = "".join(f" {index}:%.9g" for index in range(contexts.shape[1]))
    np.savetxt(path, np.column_stack([actions, losses, densities, contexts]), fmt="ca %.9g:%.9g:%.9g |" + features)


def interactive_loss(*, cell: Cell, contexts: Array, loss: Callable[[int, float], float], seed: int) -> float:
    """The progressive loss for any loss of (round, action) in [0, 1], round by round through Python."""
    if cell.kind != "cats":
        raise ValueError(f"kind must be cats, got {cell.kind}. Vowpal Wabbit runs the others on regression files only.")
    workspace, losses = _workspace(cell, ["--random_seed", str(seed)]), []
    for number, row in enumerate(contexts):
        example = workspace.parse(_features(row))
        action, density = workspace.predict(example)
        losses.append(loss(number, action))
        example.set_label_string(f"ca {action}:{losses[-1]}:{density}")
        workspace.learn(example)
        workspace.finish_example(example)
    workspace.finish()
    return float(np.mean(losses))


def deployed_losses(*, cells: Sequence[Cell], log: Path, contexts: Contexts, targets: Array) -> list[float]:
    """The test loss of each cell, trained off-policy on the cache of a log, on other rows without learning."""
    losses = []
    with tempfile.TemporaryDirectory() as folder:
        model, rows, output = Path(folder) / "model", Path(folder) / "rows.vw", Path(folder) / "output"
        np.savetxt(rows, contexts, fmt="|" + "".join(f" {index}:%.9g" for index in range(contexts.shape[1])))
        for cell in cells:
            options = ["-d", str(log), "--cache_file", str(cache_path(log)), "-b", str(cell.bits), *off_policy(cell)]
            drive([*options, "-f", str(model)])
            drive(["-d", str(rows), "-t", "-i", str(model), "-p", str(output)])
            actions = np.loadtxt(output, delimiter=",")[:, 0]
            losses.append(float(np.abs(actions - targets).mean()))
    return losses


def off_policy_seconds(*, cell: Cell, cache: Path, plain: Path, rounds: int) -> Timing:
    """The CPU time of learning from the cache of a log; --noop cannot read it, so it reads the cache `plain`."""
    return timing(cell=cell, learner=off_policy(cell), cache=cache, plain=plain, rounds=rounds)


def python_call_seconds(*, cell: Cell, contexts: Array, targets: Array) -> Timing:
    """The CPU time of one predict and one learn call per round in Python, with all examples parsed in advance.

    The labelled examples come from a first, untimed run of the online protocol.
    """
    if cell.kind != "cats":
        raise ValueError(f"kind must be cats, got {cell.kind}.")
    lines = [_features(row) for row in contexts]
    labelled_lines = _play(_workspace(cell), lines, targets)
    workspace = _workspace(cell)
    unlabelled_examples = [workspace.parse(line) for line in lines]
    labelled_examples = [workspace.parse(line) for line in labelled_lines]

    def run() -> float:
        start = time.process_time()
        for unlabelled, labelled in zip(unlabelled_examples, labelled_examples, strict=True):
            workspace.predict(unlabelled)
            workspace.learn(labelled)
        return time.process_time() - start

    seconds = min(run() for _ in range(REPEATS))
    for example in (*unlabelled_examples, *labelled_examples):
        workspace.finish_example(example)
    workspace.finish()
    return Timing(seconds=seconds, overhead=0.0, rounds=len(contexts))


def _workspace(cell: Cell, options: Sequence[str] = ()) -> Any:
    require_package()
    package = importlib.import_module("vowpalwabbit")
    return package.Workspace(
        f"--cats {cell.leaves} --bandwidth {cell.bandwidth} --min_value 0 --max_value 1 "
        f"--epsilon {cell.epsilon} --coin -b {cell.bits} --quiet {' '.join(options)}"
    )


def _play(workspace: Any, lines: list[str], targets: Array) -> list[str]:
    """Run the online protocol and return its rows `ca action:loss:density | features`."""
    labelled = []
    for line, target in zip(lines, targets, strict=True):
        action, density = workspace.predict(line)
        labelled.append(f"ca {action}:{abs(action - target)}:{density} {line}")
        workspace.learn(labelled[-1])
    workspace.finish()
    return labelled


def _features(row: Array) -> str:
    return "|" + "".join(f" {index}:{value:.9g}" for index, value in enumerate(row))
