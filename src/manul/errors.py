"""The exceptions of manul.

    ManulError
    ├── ParameterError (ValueError)   an invalid parameter
    ├── InputError (ValueError)       an invalid context, action, density or loss; nothing was changed
    ├── FileError (ValueError)        a file that cannot be read or written
    ├── MissingDependency (ImportError)  an optional package that is not installed
    └── ServiceError                  a service rejects a request or cannot be reached

`ContextWarning` (a UserWarning) is about a context that was accepted but is probably wrong, `LearnedTwiceWarning` about a
decision that was learned before, and `LimitWarning` about a limit in expectation that cannot be kept.

Each message says what is wrong, with the value, and what to do; `field` names the parameter or column it is about.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path

CUTOFF = 0.4  # lower than difflib's 0.6: the names are few and short


class ManulError(Exception):
    """The base class of all errors of manul; `field` is the parameter, setting or column that the `message` is about, if any.

    >>> import manul
    >>> try:
    ...     manul.Auto(epsilon=2)
    ... except manul.ManulError as error:
    ...     error.field
    'epsilon'
    """

    def __init__(self, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class ParameterError(ManulError, ValueError):
    """A parameter is invalid."""


class InputError(ManulError, ValueError):
    """A context, action, density or loss is invalid; nothing was changed."""


class FileError(ManulError, ValueError):
    """A file cannot be read or written."""


class MissingDependency(ManulError, ImportError):  # noqa: N818 - reads as what it is
    """An optional package is not installed."""


class ServiceError(ManulError):
    """A service rejects a request or cannot be reached; `code` identifies the error for programs."""

    def __init__(
        self, message: str, *, status: int | None = None, code: str = "unknown", field: str | None = None
    ) -> None:
        super().__init__(message, field)
        self.status, self.code = status, code


class LearnedTwiceWarning(UserWarning):
    """A decision was learned that the agent had learned before, so it counts twice."""


class LimitWarning(UserWarning):
    """A limit in expectation cannot be kept."""


class ContextWarning(UserWarning):
    """A context was accepted, but probably has a misspelt field."""


def require_package(package: str) -> None:
    """Raise MissingDependency if an optional package is not installed.

    >>> require_package("numpy")
    """
    try:
        __import__(package)
    except ImportError:
        raise MissingDependency(f"This needs {package}. Install it: pip install {package}.") from None


def remedy(got: str, known: Iterable[str], otherwise: str, cutoff: float = CUTOFF) -> str:
    """The `known` name that is closest to what one `got`, as a question; `otherwise` if none is as close as the `cutoff`.

    >>> remedy("prise", ["size", "price"], "Check the name.")
    'Did you mean price?'
    >>> remedy("zzz", ["size", "price"], "Check the name.")
    'Check the name.'
    """
    close = get_close_matches(got, list(known), n=1, cutoff=cutoff)
    return f"Did you mean {close[0]}?" if close else otherwise


def missing_file(path: str | Path) -> FileError:
    """The error for a missing file at a `path`, with the closest name in the same folder."""
    target = Path(path)
    siblings = sorted(file.name for file in target.parent.iterdir() if file.is_file()) if target.parent.is_dir() else []
    close = get_close_matches(target.name, siblings, n=1)
    advice = f" Did you mean {target.parent / close[0]}?" if close else ""
    return FileError(f"{target}: no such file.{advice}")
