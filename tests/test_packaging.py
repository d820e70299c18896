"""The source distribution is complete enough to test and document, and what builds packages agrees with pyproject.toml."""

import re
import tarfile
import tomllib

import pytest
import yaml

from tests.markdown import ROOT


@pytest.mark.whole
def test_the_source_distribution_contains_its_tests_and_documentation(tmp_path, monkeypatch):
    from scikit_build_core.build import build_sdist

    monkeypatch.chdir(ROOT)
    with tarfile.open(tmp_path / build_sdist(str(tmp_path))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"CONTRIBUTING.md", "LICENSE", "tests/test_packaging.py", "docs/index.md", "examples/cars.csv"} <= names
    assert not [name for name in names if name.endswith(".so")]


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
RECIPE = yaml.safe_load((ROOT / "deploy/conda/recipe.yaml").read_text())
# What conda-forge calls the packages of PyPI.
CONDA = {"matplotlib": "matplotlib-base", "psycopg[binary]": "psycopg"}


def in_conda(needed):
    """A requirement of pip as one of conda: a space before the version, and no markers."""
    name, version = re.fullmatch(r"([\w.\[\]-]+)([<>=!,.\d]*)", needed.partition(";")[0].strip()).groups()
    return f"{CONDA.get(name, name)} {version}".strip()


def test_the_conda_recipe_has_the_dependencies_of_the_package():
    project, requirements = PROJECT["project"], RECIPE["requirements"]
    assert set(requirements["run"]) == {
        f"python {project['requires-python']}",
        *map(in_conda, project["dependencies"]),
    }
    assert set(requirements["host"]) == {"python", "pip", *map(in_conda, PROJECT["build-system"]["requires"])}
    extras = {
        in_conda(each)
        for name in ("client", "plot", "serve", "sklearn")
        for each in project["optional-dependencies"][name]
    }
    assert set(requirements["run_constraints"]) == extras
    assert RECIPE["context"]["version"] == project["version"]
    assert RECIPE["about"]["summary"] == project["description"]
    assert RECIPE["about"]["license_file"] == project["license-files"]
    assert (ROOT / "deploy/conda" / RECIPE["source"]["path"]).resolve() == ROOT


def test_every_supported_python_has_wheels_also_on_systems_with_musl():
    said = {each.rpartition(" :: ")[2] for each in PROJECT["project"]["classifiers"] if re.search(r":: 3\.\d+$", each)}
    settings = PROJECT["tool"]["cibuildwheel"]
    built = {each.removeprefix("cp3").removesuffix("-*") for each in settings["build"]}
    assert {f"3.{minor}" for minor in built} == said
    assert not [each for each in settings["skip"] if "musllinux" in each or each.startswith("cp3")]
    made = re.search(r"^PYTHONS \?= (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[1]
    assert {each.removeprefix("python") for each in made.split()} == said
    assert min(said, key=lambda each: int(each.partition(".")[2])) == PROJECT["project"][
        "requires-python"
    ].removeprefix(">=")
