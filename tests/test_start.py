"""Starting is quick: nothing is imported before it is used."""

import resource
import subprocess
import sys

import pytest

import manul

HEAVY = {"matplotlib", "numpy", "pandas", "pyarrow", "ray", "safetensors", "scipy", "sklearn", "starlette", "tqdm"}
STARTS = {
    "import manul": "import manul",
    "manul --help": "import manul.cli; manul.cli.main(['--help'], 'manul', standalone_mode=False)",
}


def ran(code):
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


def seconds(code):
    """The processor's time, the least of three: others use the machine too."""
    times = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        ran(code)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(times)


@pytest.mark.whole
@pytest.mark.parametrize("code", STARTS.values(), ids=STARTS)
def test_a_start_imports_nothing_heavy(code):
    loaded = ran(f"import sys; {code}; print(); print(*sys.modules)").splitlines()[-1].split()
    assert not HEAVY & set(loaded)


@pytest.mark.whole
@pytest.mark.parametrize("code", STARTS.values(), ids=STARTS)
def test_a_start_takes_less_than_importing_numpy_twice(code):
    assert seconds(code) < max(0.4, 2 * seconds("import numpy"))


def test_every_public_name_is_there_when_it_is_asked_for():
    assert all(getattr(manul, name) is not None for name in manul.__all__)
    assert set(manul.__all__) <= set(dir(manul))


@pytest.mark.whole
def test_a_file_is_loaded_before_any_agent_was_asked_for(tmp_path):
    manul.Cats(leaves=8, bandwidth=1 / 8).save(tmp_path / "agent.manul")
    assert ran(f"import manul; print(manul.load({str(tmp_path / 'agent.manul')!r}))").startswith("Cats(")


@pytest.mark.whole
def test_the_loop_stays_a_function_whatever_was_imported_first():
    assert ran("import manul.worlds.demonstration, manul.offpolicy; print(callable(manul.simulate))") == "True\n"


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'Catts'"):
        _ = manul.Catts
