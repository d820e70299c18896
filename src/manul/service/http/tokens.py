"""Bearer tokens: who may decide, report losses, or do everything. Only their hashes are kept."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal, get_args

from manul.errors import FileError, ParameterError
from manul.service.errors import Forbidden, Unauthorized
from manul.utils.suggestions import missing

Right = Literal["decide", "report", "admin"]
RIGHTS: tuple[Right, ...] = get_args(Right)


def new_token() -> str:
    """32 random bytes as text.

    >>> len(new_token())
    43
    """
    return secrets.token_urlsafe(32)


def line(token: str, rights: Iterable[str]) -> str:
    """A line of a token file: the hash, and the rights. `admin` includes the others.

    >>> line("secret", ["decide"])
    'sha256:2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b decide'
    """
    for right in rights:
        if right not in RIGHTS:
            raise ParameterError(f"rights must be of {', '.join(RIGHTS)}; got {right!r}. Try decide,report.")
    return f"sha256:{_hash(token)} {','.join(rights)}"


def add(path: Path, rights: Iterable[str]) -> str:
    """A new token, whose hash is added to a file."""
    made = new_token()
    try:
        with path.open("a", encoding="utf-8") as lines:
            lines.write(line(made, rights) + "\n")
    except OSError as error:
        raise FileError(f"{path} must be a file to add to; got {error.strerror}. Choose another with --file.") from None
    return made


def read(path: Path) -> Tokens:
    """The tokens of a file, one `sha256:hash rights` per line; `#` starts a comment."""
    if not path.exists():
        raise missing(path)
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        raise FileError(f"{path} must be a readable file of tokens; it is not. Make one with manul token.") from None
    known = []
    for number, text in enumerate(lines, 1):
        words = text.partition("#")[0].split()
        if not words:
            continue
        rights = words[1].split(",") if len(words) == 2 else []
        if not words[0].startswith("sha256:") or not rights or not set(rights) <= set(RIGHTS):
            raise FileError(
                f"{path} must have a hash and rights in every line; line {number} has not. Run manul token."
            )
        known.append((words[0].removeprefix("sha256:"), frozenset(rights)))
    if not known:
        raise FileError(f"{path} must have at least one token; it has none. Make one with manul token.")
    return Tokens(known)


class Tokens:
    """Known tokens; where there are none, everybody may do everything."""

    def __init__(self, known: Sequence[tuple[str, frozenset[str]]] = ()) -> None:
        self._known = known

    def replace(self, other: Tokens) -> None:
        """Know the tokens of another file from now on, and none of the old ones."""
        self._known = other._known

    def __bool__(self) -> bool:
        return bool(self._known)

    def require(self, header: bytes | None, right: Right) -> None:
        """Refuses a caller without the right; every known hash is compared, each in constant time."""
        if not self._known:
            return
        if header is None or header[:7].lower() != b"bearer ":
            raise Unauthorized("token must be sent as 'Authorization: Bearer ...'; got none. Ask who runs the service.")
        given, rights = _hash(header[7:].strip()), frozenset[str]()
        for known, allowed in self._known:
            if hmac.compare_digest(given, known):
                rights = allowed
        if not rights:
            raise Unauthorized("token must be one that was given out; got another. Ask who runs the service.")
        if right not in rights and "admin" not in rights:
            raise Forbidden(f"token must have the right {right!r}; got one without it. Ask who runs the service.")


def _hash(token: str | bytes) -> str:
    return hashlib.sha256(token.encode() if isinstance(token, str) else token).hexdigest()
