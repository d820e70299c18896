"""Documents and comments name only files that exist, and look for things where they are."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BELOW = [
    path
    for top in ("src", "js", "tests", "benchmarks", "docs", "deploy", "examples")
    for path in sorted((ROOT / top).rglob("*"))
]
FILES = {path.relative_to(ROOT).as_posix(): path for path in [*ROOT.iterdir(), *BELOW] if path.is_file()}
PAGES = [name for name in FILES if name.endswith(".md") and name != "CHANGELOG.md"]  # which tells of former files
# Tests write programs of their own.
PROGRAMS = [name for name in FILES if name.endswith((".py", ".cpp", ".hpp")) and not name.startswith("tests/")]
PROGRAM = r"[\w./-]*\w\.(?:py|pyi|cpp|hpp)\b"
# Pages for users name files of the users; all that CONTRIBUTING names are ours.
OURS = rf"{PROGRAM}|[\w./-]*\w\.(?:md|json|txt|toml|yml)\b|(?<=`)[\w./-]+/(?=`)"


def found(name):
    """The files that a name may mean: a path from the root, the end of one, or a folder; NAME stands for any file."""
    name = "/" + re.sub(r"^(\.\.?/)+", "", name)
    if "NAME" in name or name.endswith("/"):
        return [each for each in FILES if f"{name.rpartition('/')[0]}/" in f"/{each}"]
    return [each for each in FILES if f"/{each}".endswith(name)]


def missing(document, pattern):
    for number, line in enumerate(FILES[document].read_text().splitlines(), 1):
        for name in re.findall(pattern, line):
            if not found(name):
                yield f"{document}, line {number}, names {name}, which does not exist"


@pytest.mark.parametrize("page", PAGES)
def test_every_file_that_a_page_names_exists(page):
    wrong = list(missing(page, OURS if page == "CONTRIBUTING.md" else PROGRAM))
    assert not wrong, "\n".join(wrong)


def test_every_program_that_the_code_names_exists():
    wrong = [each for program in PROGRAMS for each in missing(program, PROGRAM)]
    assert not wrong, "\n".join(wrong)


def test_contributing_names_things_in_the_files_that_have_them():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    named = re.findall(rf"`([\w.]+)`(?:\s+in\s+|\s+\((?:in\s+)?)`({PROGRAM})`", text)
    assert len(named) > 4
    for thing, name in named:
        word = re.compile(rf"\b{thing.rpartition('.')[2]}\b")
        assert any(word.search(FILES[each].read_text()) for each in found(name)), (
            f"CONTRIBUTING.md: no {thing} in {name}"
        )
