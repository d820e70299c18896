"""`manul serve`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from manul.cli._options import FILE, Choice, File, Integer, Number
from manul.errors import MissingDependency

LEVELS = ("debug", "info", "warning", "error")


class ServeCommand(click.Command):
    """A command whose help shows the defaults of `Configuration`; without the packages of the service there are none."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write all options, each with its default."""
        defaults = _defaults()
        for option in self.params:
            if isinstance(option, click.Option) and option.name in defaults and "[default" not in str(option.help):
                option.help = f"{option.help}  [default: {defaults[option.name]}]"
        super().format_options(ctx, formatter)


def _defaults() -> dict[str, str]:
    try:
        from msgspec.structs import asdict

        from manul.service.configuration import Configuration, Limits
    except ImportError:
        return {}
    settings = asdict(Configuration()) | asdict(Limits())
    shown = {name: f"{value:.10g}" for name, value in settings.items() if isinstance(value, int | float)}
    return shown | {name: value for name, value in settings.items() if isinstance(value, str)}


@click.command(
    cls=ServeCommand,
    epilog="\b\nExample:\n  manul serve --store decisions.db",
    context_settings={"auto_envvar_prefix": "MANUL"},
)
@click.option("--store", metavar="FILE_OR_URL", help="SQLite file or postgresql:// URL.")
@click.option("--host", metavar="ADDRESS", help="Address to listen on.")
@click.option("--port", type=Integer(0, 65535), help="Port to listen on; 0 chooses a free one.")
@click.option("--token-file", type=FILE, help="Access tokens, created by manul token; without it, loopback only.")
@click.option(
    "--allowed-host",
    multiple=True,
    metavar="NAME",
    help="Host name allowed in requests without a token; may be repeated.",
)
@click.option(
    "--webhook-host",
    multiple=True,
    metavar="NAME",
    help="Host of webhooks that may be an inner address; may be repeated. Others must be public.",
)
@click.option("--snapshot-seconds", type=Number(0.1), help="Seconds between snapshots.")
@click.option("--snapshot-events", type=Integer(1), help="Events between snapshots.")
@click.option("--archive", type=FILE, help="Folder to which old decisions are moved, as Parquet.")
@click.option("--archive-after", type=Number(0), help="Age in days at which decisions are archived.")
@click.option("--backups", type=FILE, help="Folder with backups, whose age the metrics show.")
@click.option("--log-level", type=Choice(LEVELS), help="Lowest level to log.")
@click.option("--otel-endpoint", metavar="URL", help="OpenTelemetry collector that gets traces, over OTLP/HTTP.")
@click.option("--max-head-bytes", "head", type=Integer(1), help="Maximum size of a head.")
@click.option("--max-headers", "headers", type=Integer(1), help="Maximum number of headers.")
@click.option("--max-body-bytes", "body", type=Integer(1), help="Maximum size of a body.")
@click.option("--max-batch-bytes", "batch_body", type=Integer(1), help="Maximum size of a batch.")
@click.option("--max-batch-size", "batch", type=Integer(1), help="Maximum items in a batch.")
@click.option("--max-features", "features", type=Integer(1), help="Maximum features of a context.")
@click.option("--max-model-bytes", "model", type=Integer(1), help="Maximum size of a model.")
@click.option("--max-loops", "loops", type=Integer(1), help="Maximum number of loops.")
@click.option("--max-loop-bytes", "loop_bytes", type=Integer(1), help="Maximum memory of a loop.")
@click.option("--max-downloads", "downloads", type=Integer(1), help="Maximum downloaded models kept of a loop.")
@click.option("--max-download-bytes", "download_bytes", type=Integer(1), help="Maximum size of these together.")
@click.option("--max-connections", "connections", type=Integer(1), help="Maximum open connections.")
@click.option(
    "--max-total-body-bytes",
    "all_bodies",
    type=Integer(1),
    help="Maximum size of all bodies.",
)
@click.option("--max-head-seconds", "head_seconds", type=Number(0.1), help="Time limit for a head.")
@click.option("--max-body-seconds", "body_seconds", type=Number(0.1), help="Time limit for a body.")
@click.option("--max-idle-seconds", "idle_seconds", type=Number(0.1), help="Time limit when idle.")
@click.option("--max-rate", "rate", type=Number(0.1), help="Requests per second of each token; unlimited by default.")
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
    server.serve(configuration.configure(config, options))
