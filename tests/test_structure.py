"""The shape of the code base itself."""

import subprocess
import sys
from pathlib import Path

import manul

ROOT = Path(__file__).parent.parent


def test_the_stub_is_what_the_core_says(tmp_path):
    stub = tmp_path / "_core.pyi"
    subprocess.run([sys.executable, "-m", "nanobind.stubgen", "-q", "-m", "manul._core", "-o", stub], check=True)
    committed = (ROOT / "src/manul/_core.pyi").read_text()
    assert stub.read_text() == committed, "run: python -m nanobind.stubgen -m manul._core -o src/manul/_core.pyi"


def test_only_the_bindings_know_python():
    knowing = [path.name for path in (ROOT / "src/core").rglob("*.?pp") if "nanobind" in path.read_text()]
    assert knowing == ["bindings.cpp"]


def test_everything_public_exists_and_is_documented():
    assert all(getattr(manul, name).__doc__ for name in manul.__all__)
