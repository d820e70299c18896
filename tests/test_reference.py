"""The reference of Python: every parameter is explained, inherited methods are listed, and copied code runs."""

import html
import importlib.util
import inspect
import re
from pathlib import Path

import griffe
import pytest

import manul
from tests.service.browser import browsing, missing

DOCS = Path(__file__).parent.parent / "docs"
SETTINGS = (DOCS.parent / "mkdocs.yml").read_text()
HIDDEN = re.compile("|".join(re.findall(r'- "!(.*)"', SETTINGS)))
ENTRIES = re.findall(r"^::: (\S+)", (DOCS / "reference/python.md").read_text(), re.MULTILINE)


PUBLIC = {f"manul.{name}": getattr(manul, name) for name in manul.__all__ if not inspect.ismodule(getattr(manul, name))}
PUBLIC |= {f"manul.register.{name}": getattr(manul.register, name) for name in manul.register.__all__}


def methods(value):
    """The public methods of a class or an object."""
    for name in dir(value):
        method = getattr(value, name)
        if not name.startswith("_") and (inspect.isfunction(method) or inspect.ismethod(method)):
            yield method


def is_explained(name, docstring):
    """Whether the prose of a docstring, not only an example, has a parameter in backticks."""
    return re.search(rf"`{name}\b", re.sub(r"(?ms)^>>>.*?(^$|\Z)", "", docstring)) is not None


def unexplained(value):
    """The parameters that a docstring does not explain."""
    names = [name for name in inspect.signature(value).parameters if name not in ("self", "args", "kwargs")]
    docstring = inspect.getdoc(value) or ""
    return [name for name in names if not name.startswith("_") and not is_explained(name, docstring)]


@pytest.mark.parametrize("path", PUBLIC)
def test_help_explains_every_parameter(path):
    value = PUBLIC[path]
    for each in (value, *(methods(value) if inspect.isclass(value) else ())):
        assert inspect.getdoc(each), each.__qualname__
        assert unexplained(each) == [], each.__qualname__


def test_help_explains_the_methods_of_an_agent_of_several_knobs():
    for method in methods(manul.Auto(actions={"price": (10, 50)})):
        assert unexplained(method) == [], method.__qualname__


def test_an_example_alone_does_not_explain_a_parameter():
    assert is_explained("rows", "Read `rows`.\n\n>>> read(rows=3)\n4 rows")
    assert not is_explained("rows", "Read.\n\n>>> read(`rows`)\n4 `rows`\n\nThat is all.")


def fenced():
    spec = importlib.util.spec_from_file_location("fenced", DOCS / "fenced.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def package():
    return griffe.load("manul", search_paths=[DOCS.parent / "src"], resolve_aliases=True)


def functions(entry):
    """The functions and classes that an entry of the reference shows."""
    if not entry.is_module:
        yield entry
    for name, member in {} if entry.is_function else entry.all_members.items():
        shown = not HIDDEN.search(name) and not (entry.is_module and member.is_alias)
        if shown and member.has_docstring and (member.is_function or member.is_class):
            yield member


@pytest.mark.whole
@pytest.mark.parametrize("path", ENTRIES)
def test_every_parameter_is_explained(package, path):
    rules = fenced()
    for function in functions(package[path.removeprefix("manul.")]):
        parameters = [each.name for each in function.parameters if each.name not in ("args", "kwargs")]
        unexplained = rules.unexplained(function.docstring.value, function.path, parameters)
        assert [parameter for parameter, meaning in unexplained if meaning is None] == [], function.path


def test_inherited_methods_are_listed():
    assert "inherited_members: true" in SETTINGS
    assert not HIDDEN.search("decide_many")


def test_a_parameter_may_mean_something_else_in_one_place():
    rules = fenced()
    assert rules.meaning_of("knobs", "manul.worlds.several.valleys") == "the number of knobs."
    assert "- `seed`: the random seed" in rules.add_parameters("One sentence.", "manul.Auto", ["self", "seed"])
    assert rules.add_parameters("A `seed`.", "manul.Auto", ["seed"]) == "A `seed`."


@pytest.mark.whole
def test_copied_code_has_no_prompts_and_no_output(tmp_path):
    assert not missing(), missing()
    block = ">>> for number in range(2):\n...     total = number\n\n0\n>>> total\n1\n"
    script = (DOCS / "copy-code.js").read_text()
    button = (
        '<button data-clipboard-target="#code code">Copy</button><button data-clipboard-target="#sh code">Copy</button>'
    )
    page = f"<pre id=code><code>{html.escape(block)}</code></pre><pre id=sh><code>ls</code></pre>{button}<script>{script}</script>"
    (tmp_path / "page.html").write_text(page)
    with browsing() as browser:
        browser.open((tmp_path / "page.html").as_uri())
        browser.run("for (const each of document.querySelectorAll('button')) each.click()")
        copied = browser.run(
            "return [...document.querySelectorAll('button')].map((each) => each.dataset.clipboardText)"
        )
    assert copied == ["for number in range(2):\n    total = number\ntotal", None]
