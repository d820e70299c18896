"""The densities of a policy at the logged actions, and the moments of its actions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from manul.actions.decision import Within
from manul.actions.distribution import Atoms, Distribution
from manul.actions.smoothing import explored_densities, explored_moments, smooth
from manul.contexts.schema import Context
from manul.errors import InputError, ParameterError
from manul.logs.batching import Rows
from manul.offpolicy.evaluation.knob_policies import KnobsPolicy
from manul.offpolicy.evaluation.smoothed_knobs import SmoothedKnobs
from manul.policies.policy import Policy
from manul.utils.model_files import FileMixin
from manul.utils.validation import Floats

Deterministic = Callable[[Any], Any]


class Moments(NamedTuple):
    """The mean and the mean square of the action of each row."""

    means: Floats
    squares: Floats


@runtime_checkable
class Batched(Protocol):
    """A policy with fast methods for many rows."""

    def densities_many(
        self, contexts: npt.ArrayLike, actions: npt.ArrayLike, within: npt.ArrayLike | None = None
    ) -> Floats:
        """The density of each row's action."""

    def moments_many(self, contexts: npt.ArrayLike, within: npt.ArrayLike | None = None) -> tuple[Floats, Floats]:
        """The mean and the mean square of the action of each row."""


def densities(policy: Policy, rows: Rows) -> Floats:
    """The density of each logged action under a policy.

    >>> import manul
    >>> log = manul.simulate(manul.Cats(leaves=8, bandwidth=1/8), manul.worlds.linear(rounds=4)).log
    >>> from manul.logs.batching import pieces
    >>> densities(manul.Cats(leaves=8, bandwidth=1/2, epsilon=0.0), next(pieces(log)))
    array([1., 1., 1., 1.])
    """
    if rows.knobs is not None:
        several = KnobsPolicy.of(policy)
        return several.densities(rows, inputs(several.policy, rows))
    if isinstance(policy, Batched):
        return policy.densities_many(inputs(policy, rows), rows.actions, rows.within)
    pairs = zip(distributions(policy, rows), rows.actions, strict=True)
    return np.array([distribution.density(action) for distribution, action in pairs])


def largest_densities(policy: Policy, rows: Rows) -> Floats:
    """The largest density that a policy gives any action, for each row.

    >>> import manul
    >>> log = manul.simulate(manul.Cats(leaves=8, bandwidth=1/8), manul.worlds.linear(rounds=2)).log
    >>> from manul.logs.batching import pieces
    >>> largest_densities(manul.Cats(leaves=8, bandwidth=1/4, epsilon=0.0), next(pieces(log)))
    array([2., 2.])
    """
    batch = getattr(policy, "largest_densities_many", None)
    if batch is not None:
        return np.asarray(batch(inputs(policy, rows), rows.within), np.float64)
    return np.array([distribution.largest_density() for distribution in distributions(policy, rows)])


def moments(policy: Policy, rows: Rows) -> Moments:
    """The first two moments of the action of a policy on each row.

    >>> import manul
    >>> log = manul.simulate(manul.Cats(leaves=8, bandwidth=1/8), manul.worlds.linear(rounds=1)).log
    >>> from manul.logs.batching import pieces
    >>> moments(manul.Cats(leaves=8, bandwidth=1/2, epsilon=0.0), next(pieces(log))).means
    array([0.5])
    """
    if isinstance(policy, Batched):
        return Moments(*policy.moments_many(inputs(policy, rows), rows.within))
    every = distributions(policy, rows)
    return Moments(np.array([one.mean() for one in every]), np.array([one.square() for one in every]))


