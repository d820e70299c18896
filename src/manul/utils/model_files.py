"""`*.manul` files: settings in JSON and arrays, in the safetensors layout. Loading runs no code.

The header has a checksum of the whole file, so damage is detected. A checksum does not prevent forgery, so each kind also
checks its settings and arrays before it allocates memory for them.
"""

from __future__ import annotations

import copyreg
import hashlib
import io
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol, Self, TypeVar, overload, runtime_checkable

import numpy as np
import numpy.typing as npt

from manul.errors import FileError, ManulError, missing_file
from manul.utils.atomic_files import write_whole
from manul.utils.registry import Registry
from manul.utils.row_sketch import RowSketch

FORMAT = 1
Arrays = dict[str, npt.NDArray[Any]]
Parameters = dict[str, Any]
Contents = tuple[str, Parameters, Arrays]  # the kind, the parameters and the arrays
MOST_ROUNDS = 2**53  # the core counts in doubles
PIECE = 2**19  # bytes that are copied or stored at once; a store writes so many in about a millisecond
TEXT_PIECE = 2**15  # characters that are encoded at once, without other threads: about a tenth of a millisecond
# The types of arrays in a file, in the order of safetensors.
DTYPES = {"|b1": "BOOL", "|u1": "U8", "|i1": "I8", "<i2": "I16", "<u2": "U16", "<f2": "F16", "<i4": "I32", "<u4": "U32"}
DTYPES |= {"<f4": "F32", "<c8": "C64", "<f8": "F64", "<i8": "I64", "<u8": "U64"}
_NUMPY = {name: dtype for dtype, name in DTYPES.items()}


@runtime_checkable
class Saveable(Protocol):
    """An object that can be saved to a file."""

    def save(self, path: str | Path) -> None:
        """Write to a `.manul` file."""


class FileMixin(ABC):
    """An agent or policy whose files have the kind, parameters and arrays of `_contents`; it is pickled and copied as a file.

    Of what may consist of objects that files do not hold, such as functions, `by_attributes` is the `__reduce__`.

    It may have a sketch of the rows of a log that it was trained on, which its file has too.
    """

    _trained_on: RowSketch | None = None

    @abstractmethod
    def _contents(self) -> Contents:
        """The contents of a file with the object."""

    @classmethod
    @abstractmethod
    def from_saved(cls, parameters: Parameters, arrays: Arrays) -> Self:
        """The object that was saved with these parameters and arrays."""

    def save(self, path: str | Path) -> None:
        """Write the object to a file at a `path`; `manul.load` reads it."""
        write(path, *self._contents(), trained_on=self._trained_on)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore_copy, (type(self), dumps(self))

    def __copy__(self) -> Self:
        return deepcopy(self)  # otherwise what is copied by its attributes would share them


def by_attributes(value: object) -> tuple[Any, ...]:
    """What `__reduce__` returns of an object that is pickled and copied by its attributes."""
    return copyreg.__newobj__, (type(value),), vars(value)  # type: ignore[attr-defined]


def _restore_copy(kind: type[FileMixin], data: bytes) -> FileMixin:
    """The object of a class with the bytes of a file; the class may be a subclass that files do not know."""
    (_, parameters, arrays), trained_on = _decode(data, "file")
    return note_training(kind.from_saved(parameters, arrays), trained_on)


@dataclass(frozen=True)
class Kind:
    """A class of agents or policies that files can hold, and functions of a seed that make some to be checked."""

    restore: Callable[[Parameters, Arrays], Saveable]
    learns: bool
    examples: tuple[Callable[[int], Any], ...]


_Class = TypeVar("_Class", bound=type)
T = TypeVar("T")
KINDS = Registry[Kind]("kind", "manul.agents", "manul.policies", suggestion="Auto")


def saveable(*examples: Callable[[int], Any]) -> Callable[[_Class], _Class]:
    """Registers a class that has `from_saved(parameters, arrays)` under its own name; the checks try its examples."""

    def register(kind: _Class) -> _Class:
        KINDS.add(kind.__name__, Kind(kind.from_saved, hasattr(kind, "learn"), examples), module=kind.__module__)  # type: ignore[attr-defined]
        return kind

    return register


