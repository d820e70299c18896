"""How the service is set up: by options, by MANUL_… in the environment, or by a TOML file; in this order."""

from __future__ import annotations

import ipaddress
from pathlib import Path

import msgspec

from manul.errors import FileError, ParameterError


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one caller may ask for at most: bytes of bodies, elements of batches, loops, bytes of models, connections."""

    body: int = 2**20
    batch_body: int = 8 * 2**20
    batch: int = 10_000
    loops: int = 1000
    model: int = 64 * 2**20
    connections: int = 1000


class Configuration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that `manul serve` can be told."""

    store: str = "decisions.db"
    host: str = "127.0.0.1"
    port: int = 8000
    token_file: Path | None = None
    log_level: str = "info"
    snapshot_seconds: float = 60.0
    snapshot_events: int = 200_000
    archive: Path | None = None
    archive_after: float = 30.0
    limits: Limits = Limits()

    def check(self, *, tokens: bool) -> None:
        """Refuses to listen to the world without tokens."""
        if not tokens and not _is_loopback(self.host):
            raise ParameterError(
                f"host must be a loopback address without tokens; got {self.host!r}. Make tokens with manul token."
            )


def read(path: Path) -> dict[str, object]:
    """The settings of a TOML file; names are those of the options."""
    try:
        found = msgspec.toml.decode(path.read_bytes())
        msgspec.convert(found, Configuration)
    except OSError as error:
        raise FileError(f"{path} must be a readable file; got {error.strerror}. Check the name.") from None
    except msgspec.DecodeError as error:
        raise ParameterError(
            f"{path} must hold settings of manul serve; got {error}. See manul serve --help."
        ) from None
    return dict(found)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
