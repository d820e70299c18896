"""Sentences of the library in the words of the command line: options instead of parameters of Python."""

from __future__ import annotations

import click

from manul.errors import ManulError, ParameterError, ServiceError

# What sentences of the library advise, and the same on the command line. A range in a file is declared when the file is converted.
PHRASES = {
    "actions=(low, high)": "--actions LOW HIGH",
    "losses=(low, high)": "--losses LOW HIGH",
    "rewards=(low, high)": "--rewards LOW HIGH",
    "action_range=(low, high)": "manul convert --actions LOW HIGH",
    "loss_range=(low, high)": "manul convert --losses LOW HIGH",
    "reward_range=(low, high)": "manul convert --rewards LOW HIGH",
    "outcome_range=(low, high)": "--outcome-range LOW,HIGH",
    "skip_bad=True": "manul convert --skip-bad",
    "density='estimate'": "manul convert --estimate-density",
    "knobs={...}": "manul convert --knobs JSON",
    "format='vw'": "--format vw",
    "suffix='.vw'": "--format vw",
    "engine='local'": "--engine local",
    "engine='ray'": "--engine ray",
    "candidates='auto'": "--candidate auto",
    "the second part of log.split(0.8), and train it on the first": "those of manul convert --last 0.2, and train it on the rest",
    "losses and rewards exclude": "--losses and --rewards exclude",
    "loss_range and reward_range exclude": "--losses and --rewards exclude",
    "first and last cannot be combined": "--first and --last cannot be combined",
    ", or put it into a manul.Mapped with manul.maps.Features or Columns": "",  # which a command cannot do
    ", or with like= and the agent that decided": "",
    "manul.schedules.Fading()": "0.05:0.002:1000",
}
_PARAMETERS = {"action_range": "actions", "loss_range": "losses", "reward_range": "rewards"}  # other names of options


def in_options(text: object) -> str:
    """A text with the options of the command line instead of parameters of Python."""
    words = str(text)
    # The longest first: losses=... is a part of no longer phrase, but may become one.
    for phrase in sorted(PHRASES, key=len, reverse=True):
        words = words.replace(phrase, PHRASES[phrase])
    return words


def echo(text: object, *, err: bool = False) -> None:
    """Print a text of the library."""
    click.echo(in_options(text), err=err)


def error_message(error: ManulError, command: click.Command | None) -> str:
    """The message of an error; a parameter at its beginning is named as the option of the command."""
    message, field = in_options(error), error.field or ""
    option = _options(command).get(_PARAMETERS.get(field, field))
    about_it = message.startswith(tuple(f"{field} {verb} " for verb in ("must", "is", "has", "applies", "requires")))
    if option is None or not about_it or not isinstance(error, ParameterError | ServiceError):
        return message
    return option + message.removeprefix(field)


def _options(command: click.Command | None) -> dict[str, str]:
    """The options of a command and of its subcommands, by the name of the parameter."""
    if command is None:
        return {}
    children = command.commands.values() if isinstance(command, click.Group) else ()
    names = [name for param in command.params for name in param.opts if name.startswith("--")]
    own = {name.removeprefix("--").replace("-", "_"): name for name in names}
    return {name: option for child in children for name, option in _options(child).items()} | own
