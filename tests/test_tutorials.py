"""Tutorials: each script runs, and its page and notebook show what it prints."""

import importlib.util
import json
import re
import sys

import pytest

from tests.markdown import ROOT

pytestmark = pytest.mark.whole

SCRIPTS = sorted((ROOT / "examples" / "tutorials").glob("*.py"))


@pytest.fixture(scope="module")
def builder():
    spec = importlib.util.spec_from_file_location("tutorial_pages", ROOT / "docs" / "tutorial_pages.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look up the module that they are in
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_the_page_and_the_notebook_of_a_tutorial_show_what_its_script_prints(builder, script):
    cells = builder.run(builder.read(script.read_text()))
    text, pictures = builder.page(script.stem, cells)
    assert text == (builder.PAGES / f"{script.stem}.md").read_text()
    assert all((builder.IMAGES / file).exists() for file in pictures)
    committed = json.loads(script.with_suffix(".ipynb").read_text())
    assert without_pictures(json.loads(builder.notebook(cells))) == without_pictures(committed)


def without_pictures(notebook):
    """A picture's bytes depend on the fonts of the machine."""
    return re.sub(r'"image/png": "[^"]*"', '"image/png": ""', json.dumps(notebook))
