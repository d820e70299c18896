"""Registries of extensions by name: agents, estimators, log formats and stores.

A built-in extension registers itself in its own file in the package of its family. Other extensions do the same in
plugins, which are imported when a name is not built in: the modules that installed packages name as entry points of the
group `manul.plugins`, and the modules and Python files in the environment variable MANUL_PLUGINS, separated by commas.
The command line also accepts `--plugin`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, Generic, TypeVar

from manul.errors import ManulError, MissingDependency, ParameterError, remedy

GROUP, VARIABLE = "manul.plugins", "MANUL_PLUGINS"
Entry = TypeVar("Entry")
Registered = TypeVar("Registered", bound=Callable[..., Any])


class Registry(Generic[Entry]):
    """The entries of one family by name; the modules of the packages `homes` register the built-in entries.

    >>> colours = Registry[str]("colour", suggestion="red")
    >>> colours.add("red", "#f00", module="rainbow")
    >>> colours["red"]
    '#f00'
    >>> colours["rde"]
    Traceback (most recent call last):
    manul.errors.ParameterError: colour must be one of red, got 'rde'. Did you mean red?
    >>> colours.add("red", "#e00", module="sunset")
    Traceback (most recent call last):
    manul.errors.ParameterError: colour 'red' is already registered; choose another name
    """

    def __init__(self, family: str, *homes: str, suggestion: str) -> None:
        self._family, self._homes, self._suggestion = family, homes, suggestion
        self._entries: dict[str, Entry] = {}
        self._missing_packages: set[str] = set()

    def add(self, name: str, entry: Entry, *, module: str) -> None:
        """Register an entry under a new name; `module` is the module that defines it."""
        if not module.startswith("manul."):
            self._import_homes()  # otherwise a plugin could take the name of a built-in that is not imported yet
        if name in self._entries:
            raise ParameterError(f"{self._family} {name!r} is already registered; choose another name", field="name")
        self._entries[name] = entry

    def decorator(
        self, name: str, entry: Callable[[Any], Entry] = lambda made: made
    ) -> Callable[[Registered], Registered]:
        """A decorator that registers a class or function, or the `entry` made of it, under a new name."""

        def register(made: Registered) -> Registered:
            self.add(name, entry(made), module=made.__module__)
            return made

        return register

    def remove(self, name: str) -> None:
        del self._entries[name]

    def find(self, name: str) -> Entry | None:
        """The entry of a name, or None; plugins are imported only if the name is not built in."""
        steps: list[Callable[[], None]] = [lambda: self._import_homes(name), self._import_homes, import_plugins]
        for step in steps:
            if name not in self._entries:
                step()
        return self._entries.get(name)

    def __getitem__(self, name: str) -> Entry:
        entry = self.find(name)
        if entry is None and self._missing_packages:
            packages = " ".join(sorted(self._missing_packages))
            raise MissingDependency(f"{self._family} {name!r} needs more packages. Try pip install {packages}.")
        if entry is None:
            raise ParameterError(self.unknown_message(name), field=self._family)
        return entry

    def unknown_message(self, name: str) -> str:
        """The error message for a name that is not registered."""
        advice = remedy(name, self.names(), f"Try {self._suggestion}.")
        return f"{self._family} must be one of {', '.join(self.names())}, got {name!r}. {advice}"

    def names(self) -> list[str]:
        self._import_homes()
        import_plugins()
        return sorted(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter([self._entries[name] for name in self.names()])

    def _import_homes(self, name: str | None = None) -> None:
        """Import all built-in modules, or only the one with the name of an entry, which is faster."""
        wanted = None if name is None else name.strip(".").replace("-", "_")
        for home in self._homes:
            for module in iter_modules(import_module(home).__path__):
                if wanted in (None, module.name) and not module.ispkg:
                    self._import_optional(f"{home}.{module.name}")

    def _import_optional(self, module: str) -> None:
        try:
            import_module(module)
        except ModuleNotFoundError as error:
            if error.name is None or error.name.partition(".")[0] == "manul":
                raise
            self._missing_packages.add(error.name)


@cache
def import_plugins() -> None:
    """Import the plugins of installed packages and of the environment; they register themselves."""
    for point in entry_points(group=GROUP):
        import_plugin(point.value)
    for plugin in os.environ.get(VARIABLE, "").split(","):
        if plugin.strip():
            import_plugin(plugin.strip())


def import_plugin(plugin: str) -> None:
    """Import a module by its name or a Python file by its path, unless it is already imported."""
    path = Path(plugin).resolve()
    try:
        if path.suffix != ".py":
            import_module(plugin)
        elif str(path) not in {getattr(module, "__file__", None) for module in list(sys.modules.values())}:
            _import_file(path)
    except ManulError:
        raise
    except Exception as error:  # a plugin may raise anything
        raise ParameterError(
            f"plugin {plugin} cannot be imported: {type(error).__name__}: {error}.", field="plugin"
        ) from error


def _import_file(path: Path) -> None:
    spec = spec_from_file_location(f"manul_plugin_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[spec.name]
        raise
