"""Runs and times Vowpal Wabbit, the paper's own implementation.

The online protocol is that of section 5 of the paper: a regression file with targets in [0, 1], absolute loss,
epsilon-greedy exploration and coin betting. Bandwidths are fractions of the range.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from manul.offpolicy.optimization.grid import Grid

Kind = Literal["cats", "dtree", "dlinear"]
Array = NDArray[np.float64]
Contexts = NDArray[np.float64] | NDArray[np.float32]

PACKAGE = "vowpalwabbit==9.11.9"
NAMES: dict[Kind, str] = {"cats": "VW CATS", "dtree": "VW dTree", "dlinear": "VW dLinear"}
REPEATS = 3  # of a measurement, of which the lowest counts: other processes only add time


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One learner of Vowpal Wabbit with its settings.

    >>> Cell(kind="cats", leaves=128, bandwidth=1 / 16).bits
    18
    """

    kind: Kind
    leaves: int
    bandwidth: float | None = None
    epsilon: float = 0.05

    def __post_init__(self) -> None:
        if self.kind not in ("cats", "dtree", "dlinear"):
            raise ValueError(f"kind must be cats, dtree or dlinear, got {self.kind!r}.")
        if self.leaves < 2 or self.leaves & (self.leaves - 1):
            raise ValueError(
                f"leaves must be a power of two of at least 2, got {self.leaves}. "
                "Vowpal Wabbit's trees give wrong results for other numbers."
            )
        if self.kind != "cats" and self.bandwidth is not None:
            raise ValueError(f"bandwidth must be None for {self.kind}, got {self.bandwidth}.")
        if self.kind == "cats" and not 0 < (self.bandwidth or 0) < 0.5:
            raise ValueError(f"bandwidth must be in (0, 0.5), a fraction of the range, got {self.bandwidth}.")

    @property
    def bits(self) -> int:
        """The logarithm of the number of weights (-b): the authors' 18, or 20 if weights would collide."""
        # Weights collide if the slot of the intercept, 11650396 mod 2^bits / K, is below the width of the context:
        # from 29 columns on at K = 4096 and 18 bits. This rule avoids collisions up to 92 columns.
        return 20 if self.leaves >= 4096 else 18

    @property
    def name(self) -> str:
        return NAMES[self.kind]

    @property
    def cost(self) -> float:
        """The estimated time per round in µs; that of dTree and dLinear is proportional to the leaves."""
        costs = {
            "cats": 3 + 0.9 * self.leaves.bit_length(),
            "dtree": 3 + 0.006 * self.leaves,
            "dlinear": 5 + 0.5 * self.leaves,
        }
        return costs[self.kind]

    @property
    def learner(self) -> list[str]:
        """The command-line options of the learner, without data and seed."""
        options = ["--cbify", str(self.leaves), "--cbify_reg", "--loss_option", "1"]
        options += ["--min_value", "0", "--max_value", "1"]
        options += ["--epsilon", str(self.epsilon), "--coin"]
        if self.kind == "cats":
            return [*options, "--bandwidth", str(self.bandwidth)]
        tree = ["--cats_tree", str(self.leaves)] if self.kind == "dtree" else []
        return [*options, "--cb_discrete", *tree]


@dataclass(frozen=True, kw_only=True)
class Timing:
    """The seconds of a run, and of the same run without the learner.

    >>> round(Timing(seconds=0.9, overhead=0.1, rounds=100_000).per_round * 1e6, 3)
    8.0
    """

    seconds: float
    overhead: float
    rounds: int

    @property
    def per_round(self) -> float:
        return (self.seconds - self.overhead) / self.rounds


def grid() -> list[Cell]:
    """The 78 cells that the authors ran, by leaves.

    >>> len(grid())
    78
    """
    cells = sorted(Grid.paper(half=False).cells, key=lambda cell: (cell[1], -cell[0]))
    return [Cell(kind="cats", leaves=leaves, bandwidth=bandwidth) for bandwidth, leaves in cells]


def write_regression(*, path: Path, contexts: Contexts, targets: Array) -> None:
    """Write rows `y | 0:x0 1:x1 …` with the precision of float32, as Vowpal Wabbit stores them.

    >>> file = Path(tempfile.mkdtemp()) / "two.vw"
    >>> write_regression(path=file, contexts=np.array([[1.5], [-2.0]]), targets=np.array([0.0, 0.25]))
    >>> file.read_text().splitlines()
    ['0 | 0:1.5', '0.25 | 0:-2']
    """
    if not np.all((targets >= 0) & (targets <= 1)):
        raise ValueError(
            f"targets must be in [0, 1], got [{np.min(targets)}, {np.max(targets)}]. "
            "Vowpal Wabbit gives wrong results for other ranges."
        )
    features = "".join(f" {index}:%.9g" for index in range(contexts.shape[1]))
    np.savetxt(path, np.column_stack([targets, contexts]), fmt="%.9g |" + features)


