"""The candidates "cats": trees and other agents that are valued while they learn, each row before it is learned."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from manul.actions.decision import Decisions
from manul.agents.auto import NARROWEST_SHARE, Auto
from manul.agents.base import fresh_copy
from manul.errors import ParameterError
from manul.logs.rows import Rows
from manul.logs.sample import Sample
from manul.offpolicy import cross_fitting
from manul.offpolicy.evaluation.policy_densities import PolicyOnLog
from manul.offpolicy.optimization.critic_candidates import WindowTerms
from manul.offpolicy.optimization.grid import AnyAgent, Candidate, bandwidth_of
from manul.offpolicy.optimization.replay import TrainingResult
from manul.offpolicy.optimization.results import Row
from manul.policies import theory

Penalty = float | Literal["measured", "paper"]


def rows(candidates: Sequence[Candidate], trained: TrainingResult, penalty: Penalty, failure: float) -> list[Row]:
    """The row of each candidate in the table of results."""
    if penalty == "measured":
        return [_measured(candidate, trained, number) for number, candidate in enumerate(candidates)]
    constant = penalty
    if constant == "paper":
        constant = theory.off_policy_constant(horizon=trained.seen.rows, cells=len(candidates), failure=failure)
    return [_paper(candidate, trained, number, float(constant)) for number, candidate in enumerate(candidates)]


def _measured(candidate: Candidate, trained: TrainingResult, number: int) -> Row:
    """With weights clipped at the root of the number of rows, one small density changes nothing."""
    weights, weighted, squares = trained.clipped[number].tolist()
    rows = trained.seen.rows
    if weights <= 0:
        return _row(candidate, 1.0, math.inf, 0.0)
    value, size = weighted / weights, squares / weights
    return _row(candidate, value, float(np.sqrt(value * size / rows) + size / rows), weights / size)


def _paper(candidate: Candidate, trained: TrainingResult, number: int, constant: float) -> Row:
    low, high = candidate.agent.actions
    mean = float(trained.sums[number]) / trained.seen.rows
    penalty = theory.off_policy_penalty(
        mean_loss=mean,
        horizon=trained.seen.rows,
        bandwidth=(candidate.bandwidth or 0.0) / (high - low),
        minimum_density=min(trained.seen.lowest_density * (high - low), 1.0),
        constant=constant,
    )
    return _row(candidate, mean, penalty)


def _row(candidate: Candidate, mean: float, penalty: float, effective_size: float = math.nan) -> Row:
    lowest, highest = candidate.agent.outcome.known_losses("optimize")
    estimate, penalty = lowest + (highest - lowest) * mean, (highest - lowest) * penalty
    shape = candidate.bandwidth, candidate.agent.parameters.get("leaves")
    return Row(candidate.name, *shape, estimate, penalty, estimate + penalty, effective_size)


def check_bandwidths(candidates: Sequence[Candidate], penalty: Penalty) -> None:
    """Reject agents without a density, and agents without a bandwidth if the penalty depends on it."""
    for candidate in candidates:
        bandwidth = candidate.bandwidth
        if not (penalty == "measured" if bandwidth is None else bandwidth > 0):
            raise ParameterError(
                f"candidates must have a bandwidth above 0, got {candidate.agent!r} as {candidate.name!r}.",
                "candidates",
            )


def cross_fit(candidate: Candidate, sample: Sample, total: int) -> list[AnyAgent]:
    """One agent per fold, trained on the other folds in the order of the log."""
    agents = [fresh_copy(candidate.agent) for _ in range(cross_fitting.FOLDS)]
    for piece in sample.pieces():
        folds = cross_fitting.fold_numbers(piece, total)
        for fold, agent in enumerate(agents):
            rows = piece.select(folds != fold)
            if len(rows):
                decisions = Decisions(rows.actions, rows.densities, rows.lows, rows.highs)
                agent.learn_many(rows.contexts, decisions, rows.losses)
    return agents


def window_terms(agent: AnyAgent, rows: Rows, critic: Auto | None, critic_rows: Rows) -> WindowTerms:
    """The weights of an agent on held-out rows, and the losses that a critic predicts for the logged and its own actions.

    `critic_rows` are the same rows as the critic takes them; without a critic, predictions are 0.
    """
    low, high = agent.actions
    played = agent.distributions(rows.contexts, rows.within)
    weights = played.density(rows.actions) / rows.densities
    lows, highs = rows.ends()
    halves = np.minimum(bandwidth_of(agent) or NARROWEST_SHARE * (high - low), (highs - lows) / 2)
    exact = PolicyOnLog(agent).exact_terms(rows)
    if critic is None:
        nothing = np.zeros(len(weights))
        return WindowTerms(weights, halves, nothing, nothing, exact=exact)
    points, shares = played.points()
    losses = cross_fitting.predict(critic, critic_rows, np.column_stack([rows.actions, np.clip(points, low, high)]))
    return WindowTerms(weights, halves, losses[:, 0], (losses[:, 1:] * shares).sum(axis=1), exact=exact)
