"""Suggestions for misspelt names."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path

from manul.errors import FileError

CUTOFF = 0.4  # lower than difflib's 0.6: the names are few and short


def remedy(got: str, known: Iterable[str], otherwise: str) -> str:
    """Suggest the closest known name.

    >>> remedy("prise", ["size", "price"], "Check the name.")
    'Did you mean price?'
    >>> remedy("zzz", ["size", "price"], "Check the name.")
    'Check the name.'
    """
    close = get_close_matches(got, list(known), n=1, cutoff=CUTOFF)
    return f"Did you mean {close[0]}?" if close else otherwise


def missing_file(path: str | Path) -> FileError:
    """Return the error for a missing file, with the closest name in the same folder."""
    target = Path(path)
    siblings = sorted(file.name for file in target.parent.iterdir() if file.is_file()) if target.parent.is_dir() else []
    close = get_close_matches(target.name, siblings, n=1)
    advice = f" Did you mean {target.parent / close[0]}?" if close else ""
    return FileError(f"{target}: no such file.{advice}")
