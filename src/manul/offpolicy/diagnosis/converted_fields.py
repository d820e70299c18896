"""Finds contexts that had dates or lists, which a log does not keep."""

from __future__ import annotations

from manul.logs.batching import Rows
from manul.offpolicy.converted_contexts import TITLE, converted_sentence
from manul.offpolicy.diagnosis.symptoms import Symptom


class ConvertedFields:
    """Notes the fields of contexts that were dates or lists.

    >>> ConvertedFields().findings(error=True)
    []
    """

    def __init__(self) -> None:
        self._converted = dict[str, str]()

    def add(self, rows: Rows) -> None:
        """Add a piece."""
        self._converted |= rows.converted

    def findings(self, *, error: bool) -> list[Symptom]:
        """An `error` if a policy is tested on these contexts; functions and constants can be evaluated with care."""
        sentence = converted_sentence(self._converted)
        return [] if sentence is None else [("error" if error else "warning", TITLE, sentence)]
