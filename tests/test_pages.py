"""README and documentation: every block of code runs, typed exactly."""

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.markdown import PAGES, ROOT, blocks, typed

# Those of other languages are run by tests/js and tests/c_api.
KINDS = {"python", "pycon", "sh", "sh install", "sh long", "text", "json", "js", "c"}
WITH_SHELL = [page for page in PAGES[1:] if any(block.kind == "sh" for block in blocks(page))]


def named(page):
    return str(page.relative_to(ROOT))


@pytest.fixture
def clone(tmp_path):
    """A folder that looks as the repository does to somebody who types."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    return tmp_path


@pytest.mark.whole
@pytest.mark.parametrize("page", WITH_SHELL, ids=named)
def test_what_a_page_says_to_type_works(page, clone):
    for block in blocks(page):
        if block.kind == "sh":
            assert typed(block.text, clone)


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_block_is_of_a_kind_that_is_run_or_is_no_code(page):
    for kind, text in blocks(page):
        assert kind in KINDS, text
        made_from_script = page.read_text().startswith("<!-- Made by docs/tutorial_pages.py")
        assert kind not in ("python", "pycon") or text.startswith(">>>") or made_from_script, text
        assert "+SKIP" not in text


def readme(*kinds, then=""):
    """What README says to type, and more, with a free port in place of the usual one, which others may use."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    text = "".join(block.text for block in blocks(ROOT / "README.md") if block.kind in kinds)
    assert "--port 8000" in text
    return (text + then).replace("8000", str(port))


@pytest.mark.whole
def test_the_path_of_a_newcomer_ends_with_an_estimate_and_a_service_that_has_learned(clone):
    then = "curl -sf http://127.0.0.1:8000/\nkill $! && wait $!\n"
    printed = typed(readme("sh", then=then), clone)
    assert "best constant" in printed
    assert "95% exact-mass" in printed
    assert '"status":"recorded"' in printed
    assert '"decisions":1' in printed
    assert '{"error":' not in printed
    assert "<title>manul</title>" in printed
    made = {"cars.manul", "better.manul", "estimate.png", "run.parquet", "decisions.db"}
    assert {path.name for path in clone.iterdir()} >= made


@pytest.mark.whole
@pytest.mark.skipif("MANUL_FRESH" not in os.environ, reason="builds everything anew: make soak")
def test_the_whole_path_from_nothing(tmp_path):
    typed(f"git clone -q '{ROOT}' clone", tmp_path)
    assert "95% exact-mass" in typed("set +u\n" + readme("sh install", "sh"), tmp_path / "clone")


COMPILERS = (
    "cc",
    "c++",
    "c89",
    "c99",
    "cpp",
    "g++",
    "gcc",
    "clang",
    "x86_64-",
    "aarch64-",
    "cmake",
    "ninja",
    "make",
    "gmake",
)


@pytest.fixture
def tools_without_compilers(tmp_path):
    """A folder with the programs of this machine that do not build others."""
    folder = tmp_path / "tools"
    folder.mkdir()
    for path in [*Path("/bin").iterdir(), *Path("/usr/bin").iterdir()]:
        if not path.name.startswith(COMPILERS) and not (folder / path.name).is_symlink():
            (folder / path.name).symlink_to(path)
    return folder


@pytest.mark.whole
@pytest.mark.skipif("MANUL_FRESH" not in os.environ, reason="installs everything anew: make soak")
def test_readme_works_with_a_wheel_where_nothing_can_be_built(tmp_path, clone, tools_without_compilers, monkeypatch):
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
    wheel = next((ROOT / "dist").glob(f"manul-*-{tag}-manylinux*.whl"), "no wheel; build it with make wheels")
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "empty"], check=True)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "empty" / "bin" / "python"))  # its folder is first in PATH
    monkeypatch.setenv("PATH", str(tools_without_compilers))
    monkeypatch.delenv("PYTHONPATH", raising=False)
    typed("if command -v gcc g++ cc c++ clang cmake make; then exit 1; fi", clone)
    typed(f"pip install -q '{wheel}[plot,serve,client]'", clone)
    assert typed("python -c 'import manul; print(manul.__file__)'", clone).startswith(str(tmp_path / "empty"))
    assert "95% exact-mass" in typed(readme("sh"), clone)
