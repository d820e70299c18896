"""Runs experiments, and writes their tables, figures and a page with all results."""

from __future__ import annotations

import importlib.util
import os
import platform
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory

from manul.errors import MissingDependency, ParameterError, remedy
from manul.paper.experiments import figures as plots
from manul.paper.experiments import offline, online, published, result_tables, timing
from manul.paper.experiments.page import Page, Section, loss_table, slope_table
from manul.paper.experiments.problem_sets import Problem, Selection
from manul.paper.experiments.timed_tasks import ResultsFile, TaskRunner
from manul.utils.atomic_files import writable_folder, write_whole
from manul.utils.validation import check_seed

NAMES = ("online", "offline", "timing")


@dataclass(frozen=True)
class Reproduction:
    """The results: the tables by name, the page, and the findings."""

    tables: dict[str, list[result_tables.Row]]
    page: Path
    findings: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join([*self.findings, f"Results: {self.page}"])


@dataclass(frozen=True)
class _Run:
    problems: Sequence[Problem]
    runner: TaskRunner
    out: Path
    scratch: Path
    with_vw: bool

    @property
    def has_published(self) -> bool:
        """Whether there are published numbers for any of the data sets; there are none for a user's table."""
        return any(problem.name in published.ROWS for problem in self.problems)

    def caption(self, ours: str, theirs: str) -> str:
        """The caption of a figure; `theirs`, about the published numbers, only if the figure has any."""
        return f"{ours}; {theirs}." if self.has_published else f"{ours}."

    @property
    def vw_folder(self) -> Path | None:
        return self.scratch if self.with_vw else None


def reproduce(
    experiments: Sequence[str] = NAMES,
    *,
    out: str | Path,
    datasets: Sequence[str] | None = None,
    rounds: int | None = None,
    seed: int = 0,
    data: str | Path | None = None,
    target: str | None = None,
    vw: bool | None = None,
    threads: int | None = None,
    progress: bool = False,
    command: str | None = None,
) -> Reproduction:
    """Repeat the paper's experiments on its data sets, or on your own table, and write all results to a folder.

    `data` is a folder with the files of the data sets, or one file, whose column `target` is then predicted. `vw` also runs
    Vowpal Wabbit; by default, if it is installed. An interrupted run resumes if it is started again with the same folder.
    """
    started = time.perf_counter()
    chosen = [_check_name(name) for name in dict.fromkeys(experiments)] or list(NAMES)
    selection = Selection(datasets, rounds, check_seed(seed), None if data is None else Path(data), target)
    selection.check()
    with_vw = _has_vw(requested=vw)
    problems = selection.problems()
    folder = writable_folder(out)
    runner = TaskRunner(ResultsFile(folder / "cells.json"), threads, progress)
    with TemporaryDirectory() as scratch:
        run = _Run(problems, runner, folder, Path(scratch), with_vw)
        sections: list[Section] = []
        tables: dict[str, list[result_tables.Row]] = {}
        for name in (name for name in NAMES if name in chosen):
            section, results = _EXPERIMENTS[name](run)
            for title, table in results.items():
                result_tables.write(folder / f"{title}.csv", table)
            sections.append(section)
            tables |= results
    findings = [finding for section in sections for finding in section.findings]
    facts = _facts(run, time.perf_counter() - started)
    call = command or f"manul.paper.experiments.reproduce({', '.join(map(repr, chosen))})"
    page = Page(call, facts, sections, run.has_published)
    write_whole(folder / "index.html", page.html())
    return Reproduction(tables, folder / "index.html", tuple(findings))


Output = tuple[Section, dict[str, list[result_tables.Row]]]


def _online(run: _Run) -> Output:
    table = [row for problem in run.problems for row in online.sweep(problem, run.runner, folder=run.vw_folder)]
    best = online.best(table)
    caption = run.caption(
        "The lowest progressive loss of each method over its settings",
        "published: the lowest over the authors' settings",
    )
    figures = [(plots.save(plots.losses(best, "progressive loss"), run.out / "online"), caption)]
    for problem in run.problems:
        picture = plots.save(plots.grids(table, problem.name), run.out / f"online-grid-{problem.name}")
        figures.append((picture, f"Every cell of the paper's grid on {problem.name}: the effect of K and h."))
    findings = [line for problem in run.problems for line in online.explain(table, problem.name)]
    text = (
        "Each method runs over the rows once, decides before it learns, and explores with ε = 0.05. The progressive loss is the "
        "mean loss of its decisions. CATS (Cats.paper: two cost regressors per node; margin: one, as in the authors' program), "
        "dTree and dLinear are run with all settings of the paper. Not in the paper: Cats over the same grid and with one fixed "
        "setting, AdaptiveCats, which finds its bandwidth, and Auto, which has no settings. The best constant action and the "
        "best linear policy in hindsight (the smoothed optimum) use their best h and explore as well."
    )
    return Section("Online", text, figures, findings, loss_table(best), "online"), {
        "online": table,
        "online-best": best,
    }