def encode(kind: str, parameters: Parameters, arrays: Arrays, *, trained_on: RowSketch | None = None) -> bytes:
    """The bytes of a file; `decode` is the inverse, without `trained_on`."""
    return join(pieces(kind, parameters, arrays, trained_on=trained_on))


def pieces(
    kind: str, parameters: Parameters | str, arrays: Arrays, *, trained_on: RowSketch | None = None
) -> Iterator[bytes]:
    """The bytes of a file in pieces of PIECE bytes. The arrays are not copied as a whole, so they must not change until the
    last piece was made. Parameters may be JSON already."""
    text = parameters if isinstance(parameters, str) else json.dumps(parameters, sort_keys=True)
    header = {"format": str(FORMAT), "kind": kind, "parameters": text}
    if trained_on is not None:
        header["trained_on"] = trained_on.text
    header["checksum"] = _checksum(header, arrays)
    # The layout of safetensors: the arrays with the largest items first, so that all are aligned.
    ordered = sorted(arrays, key=lambda name: (-list(DTYPES).index(arrays[name].dtype.str), name))
    table: dict[str, Any] = {}
    end = 0
    for name in ordered:
        array, start, end = arrays[name], end, end + arrays[name].nbytes
        table[name] = {"dtype": DTYPES[array.dtype.str], "shape": list(array.shape), "data_offsets": [start, end]}
    rest = json.dumps(table, separators=(",", ":"))[1:]
    head = f'{{"__metadata__":{_texts(header, ",", ":")}{"," if table else ""}{rest}'.encode()
    head += b" " * (-len(head) % 8)
    parts: list[bytes | memoryview] = [
        len(head).to_bytes(8, "little") + head,
        *(_bytes_of(arrays[name]) for name in ordered),
    ]
    piece = bytearray()
    for part in parts:
        for start in range(0, len(part), PIECE):
            piece += part[start : start + PIECE]
            if len(piece) >= PIECE:
                yield bytes(piece[:PIECE])
                del piece[:PIECE]
    yield bytes(piece)


def _header(text: bytes) -> dict[str, Any]:
    try:
        table = json.loads(text)
    except ValueError:
        raise ValueError("the header is not JSON") from None
    if not isinstance(table, dict):
        raise TypeError("the header is not an object")
    return table


def join(pieces: Iterable[bytes]) -> bytes:
    """The bytes of a file. Other threads run between two pieces."""
    whole = io.BytesIO()
    for piece in pieces:
        whole.write(piece)
    return whole.getvalue()


def decode(data: bytes, *, name: str = "file") -> Contents:
    """The contents of a file given as bytes."""
    return _decode(data, name)[0]


def _decode(data: bytes, name: str) -> tuple[Contents, RowSketch | None]:
    """Like `safetensors.numpy.load`, which copies all arrays while other threads wait."""
    with _file_errors(name):
        start = 8 + int.from_bytes(data[:8], "little")
        if start > len(data):
            raise ValueError("the header is longer than the file")
        table = _header(data[8:start])
        header = dict(table.pop("__metadata__", {}))
        if not all(isinstance(text, str) for text in header.values()):
            raise TypeError("the metadata must be texts")
        # One copy for all arrays, which NumPy makes without the interpreter's lock, and which the system gets back as a whole.
        body = np.frombuffer(data, np.uint8)[start:].copy()
        arrays: Arrays = {}
        end = 0
        for each, entry in sorted(table.items(), key=lambda item: item[1]["data_offsets"]):
            dtype, shape, (first, last) = np.dtype(_NUMPY[entry["dtype"]]), entry["shape"], entry["data_offsets"]
            if any(type(number) is not int or not 0 <= number < 2**63 for number in (*shape, first, last)):
                raise ValueError("shapes and offsets must be whole numbers")
            # Arrays follow each other without gaps.
            if first != end or last - first != math.prod(shape) * dtype.itemsize or last > len(body):
                raise ValueError("the offsets of an array do not fit")
            arrays[each], end = body[first:last].view(dtype).reshape(shape), last
        if end != len(body):
            raise ValueError("there are bytes after the arrays")
    return _verify(header, arrays, name)


