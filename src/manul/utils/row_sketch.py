"""A sketch of a set of rows: the smallest of their hashes, with which the share of other rows that are in the set is estimated.

Equal rows have equal hashes, so of the rows whose hashes are at most the largest one kept, those in the set are known exactly.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.uint64]
SIZE = 1024  # hashes: a share of one half is estimated within .05, in 8 kB
_LARGEST = np.uint64(2**64 - 1)


@dataclass(frozen=True, eq=False)
class RowSketch:
    """The smallest hashes of some rows, sorted; `limit` is the largest hash of which the sketch says whether it is in the set.

    `repeated` is the share of the rows that equal another one: so many rows that are not in the set look as if they were.
    `contexts` says whether the hashes are also of the contexts.
    """

    hashes: Hashes
    limit: int
    repeated: float
    contexts: bool

    def known(self, hashes: Hashes) -> npt.NDArray[np.bool_]:
        """Of the hashes of which the sketch can say it, whether they are in the set."""
        asked = hashes[hashes <= np.uint64(self.limit)]
        places = np.minimum(np.searchsorted(self.hashes, asked), len(self.hashes) - 1)
        return np.asarray(self.hashes[places] == asked)

    @cached_property
    def text(self) -> str:
        """The sketch as text; `from_text` is the inverse."""
        values = {"limit": str(self.limit), "repeated": self.repeated, "contexts": self.contexts}
        encoded = base64.b64encode(self.hashes.astype("<u8").tobytes()).decode()
        return json.dumps({"hashes": encoded, **values}, sort_keys=True)

    @staticmethod
    def from_text(text: str) -> RowSketch:
        """The sketch of a text; raises ValueError, TypeError or LookupError if it is none."""
        values = json.loads(text)
        hashes = np.frombuffer(base64.b64decode(values["hashes"], validate=True), "<u8").astype(np.uint64)
        limit, repeated = int(values["limit"]), float(values["repeated"])
        increasing = bool((hashes[1:] > hashes[:-1]).all())
        if not (0 < len(hashes) <= SIZE and increasing and 0 <= limit < 2**64 and 0 <= repeated <= 1):
            raise ValueError
        return RowSketch(hashes, limit, repeated, contexts=bool(values["contexts"]))


class SketchBuilder:
    """Builds a sketch piece by piece.

    >>> builder = SketchBuilder()
    >>> builder.add(np.array([3, 3, 1], np.uint64))
    >>> sketch = builder.sketch(contexts=False)
    >>> sketch.known(np.array([1, 2, 3], np.uint64)), round(sketch.repeated, 2)
    (array([ True, False,  True]), 0.67)
    """

    def __init__(self) -> None:
        self._hashes, self._counts = np.empty(0, np.uint64), np.empty(0, np.int64)
        self._limit = _LARGEST

    def add(self, hashes: Hashes) -> None:
        new, counts = np.unique(hashes[hashes <= self._limit], return_counts=True)
        both = np.concatenate([self._hashes, new])
        every, places = np.unique(both, return_inverse=True)
        totals = np.bincount(places, np.concatenate([self._counts, counts]), len(every)).astype(np.int64)
        self._hashes, self._counts = every[:SIZE], totals[:SIZE]
        if len(every) > SIZE:
            self._limit = self._hashes[-1]

    def sketch(self, *, contexts: bool) -> RowSketch:
        """The sketch of the rows so far; there must be one."""
        repeated = self._counts[self._counts > 1].sum() / self._counts.sum()
        return RowSketch(self._hashes, int(self._limit), float(repeated), contexts)
