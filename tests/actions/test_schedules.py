"""Schedules of epsilon."""

import math

import pytest

import manul

Fading = manul.schedules.Fading


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"first": 0}, "first must be in (0, 1], got 0. Try 0.05."),
        ({"first": 1.5}, "first must be in (0, 1], got 1.5. Try 0.05."),
        ({"first": math.nan}, "first must be in (0, 1], got nan. Try 0.05."),
        ({"first": "0.1"}, "first must be in (0, 1], got '0.1'. Try 0.05."),
        ({"last": -0.1}, "last must be in (0, 1], got -0.1. Try 0.002."),
        ({"last": 0.1}, "last must be at most first, 0.05, got 0.1."),
        ({"rounds": 0}, "rounds must be above 0 and finite, got 0. Try 1000."),
        ({"rounds": math.inf}, "rounds must be above 0 and finite, got inf. Try 1000."),
    ],
)
def test_a_schedule_that_cannot_be_is_one_sentence(settings, message):
    with pytest.raises(manul.errors.ParameterError) as error:
        Fading(**settings)
    assert (str(error.value), error.value.field) == (message, next(iter(settings)))


def test_epsilon_is_halved_by_the_first_rounds_and_stops_at_the_last_value():
    schedule = Fading(first=0.4, last=0.1, rounds=50)
    assert [schedule.at(age) for age in (0, 50, 100, 150, 1e300)] == [0.4, 0.2, 0.4 / 3, 0.1, 0.1]


@pytest.mark.parametrize("epsilon", ["auto", "fading", None, (0.05, 0.002, 1000)])
def test_an_epsilon_that_is_no_number_is_one_sentence(epsilon):
    with pytest.raises(
        manul.errors.ParameterError, match=r"^epsilon must be a number in \[0, 1\] or a schedule such as"
    ):
        manul.Cats(leaves=8, bandwidth=1 / 8, epsilon=epsilon)
