"""How names are looked up: built-ins first, each in its own module, and plugins only if they are needed."""

import sys

import pytest

from manul.errors import MissingDependency, ParameterError
from manul.utils import registry


@pytest.fixture
def colours(tmp_path, monkeypatch):
    """A registry whose home is a package of two modules, of which one needs a package that is not installed."""
    home = tmp_path / "some_colours"
    home.mkdir()
    (home / "__init__.py").write_text("from manul.utils.registry import Registry\n")
    (home / "red.py").write_text("import some_colours\nsome_colours.COLOURS.add('red', 1, module='manul.colours')\n")
    (home / "blue.py").write_text("import nothing_of_that_name\n")
    monkeypatch.syspath_prepend(tmp_path)
    import some_colours

    some_colours.COLOURS = registry.Registry("colour", "some_colours", suggestion="red")
    yield some_colours.COLOURS
    for name in [name for name in sys.modules if name.startswith("some_colours")]:
        del sys.modules[name]


def test_a_name_imports_the_module_of_that_name_alone(colours):
    assert colours["red"] == 1
    assert "some_colours.red" in sys.modules
    assert colours.find("red") == 1


def test_a_module_without_its_dependency_is_left_out_until_its_name_is_asked_for(colours):
    assert colours.names() == ["red"]
    with pytest.raises(MissingDependency, match=r"'blue' needs more packages. Try pip install nothing_of_that_name\."):
        colours["blue"]


def test_an_outsider_cannot_take_the_name_of_a_built_in_that_is_not_imported_yet(colours):
    with pytest.raises(ParameterError, match="colour 'red' is already registered"):
        colours.add("red", 2, module="outside")


def test_entry_points_of_installed_packages_are_imported(colours, monkeypatch, tmp_path):
    (tmp_path / "green.py").write_text("import some_colours\nsome_colours.COLOURS.add('green', 3, module='green')\n")
    point = type("Point", (), {"value": "green"})
    monkeypatch.setattr(registry, "entry_points", lambda group: [point] if group == "manul.plugins" else [])
    registry.import_plugins.cache_clear()
    assert colours["green"] == 3
