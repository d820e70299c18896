"""The examples in C and Rust, compiled and run; `make sanitize` runs that in C with AddressSanitizer and UBSan."""

import os
import subprocess

import pytest

import manul
from tests.c_library import ROOT, library_path
from tests.markdown import blocks

pytestmark = pytest.mark.whole


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The file of an agent, and the agent."""
    agent = manul.Auto(actions=(5, 40), rewards=(0, 50), seed=7)
    for number in range(50):
        context = {"city": ["Oslo", "Bergen"][number % 2], "age": number}
        agent.learn(context, agent.decide(context), reward=number % 7)
    path = tmp_path_factory.mktemp("saved") / "price.manul"
    agent.save(path)
    return path, agent


def run(*command, **environment):
    ran = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()


def build(*command):
    """Runs a compiler, which needs no sanitizers."""
    run(*command, LD_PRELOAD="")


def build_c(source, program):
    """Compiles a program in C as strictly as possible, with the sanitizers of the library."""
    folder = library_path().parent
    sanitizers = ["-fsanitize=address,undefined"] if "MANUL_C_LIBRARY" in os.environ else []
    flags = ["-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Wpedantic", "-Werror", *sanitizers]
    link = [f"-L{folder}", f"-Wl,-rpath,{folder}", "-lmanul"]
    build("cc", *flags, source, f"-I{ROOT / 'src' / 'core' / 'c_api'}", *link, "-o", program)


def test_the_example_in_c_decides_learns_and_saves_as_python_does(saved, tmp_path):
    path, agent = saved
    program = tmp_path / "decide"
    build_c(ROOT / "examples" / "c" / "decide.c", program)
    printed = run(program, path)
    contexts = [
        {"city": "Oslo", "age": 31, "at": {"$date": "2024-02-29"}},
        {"city": "Bergen", "age": None, "tags": ["new"]},
    ]
    for number, context in enumerate(contexts):
        decision = agent.decide(context, (10, 30))
        expected = f"decision {50 + number}: {decision.action:.17g} with density {decision.density:.17g}"
        assert printed[1 + number] == expected
        agent.learn(context, decision, reward=decision.action - 9 if decision.action < 25 else 0.0)
    assert (
        printed[3]
        == "field 'city' must be text, like the first time, got another type. Pass that type, or use another name."
    )
    assert printed[4] == f"saved {len(manul.dumps(agent))} bytes"


def test_the_example_in_rust_decides_as_python_does(saved, tmp_path):
    path, _ = saved
    agent = manul.load(path)
    folder, program = library_path().parent, tmp_path / "decide"
    rpath = ["-L", folder, "-l", "manul", "-C", f"link-arg=-Wl,-rpath,{folder}"]
    build("rustc", "-D", "warnings", ROOT / "examples" / "rust" / "decide.rs", *rpath, "-o", program)
    printed = run(program, path)
    decisions = [agent.decide(context) for context in ({"city": "Oslo", "age": 31}, {"city": "Bergen", "age": None})]
    for number, decision in enumerate(decisions):
        _, _, action, _, _, density = printed[number].split()
        assert (float(action), float(density)) == (decision.action, decision.density)
    assert printed[2] == "context must be JSON, but at byte 10 a value is missing or wrong."


def test_the_example_of_the_page_compiles_and_decides(saved, tmp_path):
    path, _ = saved
    (block,) = (block.text for block in blocks(ROOT / "docs" / "edge.md") if block.kind == "c")
    source, program = tmp_path / "page.c", tmp_path / "page"
    read = """#include <manul.h>
#include <stdio.h>
static unsigned char bytes[1 << 24];
int main(int count, char **arguments) {
FILE *file = fopen(arguments[count - 1], "rb");
size_t size = fread(bytes, 1, sizeof bytes, file);
fclose(file);
"""
    source.write_text(f'{read}{block}printf("%.17g\\n", decision.density);\nmanul_free(agent);\n}}\n')
    build_c(source, program)
    assert float(run(program, path)[0]) == manul.load(path).decide({"city": "Oslo"}, (10, 20)).density
