"""`*.manul` files: settings in JSON and arrays, in the safetensors layout. Loading runs no code.

A checksum over everything is part of the header, so that a file is read whole and as written or not at all.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

from manul.closest import missing
from manul.errors import FileError
from manul.writing import write_whole

FORMAT = 1
Arrays = dict[str, npt.NDArray[Any]]
Parameters = dict[str, Any]


@runtime_checkable
class Saveable(Protocol):
    """What can be written to a file and read again."""

    def save(self, path: str | Path) -> None:
        """Write to a `.manul` file."""


_Restore = Callable[[Parameters, Arrays], Saveable]
_Class = TypeVar("_Class", bound=type)
_KINDS: dict[str, _Restore] = {}
_HOMES = ("manul.agents", "manul.tree")  # they register their classes when they are imported


def saveable(kind: type) -> None:
    """Registers a class that has `from_saved(parameters, arrays)` under its own name.

    >>> "Cats" in kinds()
    True
    """
    _KINDS[kind.__name__] = kind.from_saved  # type: ignore[attr-defined]


def kinds() -> list[str]:
    """What a file can hold.

    >>> kinds() == sorted(kinds())
    True
    """
    for home in _HOMES:
        import_module(home)
    return sorted(_KINDS)


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
    from safetensors.numpy import save

    header = {"format": str(FORMAT), "kind": kind, "parameters": json.dumps(parameters, sort_keys=True)}
    header["checksum"] = _checksum(header, arrays)
    write_whole(path, save(arrays, metadata=header))


def read(path: str | Path) -> tuple[str, Parameters, Arrays]:
    """The kind, the parameters and the arrays of a file; see `write` for an example."""
    from safetensors import SafetensorError, safe_open

    target = Path(path)
    if not target.is_file():
        raise missing(target)
    try:
        with safe_open(target, framework="numpy") as opened:
            header = dict(opened.metadata() or {})
            if header.get("format") != str(FORMAT):
                raise FileError(_foreign(target, header))
            arrays = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118 - not a mapping
    except (SafetensorError, OSError) as error:
        raise FileError(
            f"{target} must be a whole .manul file; got one that is damaged or of another kind ({error}). Save it again."
        ) from error
    if header.pop("checksum", None) != _checksum(header, arrays):
        raise FileError(f"{target} must be as it was written; got another checksum. Copy or save it again.")
    return header["kind"], json.loads(header["parameters"]), arrays


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


def contents(saveable: Saveable) -> tuple[str, Parameters, Arrays]:
    """What an object writes into a file, to be put into another one; `restored` makes the object again.

    >>> import manul
    >>> restored(*contents(manul.Auto(seed=7)))
    Auto(actions=(0.0, 1.0), epsilon=0.05, losses=(0.0, 1.0), seed=7)
    """
    # Through a real file, because saving is all that an agent from elsewhere promises.
    with TemporaryDirectory() as folder:
        path = Path(folder, "contents.manul")
        saveable.save(path)
        return read(path)


def restored(kind: str, parameters: Parameters, arrays: Arrays, *, name: str = "file") -> Any:
    """The object with these contents; see `contents` for an example."""
    if kind not in _KINDS and kind not in kinds():
        raise FileError(f"{name} must hold one of {', '.join(kinds())}; got {kind}. A newer manul may read it.")
    return _KINDS[kind](parameters, arrays)


def _foreign(path: Path, header: dict[str, str]) -> str:
    if "format" in header and "kind" in header:
        return f"{path} must have format {FORMAT}; got format {header['format']}. A newer manul reads it: pip install -U manul."
    return f"{path} must be a .manul file; got a safetensors file of another program. Check the name."


def _checksum(header: dict[str, str], arrays: Arrays) -> str:
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name in sorted(arrays):
        digest.update(f"{name} {arrays[name].dtype.str} {arrays[name].shape}".encode())
        digest.update(np.ascontiguousarray(arrays[name]).tobytes())
    return digest.hexdigest()
