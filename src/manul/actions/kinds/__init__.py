"""The kinds of knobs: ranges of numbers, equal steps, and unordered options; one file each, which registers its kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from manul.actions.kinds.knob import KINDS, SCALARS, Knob, arguments
from manul.errors import ParameterError
from manul.utils.validation import check_range


def knob_from_description(name: str, description: Any) -> Knob[Any]:
    """The knob of a description: (low, high), or a mapping of the arguments of a registered kind.

    >>> knob_from_description("price", [10, 50]), knob_from_description("template", {"options": ["a", "b"]})
    (Span(low=10.0, high=50.0), Choice(options=('a', 'b')))
    """
    if not isinstance(description, Mapping):
        return _span(name, description)
    given = {key: value for key, value in description.items() if value is not None}
    kinds = [kind for kind in KINDS if kind.keys()]
    for kind in kinds:
        if given.keys() == {*kind.keys()}:
            return kind(**given)
    begun = [kind.keys() for kind in kinds if given and given.keys() < {*kind.keys()}]
    if len(begun) == 1:
        missing = next(key for key in begun[0] if key not in given)
        raise ParameterError(f"{name} must have a {missing} too.", "actions")
    known = ", or ".join(
        _listed(keys) for keys in begun or sorted((kind.keys() for kind in kinds), key=len, reverse=True)
    )
    raise ParameterError(f"{name} must have {known}.", "actions")


def is_knob(description: Mapping[str, Any]) -> bool:
    """Whether a mapping has arguments of a kind of knob, not knobs by name, which are mappings and ranges.

    >>> is_knob({"low": 1, "high": 14, "step": 1}), is_knob({"low": [0, 1], "high": [1, 2]}), is_knob({"options": ["a", "b"]})
    (True, False, True)
    """
    return bool(description) and any(
        all(
            key in hints and not isinstance(value, Mapping | list | tuple if hints[key] in SCALARS else Mapping)
            for key, value in description.items()
        )
        for hints in map(arguments, KINDS)
    )


def _listed(words: list[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def check_knob(name: str, knob: Any) -> Knob[Any]:
    """Check one of the `actions` of an agent: a knob, or (low, high).

    >>> check_knob("price", (10, 50))
    Span(low=10.0, high=50.0)
    """
    if isinstance(knob, Knob):
        return knob
    try:
        return _span(name, knob)
    except ParameterError as error:
        raise ParameterError(f"{error} Or use Stepped or Choice.", "actions") from None


def _span(name: str, ends: Any) -> Knob[Any]:
    from manul.actions.kinds.span import Span

    return Span(*check_range(name, ends))
