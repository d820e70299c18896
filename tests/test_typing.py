"""The types that users see: `mypy --strict` and `pyright` accept what the documentation shows, and find mistakes."""

import subprocess
import sys
from pathlib import Path

import pytest

CLAIMS = Path(__file__).parent / "typing_claims.py"
CHECKERS = {
    "mypy": ["mypy", "--strict", "--warn-unused-ignores", "--no-incremental"],
    "pyright": ["pyright", "--pythonpath", sys.executable],
}

pytestmark = pytest.mark.whole


@pytest.mark.parametrize("checker", CHECKERS)
def test_the_types_are_as_claimed_and_mistakes_are_found(checker):
    run = subprocess.run(
        [sys.executable, "-m", *CHECKERS[checker], CLAIMS], capture_output=True, text=True, cwd=CLAIMS.parent.parent
    )
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize("checker", CHECKERS)
def test_a_wrong_claim_is_found(checker, tmp_path):
    wrong = tmp_path / "wrong.py"
    wrong.write_text(
        CLAIMS.read_text().replace("assert_type(agent, manul.Auto[float])", "assert_type(agent, manul.Auto[str])")
    )
    run = subprocess.run([sys.executable, "-m", *CHECKERS[checker], wrong], capture_output=True, text=True)
    assert run.returncode == 1, run.stdout + run.stderr
