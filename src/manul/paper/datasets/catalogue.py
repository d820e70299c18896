"""The six data sets of section 5 of the paper: `ds` is generated, the others come from OpenML or from disk."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from manul.errors import FileError, ParameterError, remedy
from manul.paper.datasets import cache
from manul.utils.validation import check_seed
from manul.worlds.synthetic import ds
from manul.worlds.tables.dataset import Dataset, from_columns
from manul.worlds.tables.table_columns import SUFFIXES, read_columns

DS_ROWS = 1_000_000  # as in the paper


@dataclass(frozen=True)
class Source:
    """A file of OpenML; `target` is the index of the target column, `dropped` are the indices of unused columns."""

    file: int
    title: str
    target: int = -1
    dropped: tuple[int, ...] = ()

    @property
    def address(self) -> str:
        return f"https://www.openml.org/data/download/{self.file}/{self.title}.arff"


SOURCES = {
    "wisconsin": Source(150677, "BNG_wisconsin"),
    "black_friday": Source(21230845, "file639340bd9ca9"),
    "auto_price": Source(150679, "BNG_auto_price"),
    "cpu_act": Source(150680, "BNG_cpu_act"),
    "zurich_delay": Source(5698591, "file62a9329beed2", target=0, dropped=(6,)),
}
NAMES = ("ds", *SOURCES)


def load(name: str, *, rows: int | None = None, seed: int = 0, data: str | Path | None = None) -> Dataset:
    """Load a data set of the paper by its name; ds is generated from the seed, the others are downloaded once.

    `data` is a folder with the files, such as `cpu_act.csv`, `.arff` or `.parquet`, each optionally with .gz.

    >>> load("ds", rows=1000).contexts.shape
    (1000, 5)
    """
    check_name(name)
    if name == "ds":
        world = ds(rounds=DS_ROWS if rows is None else rows, seed=check_seed(seed))
        labels = tuple(f"x{number}" for number in range(1, world.contexts.shape[1] + 1))
        return Dataset("ds", labels, world.contexts, world.targets, (0.0, 1.0))
    source, path = SOURCES[name], find_file(name, data)
    cells = list(read_columns(path).items())
    target = cells[source.target][0]
    columns = {label: column for index, (label, column) in enumerate(cells) if index not in source.dropped}
    return from_columns(columns, target=target, name=name, rows=rows)


def find_file(name: str, data: str | Path | None = None) -> Path:
    """Find the file of a data set in the folder or in the cache, or download it into the cache."""
    source, folder = SOURCES[name], cache.folder() if data is None else Path(data)
    if data is not None and not folder.is_dir():
        raise FileError(f"{folder}: no such folder. data must be a folder with files such as {name}.csv.", "data")
    for stem in (name, source.title):
        for suffix in (f"{suffix}{end}" for suffix in SUFFIXES for end in ("", ".gz")):
            if (path := folder / f"{stem}{suffix}").is_file():
                return cache.verify(path)
    return cache.download(source.address, cache.folder() / f"{name}.arff", name)


def check_name(name: str) -> str:
    """Check the name of a data set, and suggest the closest name if it is unknown."""
    if name in NAMES:
        return name
    advice = remedy(str(name), NAMES, "Use --data and --target for your own table.")
    raise ParameterError(f"dataset must be one of {', '.join(NAMES)}, got {name!r}. {advice}", "dataset")
