"""Objections to evaluating a policy on a log: it was trained on these rows, or decides on other contexts than these.

The latter are logs of an older version (format 1), in which dates and lists of texts became numbers.
"""

from __future__ import annotations

from collections.abc import Mapping

from manul.logs.row_hashes import known_rows
from manul.logs.rows import Rows
from manul.offpolicy.estimate import Objection
from manul.offpolicy.smoothed import Smoothed, SmoothedKnobs, owner_of
from manul.utils.model_files import trained_on

MOST = 0.5  # of the rows: the estimate is mostly about what the policy knows by heart
SOME = 0.05  # of the rows: fewer hardly change an estimate, and are within the error of the sketch
MOST_NAMES = 5
_KEPT = {
    "date": ("dates", "as seconds since 1970, without weekday, month and time of day"),
    "list": ("lists of texts", "with a column for each text"),
}


class PolicyObjections:
    """Collects them piece by piece."""

    def __init__(self, policy: object) -> None:
        inside = owner_of(policy) or policy
        self._is_function = isinstance(inside, Smoothed | SmoothedKnobs)
        self._sketch = trained_on(inside)
        self._converted, self._asked, self._known = dict[str, str](), 0, 0

    def add(self, rows: Rows) -> None:
        if not self._is_function:
            self._converted |= rows.converted
        if self._sketch is not None:
            known = known_rows(self._sketch, rows)
            self._asked, self._known = self._asked + len(known), self._known + int(known.sum())

    @property
    def trained_share(self) -> float:
        """The share of the rows that the policy was trained on, less those that only look like such a row."""
        if self._sketch is None or not self._asked or self._sketch.repeated >= MOST:
            return 0.0
        return max(self._known / self._asked - self._sketch.repeated, 0.0) / (1.0 - self._sketch.repeated)

    def objections(self) -> list[Objection]:
        every, share = [], self.trained_share
        if share > SOME:
            sentence = (
                f"The policy was trained on about {100 * share:.0f} % of these rows, so the estimate is too good. Evaluate it "
                "on rows that it was not trained on, for example the second part of log.split(0.8), and train it on the first."
            )
            every.append(Objection("error" if share > MOST else "warning", "trained on these rows", sentence))
        return every + context_objections(self._converted)


def context_objections(converted: Mapping[str, str]) -> list[Objection]:
    """The objections to what a policy does on the contexts of a log with such fields."""
    sentence = converted_sentence(converted)
    return [] if sentence is None else [Objection("error", "contexts had dates or lists", sentence)]


def converted_sentence(converted: Mapping[str, str]) -> str | None:
    """What a log has made of dates and lists, and what to do; None if there were none.

    >>> print(converted_sentence({"at": "date"}))
    The log has dates (at) as seconds since 1970, without weekday, month and time of day, so its contexts are not those that
    policies get in decisions. Export the log again with this version, which keeps dates and lists.
    >>> converted_sentence({})
    """
    parts = []
    for kind, (plural, kept) in _KEPT.items():
        names = [name for name, each in converted.items() if each == kind]
        if names:
            more = ", …" if len(names) > MOST_NAMES else ""
            parts.append(f"{plural} ({', '.join(names[:MOST_NAMES])}{more}) {kept}")
    if not parts:
        return None
    return (
        f"The log has {' and '.join(parts)}, so its contexts are not those that policies get in decisions. Export the log "
        "again with this version, which keeps dates and lists."
    )
