"""The exceptions of manul.

    ManulError
    ├── ParameterError (ValueError)   an invalid parameter
    ├── InputError (ValueError)       an invalid context, action, density or loss; nothing was changed
    ├── FileError (ValueError)        a file that cannot be read or written
    ├── MissingDependency (ImportError)  an optional package that is not installed
    └── ServiceError                  a service rejects a request or cannot be reached

`ContextWarning` (a UserWarning) is about a context that was accepted but is probably wrong, and `LearnedTwiceWarning` about a
decision that was learned before.

Each message says what is wrong, with the value, and what to do; `field` names the parameter or column it is about.
"""


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
