"""Files that are there in whole or not at all."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from manul.errors import FileError


def write_whole(path: str | Path, content: bytes | str) -> None:
    """Write a file beside its place and put it there at the end; what was there stays until then.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_whole(Path(folder, "note.txt"), "whole")
    ...     [path.name for path in Path(folder).iterdir()]
    ['note.txt']
    """
    target = Path(path)
    partial = target.with_name(target.name + ".partial")
    try:
        partial.write_bytes(content if isinstance(content, bytes) else content.encode())
        partial.replace(target)
    except OSError as error:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        raise FileError(f"{target} must be writable; got {error.strerror}. {_remedy(error)}") from error


def writable_folder(folder: str | Path) -> Path:
    """A folder to write into, made where there is none.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     writable_folder(Path(folder, "new")).is_dir()
    True
    """
    out = Path(folder)
    try:
        out.mkdir(parents=True, exist_ok=True)
        if not os.access(out, os.W_OK):
            raise PermissionError(13, os.strerror(13))
    except OSError as error:
        raise FileError(f"{out} must be a folder to write into; got {error.strerror}. Choose another.") from error
    return out


def _remedy(error: OSError) -> str:
    full = error.errno in (28, 122)  # ENOSPC, EDQUOT
    return "Free some space or choose another folder." if full else "Choose another folder."