def _offline(run: _Run) -> Output:
    folder = run.out / "stopped"
    measured = [row for problem in run.problems for row in offline.sweep(problem, run.runner, folder=folder)]
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
    table = offline.compare(measured)
    caption = "Losses on the held-out rows: of the logging policy, and of the policy that CATS_Off trained on its log."
    figures = [(plots.save(plots.losses(table, "test loss"), run.out / "offline"), caption)]
    findings = [line for problem in run.problems for line in offline.explain(table, problem.name)]
    text = (
        "CATS with K = 4 and h = 1/4 runs over 80 % of the rows and logs its decisions. CATS_Off trains every cell of the grid on "
        "that log, evaluates each with importance weights before it learns from a row, and selects the one with the lowest estimate "
        "plus penalty (constant 1, as in the paper). All policies then run over the other 20 % with ε = 0.05, without learning."
    )
    return Section("Offline", text, figures, findings, loss_table(table), "offline"), {"offline": table}


def _timing(run: _Run) -> Output:
    table = [row for problem in run.problems for row in timing.sweep(problem, run.runner, folder=run.vw_folder)]
    slopes = timing.slopes(table)
    caption = run.caption(
        "CPU time per round on one core, the lowest of five passes",
        "published times (other hardware) include reading the data",
    )
    figures = [
        (plots.save(plots.times(table, problem.name), run.out / f"timing-{problem.name}"), caption)
        for problem in run.problems
    ]
    findings = [f"{p.name}: {line}" for p in run.problems for line in timing.explain(table, p.name)]
    text = (
        "The time of a round (decision and learning) as a function of bandwidth and leaves, with slopes fitted by least squares. "
        "The paper's CATS learns along two paths, from the two ends of the window up to the root. The paths of a narrow window meet "
        "early, those of a wide one late, so the time grows slightly with h, up to that of two whole paths."
    )
    return Section("Timing", text, figures, findings, slope_table(slopes), "timing"), {
        "timing": table,
        "timing-slopes": slopes,
    }


_EXPERIMENTS: dict[str, Callable[[_Run], Output]] = {"online": _online, "offline": _offline, "timing": _timing}


def _facts(run: _Run, seconds: float) -> dict[str, str]:
    sets = {
        f"dataset {p.name}": f"{p.rounds:,} rounds, {p.width} numbers per context; {p.origin}" for p in run.problems
    }
    seed = run.problems[0].seed
    return {
        **sets,
        "seed": f"{seed} (for the data of ds, the order of the rows and every agent); one run per cell, as in the paper",
        "Vowpal Wabbit": "included" if run.with_vw else "not installed or not requested",
        **_machine(),
        "time": f"{seconds / 60:.1f} minutes for this run, without results that an earlier run had already written to this folder",
    }


def _machine() -> dict[str, str]:
    versions = {"manul": version("manul"), "Python": platform.python_version(), "NumPy": version("numpy")}
    with suppress(PackageNotFoundError):
        versions["Vowpal Wabbit"] = version("vowpalwabbit")
    return {
        "processor": _processor(),
        "cores": str(os.cpu_count() or 1),
        "memory": _memory(),
        "system": f"{platform.system()} {platform.machine()}",
        "versions": ", ".join(f"{name} {number}" for name, number in versions.items()),
    }


def _processor() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _memory() -> str:
    try:
        return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB"
    except (ValueError, OSError, AttributeError):
        return "unknown"


def _check_name(experiment: str) -> str:
    if experiment in NAMES:
        return experiment
    advice = remedy(experiment, NAMES, "Omit it to run all three.")
    raise ParameterError(f"experiment must be one of {', '.join(NAMES)}, got {experiment!r}. {advice}", "experiment")


def _has_vw(*, requested: bool | None) -> bool:
    installed = importlib.util.find_spec("vowpalwabbit") is not None
    if requested and not installed:
        raise MissingDependency("Vowpal Wabbit is not installed. Install it: pip install vowpalwabbit.")
    return installed if requested is None else requested
