"""Types of options and arguments (numbers, fractions, choices, files) and the text of usage errors."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from manul.errors import remedy
from manul.utils.registry import Registry

MODEL = (".manul",)
PICTURE = (".png", ".svg", ".pdf")


class Number(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """A number or a fraction such as 1/16, optionally with a minimum."""

    name = "number"

    def __init__(self, minimum: float | None = None) -> None:
        self.minimum = minimum

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, int | float | Fraction):
            return value
        try:
            number = self.read(str(value))
        except (ValueError, ZeroDivisionError):
            self.fail(f"{_name(param)} must be a number or a fraction such as 1/16, got {value!r}.", param, ctx)
        if self.minimum is not None and not number >= self.minimum:
            self.fail(f"{_name(param)} must be at least {self.minimum:g}, got {value!r}.", param, ctx)
        return number

    def read(self, text: str) -> float:
        return float(Fraction(text)) if "/" in text else float(text)


class Share(Number):
    """A number, or a fraction that is kept as a `Fraction` because it is a share of something."""

    def read(self, text: str) -> Any:
        return Fraction(text) if "/" in text else float(text)


class Epsilon(Number):
    """A number, `auto`, a schedule FIRST:LAST:ROUNDS, or any schedule as a JSON object."""

    name = "epsilon"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from manul.actions.schedules import Fading, from_description

        if str(value) == "auto":
            return "auto"
        if str(value).startswith("{"):
            try:
                return from_description(json.loads(value))
            except json.JSONDecodeError as error:
                self.fail(f"{_name(param)} must be a JSON object, got {value!r}: {error}.", param, ctx)
        try:
            numbers = [self.read(part) for part in str(value).split(":")]
        except (ValueError, ZeroDivisionError):
            numbers = []
        if len(numbers) not in (1, 3):
            self.fail(f"{_name(param)} must be a number, auto or FIRST:LAST:ROUNDS, got {value!r}.", param, ctx)
        return Fading(*numbers) if len(numbers) == 3 else numbers[0]


class Integer(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """An integer, optionally with a minimum and a maximum."""

    name = "integer"

    def __init__(self, minimum: int | None = None, maximum: int | None = None) -> None:
        self.minimum, self.maximum = minimum, maximum

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            number = int(value)
            if (self.minimum is None or number >= self.minimum) and (self.maximum is None or number <= self.maximum):
                return number
        except (TypeError, ValueError):
            pass
        above = "" if self.minimum is None else f" of at least {self.minimum}"
        limits = above if self.maximum is None else f" from {self.minimum} to {self.maximum}"
        return self.fail(f"{_name(param)} must be an integer{limits}, got {value!r}.", param, ctx)


class List(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """Several values, separated by commas."""

    def __init__(self, each: Any) -> None:
        self.each = each
        self.name = f"{each.name},..."

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[Any]:
        parts = value.split(",") if isinstance(value, str) else list(value)
        return [self.each.convert(part, param, ctx) for part in parts]


class Choice(click.Choice):  # type: ignore[type-arg,unused-ignore]
    """One of several words."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        known = [str(choice) for choice in self.choices]
        if value not in known:
            advice = remedy(str(value), known, f"Try {known[0]}.")
            self.fail(f"{_name(param)} must be one of {', '.join(known)}, got {value!r}. {advice}", param, ctx)
        return str(value)


