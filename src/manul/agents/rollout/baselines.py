"""The baseline of a rollout: what decides today, and keeps deciding unless the learner is shown to be no worse."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, Protocol, runtime_checkable

import numpy as np

from manul import _core
from manul.actions.decision import Arm, Decision
from manul.actions.distribution import Atoms, Distribution, Scaled
from manul.actions.distributions import Distributions
from manul.actions.joint import JointDistribution
from manul.actions.kinds.knob import SPREAD, Number
from manul.actions.kinds.span import Span
from manul.actions.levels import DrawnLevels, KnobLevels
from manul.actions.limits import check_limits
from manul.actions.pieces import pieces_of
from manul.actions.space import ActionSpace, several_knobs
from manul.contexts.schema import Context
from manul.errors import InputError, ParameterError
from manul.policies.policy import Policy
from manul.utils import model_files

CALLER = "caller"
_STREAM = 0x9E3779B97F4A7C15  # other random numbers than those of the agent, which may have the same seed


@dataclass(frozen=True)
class BaselineArm:
    """What the baseline plays in one decision: the distribution whose density counts, and the action or what it is drawn from."""

    distribution: Distribution | Scaled | JointDistribution
    action: Any = None
    source: Distribution | Atoms | JointDistribution | None = None

    def draw(
        self,
        seed: int,
        key: int,
        share: float,
        *,
        decide: Callable[[], Decision],
        look_up: Callable[[Any], tuple[float, float | None]],
    ) -> Decision:
        """Draw from the learner with a probability of `share`, otherwise from the baseline; `key` determines which.

        `decide` draws from the learner, and `look_up` returns the learner's density of an action, and its smallest density.
        Density and floor of the decision are those of the mixture. A mixture of products is no product, so that several knobs
        have no densities of their own.
        """
        learner = _core.draw(seed ^ _STREAM, key)[0] < share
        if learner:
            action, density, _, floor, *_ = decide()
        else:
            action = self.action if self.source is None else self.source.sample(np.random.default_rng((seed, key)))
            density, floor = look_up(action)
        mixed = share * density + (1 - share) * self.distribution.density(action)
        arm: Arm = "learner" if learner else "baseline"
        by_knob = dict.fromkeys(action, mixed) if isinstance(action, dict) and len(action) == 1 else None
        return Decision(action, mixed, None, None if floor is None else share * floor, by_knob, arm)


def mixed_levels(space: ActionSpace[Any], learner: Decision, baseline: BaselineArm, share: float) -> DrawnLevels | None:
    """The levels of a mixture with a `share` of what a decision of the learner was drawn from; None if they are unknown.

    A mixture of products is no product, so that several knobs have none.
    """
    if len(space.knobs) > 1 or learner.levels is None:
        return None
    own = None if space.is_number else space
    ((name, pieces),) = pieces_of(Distributions([baseline.distribution], own)).items()
    levels = KnobLevels.of_pieces(pieces, is_discrete=space.knobs[0][1].is_discrete)
    return DrawnLevels({name: learner.levels[name].mix(levels, share) if share > 0 else levels})


class Baseline(Protocol):
    """Where the baseline's action comes from."""

    def arm(self, context: Context, within: Any, action: Any) -> BaselineArm:
        """What the baseline plays in a narrower range; `action` is the caller's own action, if given."""

    def describe(self) -> tuple[Any, model_files.Arrays]:
        """The baseline in JSON values, and its arrays."""


@dataclass(frozen=True, repr=False)
class ConstantBaseline:
    """Always the same action, or the nearest one of the narrowed range.

    >>> ConstantBaseline(0.5, ActionSpace((0.0, 1.0))).arm([1.0], None, None).distribution.densities
    array([1024.])
    """

    constant: Any
    space: ActionSpace[Any]

    def arm(self, context: Context, within: Any, action: Any) -> BaselineArm:
        _refuse(action)
        own = self.space.nearest(self.constant, within)
        try:
            check_limits(self.space, own, within, context)
        except InputError as error:
            where = f", which is {own!r} within {within!r}" if own != self.constant else ""
            raise InputError(f"baseline {self.constant!r}{where}: {error}", "baseline") from None
        return _single(self.space, own, within)

    def describe(self) -> tuple[Any, model_files.Arrays]:
        return {"action": self.constant} if self.space.is_named else self.constant, {}

    def __repr__(self) -> str:
        return repr(self.constant)


@dataclass(frozen=True, repr=False)
class CallerBaseline:
    """The action that the caller would choose, which comes with each decision."""

    space: ActionSpace[Any]

    def arm(self, context: Context, within: Any, action: Any) -> BaselineArm:
        try:
            own = _check_action(self.space, action)
            check_limits(self.space, own, None, context)
        except InputError as error:
            raise self._error(action, str(error)) from None
        if not all(self.space.contains(within, self.space.positions(own))):
            raise self._error(action, f"it must be within {within}.")
        return _single(self.space, own, within)

    def _error(self, action: Any, why: str) -> InputError:
        rule = "what you would choose, since the baseline is the caller"
        return InputError(f"action must be {rule}, got {action!r}: {why}", "action")

    def describe(self) -> tuple[Any, model_files.Arrays]:
        return CALLER, {}

    def __repr__(self) -> str:
        return repr(CALLER)


