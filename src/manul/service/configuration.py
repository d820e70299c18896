"""How the service is set up: by options, by MANUL_… in the environment, or by a TOML file; in this order."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from manul.errors import FileError, ParameterError
from manul.utils.suggestions import missing, remedy

Count = Annotated[int, msgspec.Meta(ge=1)]
Seconds = Annotated[float, msgspec.Meta(ge=0.1)]


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What callers may use at most.

    Of one request: bytes of its head, headers, bytes of its body (more for a batch or a model), elements of a batch,
    numbers or names of a context. In all: loops, bytes of a loop's model in memory, open connections, bytes of bodies
    in memory. In seconds: until a head has arrived, until a body has, and a connection without a request.
    """

    head: Count = 32 * 2**10
    headers: Count = 100
    body: Count = 2**20
    batch_body: Count = 8 * 2**20
    batch: Count = 10_000
    features: Count = 4096
    model: Count = 64 * 2**20
    loops: Count = 1000
    loop_bytes: Count = 256 * 2**20
    connections: Count = 1000
    all_bodies: Count = 64 * 2**20
    head_seconds: Seconds = 10.0
    body_seconds: Seconds = 60.0
    idle_seconds: Seconds = 60.0


class Configuration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that `manul serve` can be told."""

    store: str = "decisions.db"
    host: str = "127.0.0.1"
    port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 8000
    token_file: Path | None = None
    allowed_host: tuple[str, ...] = ()
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    snapshot_seconds: Annotated[float, msgspec.Meta(ge=0.1)] = 60.0
    snapshot_events: Count = 200_000
    archive: Path | None = None
    archive_after: Annotated[float, msgspec.Meta(ge=0)] = 30.0
    limits: Limits = Limits()

    def check(self, *, tokens: bool) -> None:
        """Refuses to listen to the world without tokens."""
        if not tokens and not is_loopback(self.host):
            raise ParameterError(
                f"host must be a loopback address without tokens; got {self.host!r}. Make tokens with manul token."
            )


def settled(path: Path | None, options: Mapping[str, Any]) -> Configuration:
    """The settings of a TOML file, where there is one, and of the options that were given, which come first.

    >>> settled(None, {"port": 9000, "loops": 5, "host": None}).limits.loops
    5
    """
    settings = {} if path is None else read(path)
    limits = dict(settings.pop("limits", {}))
    for name, value in options.items():
        if value not in (None, ()):
            (limits if name in Limits.__struct_fields__ else settings)[name] = value
    return msgspec.convert({**settings, "limits": limits}, Configuration)


def read(path: Path) -> dict[str, Any]:
    """The settings of a TOML file; names are those of `Configuration`, and of `Limits` in a table of its own."""
    try:
        found: dict[str, Any] = msgspec.toml.decode(path.read_bytes())
        _check_names(path, found, Configuration)
        _check_names(path, found.get("limits", {}), Limits)
        msgspec.convert(found, Configuration)
    except FileNotFoundError:
        raise missing(path) from None
    except OSError as error:
        raise FileError(f"{path} must be a readable file; got {error.strerror}. Check the name.") from None
    except msgspec.DecodeError as error:
        why = str(error).replace("`", "").replace(" - at $.", " for ")
        raise ParameterError(f"{path} must hold settings of manul serve; got {why}. See manul serve --help.") from None
    return found


def _check_names(path: Path, found: object, kind: type[msgspec.Struct]) -> None:
    known = kind.__struct_fields__
    for name in found if isinstance(found, dict) else ():
        if name not in known:
            advice = remedy(name, known, "See manul serve --help.")
            raise ParameterError(f"{path} must have known settings only; got {name!r}. {advice}")


def is_loopback(name: str) -> bool:
    """Whether a name or an address is that of this machine alone.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("192.0.2.1")
    (True, True, False)
    """
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"
