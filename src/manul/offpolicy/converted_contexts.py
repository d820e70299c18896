"""Objections to logs of an older version (format 1), in which dates and lists of texts became numbers."""

from __future__ import annotations

from collections.abc import Mapping

from manul.offpolicy.estimate import Objection

TITLE = "contexts had dates or lists"
MOST_NAMES = 5
_KEPT = {
    "date": ("dates", "as seconds since 1970, without weekday, month and time of day"),
    "list": ("lists of texts", "with a column for each text"),
}


def context_objections(converted: Mapping[str, str]) -> list[Objection]:
    """The objections to what a policy does on the contexts of a log with such fields."""
    sentence = converted_sentence(converted)
    return [] if sentence is None else [Objection("error", TITLE, sentence)]


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