class Smoothed:
    """A function from context to action as a policy: uniform within a bandwidth of its action, clipped to the range.

    >>> Smoothed(lambda context: 0.5, 0.25, (0.0, 1.0)).distribution([1.0]).edges
    array([0.25, 0.75])
    """

    def __init__(self, action: Deterministic, bandwidth: float, actions: Within, chosen: str = "") -> None:
        self.action, self.bandwidth, self.actions = action, bandwidth, actions
        self.smoothing = f"± {bandwidth:.4g}{chosen}"

    def distribution(self, context: Context, within: Within | None = None) -> Distribution:
        """The uniform distribution around the action of the function."""
        row = (
            [context] if isinstance(context, Mapping) else np.asarray([[] if context is None else context], np.float32)
        )
        (centre,), ends = self._centres(row, within)
        return smooth(float(centre), self.bandwidth, (float(ends[0, 0]), float(ends[0, 1])))

    def densities_many(
        self, contexts: npt.ArrayLike, actions: npt.ArrayLike, within: npt.ArrayLike | None = None
    ) -> Floats:
        centres, ends = self._centres(contexts, within)
        return explored_densities(centres, self.bandwidth, 0.0, ends, np.asarray(actions, dtype=np.float64))

    def largest_densities_many(self, contexts: npt.ArrayLike, within: npt.ArrayLike | None = None) -> Floats:
        """The largest density of any action of each row."""
        centres, ends = self._centres(contexts, within)
        return explored_densities(centres, self.bandwidth, 0.0, ends, centres)

    def moments_many(self, contexts: npt.ArrayLike, within: npt.ArrayLike | None = None) -> tuple[Floats, Floats]:
        """The mean and the mean square of the action of each row."""
        centres, ends = self._centres(contexts, within)
        return explored_moments(centres, self.bandwidth, 0.0, ends)

    def _centres(self, contexts: Any, within: npt.ArrayLike | None) -> tuple[Floats, Floats]:
        rows: Any = contexts if is_named_list(contexts) else np.asarray(contexts, dtype=np.float32)
        ends = np.broadcast_to(np.asarray(self.actions if within is None else within, np.float64), (len(rows), 2))
        return centres_of(self.action, rows, ends[:, 0], ends[:, 1]), ends


def smoothing(policy: Policy) -> str:
    """The window around the actions of a function, and how it was chosen; empty if the policy is not a smoothed function.

    >>> smoothing(Smoothed(lambda context: 0.5, 0.25, (0.0, 1.0), " (chosen by SLOPE)"))
    '± 0.25 (chosen by SLOPE)'
    """
    inner = policy.policy if isinstance(policy, KnobsPolicy) else policy
    return inner.smoothing if isinstance(inner, Smoothed | SmoothedKnobs) else ""


def is_named_list(contexts: object) -> bool:
    """Return whether contexts are a list of mappings.

    >>> is_named_list([{"age": 31}]), is_named_list([[31]])
    (True, False)
    """
    return isinstance(contexts, list) and bool(contexts) and isinstance(contexts[0], Mapping)


def centres_of(action: Deterministic, contexts: Any, lows: Floats, highs: Floats) -> Floats:
    """The action of a function on each row, clipped to the range.

    >>> centres_of(lambda context: 3.0, np.zeros((1, 2), np.float32), np.array([0.0]), np.array([2.0]))
    array([2.])
    """
    try:
        actions = np.array([float(action(context)) for context in contexts], dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ParameterError(f"policy must return one number per context: {error}.", "policy") from None
    if not np.isfinite(actions).all():
        raise InputError(f"policy must return finite actions, got {actions[~np.isfinite(actions)][0]}.", "policy")
    return np.clip(actions, lows, highs)


def distributions(policy: Policy, rows: Rows) -> list[Distribution | Atoms]:
    """The distribution of a policy on each row."""
    batch = getattr(policy, "distributions_many", None)
    if batch is not None:
        return list(batch(inputs(policy, rows), rows.within))
    within = [None] * len(rows) if rows.within is None else [(low, high) for low, high in rows.within.tolist()]
    return [policy.distribution(context, ends) for context, ends in zip(inputs(policy, rows), within, strict=True)]


def owner_of(policy: object) -> object | None:
    """The saved agent or policy of which a smoothed function is a method, such as `best`; None if there is none.

    >>> import manul
    >>> agent = manul.Auto()
    >>> owner_of(Smoothed(agent.best, 0.1, (0.0, 1.0))) is agent, owner_of(Smoothed(len, 0.1, (0.0, 1.0)))
    (True, None)
    """
    action = policy.action if isinstance(policy, Smoothed | SmoothedKnobs) else None
    return action.__self__ if inspect.ismethod(action) and isinstance(action.__self__, FileMixin) else None


def inputs(policy: object, rows: Rows) -> Any:
    """The contexts for a policy: numbers if they have no names or the policy takes as many columns, otherwise dicts.

    A method of a policy, such as `agent.best`, gets what the policy gets; other functions get no missing values.
    """
    if isinstance(policy, Smoothed | SmoothedKnobs):
        owner = owner_of(policy)
        return rows.function_inputs() if owner is None else inputs(owner, rows)
    if rows.numbers is not None:
        return rows.numbers
    width = getattr(policy, "width", None)
    if not width:
        return rows.to_dicts()
    if rows.features is None and width == rows.contexts.shape[1]:
        return rows.contexts
    advice = "Train it on named contexts, or put it into a manul.Mapped with manul.maps.Features or Columns."
    raise InputError(
        f"The contexts of the log are named, but the policy takes rows of {width} numbers. {advice}", "policy"
    )
