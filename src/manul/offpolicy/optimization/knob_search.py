"""Optimization on logs with several knobs: the critic, valued by a critic of other rows.

Few logged decisions match those of another policy, so a model must say what it loses. The critic that chooses the actions
of a fold was trained on the other folds, and the one that predicts their losses on this fold only: a critic finds its own
actions better than they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from tqdm import tqdm

from manul.actions.decision import Within
from manul.actions.knobs import Knobs
from manul.actions.schedules import Epsilon
from manul.errors import ParameterError
from manul.logs.batching import Logs, Rows, pieces
from manul.offpolicy import cross_fitting
from manul.offpolicy.cross_fitting import FOLDS, IN_ORDER, CriticSettings, Schedule
from manul.offpolicy.evaluation import policy_densities
from manul.offpolicy.evaluation.knob_policies import KnobsPolicy
from manul.offpolicy.optimization import critic_candidates
from manul.offpolicy.optimization.candidate_search import references
from manul.offpolicy.optimization.critic_candidates import WindowTerms
from manul.offpolicy.optimization.log_survey import survey
from manul.offpolicy.optimization.results import Row, Table
from manul.offpolicy.optimization.verdict import Verdict, VerdictSums
from manul.utils.validation import check_workers


@dataclass(frozen=True)
class KnobSettings:
    """The arguments of `optimize` that apply to several knobs."""

    knobs: Knobs
    losses: Within
    epsilon: Epsilon
    seed: int
    threads: int | None
    progress: bool


def reject_settings(names: tuple[str, ...], knobs: Knobs, *, resume: object, engine: str) -> None:
    """Raise ParameterError for what applies to one knob only.

    >>> reject_settings(("cats",), Knobs.check({"price": (10, 50), "days": (1, 14)}), resume=None, engine="local")
    Traceback (most recent call last):
    manul.errors.ParameterError: Trees set one knob, but the log has price, days. Use candidates='auto'.
    """
    several = ", ".join(knobs.names)
    if "cats" in names:
        raise ParameterError(f"Trees set one knob, but the log has {several}. Use candidates='auto'.", "candidates")
    if resume is not None:
        raise ParameterError(f"resume applies to logs with one knob, but this one has {several}.", "resume")
    if engine != "local":
        raise ParameterError(f"engine={engine!r} applies to logs with one knob, but this one has {several}.", "engine")


def optimize_knobs(log: Logs, settings: KnobSettings) -> tuple[Table, Any, Verdict]:
    """The table, the policy that was trained on all rows, and the verdict."""
    total = survey(log, actions=settings.knobs, losses=settings.losses).rows
    common: dict[str, Any] = {"total": total, "losses": settings.losses, "seed": settings.seed}
    critics = CriticSettings(actions=(0.0, 1.0), knobs=settings.knobs, **common)
    threads, passes = check_workers("threads", settings.threads), _passes(total)
    with (
        ThreadPoolExecutor(threads) as executor,
        tqdm(total=passes * total, unit=" rows", unit_scale=True, disable=not settings.progress) as bar,
    ):
        search = _Search(log, critics, executor, bar)
        schedule, chosen = search.choose_schedule()
        judges = search.train(IN_ORDER, only=True)
        sums = VerdictSums((0.0, 1.0), settings.losses, critic_candidates.weight_cap(total))
        for rows, terms in search.terms(chosen, judges):
            sums.add(rows, terms)
        explored = replace(critics, epsilon=settings.epsilon)
        (policy,) = search.train(schedule, whole=explored)
    verdict = sums.verdict()
    value, error = verdict.value
    penalty = math.nan if verdict.rests_on_model else error
    row = Row("auto", None, None, value, penalty, value if verdict.rests_on_model else value + error)
    return Table((row,), references(verdict), chosen=0), policy, verdict


def _passes(total: int) -> int:
    tried = cross_fitting.schedules(total)
    return sum(schedule.passes for schedule in tried) + (len(tried) > 1) + 2 + tried[-1].passes


class _Search:
    def __init__(self, log: Logs, settings: CriticSettings, executor: ThreadPoolExecutor, bar: Any) -> None:
        self._log, self._settings, self._executor, self._bar = log, settings, executor, bar

    def train(self, schedule: Schedule, *, only: bool = False, whole: CriticSettings | None = None) -> list[Any]:
        """One critic per fold, trained on the other folds or `only` on this one; or one of all rows."""
        folds: list[int | None] = [*range(FOLDS)] if whole is None else [None]
        critics = [(whole or self._settings).critic() for _ in folds]
        cross_fitting.train(
            self._log, critics, folds, schedule, self._settings, only=only, executor=self._executor,
            learned=lambda _position, rows: self._bar.update(rows),
        )  # fmt: skip
        return critics

    def choose_schedule(self) -> tuple[Schedule, list[Any]]:
        """The schedule with the lowest squared error on held-out rows, and its critics."""
        tried = cross_fitting.schedules(self._settings.total)
        trained = [self.train(schedule) for schedule in tried]
        if len(tried) == 1:
            return tried[0], trained[0]
        errors = np.zeros(len(tried))
        for fold, rows in self._folds():
            critics = [critics[fold] for critics in trained]
            errors += critic_candidates.squared_errors(critics, rows, self._settings)
        best = int(np.argmin(errors))
        return tried[best], trained[best]

    def terms(self, critics: list[Any], judges: list[Any]) -> Iterator[tuple[Rows, WindowTerms]]:
        """Rows with the weights of the critic of their fold, and the losses that their judge predicts."""
        for fold, rows in self._folds():
            policy = KnobsPolicy(critics[fold])
            contexts = policy_densities.inputs(policy.policy, rows)
            weights = policy.densities(rows, contexts) / rows.densities
            points = np.concatenate([rows.positions[:, np.newaxis], policy.draws(rows, contexts)], axis=1)
            own, judged = (cross_fitting.predict(each[fold], rows, points) for each in (critics, judges))
            halves = np.full(len(weights), 0.5)
            expected, judged = own[:, 1:].mean(axis=1), judged[:, 1:].mean(axis=1)
            yield rows, WindowTerms(weights, halves, own[:, 0], expected, judged)

    def _folds(self) -> Iterator[tuple[int, Rows]]:
        for piece in pieces(self._log, several=True):
            for fold, _, rows in cross_fitting.fold_rows(piece, self._settings.total):
                yield fold, rows
            self._bar.update(len(piece))
