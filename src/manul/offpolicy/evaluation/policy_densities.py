"""What a policy plays on the rows of a log: its densities at the logged actions and the moments of its actions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from manul.actions.distribution import Atoms, Distribution
from manul.actions.smoothing import explored_densities, explored_moments, smooth
from manul.errors import InputError, ParameterError
from manul.logs.batching import Rows
from manul.types import Context, Floats, Policy, Within

Deterministic = Callable[[Any], float]


class Moments(NamedTuple):
    """The expected action of each row, and its expected square."""

    means: Floats
    squares: Floats


@runtime_checkable
class Batched(Protocol):
    """A policy that knows a fast way for many rows."""

    def densities_many(
        self, contexts: npt.ArrayLike, actions: npt.ArrayLike, within: npt.ArrayLike | None = None
    ) -> Floats:
        """The density of each row's action."""

    def moments_many(self, contexts: npt.ArrayLike, within: npt.ArrayLike | None = None) -> tuple[Floats, Floats]:
        """The expected action of each row, and its expected square."""


def densities(policy: Policy, rows: Rows) -> Floats:
    """The density of each logged action under a policy.

    >>> import manul
    >>> log = manul.simulate(manul.Cats(leaves=8, bandwidth=1/8), manul.worlds.linear(rounds=4)).log
    >>> from manul.logs.batching import pieces
    >>> densities(manul.Cats(leaves=8, bandwidth=1/2, epsilon=0.0), next(pieces(log)))
    array([1., 1., 1., 1.])
    """
    if isinstance(policy, Batched):
        return policy.densities_many(_seen(policy, rows), rows.actions, rows.within)
    return np.array([each.density(action) for each, action in zip(_each(policy, rows), rows.actions, strict=True)])


def moments(policy: Policy, rows: Rows) -> Moments:
    """The first two moments of what a policy plays on each row.

    >>> import manul
    >>> log = manul.simulate(manul.Cats(leaves=8, bandwidth=1/8), manul.worlds.linear(rounds=1)).log
    >>> from manul.logs.batching import pieces
    >>> moments(manul.Cats(leaves=8, bandwidth=1/2, epsilon=0.0), next(pieces(log))).means
    array([0.5])
    """
    if isinstance(policy, Batched):
        return Moments(*policy.moments_many(_seen(policy, rows), rows.within))
    played = list(_each(policy, rows))
    return Moments(np.array([each.mean() for each in played]), np.array([each.square() for each in played]))


class Smoothed:
    """A function from context to action, played uniformly at most a bandwidth away, inside the range.

    >>> Smoothed(lambda context: 0.5, 0.25, (0.0, 1.0)).distribution([1.0]).edges
    array([0.25, 0.75])
    """

    def __init__(self, action: Deterministic, bandwidth: float, actions: Within) -> None:
        self.action, self.bandwidth, self.actions = action, bandwidth, actions

    def distribution(self, context: Context, within: Within | None = None) -> Distribution:
        """Uniform around the function's action."""
        row = (
            [context] if isinstance(context, Mapping) else np.asarray([[] if context is None else context], np.float32)
        )
        (centre,), ends = self._centres(row, within)
        return smooth(float(centre), self.bandwidth, (float(ends[0, 0]), float(ends[0, 1])))

    def densities_many(
        self, contexts: npt.ArrayLike, actions: npt.ArrayLike, within: npt.ArrayLike | None = None
    ) -> Floats:
        """The density of each row's action."""
        centres, ends = self._centres(contexts, within)
        return explored_densities(centres, self.bandwidth, 0.0, ends, np.asarray(actions, dtype=np.float64))

    def moments_many(self, contexts: npt.ArrayLike, within: npt.ArrayLike | None = None) -> tuple[Floats, Floats]:
        """The expected action of each row, and its expected square."""
        centres, ends = self._centres(contexts, within)
        return explored_moments(centres, self.bandwidth, 0.0, ends)

    def _centres(self, contexts: Any, within: npt.ArrayLike | None) -> tuple[Floats, Floats]:
        rows: Any = contexts if is_named_list(contexts) else np.asarray(contexts, dtype=np.float32)
        ends = np.broadcast_to(np.asarray(self.actions if within is None else within, np.float64), (len(rows), 2))
        return centres_of(self.action, rows, ends[:, 0], ends[:, 1]), ends


def is_named_list(contexts: object) -> bool:
    """Whether contexts are mappings, one per row.

    >>> is_named_list([{"age": 31}]), is_named_list([[31]])
    (True, False)
    """
    return isinstance(contexts, list) and bool(contexts) and isinstance(contexts[0], Mapping)


def centres_of(action: Deterministic, contexts: Any, lows: Floats, highs: Floats) -> Floats:
    """The action of each row, moved to the nearer end where it lies outside the range.

    >>> centres_of(lambda context: 3.0, np.zeros((1, 2), np.float32), np.array([0.0]), np.array([2.0]))
    array([2.])
    """
    try:
        chosen = np.array([float(action(context)) for context in contexts], dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ParameterError(
            f"policy must have a distribution or return an action; got {error}. Return one number.", "policy"
        ) from None
    if not np.isfinite(chosen).all():
        raise InputError(f"policy must give finite actions; got {chosen[~np.isfinite(chosen)][0]}.", "policy")
    return np.clip(chosen, lows, highs)


def _each(policy: Policy, rows: Rows) -> list[Distribution | Atoms]:
    within = [None] * len(rows.actions) if rows.within is None else [(low, high) for low, high in rows.within.tolist()]
    return [policy.distribution(context, ends) for context, ends in zip(_seen(policy, rows), within, strict=True)]


def _seen(policy: object, rows: Rows) -> Any:
    """The contexts as numbers for a policy of as many, and else by their names, where they have any."""
    if isinstance(policy, Smoothed):
        return rows.function_inputs()
    if rows.fields is None or getattr(policy, "width", None) == rows.contexts.shape[1]:
        return rows.contexts
    return rows.to_dicts()
