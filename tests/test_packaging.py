"""The source distribution: complete enough to test and document."""

import tarfile

import pytest

from tests.markdown import ROOT

pytestmark = pytest.mark.whole


def test_the_source_distribution_contains_its_tests_and_documentation(tmp_path, monkeypatch):
    from scikit_build_core.build import build_sdist

    monkeypatch.chdir(ROOT)
    with tarfile.open(tmp_path / build_sdist(str(tmp_path))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"CONTRIBUTING.md", "LICENSE", "tests/test_packaging.py", "docs/index.md", "examples/cars.csv"} <= names
    assert not [name for name in names if name.endswith(".so")]
