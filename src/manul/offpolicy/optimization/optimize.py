"""Off-policy optimisation: train candidates on a log, estimate the loss of each, and choose the best.

The candidates "auto" are the critic of `Auto` with several bandwidths, valued on rows that it was not trained on. The
candidates "cats" are a grid of trees; with the paper's penalty, they are CATS_Off, Algorithm 3 of the paper.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manul.actions.decision import Within
from manul.actions.schedules import Epsilon
from manul.agents.mapped import Mapped
from manul.errors import ParameterError
from manul.logs.log import Declares
from manul.logs.row_hashes import sketch_log
from manul.logs.sample import Logs, Sample
from manul.offpolicy.evaluation.policy_objections import context_objections
from manul.offpolicy.optimization.candidate_search import CandidateSearch, Engine, SearchSettings, Trees
from manul.offpolicy.optimization.grid import RULES, AnyAgent, Grid, Rule
from manul.offpolicy.optimization.pessimism import Restrained, optimize_without_densities
from manul.offpolicy.optimization.results import Row, Table
from manul.offpolicy.optimization.tree_candidates import Penalty, check_bandwidths
from manul.offpolicy.optimization.verdict import Verdict
from manul.offpolicy.restricted import Restricted
from manul.outcomes import Outcome
from manul.utils import html_cards, model_files
from manul.utils.atomic_files import table_beside
from manul.utils.validation import check_choice, check_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CANDIDATES = ("auto", "cats")


@dataclass(frozen=True, eq=False)
class Optimized:
    """The best policy, the table of all candidates, and what the log says of the gain over the logged policy.

    `verdict` is None if the penalty is the paper's, which needs only one pass over the log, and if the densities of the log
    are estimated and no candidates are given; then `without_densities` has the estimated loss, or why there is none.
    Printing shows the table and the verdict.
    """

    table: Table
    policy: AnyAgent | Mapped | Restricted
    verdict: Verdict | None = None
    without_densities: Restrained | None = None

    def __copy__(self) -> Optimized:
        return deepcopy(self)  # with a policy of its own, which may learn

    @property
    def outcome(self) -> Outcome:
        """What the log has: losses or rewards, which are printed, drawn and written."""
        return self.table.outcome

    @property
    def reward(self) -> float | None:
        """The estimated mean reward of the best policy; None if the log has losses."""
        return self.outcome.from_loss(self.chosen.estimate) if self.outcome.higher else None

    @property
    def chosen(self) -> Row:
        return self.table.rows[self.table.lowest if self.table.chosen is None else self.table.chosen]

    @property
    def bandwidth(self) -> float | None:
        """The bandwidth of the policy, in action units, or None if the policy chooses it in every decision."""
        return self.chosen.bandwidth

    @property
    def leaves(self) -> int | None:
        """The number of leaves of the policy, or None if it is not a tree."""
        return self.chosen.leaves

    @property
    def usable(self) -> bool:
        """Whether the log can show what the policy loses: no objection is an error, and its estimate is not refused."""
        if self.without_densities is not None:
            return self.without_densities.refusal is None
        return self.verdict is None or self.verdict.usable

    def save(self, path: str | Path) -> None:
        """Write the policy to a `.manul` file and the table to a CSV file beside it, which replaces no other table."""
        self.policy.save(path)
        self.table.to_csv(table_beside(path, Row._fields[0]))

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw the objective over bandwidth and leaves, and mark the chosen tree; the critic, which has no leaves, is named."""
        from manul.plotting import cell_map

        rows = [row.stated(self.outcome) for row in self.table]
        cells = [(row.bandwidth, row.leaves, row.objective) for row in rows if row.bandwidth and row.leaves]
        if not cells:
            raise _no_trees()
        best = self.chosen.stated(self.outcome)
        if best.bandwidth and best.leaves:
            return cell_map(cells, axes, outcome=self.outcome, chosen=(best.bandwidth, best.leaves, best.objective))
        drawn = cell_map(cells, axes, outcome=self.outcome)
        drawn.set_title(f"chosen: {best.candidate}, objective {best.objective:.4f}\n{drawn.get_title()}")
        return drawn

    def _repr_html_(self) -> str:
        closing = self.verdict or self.without_densities
        names, *rows = self.table.cells()
        return html_cards.table("Optimized", names, rows, [*self.table.notes(), *([closing] if closing else [])])

    def __str__(self) -> str:
        closing = self.verdict or self.without_densities
        return str(self.table) if closing is None else f"{self.table}\n\n{closing}"


