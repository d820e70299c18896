"""A log from one format into another, batch by batch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from tqdm import tqdm

from manul.errors import ParameterError
from manul.formats import format_of, vw
from manul.log import Log, LogWriter
from manul.types import Within


@dataclass(frozen=True)
class Conversion:
    """What came of it.

    >>> print(Conversion(Path("run.parquet"), rows=3, skipped=1))
    run.parquet: 3 rows, 1 bad row left out
    """

    target: Path
    rows: int
    skipped: int

    def __str__(self) -> str:
        left_out = f", {_counted(self.skipped, 'bad row')} left out" if self.skipped else ""
        return f"{self.target}: {_counted(self.rows, 'row')}{left_out}"


def convert(
    source: str | Path,
    target: str | Path,
    *,
    action_range: Within | None = None,
    loss_range: Within | None = None,
    features: str | Path | None = None,
    skip_bad: bool = False,
    progress: bool = False,
) -> Conversion:
    """Write a log in another format; with `features`, the source is what `vw -p` wrote, and its features are joined.

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
        raise ParameterError(f"target must be another file than the source; got {target} twice. Choose another name.")
    format_of(Path(target))
    read_from = source if features is None else vw.join(source, features)
    batches = Log.batches(read_from, action_range=action_range, loss_range=loss_range, skip_bad=skip_bad)
    rows = 0
    with _bar(progress=progress) as bar, LogWriter(target) as writer:
        for batch in batches:
            writer.write(batch)
            bar.update(len(batch))
            rows += len(batch)
    return Conversion(Path(target), rows, batches.skipped)


def _bar(*, progress: bool) -> tqdm[NoReturn]:
    return tqdm(unit=" rows", unit_scale=True, disable=not progress)


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}" + ("" if count == 1 else "s")
