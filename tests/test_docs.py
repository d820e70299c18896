"""The documentation: built strictly, complete, made from the code, and loading nothing from elsewhere."""

import importlib
import importlib.util
import os
import re
import subprocess
import sys
import tomllib
from types import ModuleType, SimpleNamespace

import click
import pytest
import yaml
from click.testing import CliRunner

import manul
from manul.cli import main
from tests.markdown import ROOT

DOCS = ROOT / "docs"
REFERENCE = (DOCS / "reference" / "python.md").read_text()
WHOLE = [module for module in re.findall(r"^::: (manul\.\w+)$", REFERENCE, re.MULTILINE) if module.count(".") == 1]
LOADED = re.compile(r"""(?:<(?:script|img|iframe)[^>]*\ssrc|<link[^>]*\shref)=["']?(?:https?:)?//|url\(["']?https?:""")


def generator():
    return script("generate")


def script(name):
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def public_names():
    for name in manul.__all__:
        thing = getattr(manul, name)
        if not isinstance(thing, ModuleType):
            yield name, thing
        elif thing.__name__ not in WHOLE:
            for inner in getattr(thing, "__all__", [each for each in vars(thing) if each[0].isupper()]):
                if not inner.isupper() and getattr(getattr(thing, inner), "__module__", "").startswith("manul"):
                    yield f"{name}.{inner}", getattr(thing, inner)


@pytest.mark.parametrize(("name", "thing"), list(public_names()), ids=[name for name, _ in public_names()])
def test_every_public_name_is_in_the_reference(name, thing):
    homes = {thing.__module__, f"{thing.__module__}.{thing.__name__}", f"manul.agents.{thing.__name__}"}
    listed = set(re.findall(r"^::: (\S+)$", REFERENCE, re.MULTILINE))
    assert homes & listed, f"add ::: {thing.__module__}.{thing.__name__} to docs/reference/python.md ({name})"


@pytest.mark.parametrize("module", WHOLE)
def test_whole_modules_have_docstrings_throughout(module):
    found = importlib.import_module(module)
    own = {
        name: it
        for name, it in vars(found).items()
        if not name.startswith("_") and getattr(it, "__module__", "") == module
    }
    assert all(it.__doc__ for it in own.values() if callable(it))


def test_the_page_of_the_command_line_is_what_the_commands_say():
    for path, made in generator().PAGES.items():
        assert path.read_text() == made(), "run: python docs/generate.py"


def test_every_command_and_option_is_on_its_page():
    page = (DOCS / "reference" / "cli.md").read_text()
    context = click.Context(main)
    for name in main.list_commands(context):
        part = page.partition(f"## manul {name}\n")[2].partition("\n## ")[0]
        assert all(
            option in part
            for param in main.get_command(context, name).params
            for option in param.opts
            if option[0] == "-"
        )


def test_every_page_is_in_the_navigation():
    listed = re.findall(r"^\s+- (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md"))


def test_every_extra_and_dependency_is_explained():
    page = (DOCS / "dependencies.md").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = {name: needed for name, needed in project["optional-dependencies"].items() if name not in ("bench", "dev")}
    required = [*project["dependencies"], *(each for needed in extras.values() for each in needed)]
    assert all(f"`{name}`" in page for name in extras)
    assert {name for name in (re.match(r"[\w-]+", each)[0] for each in required) if name not in page} == set()


@pytest.mark.whole
def test_the_pages_build_without_a_warning_and_load_nothing_from_elsewhere(tmp_path):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", tmp_path / "site"]
    result = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "WARNING" not in result.stderr
    pages = [*(tmp_path / "site").rglob("*.html"), *(tmp_path / "site").rglob("*.css")]
    assert len(pages) > 20
    assert not [page for page in pages if LOADED.search(page.read_text())]
    index = (tmp_path / "site/llms.txt").read_text()
    links = re.findall(r"\]\(([^)]+)\)", index)
    assert len(links) > 20
    assert all((tmp_path / "site" / link).is_file() for link in links)


def test_the_index_for_language_models_has_every_page_of_the_navigation_with_a_sentence():
    module = script("llms")
    config = SimpleNamespace(**yaml.safe_load((ROOT / "mkdocs.yml").read_text()))
    text = module.llms_text(config, DOCS)
    lines = re.findall(r"^- \[(.+)\]\((\S+)\.(?:md|html)\): (.+)$", text, re.MULTILINE)
    assert [path for _, path, _ in lines] == [each.removesuffix(".md") for each in module.paths(config.nav)]
    assert all(re.fullmatch(r"\S.{15,}[.?]", sentence) for _, _, sentence in lines), lines
    assert "(reference/python.html)" in text  # its source has only the names of what it describes
    assert "(how-to/online.md)" in text


def test_the_help_says_how_to_complete_names():
    assert "_MANUL_COMPLETE=bash_source" in CliRunner().invoke(main, ["--help"]).stdout
