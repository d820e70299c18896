"""A log keeps its columns together."""

import numpy as np
import pytest

from manul.errors import ParameterError
from manul.log import Log

COLUMNS = (np.zeros((4, 2), np.float32), np.arange(4.0), np.ones(4), np.ones(4))


def test_a_split_keeps_the_ranges():
    train, held_out = Log(*COLUMNS, lows=np.arange(4.0), highs=np.arange(4.0) + 1).split(0.75)
    assert train.lows.tolist() == [0, 1, 2]
    assert held_out.highs.tolist() == [4]


def test_a_log_without_ranges_stays_without():
    assert Log(*COLUMNS).split(0.5)[0].lows is None


@pytest.mark.parametrize("ranges", [{"lows": np.zeros(4)}, {"lows": np.zeros(3), "highs": np.ones(3)}])
def test_half_a_range_is_refused(ranges):
    with pytest.raises(ParameterError, match="log must have"):
        Log(*COLUMNS, **ranges)
