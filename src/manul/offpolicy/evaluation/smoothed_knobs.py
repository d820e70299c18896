"""Functions from a context to values of several knobs, as policies with windows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from manul.actions.knobs import Choice, Knobs, Span
from manul.errors import InputError, ParameterError
from manul.types import Floats

SHARE = 1 / 16  # of the range of a knob: the half-width of its window, unless it is given
Function = Callable[[Any], Mapping[str, Any]]


class SmoothedKnobs:
    """A function from context to action as a policy: uniform within a bandwidth of each range; steps and options are exact.

    `bandwidth` maps knobs to half-widths, in units of their values.

    >>> knobs = Knobs.check({"price": (10, 50), "template": Choice(["a", "b"])})
    >>> policy = SmoothedKnobs(lambda context: {"price": 20, "template": "b"}, knobs, {"price": 4})
    >>> policy.densities_many([[0.5], [0.5]], np.array([[0.3, 1.0], [0.3, 0.0]]))
    array([0.125, 0.   ])
    """

    def __init__(self, action: Function, knobs: Knobs, bandwidth: Mapping[str, float] | None) -> None:
        self.action, self.knobs = action, knobs
        self._halves = _half_widths(knobs, bandwidth)

    def densities_many(self, contexts: Any, actions: Floats, within: Any = None) -> Floats:
        """The joint density of each row's action, given as positions."""
        lows, highs = self._windows(contexts, within)
        inside = ((actions >= lows) & (actions <= highs)).all(axis=1)
        widths = np.where(self._halves > 0, (highs - lows) * self.knobs.units, 1.0)
        return np.where(inside, 1.0 / widths.prod(axis=1), 0.0)

    def draws_many(self, contexts: Any, within: Any, rng: np.random.Generator, count: int) -> Floats:
        """The positions of `count` actions per row."""
        lows, highs = self._windows(contexts, within)
        shares = rng.random((len(lows), count, len(self.knobs.knobs)))
        draws: Floats = lows[:, np.newaxis] + (highs - lows)[:, np.newaxis] * shares
        return draws

    def _windows(self, contexts: Any, within: Any) -> tuple[Floats, Floats]:
        """The ends of the windows, which are moved into the ranges of each row."""
        centres = np.array([self._positions(context) for context in contexts]).reshape(-1, len(self._halves))
        ranges = [self.knobs.ranges(each) for each in ([None] * len(centres) if within is None else within)]
        lows, highs = (np.array(ends).reshape(centres.shape) for ends in zip(*ranges, strict=True))
        for index, (name, knob) in enumerate(self.knobs.knobs):
            if not isinstance(knob, Span):
                self._check_allowed(index, name, centres, lows, highs)
        halves = np.minimum(self._halves, (highs - lows) / 2)
        moves = self._halves > 0
        centres = np.where(moves, np.clip(centres, np.where(moves, lows + halves, 0), highs - halves), centres)
        halves = np.where(moves, halves, 0.0)
        return centres - halves, centres + halves

    def _positions(self, context: Any) -> Floats:
        return self.knobs.positions(self.action(context))

    def _check_allowed(self, index: int, name: str, centres: Floats, lows: Floats, highs: Floats) -> None:
        places, low, high = centres[:, index], lows[:, index], highs[:, index]
        if isinstance(self.knobs.knobs[index][1], Choice):
            allowed = low.astype(np.int64) >> places.astype(np.int64) & 1 == 1
        else:
            allowed = (places > low) & (places < high)
        if not allowed.all():
            raise InputError(f"policy must choose values of {name} that within allows.", "policy")


def _half_widths(knobs: Knobs, bandwidth: Mapping[str, float] | None) -> Floats:
    """The half-widths of the windows as shares of the ranges; 0 for steps and options."""
    spans = {name: knob for name, knob in knobs.knobs if isinstance(knob, Span)}
    given = {} if bandwidth is None else bandwidth
    if not isinstance(given, Mapping):
        raise ParameterError(f"bandwidth must map knobs to half-widths, got {bandwidth!r}.", "bandwidth")
    for name, half in given.items():
        if name not in spans:
            raise ParameterError(f"bandwidth must name knobs that are ranges, got {name!r}.", "bandwidth")
        if not 0 < half <= spans[name].volume / 2:
            rule = f"in (0, {spans[name].volume / 2:g}]"
            raise ParameterError(f"bandwidth of {name} must be {rule}, got {half:g}.", "bandwidth")
    shares = {name: given.get(name, SHARE * span.volume) / span.volume for name, span in spans.items()}
    return np.array([shares.get(name, 0.0) for name in knobs.names])
