"""Auto and its rivals: the picture of the README, the mean loss so far on a table, and tables of prices and bids.

    python -m benchmarks.rivals TABLE --target COLUMN [--out docs/images/rivals.png]
    python -m benchmarks.rivals --markets [--seeds 8] [--processes 16]

Vowpal Wabbit is its best setting in hindsight, of all that the benchmark of losses tries. The LightGBM critic is
`benchmarks/lightgbm_critic.py`, with exploration that fades as that of Auto. A CSV table of the curves is written beside
the picture. In markets, numbers are shares of the best expected reward that are missed, and rivals are those of
`benchmarks.formula_models` and `benchmarks.library_rivals`.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

import manul
from benchmarks import formulas, library_rivals, lightgbm_critic, problems, search
from benchmarks.limits import standard_error
from benchmarks.loss import PERCENTILES, VW_CELLS
from benchmarks.markets import MARKETS
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


PLAYERS: dict[str, formulas.Player] = {**formulas.PLAYERS, **library_rivals.RIVALS}
WORLDS, WINDOWS = ("pricing", "shop", "conversion 5 %", "bidding"), ((0, 100), (100, 300), (300, 1000))


def missed(task: tuple[str, str, int]) -> list[float]:
    """The missed share of the best expected reward in each window that a player played, or none if it is not installed."""
    world, player, seed = task
    market = MARKETS[world](seed, WINDOWS[-1][-1])
    try:
        regrets = market.regrets(PLAYERS[player](market, seed))
    except ModuleNotFoundError as error:
        print(error, flush=True)
        return []
    ends = [(first, last) for first, last in WINDOWS if last <= len(regrets)]
    return [float(regrets[first:last].sum() / -market.best[first:last].sum()) for first, last in ends]


def print_markets(seeds: int, processes: int) -> None:
    """Print a line per world and player: means over seeds with standard errors."""
    tasks = [(w, p, formulas.HELD_OUT + seed) for w in WORLDS for p in PLAYERS for seed in range(seeds)]
    with ProcessPoolExecutor(processes, initializer=threadpool_limits, initargs=(1,)) as pool:
        values = list(pool.map(missed, tasks))
    print(f"{'missed in rounds':35}" + "".join(f"{first}-{last}".ljust(16) for first, last in WINDOWS))
    for first in range(0, len(tasks), seeds):
        columns = np.array(values[first : first + seeds]).T
        cells = (f"{column.mean():.3f} ± {standard_error(column.tolist()):.3f}".ljust(16) for column in columns)
        print(f"{tasks[first][0]:15} {tasks[first][1]:18} {''.join(cells)}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("table", type=Path, nargs="?")
    parser.add_argument("--target")
    parser.add_argument("--out", type=Path, default=Path("docs/images/rivals.png"))
    parser.add_argument("--markets", action="store_true", help="tables of prices and bids instead of a picture")
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--processes", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.markets:
        print_markets(arguments.seeds, arguments.processes)
        return
    if arguments.table is None or arguments.target is None:
        parser.error("a table and its --target are needed, or --markets.")
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