def write(
    path: str | Path, kind: str, parameters: Parameters, arrays: Arrays, *, trained_on: RowSketch | None = None
) -> None:
    """Write a file atomically."""
    write_whole(path, encode(kind, parameters, arrays, trained_on=trained_on))


def read(path: str | Path) -> Contents:
    """The contents of a file."""
    return _read(path)[0]


def _read(path: str | Path) -> tuple[Contents, RowSketch | None]:
    from safetensors import safe_open

    target = Path(path)
    if not target.is_file():
        raise missing_file(target)
    with _file_errors(str(target)), safe_open(target, framework="numpy") as file:
        header = dict(file.metadata() or {})
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a mapping
    return _verify(header, arrays, str(target))


@overload
def load(path: str | Path) -> Any: ...
@overload
def load(path: str | Path, kind: type[T]) -> T: ...
def load(path: str | Path, kind: type[Any] = object) -> Any:
    """Load an agent or policy from the file at a `path`, which must be of a `kind` if one is given.

    >>> import tempfile, pathlib, manul
    >>> folder = tempfile.TemporaryDirectory()
    >>> target = pathlib.Path(folder.name, "agent.manul")
    >>> manul.Cats(leaves=8, bandwidth=1/8).save(target)
    >>> load(target)
    Cats(actions=(0.0, 1.0), leaves=8, bandwidth=0.125, epsilon=0.05, losses=(0.0, 1.0), seed=0, table_bits=20)
    >>> folder.cleanup()
    """
    restored = _restored(*_read(path), name=str(path))
    if not isinstance(restored, kind):
        raise FileError(f"{path} has a {type(restored).__name__}, not a {kind.__name__}.", "path")
    return restored


def dumps(saveable: Saveable) -> bytes:
    """Serialize an agent or policy, `saveable`, to the bytes of its file.

    >>> import manul
    >>> loads(dumps(manul.Auto(seed=7)))
    Auto(actions=(0.0, 1.0), epsilon='auto', losses=(0.0, 1.0), seed=7)
    """
    return encode(*contents(saveable), trained_on=trained_on(saveable))


def loads(data: bytes, *, name: str = "file") -> Any:
    """Load an agent or policy from the `data` of `dumps`; errors refer to them as `name`. See `dumps` for an example."""
    return _restored(*_decode(data, name), name=name)


def trained_on(saveable: object) -> RowSketch | None:
    """The sketch of the rows that an agent or policy was trained on, if it is known."""
    return saveable._trained_on if isinstance(saveable, FileMixin) else None


def note_training(saveable: T, sketch: RowSketch | None) -> T:
    """Note the sketch of the rows that an agent or policy was trained on, and return it."""
    if isinstance(saveable, FileMixin):
        saveable._trained_on = sketch
    return saveable


def _restored(contents: Contents, trained_on: RowSketch | None, name: str) -> Any:
    return note_training(restore(*contents, name=name), trained_on)


def contents(saveable: Saveable) -> Contents:
    """The contents of the file of an object, for use inside another file; `restore` is the inverse."""
    if isinstance(saveable, FileMixin):
        kind, parameters, arrays = saveable._contents()
        return kind, json.loads(json.dumps(parameters, sort_keys=True)), arrays
    # Agents of other packages only promise to save to a file.
    with TemporaryDirectory() as folder:
        path = Path(folder, "contents.manul")
        saveable.save(path)
        return read(path)


def restore(kind: str, parameters: Parameters, arrays: Arrays, *, name: str = "file") -> Any:
    """The object with these contents."""
    known = KINDS.find(kind)
    if known is None:
        known_kinds = ", ".join(KINDS.names())
        raise FileError(f"{name} has the unknown kind {kind}, expected one of {known_kinds}. Is a plugin missing?")
    try:
        return known.restore(parameters, arrays)
    except ManulError:
        raise
    except (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError) as error:
        raise mismatch_error(name) from error  # forged settings fail in many ways


