"""The golden program of the core, which `make .venv/dev` builds: the same hashes with every instruction set."""

import sys

import pytest

from tests.golden import NOT_HERE, RECORDED, ROOT, SETS, hashes

pytestmark = pytest.mark.whole


@pytest.mark.parametrize("instruction_set", SETS)
def test_decisions_and_weights_have_their_golden_hashes_with_every_instruction_set(instruction_set):
    programs = sorted(ROOT.glob(f"build/cp{sys.version_info.major}{sys.version_info.minor}-*/golden"))
    assert programs, "no golden program; build it with make .venv/dev"
    found = hashes(programs[0], instruction_set)
    if found == NOT_HERE:
        pytest.skip("the processor lacks it")
    assert found == RECORDED.read_text(encoding="utf-8")
