"""Optimization on logs without densities: the lowest predicted loss among the actions that the log supports.

A log shows nothing about actions that it never played, where a critic extrapolates. The policy is therefore restricted to
actions whose estimated logging density is at least a fifth of the uniform one and of the densest action's
(`manul.offpolicy.restricted`). Logged actions are jittered by the bandwidth before their density is estimated: rounded
actions would otherwise be spikes between the actions that are compared. The loss of the policy is estimated on held-out
rows, with critics of the other rows.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from manul.actions.decision import Decisions, Within
from manul.agents.auto import Auto, as_critic
from manul.agents.density_critic import fit_critic
from manul.errors import InputError
from manul.logs.density_models import contexts_of, folds, ranges_of, require_one_knob, select
from manul.logs.log import Log
from manul.logs.row_hashes import sketch_log
from manul.logs.sample import Sample
from manul.offpolicy.estimate import Estimate
from manul.offpolicy.evaluation import intervals
from manul.offpolicy.evaluation.empirical_likelihood import UNKNOWN_BOUND
from manul.offpolicy.evaluation.estimated_densities import check_estimated, check_not_rounded, widen
from manul.offpolicy.evaluation.intervals import Terms
from manul.offpolicy.evaluation.policy_objections import context_objections
from manul.offpolicy.restricted import Restricted
from manul.outcomes import LOSSES, AnyRange, Outcome
from manul.utils.html_cards import card
from manul.utils.model_files import note_training
from manul.utils.validation import Floats, check_has_rows, check_number, check_seed, check_taken

FOLDS = 3
BANDWIDTH = 1 / 32  # of the range


@dataclass(frozen=True, eq=False)
class Restrained:
    """A policy for a log without densities, and the estimate of its loss or, if there is none, the reason.

    `logged` is the mean loss of the log, a negative reward if its `outcome` is a reward.
    """

    policy: Restricted
    estimate: Estimate | None
    refusal: str | None
    logged: float = float("nan")
    outcome: Outcome = LOSSES

    def __copy__(self) -> Restrained:
        return deepcopy(self)

    def __str__(self) -> str:
        logged = f"The log {'earned' if self.outcome.higher else 'lost'} {self.outcome.state(self.logged)}"
        if self.estimate is None:
            return f"{logged} on average. {self.refusal}"
        return f"{logged} on average. The policy's estimate rests on estimated densities: {self.estimate}"

    def _repr_html_(self) -> str:
        return card("Restrained", [("policy", type(self.policy).__name__)], notes=[self])

    def save(self, path: str | Path) -> None:
        self.policy.save(path)


def optimize_without_densities(
    log: Log,
    *,
    actions: Within | None = None,
    losses: AnyRange | None = None,
    rewards: AnyRange | None = None,
    bandwidth: float | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> Restrained:
    """Learn the best policy that a log without densities can support, and estimate its loss on held-out rows.

    Densities of the log, if any, are ignored. The policy is uniform within `bandwidth`, by default 1/32 of the range, of
    its best action. `logged` is the mean loss of the log. There is no estimate if actions are rounded or if the weights
    do not average about 1; its interval allows for any loss of the weight that is missing. The whole log is in memory.

    >>> import manul
    >>> agent = manul.Cats(leaves=8, bandwidth=1/8, epsilon=0.2)
    >>> log = manul.simulate(agent, manul.worlds.linear(rounds=2000, width=2)).log
    >>> result = optimize_without_densities(log)
    >>> result.estimate is None or result.estimate.value < result.logged
    True
    """
    check_has_rows(len(log))
    check_number("level", level, 0, 1, "Try 0.95.", ends="()")
    require_one_knob(log, "Optimization without densities")
    sample = Sample.of(log, actions=actions, losses=losses, rewards=rewards)
    ranges, outcome = ranges_of(log, sample.span), log.outcome.with_losses(sample.scale)
    check_taken(log.actions, np.ones(len(log)), ranges[:, 0], ranges[:, 1], logged=True)
    outcome.check(log.losses)
    train = _Training(log, ranges, sample.scale, bandwidth, check_seed(seed))
    estimate, refusal = _estimate(train, level)
    estimate = None if estimate is None else replace(estimate, outcome=log.outcome)
    policy, logged = train.policy(np.arange(len(log))), float(log.losses.mean())
    policy.critic.outcome = outcome
    return Restrained(note_training(policy, sketch_log(log)), estimate, refusal, logged, log.outcome)


class _Training:
    def __init__(self, log: Log, ranges: Floats, losses: Within, bandwidth: float | None, seed: int) -> None:
        self.log, self.ranges, self.losses, self.seed = log, ranges, losses, seed
        self.contexts = contexts_of(log)
        low, high = float(ranges[:, 0].min()), float(ranges[:, 1].max())
        self.actions, self.bandwidth = (low, high), BANDWIDTH * (high - low) if bandwidth is None else bandwidth

    def policy(self, rows: Any) -> Restricted:
        rng = np.random.default_rng(self.seed)
        jitter = self.bandwidth * rng.uniform(-1, 1, len(rows))
        actions = np.clip(self.log.actions[rows] + jitter, self.ranges[rows, 0], self.ranges[rows, 1])
        support = fit_critic(select(self.contexts, rows), actions, self.ranges[rows], self.seed)
        order = rng.permutation(rows)
        critic = as_critic(Auto(actions=self.actions, losses=self.losses, seed=self.seed))
        decisions = Decisions(self.log.actions[order], np.ones(len(order)))
        critic.learn_many(select(self.contexts, order), decisions, self.log.losses[order])
        return Restricted(critic=critic, support=support, bandwidth=self.bandwidth)

    def terms(self, policy: Restricted, rows: Any) -> tuple[Terms, Floats]:
        """The weights and scaled losses of held-out rows, and their estimated densities."""
        contexts, actions, ranges = select(self.contexts, rows), self.log.actions[rows], self.ranges[rows]
        within = None if self.log.lows is None else ranges
        densities = policy.support.densities(contexts, actions, ranges)
        weights = policy.distributions(contexts, within).density(actions) / densities
        least, worst = self.losses
        losses = (self.log.losses[rows] - least) / (worst - least)
        return Terms(weights * losses, weights, weights, losses), densities


def _estimate(training: _Training, level: float) -> tuple[Estimate | None, str | None]:
    ends = intervals.start("empirical-likelihood", training.seed)
    parts, densities = list[Terms](), list[Floats]()
    for train, held_out in folds(len(training.log), FOLDS):
        terms, fold_densities = training.terms(training.policy(train), held_out)
        ends.add(terms)
        parts, densities = [*parts, terms], [*densities, fold_densities]
    numerators, weights = (np.concatenate(column) for column in zip(*(part[:3:2] for part in parts), strict=True))
    objections = context_objections(training.log.converted)
    if objections:
        return None, objections[0].sentence
    try:
        check_not_rounded(training.log.actions, np.concatenate(densities))
        check_estimated("snips", float(weights.mean()))
    except InputError as error:
        return None, str(error)
    bound = max(float(weights.max()), UNKNOWN_BOUND)
    low, high = widen(ends.ends(level, bound), float(weights.mean()))
    least, worst = training.losses
    value, low, high = (
        least + (worst - least) * share
        for share in (float(numerators.sum() / weights.sum()), max(low, 0.0), min(high, 1.0))
    )
    return (
        Estimate(
            value,
            low,
            high,
            effective_size=float(weights.sum() ** 2 / (weights * weights).sum()),
            largest_weight=float(weights.max()),
            mean_weight=float(weights.mean()),
            rows=len(weights),
            interval="empirical-likelihood",
            level=level,
            bandwidth=training.bandwidth,
        ),
        None,
    )
