"""The fine grid of bandwidths of Algorithms 5 and 7."""

from itertools import islice

import pytest

from manul.policies import theory


@pytest.mark.parametrize("horizon", [1, 2, 7])
def test_the_grid_is_the_set_of_the_algorithm(horizon: int) -> None:
    finest = 4 * horizon**2
    wanted = [multiple / finest for multiple in range(1, finest + 1) if multiple / finest >= 1 / (2 * horizon)]
    assert list(theory.BandwidthGrid(horizon=horizon)) == wanted


@pytest.mark.parametrize("horizon", [1, 2, 7, 100])
def test_the_length_counts_the_bandwidths(horizon: int) -> None:
    grid = theory.BandwidthGrid(horizon=horizon)
    assert len(grid) == sum(1 for _ in grid)


def test_a_grid_for_a_million_rounds_is_never_stored() -> None:
    grid = theory.BandwidthGrid(horizon=10**6)
    assert list(islice(grid, 2)) == pytest.approx([1 / (2 * 10**6), 1 / (2 * 10**6) + 1 / (4 * 10**12)], rel=1e-12)
    assert len(grid) == 4 * 10**12 - 2 * 10**6 + 1


def test_a_grid_is_a_value() -> None:
    grid = theory.BandwidthGrid(horizon=5)
    assert grid == theory.BandwidthGrid(horizon=5)
    with pytest.raises(AttributeError):
        grid.horizon = 6  # type: ignore[misc]