@dataclass(frozen=True, eq=False, repr=False)
class PolicyBaseline:
    """A saved policy, or an agent that does not learn any more."""

    policy: Any
    space: ActionSpace[Any]

    def arm(self, context: Context, within: Any, action: Any) -> BaselineArm:
        """What the policy plays; single numbers count as spread over parts of the range."""
        _refuse(action)
        source = self.policy.distribution(context, within)
        return BaselineArm(spread(source, self.space, within) if isinstance(source, Atoms) else source, source=source)

    def describe(self) -> tuple[Any, model_files.Arrays]:
        kind, parameters, arrays = model_files.contents(self.policy)
        return {"kind": kind, "parameters": parameters}, arrays

    def __repr__(self) -> str:
        return repr(self.policy)


@runtime_checkable
class SavedPolicy(Policy, model_files.Saveable, Protocol):
    """A policy that can be saved."""

    @property
    def actions(self) -> Any:
        """What it may choose, as a user writes it."""


def _refuse(action: Any) -> None:
    if action is not None:
        raise InputError("action must only be given to a rollout with baseline='caller'.", "action")


def _single(space: ActionSpace[Any], action: Any, within: Any) -> BaselineArm:
    if space.is_number:
        return BaselineArm(Span(*space.ends).spread(action, space.stated(within)), action)
    return BaselineArm(JointDistribution.single(space, action, within), action)


def spread(atoms: Atoms, space: ActionSpace[Any], within: Any) -> Distribution:
    """The mixture of the parts of a range that single numbers count as.

    >>> spread(Atoms(np.array([0.0, 1.0]), np.array([0.25, 0.75]), 1.0), ActionSpace((0.0, 1.0)), None).densities
    array([256.,   0., 768.])
    """
    played, ends, span = atoms.masses > 0, space.stated(within), Span(*space.ends)
    parts = [span.spread(position, ends).edges for position in atoms.positions[played].tolist()]
    lows, highs = np.array(parts).T
    edges = np.unique(parts)
    changes = np.zeros(len(edges))
    np.add.at(changes, np.searchsorted(edges, lows), atoms.masses[played] / (highs - lows))
    np.subtract.at(changes, np.searchsorted(edges, highs), atoms.masses[played] / (highs - lows))
    return Distribution(edges, np.maximum(np.cumsum(changes)[:-1], 0.0))


def check_baseline(baseline: Any, space: ActionSpace[Any]) -> Baseline:
    """Check a baseline against the space of actions: an action, a policy, or "caller".

    >>> check_baseline(2.0, ActionSpace((0.0, 1.0)))
    Traceback (most recent call last):
    manul.errors.ParameterError: baseline must be an action, a policy or 'caller', got 2.0: action must be in [0, 1], got 2.
    """
    for title, (_, knob) in zip(space.titles, space.knobs, strict=True):
        if isinstance(knob, Number) and not knob.is_discrete:
            _check_width(title, knob)
    if isinstance(baseline, str) and baseline == CALLER:
        return CallerBaseline(space)
    if isinstance(baseline, SavedPolicy):
        if ActionSpace(baseline.actions).knobs != space.knobs:
            raise ParameterError(
                f"baseline must have the actions of the agent, {space.actions}, got {baseline.actions}.", "baseline"
            )
        own = several_knobs(baseline)
        if space.limits and (own is None or own.limits != space.limits):
            given, got = (" and ".join(map(repr, map(str, each))) for each in (space.limits, own.limits if own else ()))
            raise ParameterError(
                f"baseline must have the limits of the agent, {given}, got {got or 'none'}.", "baseline"
            )
        return PolicyBaseline(baseline, space)
    try:
        constant = _check_action(space, baseline)
        if space.limited is not None and not space.limited.fields:
            check_limits(space, constant, None, None)
        return ConstantBaseline(constant, space)
    except InputError as error:
        raise ParameterError(
            f"baseline must be an action, a policy or 'caller', got {baseline!r:.60}: {error}", "baseline"
        ) from None


def _check_action(space: ActionSpace[Any], action: Any) -> Any:
    """An action with its steps and options as the knobs have them; texts and truth values are no numbers."""
    values, checked = space.wrap(action), {}
    for title, (name, knob) in zip(space.titles, space.knobs, strict=True):
        value = values[name]
        if not knob.is_option and (not isinstance(value, Real) or isinstance(value, bool)):
            raise InputError(f"{title} must be {knob.rule}, got {value!r}.", "action")
        position = knob.position(value, title)
        checked[name] = knob.value(position) if knob.is_discrete else float(value)
    return space.unwrap(checked)


def _check_width(title: str, knob: Number) -> None:
    """Refuse a range in which the part that a single number counts as has hardly any numbers, or no finite density."""
    width, spacing = knob.volume / SPREAD, float(np.spacing(max(abs(knob.low), abs(knob.high))))
    if width < 4 * spacing or width < np.finfo(float).tiny:
        raise ParameterError(
            f"{title} must have a range in which numbers are closer than 1/{4 * SPREAD} of it for a rollout, "
            f"got {knob.written()}.",
            "actions",
        )
