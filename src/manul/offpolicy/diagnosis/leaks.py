"""Columns of the context that were not known at the decision: leaked actions and losses.

Given the context, the weight 1 / (density * length) of a set of actions that the context determines averages at most its
share of the range, whatever the logged policy does. A column that knows the action breaks this, which bets detect
(`intervals.Wealth` for many columns at once): they raise a false alarm with a probability of at most `FAILURE` per log.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from manul.logs.rows import Rows
from manul.offpolicy.diagnosis.symptoms import Symptom
from manul.outcomes import LOSSES
from manul.utils.validation import Floats

FAILURE = 1e-4  # the probability of a false alarm
NEAR = 0.005  # of the range: an action this close to a prediction counts as predicted
LEAKED = ("leaked loss", "leaked reward")
LARGE_R2 = 0.95  # of one column for the loss
_BETS = 2.0 ** np.arange(-16, 4)
_BLOCK = 64  # columns at once, to bound the memory
_FEW = 20  # rows that must carry the variance of a column, so that no single outlier does


class Leaks:
    """Tests each column for the action, for something set after the decision, and for the loss."""

    def __init__(self) -> None:
        self.columns: list[_Columns] = []
        self.names: list[str] = []
        self.rows, self.outcome = 0, LOSSES

    def add(self, rows: Rows, *, continuous: bool = True) -> None:
        """Add a piece of rows with valid actions and densities; actions that are not continuous cannot be predicted."""
        count = rows.contexts.shape[1]
        if not len(rows):
            return
        if not self.columns:
            blocks = [slice(start, min(start + _BLOCK, count)) for start in range(0, count, _BLOCK)]
            self.columns = [_Columns(block, rows.contexts[:, block].astype(np.float64)) for block in blocks]
            self.names = rows.context_names()
        lows, highs = rows.ends()
        positions, shares = (rows.actions - lows) / (highs - lows), 1 / (rows.densities * (highs - lows))
        shares = np.zeros(0) if rows.estimated else shares  # only logged densities keep the identity
        for columns in self.columns:
            columns.add(rows.contexts, positions, shares, rows.losses, continuous=continuous)
        self.rows, self.outcome = self.rows + len(rows), rows.outcome

    def findings(self, *, wrong_densities: bool = False) -> list[Symptom]:
        """One symptom per kind of leak; wrong densities break the identities of all columns."""
        actions, late, losses = ([*map(int, numbers)] for numbers in self._leaking())
        actions, late = ([], []) if wrong_densities else (actions, [number for number in late if number not in actions])
        symptoms: list[Symptom] = []
        if actions:
            text = f"{self._list(actions)} predicts the action more often than its density allows. "
            advice = "Remove what is only known after the decision."
            symptoms.append(("error", "leaked action", text + advice))
        if late:
            text = "depends on the decision: given a context, 1 / (density * length of the range) must average 1. "
            advice = "Log the context as it was before the decision."
            symptoms.append(("error", "column set after the decision", f"{self._list(late)} {text}{advice}"))
        if losses:
            outcome = self.outcome
            share = f"{100 * LARGE_R2:g} % of the variance of the {outcome.plural}"
            text = f"{self._list(losses)} explains more than {share}. "
            advice = f"Remove it if it is only known after the {outcome.name}."
            symptoms.append(("error", LEAKED[outcome.higher], text + advice))
        return symptoms

    def _leaking(self) -> tuple[Floats, Floats, Floats]:
        count = max(sum(len(columns.numbers) for columns in self.columns), 1)
        limit = math.log(count / FAILURE)
        tests = [columns.leaking(limit) for columns in self.columns]
        return tuple(np.concatenate([test[kind] for test in tests] or [np.zeros(0)]) for kind in range(3))  # type: ignore[return-value]

    def _list(self, numbers: list[int]) -> str:
        names = ", ".join(self.names[number] for number in numbers[:8]) + (", ..." if len(numbers) > 8 else "")
        return f"Column {names}"


class _Columns:
    """The tests of a block of columns; columns are standardised with the first piece, which keeps the sums accurate."""

    def __init__(self, block: slice, first: Floats) -> None:
        self.block, self.numbers = block, np.arange(block.start, block.stop)
        spread = first.std(axis=0)
        self.centre, self.scale = first.mean(axis=0), np.where(spread > 0, spread, 1.0)
        self.quartiles = np.quantile((first - self.centre) / self.scale, [0.25, 0.5, 0.75], axis=0)
        width = len(self.numbers)
        self.fit = np.zeros((5, width))  # count, x, xx, a, xa of the odd rows
        self.action = _Wealths(width)
        self.late = [_Wealths(width) for _ in range(4)]
        self.loss = np.zeros((7, width))  # count, x, xx, l, ll, xl, xxxx

    def add(
        self, contexts: npt.NDArray[np.float32], positions: Floats, shares: Floats, losses: Floats, *, continuous: bool
    ) -> None:
        table = (contexts[:, self.block].astype(np.float64) - self.centre) / self.scale
        self._add_losses(table, losses)
        if not len(shares):
            return
        if continuous:
            self._add_actions(table, positions, shares)
        bets = np.log1p(_BETS[:, np.newaxis] * shares)
        places = (table[np.newaxis] > self.quartiles[:, np.newaxis]).sum(axis=0)
        for quartile, wealths in enumerate(self.late):
            inside = (places == quartile).astype(np.float64)
            wealths.add(np.einsum("bn,nd->bd", bets, inside, optimize=True), inside.sum(axis=0))

    def _add_actions(self, table: Floats, positions: Floats, shares: Floats) -> None:
        """Fit actions to the odd rows so far, and bet on the even rows of this piece."""
        x, a = table[1::2], positions[1::2, np.newaxis]
        ones = np.ones_like(x)
        self.fit += np.array([part.sum(axis=0) for part in (ones, x, x * x, a * ones, x * a)])
        n, sx, sxx, sa, sxa = self.fit
        variance = sxx * n - sx * sx
        slope = np.divide(sxa * n - sx * sa, variance, out=np.zeros_like(sx), where=variance > 1e-12 * n * n)
        predicted = (sa - slope * sx) / np.maximum(n, 1) + slope * table[::2]
        near = (np.abs(positions[::2, np.newaxis] - predicted) <= NEAR).astype(np.float64)
        bets = np.log1p(_BETS[:, np.newaxis] * shares[::2] / (2 * NEAR))
        self.action.add(np.einsum("bn,nd->bd", bets, near, optimize=True), np.full(len(n), float(len(near))))

    def _add_losses(self, table: Floats, losses: Floats) -> None:
        valid = np.isfinite(losses)
        x, l = table[valid], losses[valid, np.newaxis]  # noqa: E741 - the loss
        ones = np.ones_like(x)
        self.loss += np.array([part.sum(axis=0) for part in (ones, x, x * x, l * ones, l * l * ones, x * l, x**4)])

    def leaking(self, limit: float) -> tuple[Floats, Floats, Floats]:
        """The numbers of the columns that leak the action, were set after the decision, or leak the loss."""
        late = np.max([wealths.log() for wealths in self.late], axis=0)
        found = self.action.log() > limit, late > limit + math.log(4), self._r2() > LARGE_R2
        actions, columns, losses = (self.numbers[flags] for flags in found)
        return actions, columns, losses

    def _r2(self) -> Floats:
        n, sx, sxx, sl, sll, sxl, sxxxx = self.loss
        n = np.maximum(n, 1)
        vx, vl, c = sxx - sx * sx / n, sll - sl * sl / n, sxl - sx * sl / n
        carried = np.divide(vx * vx, sxxxx, out=np.zeros_like(vx), where=sxxxx > 0) >= _FEW
        varies = (vx > 1e-9 * n) & (vl > 1e-12 * np.maximum(sll, 1e-300)) & carried
        r2: Floats = np.divide(c * c, vx * vl, out=np.zeros_like(vx), where=varies)
        return r2


class _Wealths:
    """The wealth of bets that the values of each column average more than 1."""

    def __init__(self, width: int) -> None:
        self.logs, self.counts = np.zeros((len(_BETS), width)), np.zeros(width)

    def add(self, logs: Floats, counts: Floats) -> None:
        self.logs += logs
        self.counts += counts

    def log(self) -> Floats:
        logs = self.logs - self.counts * np.log1p(_BETS)[:, np.newaxis]
        largest = logs.max(axis=0)
        wealth: Floats = largest + np.log(np.exp(logs - largest).mean(axis=0))
        return wealth