def optimize(
    log: Logs,
    *,
    candidates: Iterable[str] | None = None,
    grid: Grid | None = None,
    rule: Rule = "path",
    penalty: Penalty = "measured",
    failure: float = 0.05,
    draw: bool = False,
    actions: Within | None = None,
    losses: Within | None = None,
    rewards: Within | None = None,
    outcome: Outcome | None = None,
    like: Declares | None = None,
    epsilon: Epsilon = 0.0,
    seed: int = 0,
    threads: int | None = None,
    resume: str | Path | None = None,
    engine: Engine = "local",
    progress: bool = False,
) -> Optimized:
    """Train candidates on a `log` or batches of a log, and return the policy with the lowest estimated loss.

    `candidates` are "auto", the critic of `Auto` with bandwidths from 1/128 to 1/8 of the range, and "cats", the trees of
    a `grid`, by default a small one. If only a grid is given, only its trees are candidates. The critic is chosen unless
    the best tree is better by more than three standard errors. The log is read several times, so it may not be an iterator.

    Trees learn by the `rule` of `Cats` ("path"), of `Cats.paper` ("paper"), or of `Cats.paper` with one regressor per
    node, as in Vowpal Wabbit ("margin"), which is twice as fast as "paper". Their `penalty` is "measured" from the
    importance weights, or the one of Algorithm 3: with the constant 1, as in the paper's experiments, any other number,
    or that of its theorem ("paper"), which fails with probability `failure`; `candidates=["cats"], grid=Grid.paper(),
    penalty=1` is CATS_Off. With `draw`, a tree is the one before a random round, as in the paper, instead of the one
    after the last round. The policy explores with `epsilon`. A `seed` fixes every draw. The result depends neither on
    the number of `threads`, by default one per processor, nor on the `engine`, "local" or "ray". `progress` shows a bar
    on standard error. With `resume`, a folder, an interrupted run can be resumed. `actions` and `losses` are by default
    the ranges of the log, of `like`, an agent or another log, or (0, 1); a log of rewards also takes `rewards`, and its
    result is printed, drawn and written in rewards. An `outcome` with a formula computes them from the parts of the log; if its
    range is "auto", it is that of the log. If contexts are named, the policy accepts named contexts. If the
    densities of the log are estimated, the policy is that of `optimize_without_densities`, which stays where the log
    has actions, unless you give candidates or a grid.

    On a log with several knobs, the only candidate is "auto", with windows of its own choice. The gain is mostly that of a
    model: then the verdict has no interval and says so.

    >>> import manul
    >>> run = manul.simulate(manul.Cats(leaves=4, bandwidth=1/4), manul.worlds.linear(rounds=2000, width=2))
    >>> best = optimize(run.log)
    >>> best.chosen.candidate, best.verdict.status
    ('auto', 'proven')
    """
    names = _check_candidates(candidates, grid)
    _check_penalty(penalty)
    check_choice("rule", rule, RULES)
    check_choice("engine", engine, ("local", "ray"))
    if engine == "ray" and resume is not None:
        raise ParameterError(
            f"resume must be None with engine='ray', got {str(resume)!r}. Use engine='local'.", "resume"
        )
    Outcome.of(losses=losses, rewards=rewards).known_losses("optimize")
    passes = 2 if "auto" in names or penalty == "measured" else 1
    sample = Sample.of(
        log,
        actions=actions,
        losses=losses,
        rewards=rewards,
        outcome=outcome,
        like=like,
        purpose="optimize",
        passes=passes,
    )
    sample.require_logged_densities()
    default = candidates is None and grid is None
    if not sample.space.is_number:
        names = ("auto",) if default else names
        if "cats" in names:
            several = ", ".join(sample.space.titles)
            raise ParameterError(f"Trees set one knob, but the log has {several}. Use candidates='auto'.", "candidates")
    elif default and sample.estimated:
        return _without_densities(sample, seed)
    trees = Trees([], [])
    if "cats" in names:
        grid = grid or (Grid.small() if penalty == "measured" else Grid.paper())
        ranges = {"actions": sample.span, "losses": sample.scale}
        trees = Trees(*(grid.candidates(rule=rule, epsilon=each, seed=seed, **ranges) for each in (epsilon, 0.0)))
        check_bandwidths(trees.trees, penalty)
    settings = SearchSettings(
        penalty=penalty, failure=failure, draw=seed if draw else None, epsilon=epsilon, seed=seed,
        threads=threads, resume=None if resume is None else Path(resume), engine=engine, progress=progress,
    )  # fmt: skip
    search = CandidateSearch(sample, settings, critic="auto" in names, trees=trees)
    table, policy, verdict = search.run()
    if not isinstance(sample.batches, Iterator):  # the paper's penalty takes logs that can be read only once
        model_files.note_training(policy, sketch_log(sample))
    learner: Any = policy.agent if isinstance(policy, Mapped) else policy
    # A policy of rewards learns and is inspected in rewards.
    learner.outcome = sample.outcome.with_losses(learner.outcome.losses)
    if verdict is not None:
        objections = (*context_objections(sample.converted), *verdict.objections)
        verdict = replace(verdict, outcome=sample.outcome, objections=objections)
    return Optimized(replace(table, outcome=sample.outcome), policy, verdict)


