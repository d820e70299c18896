"""What options and arguments of the commands are: numbers and fractions, choices, files; each refuses in one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from manul.utils.registry import Registry
from manul.utils.suggestions import remedy

MODEL = (".manul",)
PICTURE = (".png", ".svg", ".pdf")


class Number(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """A number, also written as a fraction; from the least one up where there is one."""

    name = "number"

    def __init__(self, least: float | None = None) -> None:
        self.least = least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """What was written as a number."""
        if isinstance(value, int | float | Fraction):
            return value
        try:
            number = self.read(str(value))
        except (ValueError, ZeroDivisionError):
            self.fail(f"{_name(param)} must be a number, or a fraction such as 1/16; got {value!r}.", param, ctx)
        if self.least is not None and not number >= self.least:
            self.fail(f"{_name(param)} must be a number from {self.least:g}; got {value!r}.", param, ctx)
        return number

    def read(self, text: str) -> float:
        """The number that a text says."""
        return float(Fraction(text)) if "/" in text else float(text)


class Share(Number):
    """A number, or a fraction that stays one: it is a share of something."""

    def read(self, text: str) -> Any:
        """The number that a text says."""
        return Fraction(text) if "/" in text else float(text)


class Whole(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """A whole number, from the least one up and to the most where there are such."""

    name = "whole"

    def __init__(self, least: int | None = None, most: int | None = None) -> None:
        self.least, self.most = least, most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """What was written as a whole number."""
        try:
            number = int(value)
            if (self.least is None or number >= self.least) and (self.most is None or number <= self.most):
                return number
        except (TypeError, ValueError):
            pass
        ends = ("" if self.least is None else f" from {self.least}") + ("" if self.most is None else f" to {self.most}")
        return self.fail(f"{_name(param)} must be a whole number{ends}; got {value!r}.", param, ctx)


class List(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """Several values with commas between them."""

    def __init__(self, each: Any) -> None:
        self.each = each
        self.name = f"{each.name},..."

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[Any]:
        """What was written between the commas."""
        parts = value.split(",") if isinstance(value, str) else list(value)
        return [self.each.convert(part, param, ctx) for part in parts]


class Choice(click.Choice):  # type: ignore[type-arg,unused-ignore]
    """One of a few words."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The word, or the closest one in the error."""
        known = [str(choice) for choice in self.choices]
        if value not in known:
            advice = remedy(str(value), known, f"Try {known[0]}.")
            self.fail(f"{_name(param)} must be one of {', '.join(known)}; got {value!r}. {advice}", param, ctx)
        return str(value)


class Registered(Choice):
    """A name of a registry, which is imported when it is needed: `home` is its module, and `name` its name there."""

    def __init__(self, home: str, name: str) -> None:  # without Choice's, which would ask for the names at once
        self.case_sensitive, self._home, self._name = True, home, name

    @property
    def registry(self) -> Registry[Any]:
        """The registry."""
        registry: Registry[Any] = getattr(import_module(self._home), self._name)
        return registry

    @property
    def choices(self) -> tuple[str, ...]:  # type: ignore[override]
        """All names."""
        return tuple(self.registry.names())

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name, or the closest one in the error."""
        if self.registry.find(str(value)) is None:
            self.fail(self.registry.unknown(str(value)), param, ctx)
        return str(value)


class File(click.Path):
    """The name of a file; completed by the shell, and refused where its suffix says that it is of another kind."""

    def __init__(self, *suffixes: str) -> None:
        super().__init__(path_type=Path)
        self.suffixes = suffixes

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path."""
        path = Path(value)
        if self.suffixes and path.suffix not in self.suffixes:
            advice = remedy(path.suffix, self.suffixes, f"Try {path.with_suffix(self.suffixes[0])}.")
            rule = f"{_name(param)} must end with {', '.join(self.suffixes)}; got {str(value)!r}. {advice}"
            self.fail(rule, param, ctx)
        return path


NUMBER, WHOLE, FILE = Number(), Whole(), File()
RANGE = (NUMBER, NUMBER)
AGENT = Registered("manul.agents.agent_registry", "AGENTS")
ESTIMATOR = Registered("manul.offpolicy.evaluation.estimator_registry", "ESTIMATORS")


def refusal(error: click.UsageError) -> str:
    """A usage error in one sentence, with the closest match where there is one."""
    command = error.ctx.command_path if error.ctx else "manul"
    if isinstance(error, click.NoSuchOption):
        advice = remedy(error.option_name, _all_options(error.ctx), f"See {command} --help.")
        return f"option must be one of {command} --help; got {error.option_name!r}. {advice}"
    if isinstance(error, click.MissingParameter):
        name = _name(error.param)
        return f"{name} must be given; got nothing. See {command} --help."
    message = error.message.rstrip()
    return message if message.endswith(("?", "help.")) else f"{message.rstrip('.')}. See {command} --help."


def _all_options(ctx: click.Context | None) -> Sequence[str]:
    if ctx is None:
        return []
    return [name for param in ctx.command.get_params(ctx) for name in param.opts if name.startswith("--")]


def _name(param: click.Parameter | None) -> str:
    if param is None:
        return "value"
    return param.human_readable_name if isinstance(param, click.Argument) else param.opts[0].lstrip("-")