def make_cache(*, file: Path, reader: Sequence[str] = ("--noop",)) -> Path:
    """Parse a file once into Vowpal Wabbit's binary cache, which later runs read instead of text.

    The cache contains only labels that the reader uses, which is the options of a learner.
    """
    cache = cache_path(file)
    drive(["-d", str(file), "--cache_file", str(cache), "-k", *reader, "-b", "26"])
    return cache


def loss(*, cell: Cell, file: Path, seed: int, rounds: int | None = None) -> float:
    """The progressive mean absolute loss over all rounds or the first `rounds`.

    It is the `average loss` of Vowpal Wabbit's report, which with --loss_option 1 equals the mean of |action - target|
    recomputed from its `-p` (CATS) or `-P 1` (discrete) output. The seed is --random_seed for CATS; dTree and dLinear
    ignore that option, so for them the seed shuffles the rows. CATS reads the cache of the file if it exists.
    """
    options = [] if rounds is None else ["--examples", str(rounds)]
    if cell.kind == "cats":
        cache = cache_path(file)
        options += ["--cache_file", str(cache)] if cache.exists() else []
        return _average_loss(cell, file, [*options, "--random_seed", str(seed)])
    with _shuffle(file, seed) as shuffled:
        return _average_loss(cell, shuffled, options)


def learn_seconds(*, cell: Cell, cache: Path, rounds: int) -> Timing:
    """The CPU time of the learner over the first rounds of a cache; the overhead is measured with --noop."""
    return timing(cell=cell, learner=cell.learner, cache=cache, plain=cache, rounds=rounds)


def timing(*, cell: Cell, learner: list[str], cache: Path, plain: Path, rounds: int) -> Timing:
    """The CPU time of options of a learner; --noop, which measures the overhead, reads the cache `plain`."""
    for path in (cache, plain):
        if not path.exists():
            raise FileNotFoundError(f"{path}: no such file. Create it with make_cache.")
    with_learner, without = zip(
        *(
            (
                _cpu_seconds([*_source(cell, cache, rounds), *learner], rounds),
                _cpu_seconds([*_source(cell, plain, rounds), "--noop"], rounds),
            )
            for _ in range(REPEATS)
        ),
        strict=True,
    )
    return Timing(seconds=min(with_learner), overhead=min(without), rounds=rounds)


def _source(cell: Cell, cache: Path, rounds: int) -> list[str]:
    # With a cache the text is ignored, but Vowpal Wabbit requires the option -d.
    return ["-d", str(cache), "--cache_file", str(cache), "--examples", str(rounds), "-b", str(cell.bits)]


def cache_path(file: Path) -> Path:
    return file.with_name(file.name + ".cache")


def _average_loss(cell: Cell, file: Path, options: list[str]) -> float:
    report, _ = drive(["-d", str(file), "-b", str(cell.bits), *cell.learner, *options])
    return float(_parse_report("average loss", report))


def _cpu_seconds(options: list[str], rounds: int) -> float:
    report, seconds = drive(options, prepare=_pin_as_batch_job)
    count = int(_parse_report("number of examples", report))
    if count != rounds:
        raise ValueError(f"rounds must be at most the number of rows of the cache, {count}, got {rounds}.")
    return seconds


def drive(options: list[str], *, prepare: Callable[[], None] | None = None) -> tuple[str, float]:
    """Run the C++ driver; return its report and its CPU time, user and system."""
    require_package()
    process = subprocess.Popen(
        [sys.executable, "-m", "vowpalwabbit", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=prepare,
    )
    assert process.stdout is not None
    with process.stdout as stream:
        report = stream.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"vowpalwabbit {' '.join(options)} failed:\n{report}")
    return report, usage.ru_utime + usage.ru_stime


def _pin_as_batch_job() -> None:
    # The driver's parser and learner are two threads. With the default scheduler they switch at every row, which adds
    # 3 µs that are not the learner's; as a batch job on one core they switch about 800 times in 100,000 rows.
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def _parse_report(name: str, report: str) -> str:
    match = re.search(rf"^{name} = (\S+)$", report, re.MULTILINE)
    if match is None:
        raise RuntimeError(f"vowpalwabbit did not report {name!r}:\n{report}")
    return match[1]


@contextmanager
def _shuffle(file: Path, seed: int) -> Iterator[Path]:
    rows = file.read_bytes().splitlines(keepends=True)
    order = np.random.default_rng(seed).permutation(len(rows))
    with tempfile.TemporaryDirectory() as folder:
        shuffled = Path(folder) / file.name
        shuffled.write_bytes(b"".join(rows[index] for index in order))
        yield shuffled


def require_package() -> None:
    """Raise an error that says how to install Vowpal Wabbit if it is missing."""
    if importlib.util.find_spec("vowpalwabbit") is None:
        raise ModuleNotFoundError(f"vowpalwabbit is not installed. Install it: pip install {PACKAGE}")
