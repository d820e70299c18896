"""One column of the contexts of a log, such as the user or the city."""

from __future__ import annotations

from manul.errors import ParameterError
from manul.logs.batching import Rows

MOST_NAMES = 20  # in an error


class Column:
    """A column of the contexts, by name; columns of rows of numbers are named by their index.

    >>> from manul.logs.batching import pieces
    >>> from manul.logs.log import Log
    >>> log = Log.from_table({"city": ["Oslo", None], "action": [1, 2], "density": [1, 1], "loss": [0, 1]})
    >>> Column("city", "by").values(next(pieces(log)))
    ['Oslo', None]
    """

    def __init__(self, name: str, parameter: str) -> None:
        self.name, self.parameter = str(name), parameter
        self.known: dict[str, None] = {}

    def values(self, rows: Rows) -> list[object]:
        """The values of some rows; missing ones are None."""
        if rows.features is not None:
            contexts = rows.to_dicts()
            self.known |= dict.fromkeys(name for context in contexts for name in context)
            return [context.get(self.name) for context in contexts]
        numbers = rows.fields is None
        columns = dict.fromkeys(map(str, range(rows.contexts.shape[1])) if numbers else rows.fields or {})
        self.known |= columns
        if self.name not in columns:
            return [None] * len(rows)
        values = rows.contexts[:, int(self.name)] if rows.fields is None else rows.fields[self.name]
        known = [value if value == value else None for value in values.tolist()]
        return [repr(value) if isinstance(value, list | dict) else value for value in known]  # to group by

    def check(self) -> None:
        """Raise ParameterError if none of the rows so far had the column."""
        if self.name not in self.known:
            names = list(self.known)
            known = ", ".join(names[:MOST_NAMES]) + (", …" if len(names) > MOST_NAMES else "")
            rule = f"a column of the contexts ({known})" if names else "a column, but the contexts have none"
            raise ParameterError(f"{self.parameter} must be {rule}, got {self.name!r}.", self.parameter)
