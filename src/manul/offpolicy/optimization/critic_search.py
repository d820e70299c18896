"""The search for the best critic: train cross-fitted critics, choose a schedule, value them, and fit to all rows.

The phases run in the threads of this machine or as tasks on a Ray cluster, with identical results: sums are computed per
fold, in the order of the rows, and added in the order of the folds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from manul.actions.schedules import Epsilon
from manul.agents.auto import Auto
from manul.logs.rows import Rows
from manul.logs.sample import Sample
from manul.offpolicy import cross_fitting
from manul.offpolicy.cross_fitting import FOLDS, IN_ORDER, CriticSettings, Position, Schedule
from manul.offpolicy.evaluation.paired_values import TERMS, PairedValue
from manul.offpolicy.optimization import critic_candidates
from manul.offpolicy.optimization.checkpoint import PhaseFiles
from manul.offpolicy.optimization.critic_candidates import WindowTerms

Advance = Callable[[int], object]


class Phases(Protocol):
    """The phases of the search, on one machine or on a cluster."""

    def train(self, schedule: Schedule, *, only: bool = False) -> list[Auto]:
        """One critic per fold, trained on the other folds, or `only` on this one."""

    def errors(self, critics: Sequence[Sequence[Auto]]) -> list[float]:
        """The squared error on held-out rows of each group of critics, one per fold."""

    def values(self, critics: Sequence[Auto]) -> list[PairedValue]:
        """The value of each bandwidth on held-out rows."""

    def fit(self, schedule: Schedule, bandwidth: float | None) -> Auto:
        """The policy, an agent that is trained on all rows."""


@dataclass(frozen=True, eq=False)
class CriticSearch:
    """The chosen schedule, its critic of each fold, the value of each bandwidth, and the fit to all rows.

    If actions are no numbers, there are no bandwidths to choose from, but `judges`, the critics of each fold alone.
    """

    schedule: Schedule
    critics: list[Auto]
    values: list[PairedValue]
    judges: list[Auto]
    fit: Callable[[float | None], Auto]

    def terms(self, fold: int, rows: Rows, bandwidth: float | None) -> WindowTerms:
        """The terms of a candidate on rows of a fold that it has not learned from."""
        if bandwidth is None:
            return critic_candidates.drawn_terms(self.critics[fold], self.judges[fold], rows)
        return critic_candidates.window_terms(self.critics[fold], rows, bandwidth, exact=True)


def search(phases: Phases, settings: CriticSettings) -> CriticSearch:
    """Run all phases except the fit to all rows, which is left to the caller."""
    tried = cross_fitting.schedules(settings.total)
    trained = [phases.train(schedule) for schedule in tried]
    best = int(np.argmin(phases.errors(trained))) if len(tried) > 1 else 0
    values = phases.values(trained[best]) if settings.space.is_number else []
    judges = [] if settings.space.is_number else phases.train(IN_ORDER, only=True)
    return CriticSearch(tried[best], trained[best], values, judges, lambda width: phases.fit(tried[best], width))


def passes(total: int) -> int:
    """About how often the search reads a log of this length, for progress bars."""
    tried = cross_fitting.schedules(total)
    return sum(schedule.passes for schedule in tried) + (len(tried) > 1) + 1 + tried[-1].passes


class LocalPhases:
    """The phases in threads; each pass over the log serves all folds."""

    def __init__(
        self,
        sample: Sample,
        settings: CriticSettings,
        epsilon: Epsilon,
        executor: Executor,
        files: PhaseFiles,
        advance: Advance,
    ) -> None:
        self._sample, self._settings, self._epsilon, self._executor = sample, settings, epsilon, executor
        self._files, self._advance = files, advance

    def train(self, schedule: Schedule, *, only: bool = False) -> list[Auto]:
        """One critic per fold, trained on the other folds, or `only` on this one."""
        critics = [self._settings.critic() for _ in range(FOLDS)]
        return self._trained("judges" if only else schedule.name, schedule, range(FOLDS), critics, only=only)

    def fit(self, schedule: Schedule, bandwidth: float | None) -> Auto:
        """The policy, an agent that is trained on all rows."""
        return self._trained("all-rows", schedule, (None,), [self._settings.critic(bandwidth, self._epsilon)])[0]

    def errors(self, critics: Sequence[Sequence[Auto]]) -> list[float]:
        """The squared error on held-out rows of each group of critics."""

        def errors(fold: int, rows: Any) -> Any:
            return critic_candidates.squared_errors([group[fold] for group in critics], rows)

        saved = self._files.result("errors", [0.0] * len(critics))
        if saved is None:
            sums = self._sum_by_fold(errors, lambda: np.zeros(len(critics)))
            saved = np.sum(sums, axis=0).tolist()
            self._files.keep("errors", saved)
        return list(saved)

    def values(self, critics: Sequence[Auto]) -> list[PairedValue]:
        """The value of each bandwidth on held-out rows."""

        def values(fold: int, rows: Any) -> Any:
            return stack(critic_candidates.bandwidth_values(critics[fold], rows, self._settings))

        saved = self._files.result("values", empty_stack().tolist())
        if saved is None:
            saved = np.sum(self._sum_by_fold(values, empty_stack), axis=0).tolist()
            self._files.keep("values", saved)
        return unstack(np.array(saved))

    def _trained(
        self, phase: str, schedule: Schedule, held_out: Sequence[int | None], fresh: list[Auto], *, only: bool = False
    ) -> list[Auto]:
        start, critics = self._files.critics(phase, len(held_out)) or (Position(), fresh)

        def learned(position: Position, rows: int) -> None:
            self._advance(rows)
            self._files.keep_critics(phase, position, critics)

        options: dict[str, Any] = {"only": only, "executor": self._executor, "start": start, "learned": learned}
        cross_fitting.train(self._sample, critics, held_out, schedule, self._settings, **options)
        self._files.keep_critics(phase, Position(schedule.passes), critics, now=start.number < schedule.passes)
        return critics

    def _sum_by_fold(self, compute: Callable[[int, Any], Any], zero: Callable[[], Any]) -> list[Any]:
        sums = [zero() for _ in range(FOLDS)]
        for parts in critic_candidates.held_out_windows(self._sample, self._settings.total):
            folds, rows = zip(*parts, strict=True)
            for fold, result in zip(folds, self._executor.map(compute, folds, rows), strict=True):
                sums[fold] = sums[fold] + result
            self._advance(sum(map(len, rows)))
        return sums


def stack(values: Sequence[PairedValue]) -> Any:
    return np.array([np.append(value.products.ravel(), value.hits) for value in values])


def empty_stack() -> Any:
    return stack([PairedValue() for _ in critic_candidates.SHARES])


def unstack(sums: Any) -> list[PairedValue]:
    """The values of an array of sums."""
    return [PairedValue(row[:-1].reshape(TERMS, TERMS), int(row[-1])) for row in sums]
