"""The kinds of fields that contexts may have, each with values that matter to the loss, and with missing and absent ones."""

import datetime
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from zoneinfo import ZoneInfo

OSLO = ZoneInfo("Europe/Oslo")
ZONES = [datetime.timezone(datetime.timedelta(hours=hours)) for hours in (-7, 0, 2)]


@dataclass(frozen=True)
class FieldKind:
    """A kind of field: `value(level, n)` is its value in round n, and the level, 0 or 1, decides on the best action."""

    name: str
    value: Callable[[int, int], object]
    lacking: str = ""  # "missing" or "absent" in every third round
    first: int = 0  # the first round with the field

    def context(self, n: int) -> dict[str, object]:
        lacks = (self.lacking and n % 3 == 0) or n < self.first
        if lacks:
            return {"other": n % 5 / 5} | ({"field": None} if self.lacking == "missing" else {})
        return {"other": n % 5 / 5, "field": self.value(n % 2, n)}

    def level(self, n: int) -> int:
        return 1 if (self.lacking and n % 3 == 0) or n < self.first else n % 2


def moment(level, n, zone=None):
    return datetime.datetime(2024, 3, 1 + n % 28, 4 + 12 * level, 30, n % 60, tzinfo=zone)


VALUES = {
    "number": lambda level, n: 10 * level + n % 3,
    "text": lambda level, n: ["Oslo", "Bergen"][level] if n % 7 else ["Ås", "1"][level],
    "flag": lambda level, _: bool(level),
    "date": lambda level, n: datetime.date(2024, 2 + 5 * level, 1 + n % 28),
    "datetime with a zone": lambda level, n: moment(level, n, OSLO),
    "datetime with offsets": lambda level, n: moment(level, n, ZONES[n % 3]),
    "datetime without a zone": lambda level, n: moment(level, n),
    "date or datetime": lambda level, n: moment(level, n) if n % 4 < 2 else moment(level, n).date(),
    "datetime with or without a zone": lambda level, n: moment(level, n, OSLO if n % 4 < 2 else None),
    "time of day": lambda level, n: datetime.time(4 + 12 * level, n % 60),
    "tags": lambda level, n: [[], ["new"]][level] + ["blue", "red"][: n % 3],
    "list of numbers": lambda level, n: [level, n % 3, 2.5][: 1 + n % 3],
    "nested object": lambda level, n: {"os": "xy"[level], "at": moment(level, n), **({"size": 3} if n % 4 else {})},
    "list of objects": lambda level, n: [{"os": "xy"[level]}, {"size": n % 3}][: 1 + n % 2],
    "object or number": lambda level, _: {"os": "x"} if level else 3.0,
}

FIELDS = [FieldKind(name, value) for name, value in VALUES.items()]
FIELDS += [FieldKind(name, value, lacking) for name, value in VALUES.items() for lacking in ("missing", "absent")]
FIELDS += [FieldKind("text that comes late", VALUES["text"], first=40)]


def contexts(kind: FieldKind, rounds: Iterable[int]) -> list[dict[str, object]]:
    return [kind.context(n) for n in rounds]


def title(kind: FieldKind) -> str:
    return f"{kind.name}, {kind.lacking}" if kind.lacking else kind.name
