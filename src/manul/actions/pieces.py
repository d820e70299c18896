"""The distributions of many rows as pieces of constant density: what a log keeps, so that the mass of any policy on them is known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from manul.actions.distribution import Atoms, Distribution, Options, Scaled
from manul.utils.validation import Floats

if TYPE_CHECKING:
    from manul.actions.distributions import Distributions
    from manul.actions.kinds.knob import Knob, Marginal
    from manul.actions.space import ActionSpace

Piece = tuple[float, float, float]  # low, high and density


@dataclass(frozen=True, eq=False)
class RowLists:
    """Columns of lists, one list for each row: that of row i reaches from `starts[i]` to `starts[i + 1]` in every column."""

    starts: npt.NDArray[np.int64]
    lows: Floats
    highs: Floats

    COLUMNS: ClassVar[tuple[str, ...]]

    @classmethod
    def of_rows(cls, rows: Sequence[Sequence[Sequence[float]]], **others: Any) -> Self:
        """The lists of `rows`, whose members have one number for each column; `others` are further arguments.

        >>> KnobPieces.of_rows([[(0.0, 2.0, 0.5)], []]).starts
        array([0, 1, 1])
        """
        table = np.array([member for row in rows for member in row], np.float64).reshape(-1, len(cls.COLUMNS))
        columns = dict(zip(cls.COLUMNS, np.ascontiguousarray(table.T), strict=True))
        return cls(starts_of([len(row) for row in rows]), **columns, **others)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def columns(self) -> dict[str, Floats]:
        """The columns besides the starts."""
        return {name: getattr(self, name) for name in self.COLUMNS}

    def row(self, number: int) -> list[tuple[float, ...]]:
        """The members of one row.

        >>> KnobPieces.of_rows([[(0.0, 2.0, 0.5)]]).row(0)
        [(0.0, 2.0, 0.5)]
        """
        part = slice(*self.starts[number : number + 2])
        return list(zip(*(column[part].tolist() for column in self.columns().values()), strict=True))

    def select(self, which: slice | npt.NDArray[Any]) -> Self:
        """The lists of a selection of the rows.

        >>> KnobPieces.of_rows([[(0.0, 2.0, 0.5)], [(0.0, 1.0, 1.0)]]).select(np.array([1, 0])).densities
        array([1. , 0.5])
        """
        if isinstance(which, slice) and which.step in (None, 1):
            first, last, _ = which.indices(len(self))
            starts = self.starts[first : max(first, last) + 1]
            part = slice(starts[0], starts[-1])
            return replace(
                self, starts=starts - starts[0], **{name: column[part] for name, column in self.columns().items()}
            )
        rows = np.arange(len(self))[which]
        counts = np.diff(self.starts)[rows]
        starts = starts_of(counts)
        places = np.arange(starts[-1]) + np.repeat(self.starts[rows] - starts[:-1], counts)
        return replace(self, starts=starts, **{name: column[places] for name, column in self.columns().items()})

    @classmethod
    def join(cls, parts: Sequence[Self]) -> Self:
        """The lists of several batches, `parts`, one after the other.

        >>> one = KnobPieces.of_rows([[(0.0, 2.0, 0.5)]])
        >>> KnobPieces.join([one, one]).starts
        array([0, 1, 2])
        """
        starts = starts_of(np.concatenate([np.diff(part.starts) for part in parts]))
        columns = {name: np.concatenate([part.columns()[name] for part in parts]) for name in cls.COLUMNS}
        return replace(parts[0], starts=starts, **columns)


def starts_of(counts: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Where lists with these numbers of members begin and end.

    >>> starts_of([2, 3])
    array([0, 2, 5])
    """
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


@dataclass(frozen=True, eq=False)
class KnobPieces(RowLists):
    """The distributions of one knob in many rows, as pieces of constant density; those of row i are `starts[i]` to `starts[i + 1]`.

    A piece reaches from `lows` to `highs`, and `densities` are as in the log, in the units of the knob; an action at an end
    belongs to the denser piece. On a bent scale, such as a logarithmic one, ends and densities are those of positions in
    [0, 1], in which the density is constant; that of an action is divided by `Knob.units`. For steps and options, the ends are
    the numbers of the first and the last one, counted from 0, and the density is the probability of each. The pieces of a row
    are ascending and disjoint, and cover all that was allowed. A row without pieces has an unknown distribution.

    >>> pieces = KnobPieces(np.array([0, 1, 3]), np.array([0.0, 0.0, 0.5]), np.array([1.0, 0.5, 1.0]), np.array([1.0, 1.5, 0.5]))
    >>> len(pieces), pieces.select(slice(1, 2)).densities
    (2, array([1.5, 0.5]))
    """

    densities: Floats

    COLUMNS = ("lows", "highs", "densities")