def mismatch_error(name: str = "file") -> FileError:
    """The error for a file whose settings and arrays contradict each other."""
    return FileError(f"{name} is damaged: the arrays do not match the settings.")


def vectors(arrays: Arrays, **expected: tuple[str, int | None]) -> list[npt.NDArray[Any]]:
    """The arrays of a file, checked to be exactly the expected vectors by name, type and size (None is any)."""
    if arrays.keys() != expected.keys():
        raise mismatch_error()
    for name, (dtype, size) in expected.items():
        array = arrays[name]
        if array.ndim != 1 or array.dtype != np.dtype(dtype) or len(array) != (len(array) if size is None else size):
            raise mismatch_error()
    return [arrays[name] for name in expected]


def split_by_prefix(arrays: Arrays) -> dict[str, Arrays]:
    """Group arrays by the part of their name before the first dot; names without a dot are under "".

    >>> split_by_prefix({"0.sums": np.zeros(1), "counts": np.zeros(2)})
    {'0': {'sums': array([0.])}, '': {'counts': array([0., 0.])}}
    """
    split: dict[str, Arrays] = {}
    for name, array in arrays.items():
        before, dot, after = name.partition(".")
        split.setdefault(before if dot else "", {})[after if dot else name] = array
    return split


def check_width(width: object) -> int:
    """Check the width of contexts that a file declares."""
    if not isinstance(width, int) or isinstance(width, bool) or not 0 <= width < 2**32:
        raise FileError(f"width must be a whole number in [0, 2^32), got {width!r:.60}.", "width")
    return width


@contextmanager
def _file_errors(name: str) -> Iterator[None]:
    from safetensors import SafetensorError

    try:
        yield
    except (SafetensorError, OSError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise FileError(f"{name} is damaged or not a .manul file ({error}).") from error


def _verify(header: dict[str, str], arrays: Arrays, name: str) -> tuple[Contents, RowSketch | None]:
    if header.get("format") != str(FORMAT):
        raise FileError(_format_message(name, header))
    if header.pop("checksum", None) != _checksum(header, arrays):
        raise FileError(f"{name} is damaged: wrong checksum. Copy or save it again.")
    with _file_errors(name):
        kind, parameters = header["kind"], json.loads(header["parameters"])
        trained_on = RowSketch.from_text(header["trained_on"]) if "trained_on" in header else None
    if not isinstance(parameters, dict):
        raise FileError(f"{name} is damaged: parameters must be an object, got {type(parameters).__name__}.")
    return (kind, parameters, arrays), trained_on


def _format_message(name: str, header: dict[str, str]) -> str:
    if "format" in header and "kind" in header:
        return f"{name} has format {header['format']}, but this version reads format {FORMAT}. Update manul: pip install -U manul."
    return f"{name} is a safetensors file of another program, not a .manul file."


def _texts(texts: dict[str, str], comma: str, colon: str) -> str:
    """Texts by name as JSON, sorted. Those of megabytes are encoded in parts, between which other threads run."""
    pairs = [f"{json.dumps(name)}{colon}{_quoted(texts[name])}" for name in sorted(texts)]
    return f"{{{comma.join(pairs)}}}"


def _quoted(text: str) -> str:
    parts = (json.dumps(text[start : start + TEXT_PIECE])[1:-1] for start in range(0, len(text), TEXT_PIECE))
    return f'"{"".join(parts)}"'


def _checksum(header: dict[str, str], arrays: Arrays) -> str:
    digest = hashlib.sha256(_texts(header, ", ", ": ").encode())
    for name in sorted(arrays):
        digest.update(f"{name} {arrays[name].dtype.str} {arrays[name].shape}".encode())
        digest.update(_bytes_of(arrays[name]))
    return digest.hexdigest()


def _bytes_of(array: npt.NDArray[Any]) -> memoryview:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
