"""`manul serve`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from manul.cli._options import FILE, Choice, File, Number, Whole
from manul.errors import MissingDependency

LEVELS = ("debug", "info", "warning", "error")


@click.command(
    epilog="\b\nExample:\n  manul serve --store decisions.db", context_settings={"auto_envvar_prefix": "MANUL"}
)
@click.option(
    "--store",
    metavar="PLACE",
    help="File of the store, or a postgresql:// URL for several replicas.  [default: decisions.db]",
)
@click.option("--host", metavar="ADDRESS", help="Address to listen on.  [default: 127.0.0.1]")
@click.option("--port", type=Whole(0, 65535), help="Port to listen on; 0 takes a free one.  [default: 8000]")
@click.option("--token-file", type=FILE, help="File of tokens, made by manul token; without one, loopback only.")
@click.option(
    "--allowed-host",
    multiple=True,
    metavar="NAME",
    help="Host name that requests may use without tokens, besides loopback; may be given several times.",
)
@click.option("--snapshot-seconds", type=Number(0.1), help="Time between snapshots.  [default: 60]")
@click.option("--snapshot-events", type=Whole(1), help="Events between snapshots.  [default: 200000]")
@click.option("--archive", type=FILE, help="Folder that old decisions are moved to, as Parquet; without it, all stay.")
@click.option("--archive-after", type=Number(0), help="Age in days for moving them.  [default: 30]")
@click.option("--log-level", type=Choice(LEVELS), help="The least that is logged.  [default: info]")
@click.option("--max-head-bytes", "head", type=Whole(1), help="Largest head of a request.  [default: 32768]")
@click.option("--max-headers", "headers", type=Whole(1), help="Most headers of a request.  [default: 100]")
@click.option("--max-body-bytes", "body", type=Whole(1), help="Largest body of a request.  [default: 1048576]")
@click.option("--max-batch-bytes", "batch_body", type=Whole(1), help="Largest body of a batch.  [default: 8388608]")
@click.option("--max-batch-size", "batch", type=Whole(1), help="Most elements of a batch.  [default: 10000]")
@click.option("--max-features", "features", type=Whole(1), help="Most numbers or names of a context.  [default: 4096]")
@click.option("--max-model-bytes", "model", type=Whole(1), help="Largest model to import.  [default: 67108864]")
@click.option("--max-loops", "loops", type=Whole(1), help="Most loops.  [default: 1000]")
@click.option("--max-loop-bytes", "loop_bytes", type=Whole(1), help="Most memory of one loop.  [default: 268435456]")
@click.option("--max-connections", "connections", type=Whole(1), help="Most open connections.  [default: 1000]")
@click.option("--max-total-body-bytes", "all_bodies", type=Whole(1), help="All bodies in memory.  [default: 67108864]")
@click.option("--max-head-seconds", "head_seconds", type=Number(0.1), help="Time to receive a head.  [default: 10]")
@click.option("--max-body-seconds", "body_seconds", type=Number(0.1), help="Time to receive a body.  [default: 60]")
@click.option("--max-idle-seconds", "idle_seconds", type=Number(0.1), help="Time between requests.  [default: 60]")
@click.option("--config", type=File(".toml"), help="File of these settings; options and environment come first.")
def serve(config: Path | None, **options: Any) -> None:
    """Answer decisions over HTTP until told to stop.

    A browser finds the dashboard at / and a page to try every route at /docs.

    Every option can also come from the environment, as MANUL_STORE or MANUL_TOKEN_FILE. For TLS, put a proxy in front
    that ends it (nginx, Caddy: `reverse_proxy 127.0.0.1:8000`), and keep the service on loopback behind it.
    """
    try:
        from manul.service import configuration
        from manul.service.http import server
    except ImportError as error:
        raise MissingDependency(f"manul serve needs {error.name}. Install it: pip install 'manul[serve]'.") from None
    server.serve(configuration.configure(config, options))