def _without_densities(sample: Sample, seed: int) -> Optimized:
    """The policy that stays where the log has actions, because estimated densities say little about other actions."""
    result = optimize_without_densities(sample.whole(), actions=sample.span, losses=sample.scale, seed=seed)
    value = math.nan if result.estimate is None else result.estimate.value
    row = Row("auto, restricted", result.policy.bandwidth, None, value, 0.0, value)
    return Optimized(Table((row,), chosen=0, outcome=result.outcome), result.policy, without_densities=result)


def check_plot(log: Logs, candidates: Iterable[str] | None, grid: Grid | None) -> None:
    """Raise ParameterError before `optimize` runs if its result would have no trees to plot."""
    sample, default = Sample.of(log), candidates is None and grid is None
    only_critics = sample.estimated or not sample.space.is_number
    if "cats" not in _check_candidates(candidates, grid) or (default and only_critics):
        raise _no_trees()


def _no_trees() -> ParameterError:
    return ParameterError("plot needs trees, but there are none among the candidates.", "candidates")


def _check_candidates(candidates: Iterable[str] | None, grid: Grid | None) -> tuple[str, ...]:
    if candidates is None:
        return CANDIDATES if grid is None else ("cats",)
    names = (candidates,) if isinstance(candidates, str) else tuple(candidates)
    for name in names:
        check_choice("candidates", name, CANDIDATES)
    if not names:
        raise ParameterError("candidates must have at least one of 'auto' and 'cats', got none.", "candidates")
    if grid is not None and "cats" not in names:
        raise ParameterError("grid has trees, but candidates has no 'cats'. Omit one of them.", "grid")
    return names


def _check_penalty(penalty: float | str) -> None:
    if penalty not in ("measured", "paper"):
        check_number("penalty", penalty, 0, math.inf, "Try 1, 'paper' or 'measured'.", ends="[)")
