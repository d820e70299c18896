"""`manul serve`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from manul.cli._options import FILE, Choice, File, Integer, Number
from manul.errors import MissingDependency

LEVELS = ("debug", "info", "warning", "error")


@click.command(
    epilog="\b\nExample:\n  manul serve --store decisions.db", context_settings={"auto_envvar_prefix": "MANUL"}
)
@click.option("--store", metavar="FILE_OR_URL", help="SQLite file or postgresql:// URL.  [default: decisions.db]")
@click.option("--host", metavar="ADDRESS", help="Address to listen on.  [default: 127.0.0.1]")
@click.option("--port", type=Integer(0, 65535), help="Port to listen on; 0 chooses a free one.  [default: 8000]")
@click.option("--token-file", type=FILE, help="Access tokens, created by manul token; without it, loopback only.")
@click.option(
    "--allowed-host",
    multiple=True,
    metavar="NAME",
    help="Host name allowed in requests without a token; may be repeated.",
)
@click.option("--snapshot-seconds", type=Number(0.1), help="Seconds between snapshots.  [default: 60]")
@click.option("--snapshot-events", type=Integer(1), help="Events between snapshots.  [default: 200000]")
@click.option("--archive", type=FILE, help="Folder to which old decisions are moved, as Parquet.")
@click.option("--archive-after", type=Number(0), help="Age in days at which decisions are archived.  [default: 30]")
@click.option("--log-level", type=Choice(LEVELS), help="Lowest level to log.  [default: info]")
@click.option("--max-head-bytes", "head", type=Integer(1), help="Maximum size of a head.  [default: 32768]")
@click.option("--max-headers", "headers", type=Integer(1), help="Maximum number of headers.  [default: 100]")
@click.option("--max-body-bytes", "body", type=Integer(1), help="Maximum size of a body.  [default: 1048576]")
@click.option("--max-batch-bytes", "batch_body", type=Integer(1), help="Maximum size of a batch.  [default: 8388608]")
@click.option("--max-batch-size", "batch", type=Integer(1), help="Maximum items in a batch.  [default: 10000]")
@click.option("--max-features", "features", type=Integer(1), help="Maximum features of a context.  [default: 4096]")
@click.option("--max-model-bytes", "model", type=Integer(1), help="Maximum size of a model.  [default: 67108864]")
@click.option("--max-loops", "loops", type=Integer(1), help="Maximum number of loops.  [default: 1000]")
@click.option("--max-loop-bytes", "loop_bytes", type=Integer(1), help="Maximum memory of a loop.  [default: 268435456]")
@click.option("--max-connections", "connections", type=Integer(1), help="Maximum open connections.  [default: 1000]")
@click.option(
    "--max-total-body-bytes",
    "all_bodies",
    type=Integer(1),
    help="Maximum size of all bodies.  [default: 67108864]",
)
@click.option("--max-head-seconds", "head_seconds", type=Number(0.1), help="Time limit for a head.  [default: 10]")
@click.option("--max-body-seconds", "body_seconds", type=Number(0.1), help="Time limit for a body.  [default: 60]")
@click.option("--max-idle-seconds", "idle_seconds", type=Number(0.1), help="Time limit when idle.  [default: 60]")
@click.option(
    "--config",
    type=File(".toml"),
    help="TOML file with these settings; options and environment variables take precedence.",
)
def serve(config: Path | None, **options: Any) -> None:
    """Serve decisions over HTTP.

    The dashboard is at /, and an interactive API reference at /docs.

    Every option can also be set by an environment variable, such as MANUL_STORE or MANUL_TOKEN_FILE. For TLS, put a
    reverse proxy in front (nginx, or Caddy with `reverse_proxy 127.0.0.1:8000`) and keep the service on loopback.
    """
    try:
        from manul.service import configuration
        from manul.service.http import server
    except ImportError as error:
        raise MissingDependency(f"manul serve needs {error.name}. Install it: pip install 'manul[serve]'.") from None
    server.serve(configuration.settled(config, options))