Pieces = Mapping[str, KnobPieces]
"""Pieces by knob; the key is "" for one knob without a name."""


def pieces_of(distributions: Distributions[Any]) -> dict[str, KnobPieces]:
    """The pieces of any `distributions`, row by row.

    Several knobs have pieces if each is drawn independently of the others. With limits between them, or a choice on whose
    option the distributions of the others depend, the mass of an action is no product of those of its knobs, so that
    the distribution counts as unknown; so do atoms in a range.

    >>> import manul
    >>> agent = manul.Cats(leaves=8, bandwidth=1/4, epsilon=0.25)
    >>> pieces_of(agent.distributions([[0.5]]))[""].row(0)
    [(0.0, 0.28125, 0.25), (0.28125, 0.78125, 1.75), (0.78125, 1.0, 0.25)]
    """
    space = distributions.space
    if space is None:
        numbers = [_continuous(each) if isinstance(each, Distribution) else [] for each in distributions]
        return {"": KnobPieces.of_rows(numbers)}
    rows = [_row(each, space) for each in distributions]
    return {name: KnobPieces.of_rows([row.get(name, []) for row in rows]) for name in space.names}


def window_pieces(
    window: tuple[Floats, Floats], within: tuple[Floats, Floats], inside: Floats, outside: Floats
) -> KnobPieces:
    """The pieces of mixtures of a window with the density `inside` and its range with the density `outside`.

    >>> one, ends = np.ones(1), (np.array([0.25]), np.array([0.75]))
    >>> window_pieces(ends, (np.zeros(1), one), one, one / 2).row(0)
    [(0.0, 0.25, 0.5), (0.25, 0.75, 1.5), (0.75, 1.0, 0.5)]
    """
    (low, high), (least, most) = window, within
    lows, highs = np.column_stack([least, low, high]), np.column_stack([low, high, most])
    densities, kept = np.column_stack([outside, inside + outside, outside]), lows < highs
    return KnobPieces(starts_of(kept.sum(axis=1)), lows[kept], highs[kept], densities[kept])


def _row(distribution: Any, space: ActionSpace[Any]) -> dict[str, list[Piece]]:
    """The pieces of each knob in one row; none if they are unknown."""
    if not is_product(space):
        return {}
    return {name: [*_marginal_pieces(distribution.marginal(name), knob)] for name, knob in space.knobs}


def is_product(space: ActionSpace[Any]) -> bool:
    """Whether the knobs of a `space` are drawn independently of each other.

    >>> import manul
    >>> is_product(manul.ActionSpace({"price": (10, 50), "size": (0, 1)}))
    True
    """
    return len(space.knobs) == 1 or not (space.limits or any(knob.is_option for _, knob in space.knobs))


def _marginal_pieces(marginal: Marginal, knob: Knob[Any]) -> Iterator[Piece]:
    if isinstance(marginal, Scaled):
        yield from _continuous(marginal.inner)
    elif isinstance(marginal, Distribution):
        yield from _continuous(marginal)
    else:
        yield from _runs(_probabilities(marginal, knob))


def _continuous(distribution: Distribution) -> list[Piece]:
    edges, densities = distribution.edges.tolist(), distribution.densities.tolist()
    return list(zip(edges[:-1], edges[1:], densities, strict=True))


def _probabilities(marginal: Atoms | Options, knob: Knob[Any]) -> list[tuple[int, float]]:
    """The numbers of the steps or options that can be drawn, and their probabilities."""
    if isinstance(marginal, Options):
        options = sorted((int(knob.position(each, "option")), each) for each in marginal.probabilities)
        return [(number, marginal.probabilities[each]) for number, each in options]
    places = (knob.positions(marginal.positions, "step") * knob.volume).astype(np.int64)
    return [(n, mass) for n, mass in zip(places.tolist(), marginal.masses.tolist(), strict=True) if mass > 0]


def _runs(probabilities: Sequence[tuple[int, float]]) -> Iterator[Piece]:
    """Neighbours with the same probability as one piece."""
    first = 0
    for place, (number, probability) in enumerate(probabilities, 1):
        if place == len(probabilities) or probabilities[place] != (number + 1, probability):
            yield float(probabilities[first][0]), float(number), probability
            first = place
