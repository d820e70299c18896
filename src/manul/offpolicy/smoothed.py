"""Functions from a context to an action, as policies: uniform within a window around the action of the function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from manul.actions.decision import Within
from manul.actions.distribution import Distribution
from manul.actions.distributions import Windows
from manul.actions.kinds.knob import Knob
from manul.actions.levels import KnobLevels, Levels
from manul.actions.space import ActionSpace
from manul.contexts.schema import Context
from manul.errors import InputError, ParameterError
from manul.logs.rows import Rows
from manul.utils.model_files import FileMixin
from manul.utils.validation import Floats

SHARE = 1 / 16  # of the range of a knob: the half-width of its window, unless it is given
Function = Callable[[Any], Any]


class Smoothed:
    """A function from context to a number as a policy: uniform within a bandwidth of its action, clipped to the range."""

    def __init__(self, action: Function, bandwidth: float, actions: Within, chosen: str = "") -> None:
        self.action, self.bandwidth, self.actions = action, bandwidth, actions
        self.smoothing = f"± {bandwidth:.4g}{chosen}"

    def distribution(self, context: Context, within: Within | None = None) -> Distribution:
        """The uniform distribution around the action of the function."""
        row = (
            [context] if isinstance(context, Mapping) else np.asarray([[] if context is None else context], np.float32)
        )
        return self.distributions(row, None if within is None else [within])[0]

    def distributions(self, contexts: Any, within: npt.ArrayLike | None = None) -> Windows:
        """The window of each row; `within` is one (low, high) per row."""
        named = isinstance(contexts, list) and bool(contexts) and isinstance(contexts[0], Mapping)
        rows: Any = contexts if named else np.asarray(contexts, dtype=np.float32)
        ends = np.broadcast_to(np.asarray(self.actions if within is None else within, np.float64), (len(rows), 2))
        return Windows.around(centres_of(self.action, rows, ends[:, 0], ends[:, 1]), self.bandwidth, ends)


def centres_of(action: Function, contexts: Any, lows: Floats, highs: Floats) -> Floats:
    """The number that a function returns for each context, clipped to the range."""
    try:
        actions = np.array([float(action(context)) for context in contexts], dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ParameterError(f"policy must return one number per context: {error}.", "policy") from None
    if not np.isfinite(actions).all():
        raise InputError(f"policy must return finite actions, got {actions[~np.isfinite(actions)][0]}.", "policy")
    return np.clip(actions, lows, highs)


class SmoothedKnobs:
    """A function from context to an action that is no number: uniform within a bandwidth of each range; steps and options are exact.

    `bandwidth` maps knobs to half-widths, in units of their values. ActionSpace that the function leaves out are as the logged
    policy sets them, so that only the weights of the others count.
    """

    def __init__(self, action: Function, space: ActionSpace, bandwidth: Mapping[str, float] | None) -> None:
        self.action, self.space = action, space
        self._halves = _half_widths(space, bandwidth)
        self._default, self._set = bandwidth is None, set[str]()

    @property
    def smoothing(self) -> str:
        """The windows of the ranges that the function has set so far."""
        parts = [
            f"{name} ± {f'{half:.4g} of its scale' if knob.is_bent else f'{half * knob.volume:.4g}'}".strip()
            for (name, knob), half in zip(self.space.knobs, self._halves, strict=True)
            if half and name in self._set
        ]
        return ", ".join(parts) + (" (1/16 of each range)" if parts and self._default else "")

    def densities(self, rows: Rows, contexts: Any) -> Floats:
        """The joint density of each action: knobs that the function leaves out have the logged ones."""
        lows, highs = self._windows(contexts, rows)
        inside = (rows.positions >= lows) & (rows.positions <= highs)
        out, factors = (
            np.isnan(lows),
            np.where(inside, self._heights(lows, highs, self.space.units(rows.positions)), 0.0),
        )
        if not out.any():
            return np.asarray(factors.prod(axis=1), np.float64)
        if rows.densities_by_knob is None:
            raise InputError("policy must set all knobs, because the log has no densities by knob.", "policy")
        logged = np.column_stack([rows.densities_by_knob[name] for name in self.space.names])
        # The logged joint density is kept as it is: its factors may have been rounded.
        ratios: Floats = np.where(out, 1.0, factors / logged).prod(axis=1)
        return ratios * rows.densities

    def largest(self, rows: Rows, contexts: Any) -> Floats:
        """The largest joint density of any action of each row, which a bent scale has at an end of the window."""
        lows, highs = self._windows(contexts, rows)
        units = np.minimum(self.space.units(lows), self.space.units(highs))
        largest: Floats = self._heights(lows, highs, units).prod(axis=1)
        return largest

    def draws(self, rows: Rows, contexts: Any, rng: np.random.Generator, count: int) -> Floats:
        """The positions of `count` actions per row; knobs that the function leaves out stay where they are."""
        lows, highs = self._windows(contexts, rows)
        shares = rng.random((len(lows), count, len(self.space.knobs)))
        draws: Floats = lows[:, np.newaxis] + (highs - lows)[:, np.newaxis] * shares
        return np.where(np.isnan(draws), rows.positions[:, np.newaxis], draws)

    def levels(self, rows: Rows, contexts: Any) -> Levels | None:
        """What the policy draws from, one level per row; that of the log for knobs that it leaves out.

        None if it leaves a knob out in some rows only, or if the log does not say what it was drawn from.
        """
        lows, highs = self._windows(contexts, rows)
        levels = {}
        for place, (name, knob) in enumerate(self.space.knobs):
            low, high = lows[:, place], highs[:, place]
            if np.isnan(low).all() and rows.levels is not None:
                levels[name] = rows.levels[name]
            elif np.isnan(low).any():
                return None
            else:
                levels[name] = _uniform(knob, low, high)
        return levels

    def _heights(self, lows: Floats, highs: Floats, units: Floats) -> Floats:
        return 1.0 / np.where(self._halves > 0, (highs - lows) * units, 1.0)

    def _windows(self, contexts: Any, rows: Rows) -> tuple[Floats, Floats]:
        """The ends of the windows, which are moved into the ranges of each row."""
        centres = np.array([self._positions(context) for context in contexts]).reshape(-1, len(self._halves))
        lows, highs = self.space.boxes(None if rows.within is None else [*rows.within], len(centres))
        for index, (title, (_, knob)) in enumerate(zip(self.space.titles, self.space.knobs, strict=True)):
            known = ~np.isnan(centres[:, index]) & knob.is_discrete
            if not np.all(knob.contains(lows[known, index], highs[known, index], centres[known, index])):
                raise InputError(f"policy must choose values of {title} that within allows.", "policy")
        moves = self._halves > 0
        halves = np.where(moves, np.minimum(self._halves, (highs - lows) / 2), 0.0)
        centres = np.where(moves, np.clip(centres, np.where(moves, lows + halves, 0.0), highs - halves), centres)
        return centres - halves, centres + halves

    def _positions(self, context: Any) -> list[float]:
        action = self.action(context)
        if not self.space.is_named:
            self._set.update(self.space.names)
            return [*self.space.positions(action)]
        if not isinstance(action, Mapping) or not action:
            names = ", ".join(self.space.names)
            raise InputError(f"policy must return a mapping of {names} to values, got {action!r}.", "policy")
        self.space.check_names(action, "action")
        self._set.update(action)
        missing = [name for name in self.space.names if name not in action]
        choices = [name for name, knob in self.space.knobs if knob.is_option and name in action]
        if missing and choices:
            raise InputError(f"policy must set {missing[0]} too, because it depends on {choices[0]}.", "policy")
        return [knob.position(action[name], name) if name in action else np.nan for name, knob in self.space.knobs]


def _uniform(knob: Knob[Any], lows: Floats, highs: Floats) -> KnobLevels:
    """One uniform level per row, from positions; of steps and options, the one at the position."""
    if knob.is_discrete:
        lows = lows if knob.is_option else np.floor(lows * knob.volume)
        highs = lows + 1.0
    elif not knob.is_bent:
        lows, highs = knob.column(lows), knob.column(highs)
    columns = lows, highs, np.ones(len(lows)), np.zeros(len(lows))
    return KnobLevels(np.arange(len(lows) + 1), *columns, knob.is_discrete)


def _half_widths(space: ActionSpace, bandwidth: Mapping[str, float] | None) -> Floats:
    """The half-widths of the windows as shares of the ranges; 0 for steps and options."""
    spans = {name: knob for name, knob in space.knobs if not knob.is_discrete}
    given = {} if bandwidth is None else bandwidth
    if not isinstance(given, Mapping):
        raise ParameterError(f"bandwidth must map knobs to half-widths, got {bandwidth!r}.", "bandwidth")
    for name, half in given.items():
        if name not in spans:
            raise ParameterError(f"bandwidth must name knobs that are ranges, got {name!r}.", "bandwidth")
        if not isinstance(half, int | float) or not 0 < half <= spans[name].volume / 2:
            rule = f"in (0, {spans[name].volume / 2:g}]"
            raise ParameterError(f"bandwidth of {name} must be {rule}, got {half!r}.", "bandwidth")
    shares = {name: given.get(name, SHARE * span.volume) / span.volume for name, span in spans.items()}
    return np.array([shares.get(name, 0.0) for name in space.names])


def owner_of(policy: object) -> object | None:
    """The saved agent or policy of which a smoothed function is a method, such as `best`; None if there is none.

    >>> import manul
    >>> agent = manul.Auto()
    >>> owner_of(Smoothed(agent.best, 0.1, (0.0, 1.0))) is agent, owner_of(Smoothed(len, 0.1, (0.0, 1.0)))
    (True, None)
    """
    action = policy.action if isinstance(policy, Smoothed | SmoothedKnobs) else None
    return action.__self__ if inspect.ismethod(action) and isinstance(action.__self__, FileMixin) else None
