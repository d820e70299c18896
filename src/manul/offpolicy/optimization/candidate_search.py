"""The steps of `optimize`: read the log once, train and value all candidates, choose one, and judge it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal, NamedTuple

from tqdm import tqdm

from manul.actions.schedules import Epsilon, describe
from manul.agents.auto import Auto
from manul.agents.mapped import Mapped
from manul.contexts.table_encoding import LogColumns
from manul.logs.rows import Rows
from manul.logs.sample import Encoded, Sample, Survey
from manul.offpolicy import cross_fitting
from manul.offpolicy.cross_fitting import CriticSettings
from manul.offpolicy.estimate import Objection
from manul.offpolicy.optimization import checkpoint, critic_candidates, critic_search, tree_candidates
from manul.offpolicy.optimization.checkpoint import PhaseFiles
from manul.offpolicy.optimization.critic_search import CriticSearch, LocalPhases, Phases
from manul.offpolicy.optimization.grid import AnyAgent, Candidate
from manul.offpolicy.optimization.replay import TrainingResult
from manul.offpolicy.optimization.results import Row, Table
from manul.offpolicy.optimization.tree_candidates import Penalty
from manul.offpolicy.optimization.verdict import ERROR, Verdict, VerdictSums
from manul.utils.validation import check_workers

FAVOURITE = 0.8  # of the chance of an error
Engine = Literal["local", "ray"]
Advance = Callable[[int], object]


class Trees(NamedTuple):
    """The trees to train, and the same ones without exploration, which are valued."""

    trees: list[Candidate]
    greedy: list[Candidate]


@dataclass(frozen=True)
class SearchSettings:
    """The arguments of `optimize` that all candidates share; `draw` is None or a seed."""

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
    """One run of `optimize` on a log."""

    def __init__(self, sample: Sample, settings: SearchSettings, *, critic: bool, trees: Trees) -> None:
        self.sample, self.settings = sample, settings
        self._critic, (self._trees, self._greedy_trees) = critic, trees
        # Critics take named fields as they are; the sparse features of a log with one number are encoded, as for trees.
        sparse = sample.kind == "features" and sample.space.is_number
        self._encoded = sample.encoded() if self._trees or sparse else sample
        self.critic_sample = self._encoded if sparse else sample

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
            judged = _Judge(self, search, known, files, bar.update)
            rows = [*self._critic_rows(search, judged), *self._tree_rows(trained)]
            chosen = self._choose(rows, search, judged)
            number = Table(tuple(rows)).lowest if chosen is None else chosen
            policy = self._policy(number, search, trained)
            verdict = None if known is None else judged.verdict(number)
        return Table(tuple(rows), references(verdict), chosen), policy, verdict

    @property
    def trees(self) -> int:
        return len(self._trees)

    @property
    def bandwidths(self) -> list[float | None]:
        """The bandwidths of the critic, in action units; None if it chooses windows itself, as for several knobs."""
        if not self._critic or not self.sample.space.is_number:
            return [None] * self._critic
        low, high = self.sample.span
        return [share * (high - low) for share in critic_candidates.SHARES]

    def _survey(self) -> Survey:
        return self.sample.survey(contexts=self.settings.resume is not None)

    def _choose(self, rows: list[Row], search: CriticSearch | None, judged: _Judge) -> int | None:
        """The number of the chosen row; None for the lowest objective, if there are only trees.

        The objectives of trees have clipped weights, which make rare and bad actions look less bad, so the best tree is
        valued like the critic before they are compared; it must be better by more than three standard errors.
        """
        if search is None:
            return None
        critics = len(self.bandwidths)
        critic = critic_candidates.choose(search.values) if search.values else 0
        trees = Table(tuple(rows[critics:]))
        if not len(trees) or math.isinf(trees.rows[trees.lowest].objective):
            return critic
        value, error = judged.verdict(critics + trees.lowest).value
        better = value + 3.0 * math.hypot(error, rows[critic].penalty) < rows[critic].estimate
        return critics + trees.lowest if better or math.isinf(rows[critic].objective) else critic

    def _files(self, known: Survey | None) -> PhaseFiles:
        settings = self.settings
        if known is None or settings.resume is None or settings.engine == "ray":
            return PhaseFiles(None, {})
        described = {
            "log": asdict(known),
            "actions": self.sample.space.describe(),
            "losses": self.sample.scale,
            "seed": settings.seed,
            "epsilon": describe(settings.epsilon),
            "critic": self._critic,
            "trees": [repr(candidate.agent) for candidate in self._trees],
        }
        return PhaseFiles(settings.resume / "phases", described)

    def _total(self, known: Survey | None) -> int | None:
        if known is None:
            return self.sample.count
        passes = 1 + 2 * bool(self._trees) + (critic_search.passes(known.rows) if self._critic else 0)
        return known.rows * passes

    def _search(
        self, known: Survey | None, executor: ThreadPoolExecutor, files: PhaseFiles, advance: Advance
    ) -> CriticSearch | None:
        if not self._critic:
            return None
        assert known is not None
        sample, given = self.critic_sample, self.settings
        settings = CriticSettings(known.rows, sample.space, sample.scale, given.seed)
        phases: Phases
        if given.engine == "ray":
            from manul.offpolicy.optimization.engines import ray

            phases = ray.RayPhases(sample, settings, given.epsilon, advance)
        else:
            phases = LocalPhases(sample, settings, given.epsilon, executor, files, advance)
        return critic_search.search(phases, settings)

    def _train_trees(self, known: Survey | None, advance: Advance) -> TrainingResult:
        settings = self.settings
        clip = math.sqrt(known.rows) if known is not None and settings.penalty == "measured" else None
        options: dict[str, Any] = {"draw": settings.draw, "clip": clip, "advance": advance}
        if settings.engine == "local":
            options |= {"threads": settings.threads, "resume": settings.resume}
            return checkpoint.train(self._trees, self._encoded, **options)
        from manul.offpolicy.optimization.engines import ray

        return ray.train(self._trees, self._encoded, **options)

    def _critic_rows(self, search: CriticSearch | None, judged: _Judge) -> list[Row]:
        if search is None:
            return []
        if not search.values:
            loss, error = judged.verdict(0).value
            return [Row("auto", None, None, loss, error, loss if math.isnan(error) else loss + error)]
        least, most = self.sample.scale
        rows = []
        for bandwidth, value in zip(self.bandwidths, search.values, strict=True):
            estimate = least + (most - least) * value.value if value.hits else math.nan
            error = (most - least) * value.error if critic_candidates.is_trusted(value) else math.inf
            objective = error if math.isinf(error) else estimate + error
            rows.append(Row("auto", bandwidth, None, estimate, error, objective, value.effective_size))
        return rows

    def _tree_rows(self, trained: TrainingResult | None) -> list[Row]:
        if trained is None:
            return []
        return tree_candidates.rows(self._trees, trained, self.settings.penalty, self.settings.failure)

    def _policy(self, number: int, search: CriticSearch | None, trained: TrainingResult | None) -> AnyAgent | Mapped:
        """The policy of a row of the table, which takes the fields of the log instead of encoded rows."""
        critics = len(self.bandwidths)
        if search is not None and number < critics:
            agent: AnyAgent = search.fit(self.bandwidths[number])
            columns = None if self.critic_sample is self.sample else self._columns
        else:
            assert trained is not None
            agent, columns = trained.agent(number - critics), self._columns
        return agent if columns is None else Mapped(agent=agent, features=columns)

    @property
    def _columns(self) -> LogColumns | None:
        return self._encoded.batches.columns if isinstance(self._encoded.batches, Encoded) else None

    def tree_terms(
        self, number: int, total: int, critics: Sequence[Auto | None]
    ) -> Iterator[tuple[Rows, critic_candidates.WindowTerms]]:
        """The rows of the log, with the terms of a tree that was trained on the other folds."""
        agents = tree_candidates.cross_fit(self._greedy_trees[number], self._encoded, total)
        both = zip(self._encoded.pieces(), self.critic_sample.pieces(), strict=True)
        for encoded, rows in both:
            for fold, places, part in cross_fitting.fold_rows(encoded, total):
                critic, same = critics[fold], rows.select(places)
                yield part, tree_candidates.window_terms(agents[fold], part, critic, same)


class _Judge:
    """The verdict on a candidate, from rows that it had not learned from when it was valued on them."""

    def __init__(
        self,
        run: CandidateSearch,
        search: CriticSearch | None,
        known: Survey | None,
        files: PhaseFiles,
        advance: Advance,
    ) -> None:
        self._run, self._search, self._known, self._files, self._advance = run, search, known, files, advance
        self._verdicts: dict[int, Verdict] = {}  # a candidate may be judged to be chosen, and again in the result

    def _choices(self, number: int) -> int:
        """The number of candidates from which one was chosen: bandwidths whose gain the log can show, or all trees."""
        if self._search is not None and number < len(self._run.bandwidths):
            return max(len(critic_candidates.supported(self._search.values)), 1)
        return self._run.trees

    def _error(self, number: int) -> float:
        """The chance that a gain of a candidate is wrongly called proven by exact masses; those of all candidates add up to 5 %.

        The narrowest bandwidth whose gain the log can show has most of it, because it is known before looking at losses, and is
        the one that is chosen most often.
        """
        choices = self._choices(number)
        if choices == 1 or self._search is None or number >= len(self._run.bandwidths):
            return ERROR / choices
        favourite = critic_candidates.supported(self._search.values)[0]
        return FAVOURITE * ERROR if number == favourite else (1 - FAVOURITE) * ERROR / (choices - 1)

    def verdict(self, number: int) -> Verdict:
        """The verdict on the candidate of a row of the table."""
        if number not in self._verdicts:
            self._verdicts[number] = self._judge(number)
        return self._verdicts[number]

    def _judge(self, number: int) -> Verdict:
        assert self._known is not None
        name = f"verdict-{number}"
        kept = [each.name for each in fields(Verdict) if each.name != "outcome"]  # a matter of how it is printed
        saved = self._files.result(name, dict.fromkeys(kept))
        if saved is None:
            cap = critic_candidates.weight_cap(self._known.rows)
            sums = VerdictSums(self._run.sample.scale, cap, self._choices(number), self._error(number))
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
        critics = len(self._run.bandwidths)
        if self._search is None or number >= critics:
            predictors = self._search.critics if self._search else [None] * cross_fitting.FOLDS
            yield from self._run.tree_terms(number - critics, total, predictors)
            return
        bandwidth = self._run.bandwidths[number]
        for parts in critic_candidates.held_out_windows(self._run.critic_sample, total):
            for fold, rows in parts:
                yield rows, self._search.terms(fold, rows, bandwidth)


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
