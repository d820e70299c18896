"""The command line: one file per command, each with a click command of the file's name, loaded when it is asked for."""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import click

import manul
from manul.errors import ManulError, ParameterError


class Commands(click.Group):
    """A group whose commands are the files beside this one, and whose errors are one sentence each."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """The names of all commands."""
        return sorted(module.name for module in iter_modules(__path__))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name, if there is one."""
        if cmd_name not in self.list_commands(ctx):
            return None
        command: click.Command = getattr(import_module(f"{__name__}.{cmd_name}"), cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the arguments name; the closest names where there is none."""
        known = self.list_commands(ctx)
        if args[0].startswith("-") or args[0] in known:
            return super().resolve_command(ctx, args)
        close = get_close_matches(args[0], known, n=1, cutoff=0.4)
        remedy = f"Did you mean {close[0]!r}?" if close else "See manul --help."
        raise click.UsageError(f"command must be one of {', '.join(known)}; got {args[0]!r}. {remedy}", ctx)

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command; what goes wrong is one sentence, with exit code 2 for a setting and 1 for the rest."""
        try:
            return super().invoke(ctx)
        except ManulError as error:
            click.echo(error, err=True)
            ctx.exit(2 if isinstance(error, ParameterError) else 1)
        except KeyboardInterrupt:
            click.echo("stopped", err=True)
            ctx.exit(130)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(manul.__version__)
def main() -> None:
    """Contextual bandits with continuous actions."""
