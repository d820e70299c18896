"""AdaptiveCats beside the best fixed bandwidth; `python -m benchmarks.adaptive` is the whole measurement."""

import pytest
from benchmarks.adaptive import compare

pytestmark = pytest.mark.whole


@pytest.mark.parametrize(("name", "widest", "narrowest"), [("smooth", 1 / 4, 1 / 32), ("cliff", 1 / 256, 0.0)])
def test_it_is_near_the_best_fixed_bandwidth(name, widest, narrowest):
    found = compare(name, rounds=20_000, seeds=2)
    assert narrowest <= found.best <= widest
    assert found.adaptive <= 1.15 * found.fixed.min()
