"""`*.manul` files: settings in JSON and arrays, in the safetensors layout. Loading runs no code.

A checksum over everything is part of the header, so that a file is read whole and as written or not at all. Anybody can
write a file with a right checksum, so each kind also checks its settings and arrays before it takes memory for them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

from manul.errors import FileError, ManulError
from manul.utils.atomic_files import write_whole
from manul.utils.registry import Registry
from manul.utils.suggestions import missing

FORMAT = 1
Arrays = dict[str, npt.NDArray[Any]]
Parameters = dict[str, Any]
Contents = tuple[str, Parameters, Arrays]  # the kind, the parameters and the arrays
MOST_ROUNDS = 2**53  # the core counts in doubles


@runtime_checkable
class Saveable(Protocol):
    """What can be written to a file and read again."""

    def save(self, path: str | Path) -> None:
        """Write to a `.manul` file."""


@runtime_checkable
class HasContents(Protocol):
    """What can say what its file holds."""

    def contents(self) -> Contents:
        """The kind, the parameters and the arrays."""


@dataclass(frozen=True)
class Kind:
    """A class of agents or policies that files can hold, and functions of a seed that make some to be checked."""

    restore: Callable[[Parameters, Arrays], Saveable]
    learns: bool
    examples: tuple[Callable[[int], Any], ...]


_Class = TypeVar("_Class", bound=type)
KINDS = Registry[Kind]("kind", "manul.agents", "manul.policies", suggestion="Auto")


def saveable(*examples: Callable[[int], Any]) -> Callable[[_Class], _Class]:
    """Registers a class that has `from_saved(parameters, arrays)` under its own name; the checks try its examples.

    >>> "Cats" in KINDS.names()
    True
    """

    def register(kind: _Class) -> _Class:
        KINDS.add(kind.__name__, Kind(kind.from_saved, hasattr(kind, "learn"), examples), module=kind.__module__)  # type: ignore[attr-defined]
        return kind

    return register


def encode(kind: str, parameters: Parameters, arrays: Arrays) -> bytes:
    """A file as bytes; `decode` gives the contents again.

    >>> decode(encode("Example", {"leaves": 4}, {}))
    ('Example', {'leaves': 4}, {})
    """
    from safetensors.numpy import save

    header = {"format": str(FORMAT), "kind": kind, "parameters": json.dumps(parameters, sort_keys=True)}
    header["checksum"] = _checksum(header, arrays)
    return _ordered(save(arrays, metadata=header))


def decode(data: bytes, *, name: str = "file") -> Contents:
    """The contents of a file that is in memory; see `encode` for an example."""
    from safetensors.numpy import load

    with _whole(name):
        arrays = load(data)
        size = int.from_bytes(data[:8], "little")
        header = json.loads(data[8 : 8 + size]).get("__metadata__", {})
    return _checked(header, arrays, name)


def write(path: str | Path, kind: str, parameters: Parameters, arrays: Arrays) -> None:
    """Writes a file whole or not at all.

    >>> import tempfile, pathlib
    >>> folder = tempfile.TemporaryDirectory()
    >>> target = pathlib.Path(folder.name, "a.manul")
    >>> write(target, "Example", {"leaves": 4}, {"weights": np.zeros(3)})
    >>> read(target)[1]
    {'leaves': 4}
    >>> folder.cleanup()
    """
    write_whole(path, encode(kind, parameters, arrays))


def read(path: str | Path) -> Contents:
    """The contents of a file; see `write` for an example."""
    from safetensors import safe_open

    target = Path(path)
    if not target.is_file():
        raise missing(target)
    with _whole(str(target)), safe_open(target, framework="numpy") as opened:
        header = dict(opened.metadata() or {})
        arrays = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118 - not a mapping
    return _checked(header, arrays, str(target))


def load(path: str | Path) -> Any:
    """An agent or policy as it was saved.

    >>> import tempfile, pathlib, manul
    >>> folder = tempfile.TemporaryDirectory()
    >>> target = pathlib.Path(folder.name, "agent.manul")
    >>> manul.Cats(leaves=8, bandwidth=1/8).save(target)
    >>> load(target)
    Cats(actions=(0.0, 1.0), leaves=8, bandwidth=0.125, epsilon=0.05, losses=(0.0, 1.0), seed=0, table_bits=20)
    >>> folder.cleanup()
    """
    return restored(*read(path), name=str(path))


def dumps(saveable: Saveable) -> bytes:
    """An agent or policy as the bytes of its file.

    >>> import manul
    >>> loads(dumps(manul.Auto(seed=7)))
    Auto(actions=(0.0, 1.0), epsilon=0.05, losses=(0.0, 1.0), seed=7)
    """
    return encode(*contents(saveable))


def loads(data: bytes, *, name: str = "file") -> Any:
    """The agent or policy of such bytes; errors call them by `name`. See `dumps` for an example."""
    return restored(*decode(data, name=name), name=name)


def contents(saveable: Saveable) -> Contents:
    """What an object writes into a file, to be put into another one; `restored` makes the object again.

    >>> import manul
    >>> restored(*contents(manul.Auto(seed=7)))
    Auto(actions=(0.0, 1.0), epsilon=0.05, losses=(0.0, 1.0), seed=7)
    """
    if isinstance(saveable, HasContents):
        kind, parameters, arrays = saveable.contents()
        return kind, json.loads(json.dumps(parameters, sort_keys=True)), arrays
    # Through a real file, because saving is all that an agent from elsewhere promises.
    with TemporaryDirectory() as folder:
        path = Path(folder, "contents.manul")
        saveable.save(path)
        return read(path)


def restored(kind: str, parameters: Parameters, arrays: Arrays, *, name: str = "file") -> Any:
    """The object with these contents; see `contents` for an example."""
    known = KINDS.find(kind)
    if known is None:
        raise FileError(
            f"{name} must hold one of {', '.join(KINDS.names())}; got {kind}. A newer manul or a plugin may read it."
        )
    try:
        return known.restore(parameters, arrays)
    except ManulError:
        raise
    except (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError) as error:
        raise misfit(name) from error  # settings of other types and sizes than any agent has fail in many ways


def misfit(name: str = "file") -> FileError:
    """The error of a file whose parts contradict each other.

    >>> misfit()
    FileError('file must hold arrays that fit its settings; got others. Save it again.')
    """
    return FileError(f"{name} must hold arrays that fit its settings; got others. Save it again.")


def vectors(arrays: Arrays, **expected: tuple[str, int | None]) -> list[npt.NDArray[Any]]:
    """The arrays of a file if they are one-dimensional, have these types and sizes (None is any), and are all there is.

    >>> vectors({"rounds": np.zeros(1)}, rounds=("f8", 1))
    [array([0.])]
    """
    if arrays.keys() != expected.keys():
        raise misfit()
    for name, (dtype, size) in expected.items():
        array = arrays[name]
        if array.ndim != 1 or array.dtype != np.dtype(dtype) or len(array) != (len(array) if size is None else size):
            raise misfit()
    return [arrays[name] for name in expected]


def parts(arrays: Arrays) -> dict[str, Arrays]:
    """Arrays by what stands before the first dot of their names; those without a dot are under "".

    >>> parts({"0.sums": np.zeros(1), "counts": np.zeros(2)})
    {'0': {'sums': array([0.])}, '': {'counts': array([0., 0.])}}
    """
    split: dict[str, Arrays] = {}
    for name, array in arrays.items():
        before, dot, after = name.partition(".")
        split.setdefault(before if dot else "", {})[after if dot else name] = array
    return split


def checked_width(width: object) -> int:
    """How many numbers a context has, as a file says it.

    >>> checked_width(20)
    20
    """
    if not isinstance(width, int) or isinstance(width, bool) or not 0 <= width < 2**32:
        raise FileError(f"width must be a whole number from 0 to 2^32; got {width!r:.60}. Save it again.", "width")
    return width


@contextmanager
def _whole(name: str) -> Iterator[None]:
    from safetensors import SafetensorError

    try:
        yield
    except (SafetensorError, OSError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise FileError(
            f"{name} must be a whole .manul file; got one that is damaged or of another kind ({error}). Save it again."
        ) from error


def _checked(header: dict[str, str], arrays: Arrays, name: str) -> Contents:
    if header.get("format") != str(FORMAT):
        raise FileError(_foreign(name, header))
    if header.pop("checksum", None) != _checksum(header, arrays):
        raise FileError(f"{name} must be as it was written; got another checksum. Copy or save it again.")
    with _whole(name):
        kind, parameters = header["kind"], json.loads(header["parameters"])
    if not isinstance(parameters, dict):
        raise FileError(f"{name} must hold settings by name; got {type(parameters).__name__}. Save it again.")
    return kind, parameters, arrays


def _ordered(file: bytes) -> bytes:
    """The same file with its metadata in order: safetensors writes it in a random one."""
    size = int.from_bytes(file[:8], "little")
    header = json.loads(file[8 : 8 + size])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + file[8 + size :]


def _foreign(name: str, header: dict[str, str]) -> str:
    if "format" in header and "kind" in header:
        return f"{name} must have format {FORMAT}; got format {header['format']}. A newer manul reads it: pip install -U manul."
    return f"{name} must be a .manul file; got a safetensors file of another program. Check the name."


def _checksum(header: dict[str, str], arrays: Arrays) -> str:
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name in sorted(arrays):
        digest.update(f"{name} {arrays[name].dtype.str} {arrays[name].shape}".encode())
        digest.update(np.ascontiguousarray(arrays[name]).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()
