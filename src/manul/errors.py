"""Everything that manul raises on purpose.

    ManulError
    ├── ParameterError (ValueError)   a setting that cannot work
    ├── InputError (ValueError)       a context, action, density or loss that cannot be used; nothing was changed
    ├── FileError (ValueError)        a file that cannot be read or written
    ├── MissingDependency (ImportError)  an optional package that is not installed
    └── ServiceError                  a service that refuses, or cannot be reached

Each message says what is wrong, with the value, and what to do; `field` names the parameter or column it is about.
"""


class ManulError(Exception):
    """The root of all errors of manul; `field` is the parameter, setting or column that the message is about, if it is one.

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
    """A setting that cannot work."""


class InputError(ManulError, ValueError):
    """A context, action, density or loss that cannot be used; nothing was changed."""


class FileError(ManulError, ValueError):
    """A file that cannot be read or written."""


class MissingDependency(ManulError, ImportError):  # noqa: N818 - reads as what it is
    """An optional package that is not installed."""


class ServiceError(ManulError):
    """A service that rejects a request, or cannot be reached; `code` is for programs."""

    def __init__(
        self, message: str, *, status: int | None = None, code: str = "unknown", field: str | None = None
    ) -> None:
        super().__init__(message, field)
        self.status, self.code = status, code
