"""Registries: what manul knows by name, and can be taught without an edit: agents, estimators, log formats, stores.

A built-in registers itself in its own file of the family's package. Code from elsewhere does the same, and is imported
when a name is asked for that is not built in: modules that installed packages name as entry points of the group
`manul.plugins`, and modules or files of Python in the environment variable MANUL_PLUGINS, with commas between them. The
command line also takes `--plugin`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from pkgutil import iter_modules
from typing import Generic, TypeVar

from manul.errors import ManulError, MissingDependency, ParameterError
from manul.utils.suggestions import remedy

GROUP, VARIABLE = "manul.plugins", "MANUL_PLUGINS"
Entry = TypeVar("Entry")


class Registry(Generic[Entry]):
    """The entries of one family by name; `homes` are the packages whose modules register the built-in ones.

    >>> colours = Registry[str]("colour", usual="red")
    >>> colours.add("red", "#f00", module="rainbow")
    >>> colours["red"]
    '#f00'
    >>> colours["rde"]
    Traceback (most recent call last):
    manul.errors.ParameterError: colour must be one of red; got 'rde'. Did you mean red?
    >>> colours.add("red", "#e00", module="sunset")
    Traceback (most recent call last):
    manul.errors.ParameterError: colour 'red' is already registered; choose another name
    """

    def __init__(self, what: str, *homes: str, usual: str) -> None:
        self._what, self._homes, self._usual = what, homes, usual
        self._entries: dict[str, Entry] = {}
        self._missing: set[str] = set()

    def add(self, name: str, entry: Entry, *, module: str) -> None:
        """Register an entry under a free name; `module` is where it is defined."""
        if not module.startswith("manul."):
            self._import_homes()  # so that no name of a built-in is free
        if name in self._entries:
            raise ParameterError(f"{self._what} {name!r} is already registered; choose another name", field="name")
        self._entries[name] = entry

    def remove(self, name: str) -> None:
        """Forget an entry."""
        del self._entries[name]

    def find(self, name: str) -> Entry | None:
        """The entry of a name, or None; plugins are imported only if it is not built in."""
        steps: list[Callable[[], None]] = [partial(self._import_namesake, name), self._import_homes, import_plugins]
        for step in steps:
            if name not in self._entries:
                step()
        return self._entries.get(name)

    def __getitem__(self, name: str) -> Entry:
        entry = self.find(name)
        if entry is None and self._missing:
            packages = " ".join(sorted(self._missing))
            raise MissingDependency(f"{self._what} {name!r} needs more packages. Try pip install {packages}.")
        if entry is None:
            raise ParameterError(self.unknown(name), field=self._what)
        return entry

    def unknown(self, name: str) -> str:
        """The sentence about a name that nothing is registered under."""
        advice = remedy(name, self.names(), f"Try {self._usual}.")
        return f"{self._what} must be one of {', '.join(self.names())}; got {name!r}. {advice}"

    def names(self) -> list[str]:
        """All names, in order."""
        self._import_homes()
        import_plugins()
        return sorted(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter([self._entries[name] for name in self.names()])

    def _import_namesake(self, name: str) -> None:
        """Import the built-in module of that name, which spares importing all of them."""
        self._import(lambda module: module == name.strip(".").replace("-", "_"))

    def _import_homes(self) -> None:
        self._import(lambda _: True)

    def _import(self, wanted: Callable[[str], bool]) -> None:
        for home in self._homes:
            for module in iter_modules(import_module(home).__path__):
                if wanted(module.name) and not module.ispkg:
                    self._import_optional(f"{home}.{module.name}")

    def _import_optional(self, module: str) -> None:
        try:
            import_module(module)
        except ModuleNotFoundError as error:
            if error.name is None or error.name.partition(".")[0] == "manul":
                raise
            self._missing.add(error.name)


@cache
def import_plugins() -> None:
    """Import the entry points of installed packages and what the environment names, so that they register themselves."""
    for point in entry_points(group=GROUP):
        import_plugin(point.value)
    for place in os.environ.get(VARIABLE, "").split(","):
        if place.strip():
            import_plugin(place.strip())


def import_plugin(place: str) -> None:
    """Import a module by its name, or a file of Python by its path, unless it is imported already.

    >>> import_plugin("json")
    """
    path = Path(place).resolve()
    try:
        if path.suffix != ".py":
            import_module(place)
        elif str(path) not in {getattr(module, "__file__", None) for module in list(sys.modules.values())}:
            _import_file(path)
    except ManulError:
        raise
    except Exception as error:  # a plugin may be anybody's code
        raise ParameterError(f"plugin {place} cannot be imported: {error}", field="plugin") from error


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
