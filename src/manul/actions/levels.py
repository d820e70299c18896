"""What decisions were drawn from, in few numbers: uniform levels, from a window to the whole range.

Pieces of constant density follow from them. A ladder that explores nearby has nine pieces, but only two levels, its window
and the whole range.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from manul.actions.pieces import KnobPieces, RowLists, is_product, starts_of, window_pieces
from manul.utils.validation import Flags, Floats

if TYPE_CHECKING:
    from manul.actions.kinds.knob import Knob
    from manul.actions.space import ActionSpace

_NEARBY = (4 / 7, 2 / 7, 1 / 7)  # the shares of the levels between, as in src/core/knobs/ladder.hpp
_AT_ONCE = 2**22  # numbers of a temporary array
SIZE = 4  # numbers of a `DrawnWindow`: low, high, and the shares of draws nearby and anywhere


@dataclass(frozen=True, eq=False)
class KnobLevels(RowLists):
    """The distributions of one knob in many rows, as mixtures of uniform levels; those of row i are `starts[i]` to `starts[i + 1]`.

    A level reaches from `lows` to `highs`, and is drawn with the probability in `shares`. A part `nearby` of its draws is from
    three levels between it and the last one of its row, which is the whole range; each is wider than the one before by the same
    factor, and they have the shares 4 : 2 : 1. The units are those of `KnobPieces`, but the step or option n reaches from n to
    n + 1, and `is_discrete` says so.

    >>> levels = KnobLevels.of_rows([[(0.25, 0.75, 0.75, 0.0), (0.0, 1.0, 0.25, 0.0)]])
    >>> levels.pieces.row(0)
    [(0.0, 0.25, 0.25), (0.25, 0.75, 1.75), (0.75, 1.0, 0.25)]
    """

    shares: Floats
    nearby: Floats
    is_discrete: bool = False

    COLUMNS = ("lows", "highs", "shares", "nearby")

    @classmethod
    def of_windows(cls, windows: Floats, lows: Floats, highs: Floats, *, is_discrete: bool = False) -> KnobLevels:
        """The levels of `windows` of the core (`DrawnWindow`) in ranges from `lows` to `highs`; rows of atoms have none.

        >>> window = np.array([[0.25, 0.75, 0.0, 0.25]])
        >>> KnobLevels.of_windows(window, np.array([0.0]), np.array([1.0])).row(0)
        [(0.25, 0.75, 0.75, 0.0), (0.0, 1.0, 0.25, 0.0)]
        """
        low, high, nearby, anywhere = windows.T
        pairs = ((low, lows), (high, highs), (1.0 - anywhere, anywhere), (nearby, np.zeros_like(nearby)))
        flat: list[Floats] = [np.column_stack(pair).reshape(-1) for pair in pairs]
        levels = cls(starts_of(np.full(len(windows), 2)), flat[0], flat[1], flat[2], flat[3], is_discrete)
        return levels if not np.isnan(low).any() else levels._without(np.isnan(low))

    @classmethod
    def of_options(cls, windows: Floats, allowed: Floats, count: int) -> KnobLevels:
        """The levels of `windows` of a choice between `count` options, of which the bits of `allowed` can be drawn.

        >>> KnobLevels.of_options(np.array([[1.0, 2.0, 0.0, 0.5]]), np.array([7.0]), 3).row(0)
        [(1.0, 2.0, 0.5, 0.0), (0.0, 3.0, 0.5, 0.0)]
        """
        bits = allowed.astype(np.int64)
        if (bits == 2**count - 1).all():
            lows, highs = np.zeros(len(windows)), np.full(len(windows), float(count))
            return cls.of_windows(windows, lows, highs, is_discrete=True)
        runs = {each: _runs_of_bits(each, count) for each in np.unique(bits).tolist()}
        rows = []
        for (low, high, _, anywhere), each in zip(windows.tolist(), bits.tolist(), strict=True):
            shares = ((first, last, anywhere * ((last - first) / each.bit_count()), 0.0) for first, last in runs[each])
            rows.append([(low, high, 1.0 - anywhere, 0.0), *shares])
        return cls.of_rows(rows, is_discrete=True)

    @classmethod
    def of_pieces(cls, pieces: KnobPieces, *, is_discrete: bool) -> KnobLevels:
        """The levels of any `pieces`: each is one of them.

        >>> KnobLevels.of_pieces(KnobPieces.of_rows([[(0.0, 2.0, 0.5)]]), is_discrete=False).row(0)
        [(0.0, 2.0, 1.0, 0.0)]
        """
        highs = pieces.highs + 1.0 if is_discrete else pieces.highs
        shares, nearby = pieces.densities * (highs - pieces.lows), np.zeros(len(highs))
        return cls(pieces.starts, pieces.lows, highs, shares, nearby, is_discrete)

    def unknown(self, count: int) -> KnobLevels:
        """As many rows as `count` whose distributions are unknown, of the same knob.

        >>> len(KnobLevels.of_rows([]).unknown(2))
        2
        """
        return KnobLevels.of_rows([[]] * count, is_discrete=self.is_discrete)

    def mix(self, other: KnobLevels, share: float) -> KnobLevels:
        """The mixture with a `share` of these levels and the rest of the `other` ones; a row without levels in one has none.

        >>> levels = KnobLevels.of_rows([[(0.0, 1.0, 1.0, 0.0)]])
        >>> levels.mix(levels, 0.25).row(0)
        [(0.0, 1.0, 0.75, 0.0), (0.0, 1.0, 0.25, 0.0)]
        """
        rows = []
        for row in range(len(self)):
            # The last level stays the whole range, so that what explores nearby explores up to it.
            parts = [(other.row(row), 1 - share), (self.row(row), share)]
            mixed = [(low, high, weight * mass, near) for levels, weight in parts for low, high, mass, near in levels]
            rows.append(mixed if all(levels for levels, _ in parts) else [])
        return KnobLevels.of_rows(rows, is_discrete=self.is_discrete)

    @cached_property
    def pieces(self) -> KnobPieces:
        """The pieces of constant density."""
        if self._are_windows():
            return self._window_pieces()
        wide = self._with_nearby()
        most = int(np.diff(wide.starts).max(initial=1))
        size = max(1, _AT_ONCE // (4 * most))
        parts = [wide._dense_pieces(slice(first, first + size), most) for first in range(0, max(len(wide), 1), size)]
        return KnobPieces.join(parts)

    def _are_windows(self) -> bool:
        """Whether every row is a window in a range, of numbers: most are."""
        alike = not self.is_discrete and len(self.lows) == 2 * len(self) and len(self) and not self.nearby.any()
        if not alike or (np.diff(self.starts) != 2).any():
            return False
        (low, least), (high, most) = self.lows.reshape(-1, 2).T, self.highs.reshape(-1, 2).T
        return bool(((least <= low) & (low < high) & (high <= most)).all())

    def _window_pieces(self) -> KnobPieces:
        """The pieces of windows: one, and one on each side of it unless it reaches the end of the range."""
        (low, least), (high, most) = self.lows.reshape(-1, 2).T, self.highs.reshape(-1, 2).T
        inside, outside = (self.shares / (self.highs - self.lows)).reshape(-1, 2).T
        return window_pieces((low, high), (least, most), inside, outside)

    def _without(self, unknown: Flags) -> KnobLevels:
        """The levels, with none in the `unknown` rows."""
        counts = np.where(unknown, 0, np.diff(self.starts))
        kept = np.repeat(~unknown, np.diff(self.starts))
        columns: Any = {name: column[kept] for name, column in self.columns().items()}
        return replace(self, starts=starts_of(counts), **columns)

    def _with_nearby(self) -> KnobLevels:
        """The same, with the levels between those that explore nearby and the last ones."""
        near = np.flatnonzero(self.nearby > 0)
        if not len(near):
            return self
        rows = np.repeat(np.arange(len(self)), np.diff(self.starts))
        last = self.starts[rows[near] + 1] - 1
        low, high, first = self.lows[last], self.highs[last], (self.highs[near] - self.lows[near]) / 2
        centre, whole = self.lows[near] + first, (high - low) / 2
        factor, half = np.sqrt(np.sqrt(whole / first)), first
        columns = {**self.columns(), "shares": self.shares * (1.0 - self.nearby)}
        for share in _NEARBY:
            half = np.minimum(half * factor, whole)
            middle = np.clip(centre, low + half, high - half)
            added = {"lows": np.clip(middle - half, low, high), "highs": np.clip(middle + half, low, high)}
            added |= {"shares": share * self.shares[near] * self.nearby[near], "nearby": np.zeros(len(near))}
            columns = {name: np.concatenate([column, added[name]]) for name, column in columns.items()}
        rows = np.concatenate([rows, *(rows[near] for _ in _NEARBY)])
        order = np.argsort(rows, kind="stable")
        starts = starts_of(np.bincount(rows, minlength=len(self)))
        ordered: Any = {name: column[order] for name, column in columns.items()}
        return replace(self, starts=starts, **ordered)

    def _dense_pieces(self, part: slice, most: int) -> KnobPieces:
        """The pieces of some of the rows, which have at most as many levels as `most`."""
        own = self.select(part)
        counts = np.diff(own.starts)
        places = own.starts[:-1, np.newaxis] + np.minimum(np.arange(most), np.maximum(counts - 1, 0)[:, np.newaxis])
        real = np.arange(most) < counts[:, np.newaxis]
        lows, highs, shares = (
            column[np.minimum(places, len(column) - 1)] if len(column) else np.zeros(places.shape)
            for column in (own.lows, own.highs, own.shares)
        )
        edges = np.hstack([lows, highs])
        edges = np.hstack([np.floor(edges), np.ceil(edges)]) if self.is_discrete else edges
        edges.sort(axis=1)
        left, right = edges[:, :-1], edges[:, 1:]
        densities, covered = np.zeros(left.shape), np.zeros(left.shape, np.bool_)
        for level in range(most):
            low, high = lows[:, level, np.newaxis], highs[:, level, np.newaxis]
            with np.errstate(divide="ignore", invalid="ignore"):
                density = np.where(real[:, level], shares[:, level] / (highs[:, level] - lows[:, level]), 0.0)
            inside = _share_inside(left, right, low, high) if self.is_discrete else (low <= left) & (right <= high)
            densities += density[:, np.newaxis] * inside
            covered |= (inside > 0) & real[:, level, np.newaxis]
        kept = covered & (left < right)
        starts = starts_of(kept.sum(axis=1))
        return KnobPieces(starts, left[kept], right[kept] - (1.0 if self.is_discrete else 0.0), densities[kept])


Levels = Mapping[str, KnobLevels]
"""Levels by knob; the key is "" for one knob without a name."""


class _Drawn:
    """What decisions were drawn from, compared by the numbers, so that equal decisions are equal."""

    def _numbers(self) -> tuple[Any, ...]:
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Drawn) and type(self) is type(other) and self._numbers() == other._numbers()

    def __hash__(self) -> int:
        return hash(self._numbers())


@dataclass(frozen=True, eq=False)
class DrawnWindows(_Drawn):
    """What decisions in a `space` were drawn from, as the core says it; the levels are computed when they are asked for.

    `windows` has the four numbers of a `DrawnWindow` for each knob of each row, and `lows` and `highs` are the ends of the ranges
    of rows: actions if they are numbers, otherwise positions.

    >>> import manul
    >>> DrawnWindows(manul.ActionSpace((0.0, 1.0)), np.array([0.25, 0.75, 0.0, 0.25]), 0.0, 1.0).levels[""].row(0)
    [(0.25, 0.75, 0.75, 0.0), (0.0, 1.0, 0.25, 0.0)]
    """

    space: ActionSpace[Any]
    windows: Floats
    lows: npt.ArrayLike
    highs: npt.ArrayLike

    @cached_property
    def levels(self) -> Levels | None:
        """The levels by knob; None if the knobs depend on each other, so that the mass of an action is no product."""
        if not is_product(self.space):
            return None
        windows = self.windows.reshape(-1, len(self.space.knobs), SIZE)
        lows, highs = (np.broadcast_to(ends, windows.shape[:2]) for ends in self._ends)
        if self.space.is_number:
            return {self.space.names[0]: KnobLevels.of_windows(windows[:, 0], lows[:, 0], highs[:, 0])}
        return {
            name: _levels_of_knob(knob, windows[:, place], lows[:, place], highs[:, place])
            for place, (name, knob) in enumerate(self.space.knobs)
        }

    def _numbers(self) -> tuple[Any, ...]:
        return tuple(np.asarray(each, np.float64).tobytes() for each in (self.windows, self.lows, self.highs))

    @property
    def _ends(self) -> Iterator[Floats]:
        """The ends with one row per decision and one column per knob, or one for all."""
        for ends in (self.lows, self.highs):
            array = np.asarray(ends, np.float64)
            yield array[:, np.newaxis] if array.ndim == 1 and self.space.is_number else array


@dataclass(frozen=True, eq=False)
class DrawnLevels(_Drawn):
    """What decisions were drawn from, as `levels` by knob."""

    levels: Levels | None

    def _numbers(self) -> tuple[Any, ...]:
        return tuple(
            (name, *(each.tobytes() for each in (levels.starts, *levels.columns().values())))
            for name, levels in (self.levels or {}).items()
        )


Drawn = DrawnWindows | DrawnLevels


def join_drawn(drawn: Sequence[Drawn | None]) -> Levels | None:
    """The levels of many decisions, from what each was `drawn` from; None if one of them does not say.

    >>> import manul
    >>> one = DrawnWindows(manul.ActionSpace((0.0, 1.0)), np.array([0.25, 0.75, 0.0, 0.25]), 0.0, 1.0)
    >>> len(join_drawn([one, one])[""])
    2
    """
    windows = [each for each in drawn if isinstance(each, DrawnWindows)]
    if windows and len(windows) == len(drawn):
        lows, highs = (np.array([getattr(each, name) for each in windows], np.float64) for name in ("lows", "highs"))
        return DrawnWindows(windows[0].space, np.concatenate([each.windows for each in windows]), lows, highs).levels
    levels = [each.levels for each in drawn if each is not None and each.levels is not None]
    if not levels or len(levels) < len(drawn):
        return None
    return {name: KnobLevels.join([each[name] for each in levels]) for name in levels[0]}


def _runs_of_bits(bits: int, count: int) -> list[tuple[float, float]]:
    """Where runs of consecutive bits begin and end."""
    flags = np.array([0, *(bits >> place & 1 for place in range(count)), 0])
    starts, ends = np.flatnonzero(np.diff(flags) > 0), np.flatnonzero(np.diff(flags) < 0)
    return list(zip(starts.astype(float).tolist(), ends.astype(float).tolist(), strict=True))


def _share_inside(left: Floats, right: Floats, low: Floats, high: Floats) -> Floats:
    """The share of the intervals from `left` to `right` between `low` and `high`."""
    inside = np.maximum(np.minimum(right, high) - np.maximum(left, low), 0.0)
    shares: Floats = np.divide(inside, right - left, out=np.zeros_like(inside), where=right > left)
    return shares


def _levels_of_knob(knob: Knob[Any], windows: Floats, lows: Floats, highs: Floats) -> KnobLevels:
    if knob.is_option:
        return KnobLevels.of_options(windows, lows, int(knob.volume))
    ends = np.column_stack([windows[:, :2], lows, highs])
    if not knob.is_bent:
        ends = ends * knob.volume if knob.is_discrete else knob.column(ends)
    scaled = np.column_stack([ends[:, :2], windows[:, 2:]])
    return KnobLevels.of_windows(scaled, ends[:, 2], ends[:, 3], is_discrete=knob.is_discrete)
