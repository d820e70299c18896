"""The steps of `optimize`: read the log once, train and value all candidates, choose one, and judge it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal, NamedTuple

from tqdm import tqdm

from manul.actions.decision import Within
from manul.actions.schedules import Epsilon, describe
from manul.agents import Mapped
from manul.agents.auto import Auto
from manul.logs.batching import Rows, pieces
from manul.logs.log import Log
from manul.offpolicy import cross_fitting, named_logs
from manul.offpolicy.cross_fitting import CriticSettings
from manul.offpolicy.estimate import Objection
from manul.offpolicy.optimization import critic_candidates, critic_search, tree_candidates
from manul.offpolicy.optimization.critic_search import CriticSearch, LocalPhases, Phases
from manul.offpolicy.optimization.engines import TrainingResult, local
from manul.offpolicy.optimization.grid import AnyAgent, Candidate
from manul.offpolicy.optimization.log_survey import LogSurvey, survey
from manul.offpolicy.optimization.phase_files import PhaseFiles
from manul.offpolicy.optimization.replay import Logs
from manul.offpolicy.optimization.results import Row, Table
from manul.offpolicy.optimization.tree_candidates import Penalty
from manul.offpolicy.optimization.verdict import Verdict, VerdictSums
from manul.utils.validation import check_workers

Engine = Literal["local", "ray"]
Advance = Callable[[int], object]


class Trees(NamedTuple):
    """The trees to train, and the same ones without exploration, which are valued."""

    trees: list[Candidate]
    greedy: list[Candidate]


@dataclass(frozen=True)
class SearchSettings:
    """The arguments of `optimize` that all candidates share; `draw` is None or a seed."""

    actions: Within
    losses: Within
    penalty: Penalty
    failure: float
    draw: int | None
    epsilon: Epsilon
    seed: int
    threads: int | None
    resume: Path | None
    engine: Engine
    progress: bool


class CandidateSearch:
    """One run of `optimize` on a log, whose first batch is `first`."""

    def __init__(self, log: Logs, first: Log | None, settings: SearchSettings, *, critic: bool, trees: Trees) -> None:
        self.settings = settings
        self._log, self._critic = log, critic
        self._trees, self._greedy_trees = trees
        self._columns = None
        first = named_logs.first_with_contexts(log, first)
        if first is not None and (self._trees or first.features is not None):
            self._columns = named_logs.columns_of(first, log)
        self._encoded = log if self._columns is None else named_logs.Numbers(log, self._columns)
        # Critics take named fields as they are; sparse features are encoded, as for trees.
        self.critic_log = self._encoded if first is not None and first.features is not None else log

    def run(self) -> tuple[Table, AnyAgent | Mapped, Verdict | None]:
        """The table, the chosen policy, and the verdict."""
        settings, threads = self.settings, check_workers("threads", self.settings.threads)
        measured = self._critic or settings.penalty == "measured"
        known = self._survey() if measured else None
        files = self._files(known)
        with (
            ThreadPoolExecutor(threads) as executor,
            tqdm(total=self._total(known), unit=" rows", unit_scale=True, disable=not settings.progress) as bar,
        ):
            search = self._search(known, executor, files, bar.update)
            trained = self._train_trees(known, bar.update) if self._trees else None
            rows = [*self._critic_rows(search), *self._tree_rows(trained)]
            judged = _Judge(self, search, known, files, bar.update)
            chosen = self._choose(rows, search, judged)
            number = Table(tuple(rows)).lowest if chosen is None else chosen
            policy = self._policy(number, search, trained)
            verdict = None if known is None else judged.verdict(number)
        return Table(tuple(rows), references(verdict), chosen), policy, verdict

    @property
    def trees(self) -> int:
        return len(self._trees)

    def _survey(self) -> LogSurvey:
        settings = self.settings
        resumable = settings.resume is not None
        return survey(self._log, actions=settings.actions, losses=settings.losses, contexts=resumable)

    def _choose(self, rows: list[Row], search: CriticSearch | None, judged: _Judge) -> int | None:
        """The number of the chosen row; None for the lowest objective, if there are only trees.

        The objectives of trees have clipped weights, which make rare and bad actions look less bad, so the best tree is
        valued like the critic before they are compared; it must be better by more than three standard errors.
        """
        if search is None:
            return None
        critics = len(search.values)
        critic, trees = critic_candidates.choose(search.values), Table(tuple(rows[critics:]))
        if not len(trees) or math.isinf(trees.rows[trees.lowest].objective):
            return critic
        value, error = judged.verdict(critics + trees.lowest).value
        better = value + 3.0 * math.hypot(error, rows[critic].penalty) < rows[critic].estimate
        return critics + trees.lowest if better or math.isinf(rows[critic].objective) else critic

    def _files(self, known: LogSurvey | None) -> PhaseFiles:
        settings = self.settings
        if known is None or settings.resume is None or settings.engine == "ray":
            return PhaseFiles(None, {})
        described = {
            "log": asdict(known),
            "actions": settings.actions,
            "losses": settings.losses,
            "seed": settings.seed,
            "epsilon": describe(settings.epsilon),
            "critic": self._critic,
            "trees": [repr(candidate.agent) for candidate in self._trees],
        }
        return PhaseFiles(settings.resume / "phases", described)

    def _total(self, known: LogSurvey | None) -> int | None:
        if known is None:
            return len(self._log) if isinstance(self._log, Log) else None
        passes = 1 + 2 * bool(self._trees) + (critic_search.passes(known.rows) if self._critic else 0)
        return known.rows * passes

    def _search(
        self, known: LogSurvey | None, executor: ThreadPoolExecutor, files: PhaseFiles, advance: Advance
    ) -> CriticSearch | None:
        if not self._critic:
            return None
        assert known is not None
        settings = CriticSettings(
            total=known.rows, actions=self.settings.actions, losses=self.settings.losses,
            epsilon=self.settings.epsilon, seed=self.settings.seed,
        )  # fmt: skip
        phases: Phases = LocalPhases(self.critic_log, settings, executor, files, advance)
        if self.settings.engine == "ray":
            from manul.offpolicy.optimization.engines import ray

            phases = ray.RayPhases(self.critic_log, settings, advance)
        return critic_search.search(phases, settings)

    def _train_trees(self, known: LogSurvey | None, advance: Advance) -> TrainingResult:
        settings = self.settings
        clip = math.sqrt(known.rows) if known is not None and settings.penalty == "measured" else None
        options: dict[str, Any] = {"draw": settings.draw, "clip": clip, "advance": advance}
        if settings.engine == "local":
            return local.train(self._trees, self._encoded, threads=settings.threads, resume=settings.resume, **options)
        from manul.offpolicy.optimization.engines import ray

        ray.reject_resume(settings.resume)
        return ray.train(self._trees, self._encoded, **options)

    def _critic_rows(self, search: CriticSearch | None) -> list[Row]:
        (low, high), (least, most) = self.settings.actions, self.settings.losses
        rows = []
        for share, value in zip(critic_candidates.SHARES, search.values if search else [], strict=False):
            estimate = least + (most - least) * value.value if value.hits else math.nan
            error = (most - least) * value.error if critic_candidates.is_trusted(value) else math.inf
            rows.append(
                Row(
                    "auto",
                    share * (high - low),
                    None,
                    estimate,
                    error,
                    error if math.isinf(error) else estimate + error,
                    value.effective_size,
                )
            )
        return rows

    def _tree_rows(self, trained: TrainingResult | None) -> list[Row]:
        if trained is None:
            return []
        return tree_candidates.rows(self._trees, trained, self.settings.penalty, self.settings.failure)

    def _policy(self, lowest: int, search: CriticSearch | None, trained: TrainingResult | None) -> AnyAgent | Mapped:
        shares = critic_candidates.SHARES if search else ()
        if search is not None and lowest < len(shares):
            agent: AnyAgent = search.fit(self.bandwidth(lowest))
            return named_logs.with_columns(agent, None if self.critic_log is self._log else self._columns)
        assert trained is not None
        return named_logs.with_columns(trained.agent(lowest - len(shares)), self._columns)

    def bandwidth(self, number: int) -> float:
        """The bandwidth of a critic, in action units."""
        low, high = self.settings.actions
        return critic_candidates.SHARES[number] * (high - low)

    def tree_terms(
        self, number: int, total: int, critics: Sequence[Auto | None]
    ) -> Iterator[tuple[Rows, critic_candidates.WindowTerms]]:
        """The rows of the log, with the terms of a tree that was trained on the other folds."""
        agents = tree_candidates.cross_fit(self._greedy_trees[number], self._encoded, total)
        both = zip(pieces(self._encoded), pieces(self.critic_log), strict=True)
        for encoded, rows in both:
            for fold, places, part in cross_fitting.fold_rows(encoded, total):
                terms = tree_candidates.window_terms(agents[fold], part, critics[fold], rows.select(places))
                yield part, terms


class _Judge:
    """The verdict on a candidate, from rows that it had not learned from when it was valued on them."""

    def __init__(
        self,
        run: CandidateSearch,
        search: CriticSearch | None,
        known: LogSurvey | None,
        files: PhaseFiles,
        advance: Advance,
    ) -> None:
        self._run, self._search, self._known, self._files, self._advance = run, search, known, files, advance

    def _choices(self, number: int) -> int:
        """The number of candidates from which one was chosen: bandwidths whose gain the log can show, or all trees."""
        bandwidths = self._search.values if self._search else []
        if number < len(bandwidths):
            return max(len(critic_candidates.supported(bandwidths)), 1)
        return self._run.trees

    def verdict(self, number: int) -> Verdict:
        """The verdict on the candidate of a row of the table."""
        assert self._known is not None
        settings, name = self._run.settings, f"verdict-{number}"
        kept = [each.name for each in fields(Verdict) if each.name != "outcome"]  # a matter of how it is printed
        saved = self._files.result(name, dict.fromkeys(kept))
        if saved is None:
            cap = critic_candidates.weight_cap(self._known.rows)
            sums = VerdictSums(settings.actions, settings.losses, cap, self._choices(number))
            for rows, terms in self._rows(number, self._known.rows):
                sums.add(rows, terms)
                self._advance(len(rows))
            computed = {**asdict(sums.verdict()), "estimated": self._known.estimated}
            saved = {each: computed[each] for each in kept}
            self._files.keep(name, saved)
        pairs = {each: None if saved[each] is None else tuple(saved[each]) for each in ("value", "logged", "greedy")}
        objections = tuple(Objection(**objection) for objection in saved["objections"])
        return Verdict(**{**saved, **pairs, "objections": objections})

    def _rows(self, number: int, total: int) -> Iterator[tuple[Rows, critic_candidates.WindowTerms]]:
        """Rows with the weights, the windows and the predictions of a candidate."""
        shares = len(critic_candidates.SHARES) if self._search else 0
        critics = self._search.critics if self._search else [None] * cross_fitting.FOLDS
        if self._search is None or number >= shares:
            yield from self._run.tree_terms(number - shares, total, critics)
            return
        bandwidth = self._run.bandwidth(number)
        for parts in critic_candidates.held_out_windows(self._run.critic_log, total):
            for fold, rows in parts:
                yield rows, critic_candidates.window_terms(self._search.critics[fold], rows, bandwidth)


def references(verdict: Verdict | None) -> tuple[Row, ...]:
    """The rows of the logged policy and its greedy part, for the table."""
    if verdict is None:
        return ()
    policies = {"logged": verdict.logged, "logged, greedy part": verdict.greedy}
    return tuple(
        Row(name, None, None, value[0], value[1], value[0] + value[1])
        for name, value in policies.items()
        if value is not None
    )
