"""Conversion of logs between formats, batch by batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, Unpack

from tqdm import tqdm

from manul.errors import ParameterError
from manul.logs.formats import format_of, vw
from manul.logs.log import Declared, Log, LogWriter
from manul.utils.validation import check_number


@dataclass(frozen=True)
class Conversion:
    """The result of a conversion."""

    target: Path
    rows: int
    skipped: int

    def __str__(self) -> str:
        skipped = f", {_count(self.skipped, 'invalid row')} skipped" if self.skipped else ""
        return f"{self.target}: {_count(self.rows, 'row')}{skipped}"


def convert(
    source: str | Path,
    target: str | Path,
    *,
    features: str | Path | None = None,
    first: float | None = None,
    last: float | None = None,
    estimate_density: bool = False,
    format: str | None = None,  # noqa: A002 - as in Log.read
    progress: bool = False,
    **declared: Unpack[Declared],
) -> Conversion:
    """Write a log in another format. With `features`, the source is the output of `vw -p`, and its features are joined.

    With `estimate_density`, the densities are estimated from contexts and actions; the log must then fit into memory.
    Ranges and several knobs are declared as for `Log.read` if the source does not record them, as text does not.
    The format of the source is that of its suffix, or `format`; see `Log.read`.
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
        raise ParameterError(f"target must differ from the source, got {target} for both.", "target")
    format_of(Path(target), writing=True)
    if features is not None and format not in (None, "vw"):
        raise ParameterError(f"format must be vw with features, which vw -p writes, got {format!r}.", "format")
    read_from = source if features is None else vw.join(source, features)
    file_format = None if features else format
    whole = Log.read(read_from, density="estimate", format=file_format, **declared) if estimate_density else None
    batches = Log.batches(read_from, format=file_format, **declared)
    rows = 0
    with _bar(progress=progress) as bar, LogWriter(target) as writer:
        for batch in _part(batches if whole is None else [whole], first, last):
            writer.write(batch)
            bar.update(len(batch))
            rows += len(batch)
    return Conversion(Path(target), rows, (batches if whole is None else whole).skipped)


def _part(batches: Iterable[Log], first: float | None, last: float | None) -> Iterator[Log]:
    """The first or last share of the rows; `first=0.8` and `last=0.2` cut at the same row."""
    if first is not None and last is not None:
        raise ParameterError("first and last cannot be combined. To split a log, convert it twice.", "first")
    share = first if last is None else last
    if share is None:
        yield from batches
        return
    check_number("last" if first is None else "first", share, 0, 1, "Try 0.8.", ends="()")
    total = sum(len(batch) for batch in batches)
    cut = round(total * share) if last is None else total - round(total * share)
    start = 0
    for batch in batches:
        split = min(max(cut - start, 0), len(batch))
        part = batch.rows(slice(split) if last is None else slice(split, None))
        start += len(batch)
        if len(part):
            yield part


def _bar(*, progress: bool) -> tqdm[NoReturn]:
    return tqdm(unit=" rows", unit_scale=True, disable=not progress)


def _count(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
