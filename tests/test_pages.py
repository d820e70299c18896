"""README and documentation: every block of code runs, typed exactly."""

import os
import shutil

import pytest

from tests.markdown import PAGES, ROOT, blocks, typed

KINDS = {"python", "pycon", "sh", "sh install", "text", "json"}
WITH_SHELL = [page for page in PAGES[1:] if any(block.kind == "sh" for block in blocks(page))]


def named(page):
    return str(page.relative_to(ROOT))


@pytest.fixture
def clone(tmp_path):
    """A folder that looks as the repository does to somebody who types."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    return tmp_path


@pytest.mark.parametrize("page", WITH_SHELL, ids=named)
def test_what_a_page_says_to_type_works(page, clone):
    for block in blocks(page):
        if block.kind == "sh":
            assert typed(block.text, clone)


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_block_is_of_a_kind_that_is_run_or_is_no_code(page):
    for kind, text in blocks(page):
        assert kind in KINDS, text
        assert kind not in ("python", "pycon") or text.startswith(">>>"), text
        assert "+SKIP" not in text


def test_the_path_of_a_newcomer_ends_with_an_estimate_and_its_interval(clone):
    printed = "".join(typed(block.text, clone) for block in blocks(ROOT / "README.md") if block.kind == "sh")
    assert "best constant" in printed
    assert "95% bootstrap" in printed
    assert {path.name for path in clone.iterdir()} >= {"cars.manul", "better.manul", "estimate.png", "run.parquet"}


@pytest.mark.skipif("MANUL_FRESH" not in os.environ, reason="builds everything anew: make soak")
def test_the_whole_path_from_nothing(tmp_path):
    typed(f"git clone -q {ROOT} clone", tmp_path)
    lines = [block.text for block in blocks(ROOT / "README.md") if block.kind in ("sh install", "sh")]
    assert "95% bootstrap" in typed("set +u\n" + "".join(lines), tmp_path / "clone")
