"""The shape of the code base itself."""

import ast
import functools
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import manul

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src/manul"
MODULES = [path for path in PACKAGE.rglob("*.py") if not path.name.startswith("__")]
# A command has the name of the function it calls, and errors are errors.
SHARED_NAMES = {
    "backup.py",
    "convert.py",
    "errors.py",
    "evaluate.py",
    "inspect.py",
    "optimize.py",
    "rollout.py",
}
ALLOWED = {"_replace", "_asdict", "_fields", "_core"}  # of named tuples, and the native module


@pytest.mark.whole
def test_the_stub_is_what_the_core_says(tmp_path):
    stub = tmp_path / "_core.pyi"
    subprocess.run([sys.executable, "-m", "nanobind.stubgen", "-q", "-m", "manul._core", "-o", stub], check=True)
    committed = (ROOT / "src/manul/_core.pyi").read_text()
    assert stub.read_text() == committed, "run: python -m nanobind.stubgen -m manul._core -o src/manul/_core.pyi"


def test_a_test_that_is_not_marked_as_whole_cannot_start_a_program():
    with pytest.raises(AssertionError, match=r"must be marked with pytest\.mark\.whole"):
        subprocess.run([sys.executable, "--version"], check=True)


def test_only_the_bindings_know_python():
    core = ROOT / "src/core"
    knowing = {path.parent.name for path in core.rglob("*.?pp") if "nanobind" in path.read_text()}
    assert knowing == {"bindings"}
    assert [path.name for path in core.iterdir() if path.is_file()] == []


def test_everything_public_exists_and_is_documented():
    assert all(getattr(manul, name).__doc__ for name in manul.__all__)


def test_the_top_level_has_at_most_nineteen_entries():
    beside = {"__init__.py", "__main__.py", "__pycache__", "py.typed", "_core.pyi"}
    assert len([path for path in PACKAGE.iterdir() if path.name not in beside and path.suffix != ".so"]) <= 19


def test_no_file_name_stands_for_several_ideas():
    counts = Counter(path.name for path in MODULES)
    assert {name for name, count in counts.items() if count > 1} <= SHARED_NAMES


def private_uses(path):
    """Underscore names of other modules that a module uses."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    own = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}
    own |= {node.attr for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)}
    own |= {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    for node in nodes:
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
            mine = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            if not mine and node.attr not in own | ALLOWED:
                yield f"{path.relative_to(PACKAGE)}:{node.lineno} {node.attr}"


def test_nobody_uses_the_underscore_names_of_another_module():
    assert [use for path in MODULES for use in private_uses(path)] == []


def imports(body):
    """The import statements that run when a module is imported."""
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for_types = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
            yield from imports(node.orelse if for_types else ast.iter_child_nodes(node))


def imported_modules(path, paths):
    """The modules of the package that a module imports by their names."""
    for node in imports(ast.parse(path.read_text()).body):
        home = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
        for each in node.names:
            name = home + each.name if home + each.name in paths else home.removesuffix(".")
            if name in paths and name != "manul":
                yield name


def test_no_chain_of_imports_is_longer_than_twenty_modules():
    dotted = (path.relative_to(PACKAGE.parent).with_suffix("") for path in PACKAGE.rglob("*.py"))
    paths = {
        ".".join(path.parts).removesuffix(".__init__"): PACKAGE.parent / path.with_suffix(".py") for path in dotted
    }
    below = {name: {*imported_modules(path, paths)} for name, path in paths.items()}

    @functools.cache
    def chain(name):
        return max(([name, *chain(each)] for each in sorted(below[name])), key=len, default=[name])

    longest = max(map(chain, paths), key=len)
    assert len(longest) <= 20, " > ".join(longest)
