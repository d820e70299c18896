"""Values and gains from sums are those of a computation row by row."""

import numpy as np
import pytest

from manul.offpolicy.evaluation.paired_values import PairedValue


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    weights = rng.exponential(1, 500) * (rng.random(500) < 0.4)
    return weights, rng.random(500), rng.random(500), rng.random(500)


@pytest.fixture
def value(rows):
    value = PairedValue()
    for part in np.array_split(np.stack(rows), 3, axis=1):
        value.add(*part)
    return value


def test_the_value_is_self_normalised_and_doubly_robust(rows, value):
    weights, losses, predicted, expected = rows
    residual = (weights * (losses - predicted)).sum() / weights.sum()
    assert value.value == pytest.approx(expected.mean() + residual)
    assert value.gain == pytest.approx(losses.mean() - value.value)


def test_the_errors_are_the_spread_of_the_influence_of_rows(rows, value):
    weights, losses, predicted, expected = rows
    residual = (weights * (losses - predicted)).sum() / weights.sum()
    influence = expected - expected.mean() + weights * (losses - predicted - residual) / weights.mean()
    assert value.error == pytest.approx(np.sqrt((influence**2).sum()) / 500)
    paired = influence - (losses - losses.mean())
    assert value.gain_error == pytest.approx(np.sqrt((paired**2).sum()) / 500)


def test_the_value_stays_in_the_range_of_losses():
    value = PairedValue()
    value.add(np.array([1.0, 0.0]), np.zeros(2), predicted=np.array([1.0, 0.0]), expected=np.zeros(2))
    assert value.value == 0.0


def test_weights_of_zero_leave_the_prediction():
    value = PairedValue()
    value.add(np.zeros(2), np.ones(2), predicted=np.zeros(2), expected=np.full(2, 0.25))
    assert (value.value, value.error) == (0.25, 0.0)
