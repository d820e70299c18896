"""Tests of logs with several knobs: each knob alone, as in a log with one knob, and all of them together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from manul.actions.decision import Within
from manul.actions.knobs import Knobs, Span
from manul.contexts.named_batches import named_batch
from manul.errors import InputError
from manul.logs.batching import Rows
from manul.logs.knob_views import Left, what_is_left
from manul.offpolicy.cross_fitting import critic_contexts
from manul.offpolicy.diagnosis.leaks import LEAKED, Leaks
from manul.offpolicy.diagnosis.policy_weights import MeanTest
from manul.offpolicy.diagnosis.support import FAILURE, Support
from manul.offpolicy.diagnosis.symptoms import Symptom
from manul.utils.validation import Floats

ROUNDING = 1e-6  # how far, as a share, the product of the densities of knobs may be off
_UNIT = (0.0, 1.0)
_LIMITS = " If limits between the knobs exclude the rest, all is well."


class KnobSupport:
    """Tests the joint density of each row, and the density and support of each knob.

    >>> import manul
    >>> world = manul.worlds.several.templates(rounds=500)
    >>> log = manul.simulate(manul.Auto(actions=world.actions), world).log
    >>> [finding.title for finding in manul.offpolicy.doctor(log)]
    ['several knobs']
    """

    def __init__(self, knobs: Knobs) -> None:
        self.knobs, self.whole, self.largest = knobs, MeanTest(), 1.0
        self.supports = {name: Support() for name in knobs.names}
        self.columns = {name: Leaks() for name in knobs.names}
        self.rows, self.by_knob, self.floors = 0, True, True
        self.products, self.probabilities, self.outside = _Count(), _Count(), _Count()
        self.untested = ""

    @property
    def continuous(self) -> bool:
        """Whether one of the knobs is continuous, so that equal rows are duplicates."""
        return any(isinstance(knob, Span) for _, knob in self.knobs.knobs)

    def add(self, rows: Rows) -> None:
        """Add a piece of rows with valid densities."""
        if not len(rows):
            return
        left = self._left(rows)
        self.outside.add(rows, ~left.inside)
        if not left.inside.all():
            return
        volume = np.prod([*left.lengths.values()], axis=0)
        shares = 1 / (rows.densities * volume)
        self.whole.add(shares)
        self.largest = max(self.largest, float(shares.max()))
        self.rows += len(rows)
        self.floors = self.floors and rows.floors is not None and not np.isnan(rows.floors).any()
        self.by_knob = self.by_knob and rows.densities_by_knob is not None
        if rows.densities_by_knob is not None:
            self._add_knobs(rows, rows.densities_by_knob, left, volume)

    def _left(self, rows: Rows) -> Left:
        """What box and limits leave; without the context fields that the limits need, only the box counts."""
        needs = self.knobs.limited is not None and self.knobs.limited.fields
        within = None if rows.within is None else [*rows.within]
        try:
            return what_is_left(self.knobs, rows.actions, within, _named_rows(rows) if needs else ())
        except InputError as error:
            self.untested = str(error)
            return what_is_left(self.knobs.with_limits(()), rows.actions, within)

    def _add_knobs(self, rows: Rows, by_knob: dict[str, Floats], left: Left, volume: Floats) -> None:
        product = np.prod([*by_knob.values()], axis=0)
        self.products.add(rows, np.abs(product / rows.densities - 1) > ROUNDING)
        for name, knob in self.knobs.knobs:
            if not isinstance(knob, Span):
                self.probabilities.add(rows, by_knob[name] > 1 + ROUNDING)
            floors = None if rows.floors is None else rows.floors * volume
            one, span = _one_knob(rows, name, knob, by_knob[name], left, floors)
            support = self.supports[name]
            support.add(one, span)
            self.columns[name].add(one, span, continuous=isinstance(knob, Span) and support.continuous)

    def findings(self) -> list[Symptom]:
        """What is wrong with the densities, of all knobs and of each."""
        counts = ((self.products, _PRODUCT), (self.probabilities, _PROBABILITY), (self.outside, _OUTSIDE))
        symptoms = [symptom for count, words in counts for symptom in count.symptom(words)]
        if self.untested:
            symptoms.append(
                ("warning", "limits not tested", f"{self.untested} Densities were compared with the whole ranges.")
            )
        for name, knob in self.knobs.knobs if self.by_knob else ():
            span = (knob.low, knob.high) if isinstance(knob, Span) else _UNIT
            found = self.supports[name].findings(span)
            symptoms += [_of_knob(name, symptom) for symptom in found if self.floors or symptom[1] == "wrong densities"]
        low, _ = self.whole.ends(self.largest, FAILURE)
        if low > 1 and not symptoms:
            text = f"The mean of 1 / (density * volume of the ranges) must be 1, but is {self.whole.mean:.3g}, more than chance "
            symptoms.append(("error", "wrong densities", text + "explains. Log the joint density of all knobs."))
        return symptoms

    def leaks(self) -> list[Symptom]:
        """Columns that were not known at the decision; those that know the loss are reported once."""
        wrong = any(title == "wrong densities" for _, title, _ in self.findings())
        symptoms: dict[tuple[str, str], Symptom] = {}
        for name, columns in self.columns.items():
            for symptom in columns.findings(wrong_densities=wrong):
                about_loss = symptom[1] in LEAKED
                symptoms.setdefault(
                    (symptom[1], "" if about_loss else name), symptom if about_loss else _of_knob(name, symptom)
                )
        return [*symptoms.values()]

    def size(self) -> list[Symptom]:
        missing = (
            "" if self.by_knob else " The log has no densities by knob, so single knobs and leaks were not tested."
        )
        text = "Few rows of a log with several knobs match another policy, so estimates rest on an outcome model. The effective "
        return [
            (
                "note",
                "several knobs",
                f"{text}sample size of a uniform policy is a test for one knob and was skipped.{missing}",
            )
        ]


_PRODUCT = (
    "densities do not multiply",
    "the densities of the knobs do not multiply to the joint density",
    "Log decision.density and decision.densities as they are.",
)
_PROBABILITY = (
    "probabilities above 1",
    "a step or option has a density above 1",
    "Steps and options have probabilities; log decision.densities as they are.",
)
_OUTSIDE = (
    "broken limits",
    "the action breaks the limits of the log",
    "Log the decisions of each set of limits into a log of their own.",
)


class _Count:
    """Counts bad rows, and keeps the number of the first."""

    def __init__(self) -> None:
        self.bad, self.rows, self.first = 0, 0, 0

    def add(self, rows: Rows, flags: Any) -> None:
        if not self.bad and flags.any():
            self.first = rows.first + int(np.argmax(flags))
        self.bad, self.rows = self.bad + int(flags.sum()), self.rows + len(rows)

    def symptom(self, words: Sequence[str]) -> list[Symptom]:
        title, text, advice = words
        found = f"In {self.bad:,} of {self.rows:,} rows, {text}; the first is row {self.first}. {advice}"
        return [("error", title, found)] if self.bad else []


def _named_rows(rows: Rows) -> Iterator[Mapping[str, Any] | None]:
    """The contexts of rows by name; None for rows of numbers."""
    batch = named_batch(critic_contexts(rows))
    return (None if batch is None else batch[row] for row in range(len(rows)))


def _one_knob(
    rows: Rows, name: str, knob: Any, densities: Floats, left: Left, floors: Floats | None
) -> tuple[Rows, Within]:
    """The rows as if they had a single knob, with its range; the joint floor bounds that of each knob.

    Steps and options count as one action with the density that they have relative to equal probabilities.
    """
    lengths = left.lengths[name]
    given: dict[str, Any] = {"knobs": None, "densities_by_knob": None, "knob_ranges": None, "lows": None, "highs": None}
    if not isinstance(knob, Span):
        given |= {"actions": np.zeros(len(rows)), "densities": densities * lengths, "floors": floors}
        return replace(rows, **given), _UNIT
    given |= {"actions": rows.actions[name], "densities": densities}
    given["floors"] = None if floors is None else floors / lengths
    if name in left.ends:
        given |= dict(zip(("lows", "highs"), left.ends[name], strict=True))
    elif rows.within is not None:
        ends = [(within or {}).get(name, (knob.low, knob.high)) for within in rows.within]
        given |= dict(zip(("lows", "highs"), np.array(ends, dtype=np.float64).T, strict=True))
    return replace(rows, **given), (knob.low, knob.high)


def _of_knob(name: str, symptom: Symptom) -> Symptom:
    """A symptom of one knob; what a knob never tries may be excluded by limits, so that is a warning."""
    severity, title, text = symptom
    uncovered = title in ("missing exploration", "actions with no support")
    return "warning" if uncovered else severity, title, f"Knob {name}: {text}" + (_LIMITS if uncovered else "")
