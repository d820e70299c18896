"""Bearer tokens: the rights to decide, report or administer, for all loops or some. Only their hashes are stored."""

from __future__ import annotations

import hashlib
import math
import re
import secrets
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal, get_args

from manul.errors import FileError, ParameterError, missing_file
from manul.service.errors import Forbidden, Unauthorized
from manul.service.http.rate_limit import Bucket, too_many

Right = Literal["decide", "report", "admin"]
RIGHTS: tuple[Right, ...] = get_args(Right)
HASH = re.compile(r"sha256:([0-9a-f]{64})")
# The name of a loop, or a prefix of names followed by a star.
LOOPS = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\*?")
# Characters of a hash that identify a token in the log and the metrics.
SHOWN = 8
LEAST_RATE = 0.1


def new_token() -> str:
    return secrets.token_urlsafe(32)


def line(token: str, rights: Iterable[str], loops: Sequence[str] = (), rate: float | None = None) -> str:
    """The line of a token in a token file: its hash, its rights, and its loops and rate limit if there are any.

    `admin` includes the other rights. A name of `loops` that ends with a star is a prefix of names.
    """
    for right in rights:
        if right not in RIGHTS:
            raise ParameterError(
                f"rights must be among {', '.join(RIGHTS)}, got {right!r}. Example: decide,report.", "rights"
            )
    words = [f"sha256:{_hash(token)}", ",".join(rights)]
    if loops:
        words.append(f"loops={','.join(check_loops(loops))}")
    if rate is not None:
        words.append(f"rate={check_rate(rate):.15g}")
    return " ".join(words)


def check_loops(loops: Iterable[str]) -> tuple[str, ...]:
    checked = tuple(loops)
    for name in checked:
        if not LOOPS.fullmatch(name):
            raise ParameterError(
                f"loop must be a name, or the beginning of names and a star such as price-*, got {name!r}", "loop"
            )
    return checked


def check_rate(rate: float) -> float:
    if not LEAST_RATE <= rate < math.inf:
        raise ParameterError(f"rate must be a number of at least {LEAST_RATE:g} per second, got {rate:g}", "rate")
    return rate


def add(path: Path, rights: Iterable[str], loops: Sequence[str] = (), rate: float | None = None) -> str:
    """Generate a token and add its hash to a file."""
    token = new_token()
    text = line(token, rights, loops, rate)
    try:
        with path.open("a+b") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - 1))
            separator = b"\n" if file.read(1) not in (b"", b"\n") else b""
            file.write(separator + text.encode() + b"\n")
    except OSError as error:
        raise FileError(f"cannot write {path}: {error.strerror}") from None
    return token


class Access:
    """What a token allows: its rights, the loops, and how many requests per second."""

    def __init__(
        self, hashed: str, rights: frozenset[str], loops: Sequence[str] | None = None, rate: float | None = None
    ) -> None:
        self.hash, self.rights, self.rate, self.refused = hashed, rights, rate, 0
        self._all, self._names = loops is None, frozenset(loops or ())
        self._prefixes = tuple(name[:-1] for name in loops or () if name.endswith("*"))
        self._bucket = None if rate is None else Bucket(rate)

    @property
    def restricted(self) -> bool:
        return not self._all

    @property
    def shown(self) -> str:
        """The beginning of the hash, by which the line in the token file can be found."""
        return self.hash[:SHOWN]

    def includes(self, loop: str) -> bool:
        """Whether the token is for a loop of this name, which need not exist."""
        return self._all or loop in self._names or loop.startswith(self._prefixes)

    def check(self, right: Right, loop: str | None = None) -> None:
        """Refuse a caller without a right, or for a loop that the token is not for."""
        if right not in self.rights and "admin" not in self.rights:
            raise Forbidden(f"The token does not have the right {right!r}.")
        if loop is not None:
            self.check_loop(loop)

    def check_loop(self, loop: str) -> None:
        """Refuse a loop that the token is not for; whether it exists makes no difference."""
        if not self.includes(loop):
            raise Forbidden(f"The token does not give access to a loop named {loop[:80]!r}.")

    def take(self) -> None:
        """Count a request, and refuse it if there were too many."""
        if self._bucket is not None and not self._bucket.take():
            raise self._too_many(self._bucket)

    def take_batch(self, count: int) -> None:
        """Count the elements of a batch; its request was counted already."""
        if self._bucket is not None and count > 1 and not self._bucket.take_more(count - 1):
            raise self._too_many(self._bucket)

    def continue_from(self, before: Access) -> None:
        """Keep the count of refused requests, and the bucket, so that a reload of the file does not fill it."""
        self.refused = before.refused
        if self.rate is not None and before._bucket is not None:
            self._bucket = before._bucket
            self._bucket.change_rate(self.rate)

    def _too_many(self, bucket: Bucket) -> Exception:
        self.refused += 1
        return too_many(bucket, "The token's" if self.hash else "The")


