"""The picture of the README: the mean loss so far of Auto and its rivals on a table, round by round.

    python -m benchmarks.rivals TABLE --target COLUMN [--out docs/images/rivals.png]

Vowpal Wabbit is its best setting in hindsight, of all that the benchmark of losses tries. The LightGBM critic is
`benchmarks/lightgbm_critic.py`, with exploration that fades as that of Auto. A CSV table of the curves is written beside
the picture.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

import numpy as np

import manul
from benchmarks import lightgbm_critic, problems, search
from benchmarks.loss import PERCENTILES, VW_CELLS
from manul.paper import datasets
from manul.utils.validation import Floats

POINTS = 40
COLOURS = {"Auto": "#0072B2", "LightGBM critic": "#009E73", "Vowpal Wabbit, best in hindsight": "#D55E00"}


def curves(path: Path, target: str, folder: Path) -> tuple[Floats, dict[str, Floats], float]:
    """Numbers of rounds, the mean loss up to each of every method, and the loss of the best constant action."""
    table = datasets.read(path, target=target, percentiles=PERCENTILES, standardised=True)
    problem = problems.table(table, search.LossFile(folder / "vw.json"), folder)
    world = problem.world(0)
    rounds = np.unique(np.geomspace(200, len(world), POINTS).astype(np.int64))
    best = search.best(VW_CELLS["cats"], problem.vw_loss, rounds=problem.rounds, seeds=(0,)).cell
    played = {
        "Auto": manul.simulate(manul.Auto(seed=0), world).log.losses,
        "LightGBM critic": lightgbm_critic.play(world, epsilon=lightgbm_critic.fading, seed=0),
    }
    means = {name: np.cumsum(losses)[rounds - 1] / rounds for name, losses in played.items()}
    losses = [problem.vw_loss(best, 0, int(last)) for last in rounds]
    means["Vowpal Wabbit, best in hindsight"] = np.array(losses)
    print(json.dumps({"rows": len(world), "vw": search.label(best), **{n: float(m[-1]) for n, m in means.items()}}))
    return rounds.astype(np.float64), means, problem.hindsight(0).constant


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("table", type=Path)
    parser.add_argument("--target", required=True)
    parser.add_argument("--out", type=Path, default=Path("docs/images/rivals.png"))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rounds, means, constant = curves(arguments.table, arguments.target, Path(folder))
    axes = manul.plotting.new_axes()
    for name, losses in means.items():
        axes.plot(rounds, losses, linewidth=2.4, label=f"{name}: {losses[-1]:.3f}", color=COLOURS[name])
    manul.plotting.level(constant, axes, label=f"best constant: {constant:.3f}")
    axes.set_xscale("log")
    manul.plotting.style(axes, "decisions", "mean loss so far, share of the range")
    manul.plotting.save(axes, arguments.out)


if __name__ == "__main__":
    main()
