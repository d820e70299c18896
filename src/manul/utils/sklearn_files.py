"""Fitted scikit-learn objects in files.

They are stored with skops, which describes objects instead of pickling them, so that loading runs no code. What it does
not trust is neither saved nor loaded: that is a user's own classes, and decision trees, whose compiled code follows
whatever a file says, out of bounds too.
"""

from __future__ import annotations

from io import BytesIO
from typing import Any
from zipfile import ZipFile

import numpy as np
import numpy.typing as npt

from manul.errors import FileError, ManulError, MissingDependency

INSTALL = "Try pip install 'manul[sklearn]'."


def dump_objects(objects: list[Any], kind: str, remedy: str) -> npt.NDArray[np.uint8]:
    """Fitted objects of a kind as bytes for a file; the remedy is for those that skops does not trust.

    >>> from sklearn.preprocessing import StandardScaler
    >>> load_objects(dump_objects([StandardScaler()], "transformer", "Try another."), "transformer", method="transform")
    [StandardScaler()]
    """
    data: bytes = _skops().dumps(objects)
    _refuse_foreign(data, f"{kind} to save", remedy)
    return np.frombuffer(data, dtype=np.uint8)


def load_objects(data: npt.NDArray[np.uint8], kind: str, *, method: str) -> list[Any]:
    """The objects that were stored, each of which has the method; see `dump_objects` for an example."""
    raw = data.tobytes()
    try:
        _refuse_packed(raw, kind)
        _refuse_foreign(raw, "file", f"Ask for one that was saved with another {kind}.")
        loaded = _skops().loads(raw)
    except ManulError:
        raise
    except Exception as error:  # whatever a damaged description leads skops and scikit-learn into
        raise FileError(
            f"file must hold {kind}s that the installed scikit-learn can read; got {error}. Install the version it was saved with."
        ) from error
    if not (isinstance(loaded, list) and all(hasattr(each, method) for each in loaded)):
        raise FileError(f"file must hold a list of {kind}s; got {type(loaded).__name__}. Save it again.")
    return loaded


def _refuse_packed(data: bytes, kind: str) -> None:
    """Refuses an archive that holds more than its own size: skops does not compress."""
    with ZipFile(BytesIO(data)) as archive:
        if sum(each.file_size for each in archive.infolist()) > len(data):
            raise FileError(f"file must hold {kind}s that are not compressed; got an archive of more. Save it again.")


def _refuse_foreign(data: bytes, name: str, remedy: str) -> None:
    foreign = _skops().get_untrusted_types(data=data)
    if foreign:
        raise FileError(
            f"{name} must consist of types that skops trusts to be harmless; got {', '.join(sorted(foreign))}. {remedy}"
        )


def _skops() -> Any:
    try:
        from skops import io
    except ImportError:
        raise MissingDependency(f"skops must be installed to save and load fitted objects. {INSTALL}") from None
    return io
