"""Files that were downloaded once: each with its checksum beside it, compared whenever the file is used."""

from __future__ import annotations

import hashlib
import os
import shutil
from contextlib import suppress
from pathlib import Path

from manul.errors import FileError
from manul.utils.atomic_files import partial_path, put_in_place, writable_folder, write_whole

TIMEOUT = 30.0


def folder() -> Path:
    """Where downloads are kept: MANUL_DATA, or manul in the user's cache."""
    chosen = os.environ.get("MANUL_DATA")
    if chosen:
        return Path(chosen)
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "manul"


def checksum(path: Path) -> str:
    """The SHA-256 of a file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a").write_bytes(b"")
    ...     checksum(Path(folder, "a"))[:8]
    'e3b0c442'
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def checked(path: Path) -> Path:
    """The file, if it is as it was when its checksum was written; a file without one is taken as it is."""
    noted = _note(path)
    if noted.is_file():
        wanted, got = noted.read_text(encoding="utf-8").split()[0], checksum(path)
        if got != wanted:
            raise FileError(
                f"{path} must have the checksum {wanted[:12]}… that was noted when it was downloaded; got {got[:12]}…. "
                f"Delete it and {noted.name}, and load it again."
            )
    return path


def downloaded(address: str, path: Path, name: str) -> Path:
    """The file of an address, put at the path in whole or not at all, with its checksum beside it."""
    # The network's modules take longer to load than all of manul.
    import urllib.error
    import urllib.request

    writable_folder(path.parent)
    partial = partial_path(path)
    try:
        with urllib.request.urlopen(address, timeout=TIMEOUT) as answer, partial.open("wb") as file:
            shutil.copyfileobj(answer, file)
        write_whole(_note(path), f"{checksum(partial)}  {path.name}\n")
        put_in_place(partial, path)
    except (OSError, urllib.error.URLError, ValueError) as error:
        raise FileError(
            f"{name} must be on disk or within reach of the network; got {_reason(error)}. Put the file of {address} at {path}, "
            "or name a folder that has it with --data."
        ) from error
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
    return path


def _reason(error: BaseException) -> str:
    """In words, without the numbers and classes around them."""
    inner = getattr(error, "reason", error)
    return str(getattr(inner, "strerror", None) or inner)


def _note(path: Path) -> Path:
    return path.with_name(path.name + ".sha256")
