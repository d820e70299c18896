"""Values of several knobs in rows of text files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from manul.actions.kinds.choice import Choice
from manul.actions.space import ActionSpace
from manul.errors import InputError
from manul.logs.formats.file_errors import BadRow
from manul.logs.formats.knob_checks import describe, parse_within, within_text
from manul.logs.formats.knob_columns import STRUCTS, Options
from manul.logs.formats.row_tables import number


class KnobParser:
    """Parses the members of rows that belong to knobs; raises BadRow.

    >>> parser = KnobParser(ActionSpace({"price": (10, 50), "template": Choice(["a", "b"])}))
    >>> parser.struct("action", {"template": "a", "price": 12})
    {'price': 12.0, 'template': 'a'}
    """

    def __init__(self, knobs: ActionSpace) -> None:
        self.knobs = knobs
        self.options = {name: Options(knob) for name, knob in knobs.knobs if isinstance(knob, Choice)}

    def struct(self, name: str, members: object) -> dict[str, Any]:
        """The values of `action` or `density_by_knob`, as they are stored."""
        if not isinstance(members, Mapping):
            raise BadRow(name, f"an object with {', '.join(self.knobs.names)}", members)
        unknown = [each for each in members if each not in self.knobs.names]
        if unknown:
            raise BadRow(name, f"an object with {', '.join(self.knobs.names)} only", unknown[0])
        return {each: self._value(name, each, members) for each in self.knobs.names}

    def _value(self, name: str, knob: str, members: Mapping[str, Any]) -> Any:
        column = STRUCTS[name] + knob
        if knob not in members:
            raise BadRow(column, "a member of the object", None)
        if knob not in self.options or name != "action":
            return number(column, members[knob])
        return self._stored(knob, members[knob], self.options[knob].find(members[knob]))

    def option(self, knob: str, text: str) -> Any:
        return self._option(knob, text, self.options[knob].parse(text))

    def _option(self, knob: str, given: object, option: Any) -> Any:
        if option is None:
            rule = next(describe(each) for name, each in self.knobs.knobs if name == knob)
            raise BadRow(f"action.{knob}", rule, given)
        return option

    def _stored(self, knob: str, given: object, option: Any) -> Any:
        return self.options[knob].stored(self._option(knob, given, option))

    def within(self, members: object) -> str | None:
        try:
            if members is None or isinstance(members, Mapping):
                return within_text(parse_within(members, self.knobs))
        except InputError:
            pass
        raise BadRow("within", "ranges and options of the knobs", members)
