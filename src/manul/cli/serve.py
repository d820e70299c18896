"""`manul serve`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from manul.errors import MissingDependency


@click.command(context_settings={"auto_envvar_prefix": "MANUL"})
@click.option(
    "--store", help="File of the store, or a postgresql:// URL for several replicas.  [default: decisions.db]"
)
@click.option("--host", help="Address to listen on.  [default: 127.0.0.1]")
@click.option("--port", type=click.IntRange(0, 65535), help="Port to listen on; 0 takes a free one.  [default: 8000]")
@click.option("--token-file", type=Path, help="File of tokens, made by manul token; without one, loopback only.")
@click.option("--snapshot-seconds", type=click.FloatRange(0.1), help="Time between snapshots.  [default: 60]")
@click.option("--snapshot-events", type=click.IntRange(1), help="Events between snapshots.  [default: 200000]")
@click.option("--archive", type=Path, help="Folder that old decisions are moved to, as Parquet; without it, all stay.")
@click.option("--archive-after", type=click.FloatRange(0), help="Age in days for moving them.  [default: 30]")
@click.option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]), help="[default: info]")
@click.option("--most-bytes", "body", type=click.IntRange(1), help="Largest body of a request.  [default: 1 MiB]")
@click.option("--most-batch-bytes", "batch_body", type=click.IntRange(1), help="Largest batch.  [default: 8 MiB]")
@click.option("--most-in-batch", "batch", type=click.IntRange(1), help="Most elements of a batch.  [default: 10000]")
@click.option("--most-loops", "loops", type=click.IntRange(1), help="Most loops.  [default: 1000]")
@click.option("--most-connections", "connections", type=click.IntRange(1), help="[default: 1000]")
@click.option("--config", type=Path, help="TOML file of these settings; options and environment come first.")
def serve(config: Path | None, **options: Any) -> None:
    """Answer decisions over HTTP.

    Every option can also come from the environment, as MANUL_STORE or MANUL_TOKEN_FILE. For TLS, put a proxy in front
    that ends it (nginx, Caddy: `reverse_proxy 127.0.0.1:8000`), and keep the service on loopback behind it.
    """
    try:
        import msgspec

        from manul.service import configuration, server
    except ImportError as error:
        raise MissingDependency(f"manul serve needs {error.name}. Install it: pip install 'manul[serve]'.") from None
    settings: dict[str, Any] = configuration.read(config) if config is not None else {}
    limits: dict[str, Any] = dict(settings.pop("limits", {}))
    for name, value in options.items():
        if value is not None:
            (limits if name in configuration.Limits.__struct_fields__ else settings)[name] = value
    server.serve(msgspec.convert({**settings, "limits": limits}, configuration.Configuration))
