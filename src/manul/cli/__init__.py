"""The command line: one file per command, each with a click command of the file's name, imported on first use."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import click

import manul
from manul.cli._options import usage_message
from manul.cli._wording import error_message
from manul.errors import ManulError, ParameterError, remedy
from manul.utils.registry import import_plugin

EPILOG = """\b
Example:
  manul demo --rounds 2000

\b
Shell completion for commands, options and file names:
  eval "$(_MANUL_COMPLETE=bash_source manul)"
  eval "$(_MANUL_COMPLETE=zsh_source manul)"
  _MANUL_COMPLETE=fish_source manul | source"""


class Commands(click.Group):
    """A group whose commands are the files in this folder, and which reports every error as one line."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names of all commands."""
        return sorted(module.name for module in iter_modules(__path__) if not module.name.startswith("_"))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return the command of a name, or None if there is none."""
        if cmd_name not in self.list_commands(ctx):
            return None
        command: click.Command = vars(import_module(f"{__name__}.{cmd_name}"))[cmd_name]
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that the arguments name; an unknown name gets a suggestion."""
        known = self.list_commands(ctx)
        if args[0].startswith("-") or args[0] in known:
            return super().resolve_command(ctx, args)
        raise click.UsageError(f"unknown command {args[0]!r}. {remedy(args[0], known, 'See manul --help.')}", ctx)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; an error prints one line, and Ctrl-C one word, instead of a traceback."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("stopped", err=True)
            ctx.exit(130)
        except ManulError as error:
            command = self.get_command(ctx, ctx.invoked_subcommand or "")
            click.echo(error_message(error, command), err=True)
            ctx.exit(2 if isinstance(error, ParameterError) else 1)

    def main(self, args: Sequence[str] | None = None, prog_name: str | None = None, **settings: Any) -> Any:  # type: ignore[override]
        """Run a command line; an error prints one line and exits with 2 for wrong usage, with 1 otherwise."""
        if not settings.pop("standalone_mode", True):
            return super().main(args, prog_name, standalone_mode=False, **settings)
        try:
            sys.exit(super().main(args, prog_name, standalone_mode=False, **settings) or 0)
        except click.exceptions.NoArgsIsHelpError as error:
            error.show()
            sys.exit(error.exit_code)
        except click.ClickException as error:
            click.echo(usage_message(error) if isinstance(error, click.UsageError) else error, err=True)
            sys.exit(2 if isinstance(error, click.UsageError) else 1)


@click.group(
    cls=Commands, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"], "show_default": True}
)
@click.version_option(manul.__version__)
@click.option(
    "--plugin",
    "plugins",
    multiple=True,
    metavar="FILE",
    help="Python file or module that registers agents, estimators, log formats or stores; also MANUL_PLUGINS.",
)
def main(plugins: tuple[str, ...]) -> None:
    """Contextual bandits with continuous actions: learn which number to choose."""
    for place in plugins:
        import_plugin(place)
