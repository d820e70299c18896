"""Shared by tests, documentation and the examples in docstrings."""

import os
import subprocess
from importlib.util import find_spec

import pytest

# Modules of optional packages are collected where those are installed.
collect_ignore = [] if find_spec("ray") else ["src/manul/offpolicy/optimization/engines/ray.py"]
# Tests run side by side, and threads of the linear algebra would wait for each other: on two busy cores, the tests of
# the doctor took four times as long.
os.environ.setdefault("OMP_NUM_THREADS", "1")


def pytest_ignore_collect(collection_path, config):
    """Each worker collects all tests, so files that have none of those that are asked for are not even imported."""
    if collection_path.suffix not in (".py", ".md") or config.option.markexpr not in ("whole", "not whole"):
        return None
    is_page, text = collection_path.suffix == ".md", collection_path.read_text()
    if config.option.markexpr == "not whole":
        return is_page or "\npytestmark = pytest.mark.whole\n" in text or None
    # Tests of the service are also marked by the stores that they are tried with.
    may_be_whole = is_page or "whole" in text or "service" in collection_path.parts
    return None if may_be_whole else True


def pytest_collection_modifyitems(items):
    """Pages play worlds and start services."""
    for item in items:
        if item.path.suffix == ".md":
            item.add_marker(pytest.mark.whole)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Only tests that are marked as `whole` start programs, so that `make test` stays quick."""

    def refuse(_self, command, *_args, **_kwargs):
        raise AssertionError(f"a test that starts {command} must be marked with pytest.mark.whole")

    with pytest.MonkeyPatch.context() as patched:
        if item.get_closest_marker("whole") is None:
            patched.setattr(subprocess.Popen, "__init__", refuse)
        return (yield)
