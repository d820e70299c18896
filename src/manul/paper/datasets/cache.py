"""Downloaded files, each with a checksum beside it that is verified whenever the file is used."""

from __future__ import annotations

import hashlib
import os
import shutil
from contextlib import suppress
from pathlib import Path

from manul.errors import FileError
from manul.utils.atomic_files import partial_path, put_in_place, writable_folder, write_whole

TIMEOUT = 30.0  # seconds without data from the server


def folder() -> Path:
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
