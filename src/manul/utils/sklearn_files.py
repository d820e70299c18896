"""Fitted scikit-learn objects in files.

They are stored with skops, which describes objects instead of pickling them, so loading runs no code. Types that skops
does not trust are neither saved nor loaded: classes of your own, and decision trees, whose compiled code may read out of
bounds if a file was forged.
"""

from __future__ import annotations

from io import BytesIO
from typing import Any
from zipfile import ZipFile

import numpy as np
import numpy.typing as npt

from manul.errors import FileError, ManulError, MissingDependency

INSTALL = "Install it: pip install 'manul[sklearn]'."


def dump_objects(objects: list[Any], kind: str, remedy: str) -> npt.NDArray[np.uint8]:
    """Serialize fitted objects; `remedy` is the advice for types that skops does not trust."""
    data: bytes = _skops().dumps(objects)
    _reject_untrusted(data, f"Cannot save this {kind}: it", remedy)
    return np.frombuffer(data, dtype=np.uint8)


def load_objects(data: npt.NDArray[np.uint8], kind: str, *, method: str) -> list[Any]:
    """The serialized objects, all of which have the method."""
    raw = data.tobytes()
    try:
        _reject_compressed(raw, kind)
        _reject_untrusted(raw, f"Cannot load the {kind}s: the file", f"Save it with another {kind}.")
        loaded = _skops().loads(raw)
    except ManulError:
        raise
    except Exception as error:  # a damaged description may raise anything in skops and scikit-learn
        raise FileError(
            f"The installed scikit-learn cannot read the {kind}s in the file: {error}. Install the version that saved them."
        ) from error
    if not (isinstance(loaded, list) and all(hasattr(item, method) for item in loaded)):
        raise FileError(f"The file must contain a list of {kind}s, got {type(loaded).__name__}.")
    return loaded


def _reject_compressed(data: bytes, kind: str) -> None:
    """Reject an archive that expands: skops does not compress, so it would be forged."""
    with ZipFile(BytesIO(data)) as archive:
        if sum(member.file_size for member in archive.infolist()) > len(data):
            raise FileError(f"The {kind}s in the file must not be compressed.")


def _reject_untrusted(data: bytes, subject: str, remedy: str) -> None:
    untrusted = _skops().get_untrusted_types(data=data)
    if untrusted:
        names = ", ".join(sorted(untrusted))
        raise FileError(f"{subject} contains types that skops does not trust: {names}. {remedy}")


def _skops() -> Any:
    try:
        from skops import io
    except ImportError:
        raise MissingDependency(f"Saving and loading scikit-learn objects needs skops. {INSTALL}") from None
    return io
