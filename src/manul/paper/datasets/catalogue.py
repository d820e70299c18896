"""The six data sets of section 5 of the paper: `ds` is generated, the others come from OpenML or from disk.

Downloaded files have a checksum beside them, which is verified whenever they are used.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from manul.errors import FileError, ParameterError, remedy
from manul.utils.atomic_files import partial_path, put_in_place, writable_folder, write_whole
from manul.utils.validation import check_seed
from manul.worlds.synthetic import ds
from manul.worlds.tables.dataset import Dataset, from_columns
from manul.worlds.tables.table_columns import SUFFIXES, read_columns

TIMEOUT = 30.0  # seconds without data from the server
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
    source, folder = SOURCES[name], cache_folder() if data is None else Path(data)
    if data is not None and not folder.is_dir():
        raise FileError(f"{folder}: no such folder. data must be a folder with files such as {name}.csv.", "data")
    for stem in (name, source.title):
        for suffix in (f"{suffix}{end}" for suffix in SUFFIXES for end in ("", ".gz")):
            if (path := folder / f"{stem}{suffix}").is_file():
                return verify(path)
    return download(source.address, cache_folder() / f"{name}.arff", name)


def check_name(name: str) -> str:
    """Check the name of a data set, and suggest the closest name if it is unknown."""
    if name in NAMES:
        return name
    advice = remedy(str(name), NAMES, "Use --data and --target for your own table.")
    raise ParameterError(f"dataset must be one of {', '.join(NAMES)}, got {name!r}. {advice}", "dataset")


def cache_folder() -> Path:
    """The folder of downloaded files: MANUL_DATA, or manul in the user's cache."""
    chosen = os.environ.get("MANUL_DATA")
    if chosen:
        return Path(chosen)
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "manul"


def checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def verify(path: Path) -> Path:
    """Compare a file with its checksum, if there is one, and return its path."""
    recorded = _checksum_path(path)
    if recorded.is_file():
        expected, actual = recorded.read_text(encoding="utf-8").split()[0], checksum(path)
        if actual != expected:
            raise FileError(
                f"{path}: the file has changed since it was downloaded (checksum {actual[:12]}…, expected {expected[:12]}…). "
                f"Delete it and {recorded.name} to download it again."
            )
    return path


def download(address: str, path: Path, name: str) -> Path:
    """Download a file completely or not at all, write its checksum beside it, and return its path."""
    # Imported here because the network modules take longer to load than all of manul.
    import urllib.error
    import urllib.request

    writable_folder(path.parent)
    partial = partial_path(path)
    try:
        with urllib.request.urlopen(address, timeout=TIMEOUT) as response, partial.open("wb") as file:
            shutil.copyfileobj(response, file)
        write_whole(_checksum_path(path), f"{checksum(partial)}  {path.name}\n")
        put_in_place(partial, path)
    except (OSError, urllib.error.URLError, ValueError) as error:
        raise FileError(
            f"cannot download {name} from {address}: {_reason(error)}. Save the file as {path}, "
            "or specify the folder that contains it with --data."
        ) from error
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
    return path


def _reason(error: BaseException) -> str:
    """The message of an error, without its number and class."""
    from urllib.error import URLError

    inner = error.reason if isinstance(error, URLError) else error
    return str((inner.strerror if isinstance(inner, OSError) else None) or inner)


def _checksum_path(path: Path) -> Path:
    return path.with_name(path.name + ".sha256")
