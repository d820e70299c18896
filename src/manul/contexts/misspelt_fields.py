"""Warnings about new fields of contexts that look like misspelt ones."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from manul.contexts.dates import CLOCK, DATE
from manul.errors import ContextWarning

CUTOFF = 0.8  # of difflib: one letter of five or more may differ
MOST_FIELDS = 256  # beyond this number, new fields are usual and comparing them is slow


def similar_field(name: str, known: Collection[str]) -> str | None:
    """The known field that a new one resembles; fields that differ only in a number do not count.

    >>> similar_field("milage", ["mileage", "age"]), similar_field("room 2", ["room 1"])
    ('mileage', None)
    """
    plain = re.sub(r"\d+", "", name)
    others = [field for field in known if re.sub(r"\d+", "", field) != plain]
    return next(iter(get_close_matches(name, others, n=1, cutoff=CUTOFF)), None)


def warn_of_misspelt_fields(
    late: Sequence[tuple[int, str]],
    known: Collection[str],
    context: Callable[[int], Mapping[str, Any]],
    stacklevel: int,
) -> None:
    """Warn of late fields, given with the number of their context, that resemble a field which that context lacks.

    >>> with warnings.catch_warnings(record=True, action="always") as caught:
    ...     warn_of_misspelt_fields([(0, "milage")], ["mileage", "milage"], lambda _: {"milage": 7}, 2)
    >>> print(caught[0].message)
    field 'milage' is new. Did you mean 'mileage'? The agent learns it as a field of its own.
    """
    if len(known) > MOST_FIELDS:
        return
    new = {name for _, name in late}
    for number, name in late:
        if _parent(name) in new:
            continue
        present = set(_paths(context(number)))
        absent = [field for field in known if not {field, _parent(field)} & (present | new)]
        similar = similar_field(name, absent)
        if similar is not None:
            sentence = f"field {name!r} is new. Did you mean {similar!r}? The agent learns it as a field of its own."
            warnings.warn(sentence, ContextWarning, stacklevel=stacklevel + 1)


def _parent(field: str) -> str:
    return field.rpartition(".")[0]


def _paths(value: Any, path: str = "") -> Iterator[str]:
    """The paths of the fields of a context, as the core names them."""
    if isinstance(value, Mapping) and not (path and value.keys() in ({DATE}, {CLOCK})):
        for name, member in value.items():
            yield from _paths(member, f"{path}.{name}" if path else name)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _paths(item, path if isinstance(item, str) else f"{path}[{index}]")
    else:
        yield path
