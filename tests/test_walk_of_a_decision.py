"""The list in CONTRIBUTING.md is the way that a decision takes."""

import re
import sys
from pathlib import Path

import manul

ROOT = Path(__file__).parent.parent
SECTION = (ROOT / "CONTRIBUTING.md").read_text().partition("## The walk of one decision\n")[2].partition("\n## ")[0]
WALK = re.findall(r"^\d+\. `(src/\S+)` `([\w.]+)`: ", SECTION, re.MULTILINE)
CONTEXT = {"city": "Oslo", "age": 31, "rooms": [{"size": 4.5}, None]}


def python_functions(call):
    """The Python functions that a call passes, as (file, name)."""
    passed = []

    def note(frame, event, _):
        if event == "call":
            passed.append(place(frame))

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return [each for each in passed if each[0].startswith("src/")]


def place(frame):
    path = Path(frame.f_code.co_filename)
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path), frame.f_code.co_qualname


def test_a_decision_passes_at_most_eight_functions():
    assert 2 < len(WALK) <= 8


def test_the_python_functions_of_the_list_are_those_that_run():
    agent = manul.Cats(leaves=64, bandwidth=1 / 16)
    agent.learn(CONTEXT, agent.decide(CONTEXT), 0.5)
    assert python_functions(lambda: agent.decide(CONTEXT)) == [each for each in WALK if each[0].endswith(".py")]


def test_the_functions_of_the_core_are_where_the_list_says():
    for path, name in WALK:
        if path.startswith("src/core/"):
            assert re.search(rf"\b{name}\(", (ROOT / path).read_text()), f"{name} in {path}"
