"""Bearer tokens with the rights to decide, report or administer. Only their hashes are stored."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal, get_args

from manul.errors import FileError, ParameterError
from manul.service.errors import Forbidden, Unauthorized
from manul.utils.suggestions import missing_file

Right = Literal["decide", "report", "admin"]
RIGHTS: tuple[Right, ...] = get_args(Right)


def new_token() -> str:
    """Generate a token of 32 random bytes.

    >>> len(new_token())
    43
    """
    return secrets.token_urlsafe(32)


def line(token: str, rights: Iterable[str]) -> str:
    """The line of a token in a token file: its hash and its rights. `admin` includes the others.

    >>> line("secret", ["decide"])
    'sha256:2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b decide'
    """
    for right in rights:
        if right not in RIGHTS:
            raise ParameterError(
                f"rights must be among {', '.join(RIGHTS)}, got {right!r}. Example: decide,report.", "rights"
            )
    return f"sha256:{_hash(token)} {','.join(rights)}"


def add(path: Path, rights: Iterable[str]) -> str:
    """Generate a token and add its hash to a file."""
    token = new_token()
    try:
        with path.open("a", encoding="utf-8") as lines:
            lines.write(line(token, rights) + "\n")
    except OSError as error:
        raise FileError(f"cannot write {path}: {error.strerror}") from None
    return token


def read(path: Path) -> Tokens:
    """The tokens of a file, one `sha256:hash rights` per line; `#` starts a comment."""
    if not path.exists():
        raise missing_file(path)
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        raise FileError(f"{path} cannot be read as a token file. Create one with manul token.") from None
    known = []
    for number, text in enumerate(lines, 1):
        words = text.partition("#")[0].split()
        if not words:
            continue
        rights = words[1].split(",") if len(words) == 2 else []
        if not words[0].startswith("sha256:") or not rights or not set(rights) <= set(RIGHTS):
            raise FileError(f"{path}, line {number}: expected a hash and rights. Create tokens with manul token.")
        known.append((words[0].removeprefix("sha256:"), frozenset(rights)))
    if not known:
        raise FileError(f"{path} has no tokens. Create one with manul token.")
    return Tokens(known)


class Tokens:
    """The known tokens; if there are none, every request is allowed."""

    def __init__(self, known: Sequence[tuple[str, frozenset[str]]] = ()) -> None:
        self._known = known

    def replace(self, other: Tokens) -> None:
        """Replace all tokens by those of another file."""
        self._known = other._known

    def __bool__(self) -> bool:
        return bool(self._known)

    def require(self, header: bytes | None, right: Right) -> None:
        """Refuse a caller without a right; every known hash is compared, each in constant time."""
        if not self._known:
            return
        if header is None or header[:7].lower() != b"bearer ":
            raise Unauthorized("The request has no token. Send it as 'Authorization: Bearer TOKEN'.")
        hashed, rights = _hash(header[7:].strip()), frozenset[str]()
        for known, allowed in self._known:
            if hmac.compare_digest(hashed, known):
                rights = allowed
        if not rights:
            raise Unauthorized("The token is unknown.")
        if right not in rights and "admin" not in rights:
            raise Forbidden(f"The token does not have the right {right!r}.")


def _hash(token: str | bytes) -> str:
    return hashlib.sha256(token.encode() if isinstance(token, str) else token).hexdigest()
