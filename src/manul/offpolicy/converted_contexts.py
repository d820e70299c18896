"""Objections to logs whose contexts are not those of the decisions: dates and lists of texts that became numbers.

Flags are numbers in a log too, but agents get them back as flags, and know flags as numbers if they learned numbers.
"""

from __future__ import annotations

from collections.abc import Mapping

from manul.logs.formats.context_changes import DATES, LISTS, ContextChanges
from manul.offpolicy.estimate import Objection

TITLE = "contexts had dates or lists"
MOST_NAMES = 5
_KEPT = {
    DATES: ("dates", "as seconds since 1970, without weekday, month and time of day"),
    LISTS: ("lists of texts", "with a column for each text"),
}


def context_objections(changes: ContextChanges | None) -> list[Objection]:
    """The objections to what a policy does on the contexts of a log with such changes."""
    sentence = None if changes is None else converted_sentence(changes.converted)
    return [] if sentence is None else [Objection("error", TITLE, sentence)]


def converted_sentence(converted: Mapping[str, str]) -> str | None:
    """What a log has made of dates and lists, and what to do; None if there were none.

    >>> print(converted_sentence({"at": "date", "vip": "flag"}))
    The log has dates (at) as seconds since 1970, without weekday, month and time of day, so its contexts are not those that
    policies get in decisions. Pass what matters as fields of its own to decide and to the log, such as the month as text.
    >>> converted_sentence({"vip": "flag"})
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
        f"The log has {' and '.join(parts)}, so its contexts are not those that policies get in decisions. Pass what matters "
        "as fields of its own to decide and to the log, such as the month as text."
    )
