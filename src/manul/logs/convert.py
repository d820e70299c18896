"""A log from one format into another, batch by batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from tqdm import tqdm

from manul.errors import ParameterError
from manul.logs.formats import format_of, vw
from manul.logs.log import Log, LogWriter
from manul.types import Within
from manul.utils.validation import check_number


@dataclass(frozen=True)
class Conversion:
    """The result of a conversion.

    >>> print(Conversion(Path("run.parquet"), rows=3, skipped=1))
    run.parquet: 3 rows, 1 invalid row skipped
    """

    target: Path
    rows: int
    skipped: int

    def __str__(self) -> str:
        skipped = f", {_counted(self.skipped, 'invalid row')} skipped" if self.skipped else ""
        return f"{self.target}: {_counted(self.rows, 'row')}{skipped}"


def convert(
    source: str | Path,
    target: str | Path,
    *,
    action_range: Within | None = None,
    loss_range: Within | None = None,
    features: str | Path | None = None,
    skip_bad: bool = False,
    first: float | None = None,
    last: float | None = None,
    progress: bool = False,
) -> Conversion:
    """Write a log in another format; with `features`, the source is what `vw -p` wrote, and its features are joined.

    With `first` or `last`, only that share of the rows is written: `first=0.8` to train on, `last=0.2` to evaluate.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> text, table = (Path(folder.name, name) for name in ("run.vw", "run.parquet"))
    >>> _ = text.write_text("ca 21.4:0.3:0.24 |house cold:3")
    >>> convert(text, table).rows
    1
    >>> next(Log.read(table).context_rows())
    {'house^cold': 3.0}
    >>> folder.cleanup()
    """
    if Path(source) == Path(target):
        raise ParameterError(f"target must be another file than the source; got {target} twice.", "target")
    format_of(Path(target))
    read_from = source if features is None else vw.join(source, features)
    batches = Log.batches(read_from, action_range=action_range, loss_range=loss_range, skip_bad=skip_bad)
    rows = 0
    with _bar(progress=progress) as bar, LogWriter(target) as writer:
        for batch in _part(batches, first, last):
            writer.write(batch)
            bar.update(len(batch))
            rows += len(batch)
    return Conversion(Path(target), rows, batches.skipped)


def _part(batches: Iterable[Log], first: float | None, last: float | None) -> Iterator[Log]:
    """The batches of the first or last rows; the same cut whichever side of it is asked for."""
    if first is not None and last is not None:
        raise ParameterError("first and last must not both be given; got both. Convert twice.", "first")
    share = first if last is None else last
    if share is None:
        yield from batches
        return
    check_number("last" if first is None else "first", share, 0, 1, "Try 0.8.", ends="()")
    total = sum(len(batch) for batch in batches)
    cut = round(total * share) if last is None else total - round(total * share)
    at = 0
    for batch in batches:
        place = min(max(cut - at, 0), len(batch))
        chosen = batch.rows(slice(place) if last is None else slice(place, None))
        at += len(batch)
        if len(chosen):
            yield chosen


def _bar(*, progress: bool) -> tqdm[NoReturn]:
    return tqdm(unit=" rows", unit_scale=True, disable=not progress)


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}" + ("" if count == 1 else "s")
