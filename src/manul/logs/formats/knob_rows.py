"""Values of knobs in rows of text files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from manul.actions.space import ActionSpace
from manul.errors import InputError
from manul.logs.formats.file_errors import BadRow
from manul.logs.formats.knob_checks import parse_within, within_text
from manul.logs.formats.knob_columns import label
from manul.logs.formats.row_tables import number


class KnobParser:
    """Parses the members of rows that belong to knobs; raises BadRow.

    >>> from manul import Choice
    >>> parser = KnobParser(ActionSpace({"price": (10, 50), "template": Choice(["a", "b"])}))
    >>> parser.values("action", {"template": "a", "price": 12})
    {'price': 12.0, 'template': 'a'}
    """

    def __init__(self, knobs: ActionSpace) -> None:
        self.knobs = knobs

    def values(self, name: str, given: object) -> dict[str, Any]:
        """The values of `action` or `density_by_knob`, by knob."""
        if not self.knobs.is_named:
            given = {self.knobs.names[0]: given}
        if not isinstance(given, Mapping):
            raise BadRow(name, f"an object with {', '.join(self.knobs.names)}", given)
        unknown = [each for each in given if each not in self.knobs.names]
        if unknown:
            raise BadRow(name, f"an object with {', '.join(self.knobs.names)} only", unknown[0])
        return {each: self._value(name, each, given) for each in self.knobs.names}

    def _value(self, name: str, knob: str, members: Mapping[str, Any]) -> Any:
        column, kind = label(name, knob), dict(self.knobs.knobs)[knob]
        if knob not in members:
            raise BadRow(column, "a member of the object", None)
        if not kind.is_option or name != "action":
            return number(column, members[knob])
        return self._option(knob, members[knob], kind.as_column([members[knob]], column)[0])

    def option(self, knob: str, text: str) -> Any:
        """The option of a text."""
        return self._option(knob, text, dict(self.knobs.knobs)[knob].parse(text))

    def _option(self, knob: str, given: object, option: Any) -> Any:
        if option is None:
            raise BadRow(label("action", knob), dict(self.knobs.knobs)[knob].rule, given)
        return option

    def within(self, given: object) -> str | None:
        try:
            if given is None or isinstance(given, Mapping if self.knobs.is_named else list):
                return within_text(parse_within(given, self.knobs))
        except InputError:
            pass
        raise BadRow("within", "ranges and options of the knobs", given)
