"""The configuration of the service: options, then MANUL_… environment variables, then a TOML file."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from manul.errors import FileError, ParameterError, missing_file, remedy

Count = Annotated[int, msgspec.Meta(ge=1)]
Seconds = Annotated[float, msgspec.Meta(ge=0.1)]
Rate = Annotated[float, msgspec.Meta(ge=0.1)]


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits on what callers may use.

    Per request: bytes of the request line and headers (`head`), number of headers, bytes of the body (`batch_body` and
    `model` for a batch or a model), elements of a batch, features of a context. In total: loops, bytes of a loop's model in
    memory, downloaded models that are kept of a loop (`downloads`, `download_bytes`), open connections, bytes of bodies in
    memory. In seconds: for the head to arrive, for the body, and for an idle connection. Requests per second of each token
    (`rate`), or of all callers if there are no tokens; a batch counts as its elements.
    """

    head: Count = 32 * 2**10
    headers: Count = 100
    body: Count = 2**20
    batch_body: Count = 8 * 2**20
    batch: Count = 10_000
    features: Count = 4096
    model: Count = 256 * 2**20  # as `loop_bytes`, so that what can be downloaded can be uploaded
    loops: Count = 1000
    loop_bytes: Count = 256 * 2**20
    downloads: Count = 100
    download_bytes: Count = 256 * 2**20
    connections: Count = 1000
    all_bodies: Count = 64 * 2**20
    head_seconds: Seconds = 10.0
    body_seconds: Seconds = 60.0
    idle_seconds: Seconds = 60.0
    rate: Rate | None = None


class Configuration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    store: str = "decisions.db"
    host: str = "127.0.0.1"
    port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 8000
    token_file: Path | None = None
    allowed_host: tuple[str, ...] = ()
    webhook_host: tuple[str, ...] = ()
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    snapshot_seconds: Annotated[float, msgspec.Meta(ge=0.1)] = 60.0
    snapshot_events: Count = 200_000
    archive: Path | None = None
    archive_after: Annotated[float, msgspec.Meta(ge=0)] = 30.0
    backups: Path | None = None
    otel_endpoint: str | None = None
    limits: Limits = Limits()

    def check(self, *, tokens: bool) -> None:
        """Refuse to listen on a public address without tokens."""
        if not tokens and not is_loopback(self.host):
            raise ParameterError(
                f"without tokens, host must be a loopback address, got {self.host!r}. Create tokens with manul token.",
                "host",
            )


def configure(path: Path | None, options: Mapping[str, Any]) -> Configuration:
    """Combine the settings of a TOML file, if any, with options, which take precedence."""
    settings = {} if path is None else read(path)
    limits = dict(settings.pop("limits", {}))
    for name, value in options.items():
        if value not in (None, ()):
            (limits if name in Limits.__struct_fields__ else settings)[name] = value
    return _convert({**settings, "limits": limits})


def _convert(settings: Mapping[str, Any]) -> Configuration:
    """Check settings; paths may be texts, as in a TOML file."""
    paths = {
        name: Path(value)
        for name in ("token_file", "archive", "backups")
        if isinstance(value := settings.get(name), str)
    }
    return msgspec.convert({**settings, **paths}, Configuration)


def read(path: Path) -> dict[str, Any]:
    """Read a TOML file. Its names are those of `Configuration`, and those of `Limits` in the table `limits`."""
    try:
        settings: dict[str, Any] = msgspec.toml.decode(path.read_bytes())
        _check_names(path, settings, Configuration)
        _check_names(path, settings.get("limits", {}), Limits)
        _convert(settings)
    except FileNotFoundError:
        raise missing_file(path) from None
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror}") from None
    except msgspec.DecodeError as error:
        why = str(error).replace("`", "").replace(" - at $.", " for ")
        raise ParameterError(f"{path} is not a valid configuration: {why}. See manul serve --help.") from None
    return settings


def _check_names(path: Path, settings: object, kind: type[msgspec.Struct]) -> None:
    known = kind.__struct_fields__
    for name in settings if isinstance(settings, dict) else ():
        if name not in known:
            advice = remedy(name, known, "See manul serve --help.")
            raise ParameterError(f"{path} has an unknown setting, {name!r}. {advice}", name)


def is_loopback(name: str) -> bool:
    """Whether a host name or address is a loopback address."""
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"
