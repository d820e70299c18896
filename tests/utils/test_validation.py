"""What a caller hands over is checked in one place, and the error says which parameter was wrong."""

import math

import pytest

from manul.errors import ParameterError
from manul.utils.validation import check_choice, check_number, check_whole_number


@pytest.mark.parametrize(
    ("low", "high", "ends", "value", "rule"),
    [
        (0, 1, "[]", 1.5, "in [0, 1]"),
        (0, 1, "()", 0, "in (0, 1)"),
        (0, 1, "(]", math.nan, "in (0, 1]"),
        (0, math.inf, "()", math.inf, "above 0 and finite"),
        (1, math.inf, "[]", 0, "at least 1"),
        (0, 1, "[]", "half", "in [0, 1]"),
    ],
)
def test_a_number_outside_its_range_is_rejected(low, high, ends, value, rule):
    with pytest.raises(ParameterError) as caught:
        check_number("share", value, low, high, "Try 0.5.", ends=ends)
    assert (str(caught.value), caught.value.field) == (f"share must be {rule}, got {value!r}. Try 0.5.", "share")


@pytest.mark.parametrize("value", [0, 65, 2.0, True, "2", None])
def test_what_is_no_whole_number_of_the_range_is_rejected(value):
    with pytest.raises(ParameterError, match="count must be a whole number from 1 to 64"):
        check_whole_number("count", value, 1, 64, "Try 4.")


@pytest.mark.parametrize("value", ["C", [], None])
def test_what_is_not_among_the_choices_is_rejected(value):
    with pytest.raises(ParameterError, match=r"letter must be 'a', 'b' or 'c', got .*\. Try 'a'\."):
        check_choice("letter", value, ("a", "b", "c"))
