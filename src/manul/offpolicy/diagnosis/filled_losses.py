"""Losses at the end of a log that are not outcomes: late losses filled with a default value, all of them or in part."""

from __future__ import annotations

import math

import numpy as np

from manul.logs.rows import Rows
from manul.offpolicy.diagnosis.symptoms import Symptom
from manul.outcomes import LOSSES
from manul.utils.validation import Floats

SHORTEST_RUN = 5
SURPRISE = 13.8  # minus the logarithm of the probability of a run, about 1 in a million
EXCESS = 0.15  # of the share of a value in the last twentieth over every earlier one
_PARTS, _SMALLEST = 40, 32  # parts of the log, and rows in the shortest part
_VALUES = 64  # values that are counted per part; others are at most 1 / 64 of it
_LEAST_ROWS = 50  # of a twentieth, to compare its shares
_ERRORS = 3.0  # standard errors of the difference of two shares

Part = tuple[int, dict[float, int]]  # the rows of a part, and how often its commonest losses occur


class FilledEnd:
    """Counts the commonest losses in parts of a log, and the run of equal losses at its end."""

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self.size = _SMALLEST
        self.open: Part = (0, {})  # not complete yet
        self.last, self.run, self.rows, self.outcome = math.nan, 0, 0, LOSSES

    def add(self, rows: Rows) -> None:
        losses = rows.losses
        self.rows, self.outcome = self.rows + len(losses), rows.outcome
        self._add_run(losses)
        while len(losses):
            count = min(len(losses), self.size - self.open[0])
            self.open = _merge(self.open, (count, _commonest(losses[:count])))
            losses = losses[count:]
            if self.open[0] == self.size:
                self.parts, self.open = [*self.parts, self.open], (0, {})
            if len(self.parts) == 2 * _PARTS:
                self.parts = [_merge(*pair) for pair in zip(self.parts[::2], self.parts[1::2], strict=True)]
                self.size *= 2

    def findings(self) -> list[Symptom]:
        """A run of equal losses at the end that earlier parts do not explain, or too many equal ones there."""
        whole = self._filled()
        return whole or self._partly_filled()

    def _add_run(self, losses: Floats) -> None:
        if not len(losses):
            return
        differ = np.flatnonzero(losses != losses[-1])
        length = len(losses) - (int(differ[-1]) + 1 if len(differ) else 0)
        continues = length == len(losses) and losses[-1] == self.last
        self.last, self.run = float(losses[-1]), length + (self.run if continues else 0)

    def _all_parts(self) -> list[Part]:
        return [*self.parts, self.open] if self.open[0] else self.parts

    def _filled(self) -> list[Symptom]:
        """The largest share of the value in any part before the run is the probability of each loss of the run."""
        left, share, before = self.run, 0.0, 0
        for size, counts in reversed(self._all_parts()):
            inside = min(left, size)
            left -= inside
            before += size - inside
            if size > inside:
                count = max(counts.get(self.last, 0) - inside, 0)
                share = max(share, (count + 1) / (size - inside + 1) if size - inside >= _SMALLEST else 0.0)
        if self.run < SHORTEST_RUN or before < _SMALLEST or share >= 1:
            return []
        if -self.run * math.log(max(share, 1 / _VALUES)) <= SURPRISE:
            return []
        names = self.outcome.plural
        text = f"The last {self.run:,} {names} are all {self.outcome.from_loss(self.last):g}, which earlier {names} do not explain. "
        return [("error", "end filled with a default", text + self._advice)]

    @property
    def _advice(self) -> str:
        return f"Remove the rows whose {self.outcome.plural} have not arrived yet."

    def _partly_filled(self) -> list[Symptom]:
        parts = self._all_parts()
        target = self.rows / 20
        if target < _LEAST_ROWS:
            return []
        groups: list[Part] = []
        for part in reversed(parts):
            if groups and groups[-1][0] < target:
                groups[-1] = _merge(part, groups[-1])
            else:
                groups.append(part)
        size, counts = groups[0]
        if len(groups) < 3 or size < _LEAST_ROWS or not counts:
            return []
        value = max(counts, key=lambda key: (counts[key], key))
        share = counts[value] / size
        earlier = max(other.get(value, 0) / rows for rows, other in groups[1:] if rows >= _LEAST_ROWS)
        error = math.sqrt(0.5 / size)  # of the difference of two shares, at most
        if share - earlier <= max(EXCESS, _ERRORS * error):
            return []
        counted = f"{100 * share:.0f} % are {self.outcome.from_loss(value):g}, and at most {100 * earlier:.0f} % of any earlier ones"
        text = f"Of the last {size:,} {self.outcome.plural}, {counted}. "
        return [("error", "end partly filled with a default", text + self._advice)]


def _commonest(losses: Floats) -> dict[float, int]:
    values, counts = np.unique(losses[np.isfinite(losses)], return_counts=True)
    order = np.lexsort((values, -counts))[:_VALUES]
    return dict(zip(values[order].tolist(), counts[order].tolist(), strict=True))


def _merge(one: Part, other: Part) -> Part:
    counts = {value: one[1].get(value, 0) + other[1].get(value, 0) for value in one[1].keys() | other[1].keys()}
    kept = sorted(counts, key=lambda value: (-counts[value], value))[:_VALUES]
    return one[0] + other[0], {value: counts[value] for value in kept}
