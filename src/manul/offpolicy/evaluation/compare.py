"""Comparison of policies on one log: paired differences of their losses, for all rows or for segments."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from manul.actions.decision import Within
from manul.errors import InputError, ParameterError
from manul.logs.log import Declares
from manul.logs.rows import Rows
from manul.logs.sample import Logs, Sample
from manul.offpolicy.estimate import Objection
from manul.offpolicy.evaluation.comparison_table import Comparison, ComparisonRow
from manul.offpolicy.evaluation.estimated_densities import HIGHEST, LOWEST, check_estimated, check_not_rounded
from manul.offpolicy.evaluation.exact_mass import Against, ExactMass, PolicyTerms
from manul.offpolicy.evaluation.gain import ClusteredGain, Gain
from manul.offpolicy.evaluation.intervals import Terms
from manul.offpolicy.evaluation.objections import Evidence
from manul.offpolicy.evaluation.piece_masses import Masses
from manul.offpolicy.evaluation.policy_densities import PolicyOnLog
from manul.offpolicy.evaluation.policy_objections import PolicyObjections
from manul.offpolicy.evaluation.weight_bounds import WeightBounds
from manul.offpolicy.smoothed import Function
from manul.outcomes import AnyRange, Outcome
from manul.policies.policy import Policy
from manul.utils.validation import Floats, check_has_rows, check_number

AnyPolicy = Policy | Function
Mask = npt.NDArray[np.bool_]
LOGGED = "logged"
MOST_SEGMENTS = 100
MOST_NAMES = 20  # of columns, in an error


def compare(
    policies: Mapping[str, AnyPolicy] | Sequence[AnyPolicy],
    log: Logs,
    against: str | AnyPolicy = LOGGED,
    *,
    by: str | None = None,
    clusters: str | None = None,
    level: float = 0.95,
    actions: Within | None = None,
    losses: AnyRange | None = None,
    rewards: AnyRange | None = None,
    outcome: Outcome | None = None,
    like: Declares | None = None,
    bandwidth: float | Mapping[str, float] | None = None,
    largest_weight: float | None = None,
    progress: bool = False,
) -> Comparison:
    """Compare policies with the logged policy, or with another one, by the difference of their losses on one `log`.

    `against` is "logged", a name in `policies`, or a policy. `by` is a column of the contexts: each of its values is a
    segment with its own row; `level` holds for each row, not for all of them together. `clusters` is a column, such as
    a user, whose rows depend on each other. Intervals are `exact-mass` if the log keeps what its actions were drawn from, and
    otherwise those of empirical likelihood; two policies are then told apart best on a log with floors. To prove a gain with 95 %
    confidence, use a `level` of 0.9, which leaves 5 % on each side. If the log has rewards, rewards are printed. The others are
    those of `evaluate`: `actions`, `losses`, `rewards`, `outcome`, `like`, `bandwidth`, `largest_weight` and `progress`.

    >>> import manul
    >>> log = manul.simulate(manul.Cats(leaves=16, bandwidth=1/8, epsilon=0.5), manul.worlds.linear(rounds=5000)).log
    >>> comparison = compare({"low": lambda context: 0.1, "high": lambda context: 0.9}, log, bandwidth=1/8)
    >>> [(row.policy, row.against, row.verdict) for row in comparison]
    [('low', 'logged', 'worse'), ('high', 'logged', 'worse')]
    """
    check_number("level", level, 0, 1, "Try 0.95.", ends="()")
    if largest_weight is not None:
        check_number("largest_weight", largest_weight, 0, math.inf, "Omit it for the default.", ends="(]")
    sample = Sample.of(log, actions=actions, losses=losses, rewards=rewards, outcome=outcome, like=like)
    sample.require_logged_densities()
    candidates, name, baseline = _named(policies, against)
    smoothed: dict[int, PolicyOnLog] = {}

    def prepare(policy: AnyPolicy) -> PolicyOnLog:
        if id(policy) not in smoothed:
            smoothed[id(policy)] = PolicyOnLog.of(policy, sample, None if isinstance(policy, Policy) else bandwidth)
        return smoothed[id(policy)]

    pairs = _Pairs(
        {key: prepare(policy) for key, policy in candidates.items()},
        None if baseline is None else prepare(baseline),
        largest_weight,
        clustered=clusters is not None,
    )
    segmented, clustered = (
        None if column is None else _Column(column, parameter)
        for column, parameter in ((by, "by"), (clusters, "clusters"))
    )
    count = 0
    for rows in sample.pieces(progress=progress):
        count += len(rows)
        segments = None if segmented is None else segmented.values(rows)
        members = None if clustered is None else clustered.values(rows)
        if clustered is not None:
            clustered.check()
        pairs.add(rows, segments, members)
    check_has_rows(count)
    if segmented is not None:
        segmented.check()
    low, high = sample.scale
    compared = pairs.rows(name, level, high - low, low)
    named = [*pairs.policies.items(), *([] if pairs.baseline is None else [(name, pairs.baseline)])]
    windows = tuple((key, policy.smoothing) for key, policy in named if policy.smoothing)
    return Comparison(tuple(row._replace(outcome=sample.outcome) for row in compared), level, windows)


def _named(
    policies: Mapping[str, AnyPolicy] | Sequence[AnyPolicy], against: str | AnyPolicy
) -> tuple[dict[str, AnyPolicy], str, AnyPolicy | None]:
    """The policies by name, and the name and the policy of the one they are compared with; None is the logged one."""
    if not isinstance(policies, Iterable):
        raise ParameterError(f"policies must be a mapping or a list of policies, got {policies!r}.", "policies")
    named = dict(policies) if isinstance(policies, Mapping) else {str(i + 1): each for i, each in enumerate(policies)}
    for name in named:
        if not isinstance(name, str) or name == LOGGED:
            raise ParameterError(f"Names of policies must be text other than {LOGGED!r}, got {name!r}.", "policies")
    if against is None:
        raise ParameterError(f"against must be {LOGGED!r}, a name in policies, or a policy, got None.", "against")
    if not isinstance(against, str):
        name, baseline = "against", against
    elif against == LOGGED:
        return _required(named), LOGGED, None
    elif against in named:
        name, baseline = against, named.pop(against)
    else:
        known = ", ".join([LOGGED, *named])
        raise ParameterError(f"against must be one of {known}, or a policy, got {against!r}.", "against")
    return _required(named), name, baseline


def _required(named: dict[str, AnyPolicy]) -> dict[str, AnyPolicy]:
    if not named:
        raise ParameterError("policies must have at least one policy to compare, got none.", "policies")
    return named


class _Terms(NamedTuple):
    """A policy on rows: the weights of the logged actions, and its masses on the logged pieces if they are known."""

    weights: Floats
    masses: Masses | None

    def select(self, which: Mask) -> _Terms:
        return _Terms(self.weights[which], None if self.masses is None else self.masses.select(which))

    @property
    def exact(self) -> PolicyTerms | None:
        return None if self.masses is None else PolicyTerms(self.weights, self.masses)


class _Pair:
    """One policy on one segment: the gain, and the sums of its own loss and of the loss that it is compared with."""

    def __init__(self, *, clustered: bool, exact: Against | None) -> None:
        self.gain, self.over_logged, self.other_over_logged = (
            ClusteredGain() if clustered else Gain() for _ in range(3)
        )
        self.evidence, self.total, self.largest = Evidence(), 0.0, 0.0
        self.other_weights, self.other_total = 0.0, 0.0
        self.estimated = list[Floats]()  # actions and estimated densities
        self.exact: ExactMass | None = None if exact is None else ExactMass(exact, clustered=clustered)

    @property
    def difference(self) -> float:
        """The loss of the policy minus the other one, each self-normalised."""
        return self.total / self.evidence.weights - self.other_total / self.other_weights

    def interval(self, level: float, *, bounded: bool) -> Within:
        """The interval of the difference.

        Weights without a bound could differ by any number in rows that the log does not have, so that their difference
        says nothing. Then both policies are compared with the logged one, at a level that holds for both.
        """
        if self.exact is not None:
            return self.exact.ends(level)
        if bounded:
            low, high = self.gain.interval(level)
        else:
            first, second = (gain.interval((1 + level) / 2) for gain in (self.over_logged, self.other_over_logged))
            low, high = max(first[0] - second[1], -1.0), min(first[1] - second[0], 1.0)
        if self.estimated:  # any loss is possible for the share of the weight that is missing or in excess
            missing = sum(abs(1 - total / self.evidence.rows) for total in (self.evidence.weights, self.other_weights))
            low, high = max(low - missing, -1.0), min(high + missing, 1.0)
        return low, high

    def refusal(self) -> Objection | None:
        """Why there is no estimate, if there is none."""
        if not self.evidence.weights:
            advice = "It has density 0 at every logged action. Log decisions that explore more."
            return Objection("error", "no support", advice)
        if not self.other_weights:
            advice = "The policy that it is compared with has density 0 at every logged action."
            return Objection("error", "no support", f"{advice} Log decisions that explore more.")
        mean = self.other_weights / self.evidence.rows
        if self.evidence.several and self.exact is None and not LOWEST <= mean <= HIGHEST:
            advice = f"The weights of the policy that it is compared with average {mean:.3g}, not 1."
            return Objection("error", "mean weight", f"{advice} Compare with {LOGGED!r}.")
        if not self.estimated:
            return None
        try:
            check_not_rounded(*np.concatenate(self.estimated, axis=1))
            for total in (self.evidence.weights, self.other_weights):
                check_estimated("snips", total / self.evidence.rows)
        except InputError as error:
            return Objection("error", "estimated densities", str(error))
        return None


class _Pairs:
    def __init__(
        self,
        policies: dict[str, PolicyOnLog],
        baseline: PolicyOnLog | None,
        largest_weight: float | None,
        *,
        clustered: bool,
    ) -> None:
        self.policies, self.baseline, self.clustered = policies, baseline, clustered
        self.bounds = {name: WeightBounds(policy, largest_weight) for name, policy in policies.items()}
        self.baseline_bounds = None if baseline is None else WeightBounds(baseline, largest_weight)
        self.doubts = {name: PolicyObjections(policy.policy) for name, policy in policies.items()}
        self.baseline_doubts = PolicyObjections(None if baseline is None else baseline.policy)
        self.given, self.pairs = largest_weight, dict[tuple[str, object], _Pair]()

    def add(self, rows: Rows, segments: list[object] | None, members: list[object] | None) -> None:
        losses = rows.shares
        other = self._terms(self.baseline, self.baseline_bounds, rows)
        for doubts in (*self.doubts.values(), *([] if self.baseline is None else [self.baseline_doubts])):
            doubts.add(rows)
        places = _places(segments, len(losses))
        if len(self.pairs) + len(places) > MOST_SEGMENTS * max(len(self.policies), 1):
            self._check_segments(places)
        if members is not None and None in members:
            row = rows.first + members.index(None)
            raise InputError(f"clusters needs a value in every row; row {row} has none.", "clusters")
        for name, policy in self.policies.items():
            terms = self._terms(policy, self.bounds[name], rows)
            assert terms is not None
            for segment, which in places.items():
                if (name, segment) not in self.pairs:
                    self.pairs[name, segment] = _Pair(clustered=self.clustered, exact=self._exact)
                pair, parts = self.pairs[name, segment], (rows, terms, losses, other)
                if segments is not None:
                    parts = rows.select(which), terms.select(which), losses[which], other and other.select(which)
                self._add(pair, name, *parts, members, which)

    def _add(
        self,
        pair: _Pair,
        name: str,
        rows: Rows,
        terms: _Terms,
        losses: Floats,
        other: _Terms | None,
        members: list[object] | None,
        which: Mask,
    ) -> None:
        weights, others = terms.weights, None if other is None else other.weights
        pair.evidence.add(rows, Terms(weights * losses, weights, weights, losses))
        pair.estimated += [np.array([rows.actions, rows.densities])] if rows.estimated else []
        pair.total += float((weights * losses).sum())
        pair.largest = max(pair.largest, float(weights.max()))
        baseline = np.ones(len(losses)) if others is None else others
        pair.other_weights += float(baseline.sum())
        pair.other_total += float((baseline * losses).sum())
        bound = max(self.bounds[name].largest, pair.largest)
        clusters = () if members is None else [members[index] for index in np.flatnonzero(which)]
        limit = 1.0 if self.baseline_bounds is None else max(self.baseline_bounds.largest, 1.0)
        pair.gain.add(weights, losses, bound, others, limit, clusters=clusters)
        if others is not None and self.given is None:  # a later row may have no bound
            pair.over_logged.add(weights, losses, bound, clusters=clusters)
            pair.other_over_logged.add(others, losses, max(limit, float(others.max())), clusters=clusters)
        if terms.exact is None or (other is not None and other.exact is None):
            pair.exact = None
        elif pair.exact is not None:
            pair.exact.add(losses, terms.exact, None if other is None else other.exact, clusters)

    @property
    def _exact(self) -> Against | None:
        """What exact-mass intervals compare with; None if a bound of the weights was given instead."""
        if self.given is not None:
            return None
        return "logged" if self.baseline is None else "other"

    def _bounded(self, name: str) -> bool:
        """Whether the difference of the weights has a bound: that of the log, or a given one."""
        bounds = self.baseline_bounds
        return bounds is None or (self.bounds[name].known and bounds.known)

    def _terms(self, policy: PolicyOnLog | None, bounds: WeightBounds | None, rows: Rows) -> _Terms | None:
        """The weights and masses of a policy; None for the logged policy."""
        if policy is None or bounds is None:
            return None
        masses = None if self.given is not None else policy.masses(rows)
        bounds.add(rows, masses)
        weights = policy.weights(rows)
        if self.given is not None and weights.max() > self.given:
            rule = f"at least the largest weight, {weights.max():g}"
            raise InputError(f"largest_weight must be {rule}, got {self.given:g}.", "largest_weight")
        return _Terms(weights, masses)

    def _check_segments(self, places: Mapping[object, object]) -> None:
        segments = {segment for _, segment in self.pairs} | set(places)
        if len(segments) > MOST_SEGMENTS:
            raise InputError(f"by has more than {MOST_SEGMENTS} values. Choose a column with fewer values.", "by")

    def rows(self, against: str, level: float, length: float, lowest: float) -> Iterator[ComparisonRow]:
        """The rows of the comparison, policy by policy, segments in order."""
        order = {name: index for index, name in enumerate(self.policies)}
        for (name, segment), pair in sorted(self.pairs.items(), key=lambda item: (order[item[0][0]], str(item[0][1]))):
            refusal = pair.refusal()
            if refusal is not None:
                size = pair.evidence.effective_size
                loss, ends, value = math.nan, (-1.0, 1.0), math.nan
                objections: tuple[Objection, ...] = (refusal,)
            else:
                loss, size = lowest + length * pair.total / pair.evidence.weights, pair.evidence.effective_size
                inside, value = pair.interval(level, bounded=self._bounded(name)), pair.difference
                bound = max(self.bounds[name].largest, pair.largest)
                wrong = 0.0 if pair.exact is None else pair.exact.evidence_against_masses()
                objections = pair.evidence.objections(
                    bound,
                    "empirical-likelihood" if pair.exact is None else "exact-mass",
                    inside,
                    scale=(lowest, lowest + length),
                    value=value,
                    against_masses=wrong,
                )
                ends = min(inside[0], value), max(inside[1], value)
                doubts = dict.fromkeys([*self.doubts[name].objections(), *self.baseline_doubts.objections()])
                objections = tuple(sorted([*doubts, *objections], key=lambda objection: objection.severity))
            low, high = (length * end for end in ends)
            rows = pair.evidence.rows
            yield ComparisonRow(name, against, segment, loss, length * value, low, high, rows, size, objections)


def _places(segments: list[object] | None, count: int) -> dict[object, Mask]:
    """The rows of each segment, as a mask."""
    if segments is None:
        return {None: np.ones(count, bool)}
    names: dict[object, int] = {}
    codes = np.array(
        [names.setdefault("(missing)" if segment is None else segment, len(names)) for segment in segments]
    )
    return {segment: codes == code for segment, code in names.items()}


class _Column:
    """A column of the contexts, such as the user or the city; columns of rows of numbers are named by their index."""

    def __init__(self, name: str, parameter: str) -> None:
        self.name, self.parameter = str(name), parameter
        self.known: dict[str, None] = {}

    def values(self, rows: Rows) -> list[object]:
        """The values of some rows; missing ones are None."""
        if rows.features is not None:
            contexts = rows.to_dicts()
            self.known |= dict.fromkeys(name for context in contexts for name in context)
            return [context.get(self.name) for context in contexts]
        numbers = rows.fields is None
        columns = dict.fromkeys(map(str, range(rows.contexts.shape[1])) if numbers else rows.fields or {})
        self.known |= columns
        if self.name not in columns:
            return [None] * len(rows)
        values = rows.contexts[:, int(self.name)] if rows.fields is None else rows.fields[self.name]
        known = [value if value == value else None for value in values.tolist()]
        return [repr(value) if isinstance(value, list | dict) else value for value in known]  # to group by

    def check(self) -> None:
        """Raise ParameterError if none of the rows so far had the column."""
        if self.name not in self.known:
            names = list(self.known)
            known = ", ".join(names[:MOST_NAMES]) + (", …" if len(names) > MOST_NAMES else "")
            rule = f"a column of the contexts ({known})" if names else "a column, but the contexts have none"
            raise ParameterError(f"{self.parameter} must be {rule}, got {self.name!r}.", self.parameter)