class Tokens:
    """The known tokens; if there are none, every request is allowed. `rate` is the limit of tokens without their own.

    Tokens are found by their hash. The time that this takes tells nothing about a token: nobody can choose its hash.
    """

    def __init__(self, known: Iterable[Access] = (), rate: float | None = None) -> None:
        self._known = {each.hash: each for each in known}
        self.rate = None if rate is None else check_rate(rate)
        self._anyone = Access("", frozenset(RIGHTS), rate=rate)
        self.changes = 0

    def replace(self, other: Tokens) -> None:
        """Replace all tokens by those of another file."""
        for hashed, access in other._known.items():
            if hashed in self._known:
                access.continue_from(self._known[hashed])
        self._known = other._known
        self.changes += 1

    def __bool__(self) -> bool:
        return bool(self._known)

    def __iter__(self) -> Iterator[Access]:
        """Everything that was granted; without tokens, what anyone may do."""
        return iter(self._known.values() if self._known else (self._anyone,))

    def find(self, header: bytes | None) -> Access:
        """What a caller may do, by its `Authorization` header."""
        if not self._known:
            return self._anyone
        if header is None or header[:7].lower() != b"bearer ":
            raise Unauthorized("The request has no token. Send it as 'Authorization: Bearer TOKEN'.")
        access = self._known.get(_hash(header[7:].strip()))
        if access is None:
            raise Unauthorized("The token is unknown.")
        return access

    def require(self, header: bytes | None, right: Right, loop: str | None = None) -> Access:
        """What a caller may do; one without a right, or for another loop, is refused."""
        access = self.find(header)
        access.check(right, loop)
        return access


def read(path: Path, rate: float | None = None) -> Tokens:
    """The tokens of a file, one `sha256:hash rights [loops=names] [rate=number]` per line; `#` starts a comment.

    `rate` is the limit of tokens that have none of their own.
    """
    if not path.exists():
        raise missing_file(path)
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        raise FileError(f"{path} cannot be read as a token file. Create one with manul token.") from None
    known: dict[str, int] = {}
    granted = []
    for number, text in enumerate(lines, 1):
        words = text.partition("#")[0].split()
        if not words:
            continue
        try:
            granted.append(_granted(words, rate))
        except ParameterError as error:
            raise FileError(f"{path}, line {number}: {error}. Create tokens with manul token.") from None
        first = known.setdefault(granted[-1].hash, number)
        if first != number:
            raise FileError(f"{path}, line {number}: the token of line {first} again. Remove one of them.")
    if not granted:
        raise FileError(f"{path} has no tokens. Create one with manul token.")
    return Tokens(granted, rate)


def _granted(words: Sequence[str], rate: float | None) -> Access:
    """What a line of a token file grants. A word that is not understood is an error, never ignored: it may restrict the token."""
    hashed = HASH.fullmatch(words[0])
    rights = words[1].split(",") if len(words) > 1 else []
    if hashed is None or not rights or not set(rights) <= set(RIGHTS):
        raise ParameterError("expected a hash and rights")
    loops = None
    seen = set[str]()
    for word in words[2:]:
        name, _, value = word.partition("=")
        if name not in ("loops", "rate") or name in seen:
            raise ParameterError(f"expected loops= or rate=, each at most once, got {word!r}")
        seen.add(name)
        if name == "loops":
            loops = check_loops(value.split(","))
        else:
            rate = check_rate(_number(value))
    return Access(hashed[1], frozenset(rights), loops, rate)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ParameterError(f"rate must be a number, got {text!r}", "rate") from None


def _hash(token: str | bytes) -> str:
    return hashlib.sha256(token.encode() if isinstance(token, str) else token).hexdigest()
