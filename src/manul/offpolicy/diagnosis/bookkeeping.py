"""Plain counts of what a log records about its rows: repeated ids, descending times, and a single action."""

from __future__ import annotations

import math
from hashlib import blake2b

import numpy as np

from manul.logs.formats.readers import NUMBER_PATTERN
from manul.logs.log import Log
from manul.offpolicy.diagnosis.symptoms import MANY_COPIES, HashSample, Symptom
from manul.outcomes import LOSSES

MANY_NUMBERS = 20  # distinct numbers in a text field; fewer may well be categories


class Bookkeeping:
    """Counts repeated ids and descending times, and keeps the ends of the actions, or values of knobs; in a fixed amount of memory."""

    def __init__(self) -> None:
        self.ids, self.rows, self.outcome = HashSample(), 0, LOSSES
        self.time, self.descents, self.first_descent = -math.inf, 0, 0
        self.lowest, self.highest = math.inf, -math.inf
        self.values: dict[str, set[object]] = {}  # of each of several knobs
        self.numeric_texts: dict[str, set[str] | None] = {}  # of text fields; None if one is no number

    def add(self, log: Log) -> None:
        """Add a batch."""
        if not len(log):
            return
        if log.ids is not None:
            given = [identifier for identifier in log.ids if identifier is not None]
            digests = b"".join(blake2b(identifier.encode(), digest_size=8).digest() for identifier in given)
            self.ids.add(np.frombuffer(digests, np.uint64))
        if log.times is not None:
            self._add_times(log)
        if log.knobs is None:
            self.lowest, self.highest = min(self.lowest, log.actions.min()), max(self.highest, log.actions.max())
        else:
            for name, column in log.knobs.wrap_columns(log.actions).items():
                self.values.setdefault(name, set()).update([*{*column.tolist()}][:2])
        for name, field in log.schema.fields.items():
            if field.kind == "text" and self.numeric_texts.setdefault(name, set()) is not None and log.fields:
                self._add_texts(name, {text for text in log.fields[name].tolist() if text is not None})
        self.rows, self.outcome = self.rows + len(log), log.outcome

    def _add_texts(self, name: str, texts: set[str]) -> None:
        known = self.numeric_texts[name] or set()
        numeric = all(map(NUMBER_PATTERN.fullmatch, texts))
        self.numeric_texts[name] = {*[*known, *texts][:MANY_NUMBERS]} if numeric else None

    def _add_times(self, log: Log) -> None:
        assert log.times is not None
        known = np.flatnonzero(~np.isnan(log.times))
        if not len(known):
            return
        times = np.concatenate([[self.time], log.times[known]])
        descends = np.flatnonzero(np.diff(times) < 0)
        if len(descends) and not self.descents:
            self.first_descent = self.rows + int(known[descends[0]])
        self.descents, self.time = self.descents + len(descends), float(times[-1])

    def findings(self) -> list[Symptom]:
        """One symptom for each count that is not as it should be."""
        symptoms: list[Symptom] = []
        for name, texts in self.numeric_texts.items():
            if texts is not None and len(texts) >= MANY_NUMBERS:
                sentence = f"The field {name!r} has numbers stored as text, such as {min(texts)!r}, so each is a category of its own."
                advice = " If they are quantities, pass numbers to decide and to the log, or read the file with like=."
                symptoms.append(("note", "numbers stored as text", sentence + advice))
        share = self.ids.share
        if share:
            names = self.outcome.plural
            text = f"{100 * share:.2g} % of the rows have an id that occurred before, so their {names} count twice. "
            advice = f"Join decisions and {names} again so that each decision has one row."
            severity = "error" if share > MANY_COPIES else "warning"
            symptoms.append((severity, "repeated ids", text + advice))
        if self.descents:
            text = f"The time descends {self.descents:,} times, first at row {self.first_descent}. "
            advice = "Sort the rows by time before the log is split, learned from, or searched for drift."
            symptoms.append(("warning", "time out of order", text + advice))
        if self.rows > 1 and self.lowest == self.highest:
            text = f"Every row has the action {self.lowest:g}, so the log says nothing about other actions. "
            symptoms.append(("error", "one action", text + "Log with an epsilon above 0."))
        constant = [name for name, values in self.values.items() if len(values) == 1]
        if self.rows > 1 and constant:
            text = f"Every row has the same {constant[0] or 'action'}, so the log says nothing about its other values. "
            symptoms.append(("error", "one action", text + "Log with an epsilon above 0."))
        return symptoms
