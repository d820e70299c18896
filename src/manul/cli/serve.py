"""`manul serve`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from manul.cli._options import FILE, Choice, File, Number, Whole
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
        from manul.service.configuration import Configuration, Limits
    except ImportError:
        return {}
    settings = {name: getattr(kind(), name) for kind in (Configuration, Limits) for name in kind.__struct_fields__}
    shown = {name: f"{value:.10g}" for name, value in settings.items() if isinstance(value, int | float)}
    return shown | {name: value for name, value in settings.items() if isinstance(value, str)}


@click.command(
    cls=ServeCommand,
    epilog="\b\nExample:\n  manul serve --store decisions.db",
    context_settings={"auto_envvar_prefix": "MANUL"},
)
@click.option(
    "--store",
    metavar="PLACE",
    help="File of the store, or a postgresql:// URL for several replicas.",
)
@click.option("--host", metavar="ADDRESS", help="Address to listen on.")
@click.option("--port", type=Whole(0, 65535), help="Port to listen on; 0 takes a free one.")
@click.option("--token-file", type=FILE, help="File of tokens, made by manul token; without one, loopback only.")
@click.option(
    "--allowed-host",
    multiple=True,
    metavar="NAME",
    help="Host name that requests may use without tokens, besides loopback; may be given several times.",
)
@click.option("--snapshot-seconds", type=Number(0.1), help="Time between snapshots.")
@click.option("--snapshot-events", type=Whole(1), help="Events between snapshots.")
@click.option("--archive", type=FILE, help="Folder that old decisions are moved to, as Parquet; without it, all stay.")
@click.option("--archive-after", type=Number(0), help="Age in days for moving them.")
@click.option("--log-level", type=Choice(LEVELS), help="The least that is logged.")
@click.option("--max-head-bytes", "head", type=Whole(1), help="Largest head of a request.")
@click.option("--max-headers", "headers", type=Whole(1), help="Most headers of a request.")
@click.option("--max-body-bytes", "body", type=Whole(1), help="Largest body of a request.")
@click.option("--max-batch-bytes", "batch_body", type=Whole(1), help="Largest body of a batch.")
@click.option("--max-batch-size", "batch", type=Whole(1), help="Most elements of a batch.")
@click.option("--max-features", "features", type=Whole(1), help="Most numbers or names of a context.")
@click.option("--max-model-bytes", "model", type=Whole(1), help="Largest model to import.")
@click.option("--max-loops", "loops", type=Whole(1), help="Most loops.")
@click.option("--max-loop-bytes", "loop_bytes", type=Whole(1), help="Most memory of one loop.")
@click.option("--max-connections", "connections", type=Whole(1), help="Most open connections.")
@click.option("--max-total-body-bytes", "all_bodies", type=Whole(1), help="All bodies in memory.")
@click.option("--max-head-seconds", "head_seconds", type=Number(0.1), help="Time to receive a head.")
@click.option("--max-body-seconds", "body_seconds", type=Number(0.1), help="Time to receive a body.")
@click.option("--max-idle-seconds", "idle_seconds", type=Number(0.1), help="Time between requests.")
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
    server.serve(configuration.settled(config, options))
