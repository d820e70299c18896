"""Every example runs, as its first lines say."""

import re
import shlex
import subprocess
import sys

import pytest

from tests.markdown import ROOT

pytestmark = pytest.mark.whole

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_runs_as_it_says(path, tmp_path):
    (line,) = re.findall(r"^ *python (examples.*)$", path.read_text(), re.MULTILINE)
    words = [
        sys.executable,
        *(str(ROOT / word) if word.startswith("examples/") else word for word in shlex.split(line)),
    ]
    result = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout or list(tmp_path.iterdir())


def test_the_table_of_the_readme_is_the_one_that_is_made(tmp_path):
    subprocess.run([sys.executable, ROOT / "examples/make_cars.py", tmp_path / "cars.csv"], check=True)
    assert (tmp_path / "cars.csv").read_bytes() == (ROOT / "examples/cars.csv").read_bytes()
