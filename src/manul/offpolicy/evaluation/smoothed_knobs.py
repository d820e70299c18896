"""Functions from a context to values of several knobs, as policies with windows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from manul.actions.kinds.choice import Choice
from manul.actions.kinds.span import Span
from manul.actions.space import ActionSpace
from manul.errors import InputError, ParameterError
from manul.utils.validation import Floats

SHARE = 1 / 16  # of the range of a knob: the half-width of its window, unless it is given
Function = Callable[[Any], Mapping[str, Any]]


class SmoothedKnobs:
    """A function from context to action as a policy: uniform within a bandwidth of each range; steps and options are exact.

    `bandwidth` maps knobs to half-widths, in units of their values. ActionSpace that the function leaves out are as the logged
    policy sets them, so that only the weights of the others count.

    >>> knobs = ActionSpace({"price": (10, 50), "template": Choice(["a", "b"])})
    >>> policy = SmoothedKnobs(lambda context: {"price": 20, "template": "b"}, knobs, {"price": 4})
    >>> policy.factors_many([[0.5], [0.5]], np.array([[0.3, 1.0], [0.3, 0.0]])).round(9).tolist()
    [[0.125, 1.0], [0.125, 0.0]]
    """

    def __init__(self, action: Function, knobs: ActionSpace, bandwidth: Mapping[str, float] | None) -> None:
        self.action, self.knobs, self.space = action, knobs, knobs
        self._halves = _half_widths(knobs, bandwidth)
        self._default, self._set = bandwidth is None, set[str]()

    @property
    def smoothing(self) -> str:
        """The windows of the ranges that the function has set so far."""
        spans = zip(self.knobs.knobs, self._halves, strict=True)
        halves = {name: half * knob.volume for (name, knob), half in spans if isinstance(knob, Span)}
        windows = ", ".join(f"{name} ± {half:.4g}" for name, half in halves.items() if name in self._set)
        return f"{windows} (1/16 of each range)" if windows and self._default else windows

    def factors_many(self, contexts: Any, positions: Floats, within: Any = None) -> Floats:
        """The density of each knob of each row's action; NaN for knobs that the function leaves out."""
        lows, highs = self._windows(contexts, within)
        inside = (positions >= lows) & (positions <= highs)
        widths = np.where(self._halves > 0, (highs - lows) * self.knobs.largest_units, 1.0)
        factors: Floats = np.where(np.isnan(lows), np.nan, np.where(inside, 1.0 / widths, 0.0))
        return factors

    def draws_many(self, contexts: Any, positions: Floats, within: Any, rng: np.random.Generator, count: int) -> Floats:
        """The positions of `count` actions per row; knobs that the function leaves out stay where they are."""
        lows, highs = self._windows(contexts, within)
        shares = rng.random((len(lows), count, len(self.knobs.knobs)))
        draws: Floats = lows[:, np.newaxis] + (highs - lows)[:, np.newaxis] * shares
        return np.where(np.isnan(draws), positions[:, np.newaxis], draws)

    def _windows(self, contexts: Any, within: Any) -> tuple[Floats, Floats]:
        """The ends of the windows, which are moved into the ranges of each row."""
        centres = np.array([self._positions(context) for context in contexts]).reshape(-1, len(self._halves))
        ranges = [self.knobs.ranges(each) for each in ([None] * len(centres) if within is None else within)]
        lows, highs = (np.array(ends).reshape(centres.shape) for ends in zip(*ranges, strict=True))
        for index, (_, knob) in enumerate(self.knobs.knobs):
            if not isinstance(knob, Span):
                self._check_allowed(index, centres, lows, highs)
        moves = self._halves > 0
        halves = np.where(moves, np.minimum(self._halves, (highs - lows) / 2), 0.0)
        centres = np.where(moves, np.clip(centres, np.where(moves, lows + halves, 0.0), highs - halves), centres)
        return centres - halves, centres + halves

    def _positions(self, context: Any) -> list[float]:
        action = self.action(context)
        if not isinstance(action, Mapping) or not action:
            names = ", ".join(self.knobs.names)
            raise InputError(f"policy must return a mapping of {names} to values, got {action!r}.", "policy")
        self.knobs.check_names(action, "action")
        self._set.update(action)
        missing = [name for name in self.knobs.names if name not in action]
        choices = [name for name, knob in self.knobs.knobs if isinstance(knob, Choice) and name in action]
        if missing and choices:
            raise InputError(f"policy must set {missing[0]} too, because it depends on {choices[0]}.", "policy")
        return [knob.position(action[name], name) if name in action else np.nan for name, knob in self.knobs.knobs]

    def _check_allowed(self, index: int, centres: Floats, lows: Floats, highs: Floats) -> None:
        known = ~np.isnan(centres[:, index])
        places, low, high = (table[known, index] for table in (centres, lows, highs))
        name, knob = self.knobs.knobs[index]
        allowed = (places > low) & (places < high)
        if isinstance(knob, Choice):
            allowed = low.astype(np.int64) >> places.astype(np.int64) & 1 == 1
        if not allowed.all():
            raise InputError(f"policy must choose values of {name} that within allows.", "policy")


def _half_widths(knobs: ActionSpace, bandwidth: Mapping[str, float] | None) -> Floats:
    """The half-widths of the windows as shares of the ranges; 0 for steps and options."""
    spans = {name: knob for name, knob in knobs.knobs if isinstance(knob, Span)}
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
    return np.array([shares.get(name, 0.0) for name in knobs.names])