class Registered(Choice):
    """A name of a registry, which is imported when it is needed: `home` is its module, and `name` its name there."""

    def __init__(self, home: str, name: str) -> None:  # without Choice's, which would ask for the names at once
        self.case_sensitive, self._home, self._name = True, home, name

    @property
    def registry(self) -> Registry[Any]:
        registry: Registry[Any] = vars(import_module(self._home))[self._name]
        return registry

    @property
    def choices(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(self.registry.names())

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if self.registry.find(str(value)) is None:
            self.fail(self.registry.unknown_message(str(value)), param, ctx)
        return str(value)


class LogFormat(Registered):
    """The name of a log format, which is a suffix without the dot."""

    def __init__(self) -> None:
        super().__init__("manul.logs.formats", "FORMATS")

    @property
    def choices(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(suffix.removeprefix(".") for suffix in self.registry.names())

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return Choice.convert(self, value, param, ctx)


class File(click.Path):
    """A file name, completed by the shell; some suffixes may be required."""

    def __init__(self, *suffixes: str) -> None:
        super().__init__(path_type=Path)
        self.suffixes = suffixes

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = Path(value)
        if self.suffixes and path.suffix not in self.suffixes:
            rule = f"{_name(param)} must end with {', '.join(self.suffixes)}, got {str(value)!r}."
            self.fail(f"{rule} {self._advice(path)}".rstrip(), param, ctx)
        return path

    def _advice(self, path: Path) -> str:
        """The same name with the closest suffix; nothing for a path without a name, such as /."""
        if path.name in ("", ".."):
            return ""
        stem = path.with_suffix("")
        names = [str(stem if stem.suffix == suffix else path.with_suffix(suffix)) for suffix in self.suffixes]
        return remedy(str(path), names, f"Try {names[0]}.")


class Knobs(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """Several knobs as JSON."""

    name = "knobs"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from manul.actions.space import ActionSpace
        from manul.errors import ManulError

        if isinstance(value, ActionSpace):
            return value
        try:
            given = json.loads(str(value), object_pairs_hook=_distinct)
            if not isinstance(given, dict):
                raise TypeError
            return ActionSpace.from_description(given)
        except ManulError as error:
            self.fail(f"{_name(param)}: {error}", param, ctx)
        except (TypeError, ValueError):
            example = (
                '{"price": [10, 50], "days": {"low": 1, "high": 14, "step": 1}, "template": {"options": ["a", "b"]}}'
            )
            self.fail(f"{_name(param)} must be JSON such as {example}, got {value!r:.60}.", param, ctx)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The members of a JSON object; a knob that is given twice is a mistake."""
    from manul.errors import ParameterError

    if len(dict(pairs)) < len(pairs):
        raise ParameterError("actions must have one knob per name.", "actions")
    return dict(pairs)


Command = Callable[..., Any]
NUMBER, INTEGER, FILE, KNOBS = Number(), Integer(), File(), Knobs()
RANGE = (NUMBER, NUMBER)
AGENT = Registered("manul.agents.agent_registry", "AGENTS")
LOG_FORMAT = LogFormat()
ESTIMATOR = Registered("manul.offpolicy.evaluation.estimators", "ESTIMATORS")
INTERVAL = Registered("manul.offpolicy.evaluation.intervals", "INTERVALS")


def format_option(what: str, name: str = "log_format") -> Callable[[Command], Command]:
    """The option of the format of an argument that is a log, or of the file of an option."""
    text = f"Format of {what}, such as vw for Vowpal Wabbit's text.  [default: by the suffix]"
    return click.option("--format", name, type=LOG_FORMAT, help=text)


def knobs_option(log: str) -> Callable[[Command], Command]:
    """The option of the knobs of an argument that is a log."""
    text = f"Knobs with their ranges, if actions have several and {log} does not record them."
    return click.option("--knobs", type=KNOBS, metavar="JSON", help=text)


def formula_option(command: Command) -> Command:
    """Add the formula that computes the outcomes again."""
    text = "Formula of the losses or rewards, computed from the parts of the log, such as '(action - 12) * bought'."
    return click.option("--formula", metavar="TEXT", help=text)(command)


def range_options(command: Command) -> Command:
    """Add the ranges that a log may not record."""
    missing = "if the log does not record it"
    command = formula_option(command)
    for name, text in {
        "rewards": "Range of rewards, if the log has rewards instead.",
        "losses": f"Range of losses, {missing}.",
        "actions": f"Range of actions, {missing}.",
    }.items():
        command = click.option(f"--{name}", type=RANGE, metavar="LOW HIGH", help=text)(command)
    return command


def usage_message(error: click.UsageError) -> str:
    """Describe a usage error in one line, with a suggestion."""
    command = error.ctx.command_path if error.ctx else "manul"
    if isinstance(error, click.NoSuchOption):
        advice = remedy(error.option_name, _all_options(error.ctx), f"See {command} --help.")
        return f"unknown option {error.option_name!r}. {advice}"
    if isinstance(error, click.MissingParameter):
        return f"missing argument {_name(error.param)}. See {command} --help."
    message = error.message.rstrip()
    return message if message.endswith(("?", "help.")) else f"{message.rstrip('.')}. See {command} --help."


def _all_options(ctx: click.Context | None) -> Sequence[str]:
    if ctx is None:
        return []
    return [name for param in ctx.command.get_params(ctx) for name in param.opts if name.startswith("--")]


def _name(param: click.Parameter | None) -> str:
    if param is None:
        return "value"
    return param.human_readable_name if isinstance(param, click.Argument) else param.opts[0]
