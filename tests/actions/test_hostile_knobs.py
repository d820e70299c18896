"""ActionSpace with hostile numbers, names and options: values come back from positions, and positions stay in range."""

import json
import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import manul
from manul.actions.kinds.choice import Choice
from manul.actions.kinds.span import Span
from manul.actions.kinds.stepped import Stepped
from manul.actions.space import ActionSpace
from manul.errors import InputError, ParameterError

NUMBERS = st.floats(-1e300, 1e300, allow_nan=False)
SHARES = st.floats(0, 1)
NAMES = st.text(min_size=1, max_size=20)
OPTIONS = st.lists(
    st.one_of(st.text(max_size=5), st.integers(-3, 3), st.booleans(), st.floats(allow_nan=False)),
    min_size=2,
    max_size=32,
    unique=True,
)


def steps(low, step, count):
    """Steps from low, or nothing if numbers cannot tell them apart."""
    high = low + step * count
    assume(math.isfinite(high - low) and high > low)
    try:
        return Stepped(low, high, step)
    except ParameterError:
        assume(False)


@given(NUMBERS, NUMBERS, SHARES)
def test_a_value_of_a_range_comes_back_from_its_position(low, high, share):
    assume(low < high and math.isfinite(high - low))
    span = Span(low, high)
    value = span.value(share)
    assert low <= value <= high
    assert 0 <= span.position(value, "x") <= 1
    again = span.value(span.position(value, "x"))
    assert abs(again - value) <= 4 * math.ulp(max(abs(low), abs(high)))


@given(NUMBERS, NUMBERS)
def test_the_ends_of_a_range_are_exact(low, high):
    assume(low < high and math.isfinite(high - low))
    span = Span(low, high)
    assert (span.position(low, "x"), span.position(high, "x")) == (0.0, 1.0)
    assert (span.value(0.0), span.value(1.0)) == (low, high)


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6), st.integers(1, 2000), SHARES)
def test_every_step_comes_back_from_its_position(low, step, count, share):
    knob = steps(low, step, count)
    assert knob.count == count + 1
    value = knob.value(share)
    assert knob.low <= value <= knob.high
    assert knob.value(knob.position(value, "x")) == value


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6), st.integers(1, 500), st.data())
def test_a_range_of_steps_keeps_exactly_the_steps_inside(low, step, count, data):
    knob = steps(low, step, count)
    first = data.draw(st.integers(0, count))
    last = data.draw(st.integers(first, count))
    ends = [knob.value((place + 0.5) / knob.count) for place in (first, last)]
    assert knob.narrow(ends, "x") == pytest.approx((first / knob.count, (last + 1) / knob.count))


@pytest.mark.parametrize(
    ("low", "high", "step"), [(0.1, 1.0, 0.1), (-0.3, 0.3, 0.1), (1e9, 1e9 + 1, 0.1), (0, 1e300, 1e299)]
)
def test_steps_that_binary_numbers_cannot_hold_are_found_as_people_write_them(low, high, step):
    knob = Stepped(low, high, step)
    written = [float(f"{low + place * step:.12g}") for place in range(knob.count)]
    cells = [knob.position(value, "x") * knob.count - 0.5 for value in written]
    assert cells == pytest.approx(list(range(knob.count)))


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.floats(1e-3, 1e6))
def test_the_advice_for_a_step_that_does_not_divide_helps(low, length, step):
    high = low + length
    try:
        Stepped(low, high, step)
    except ParameterError as error:
        advice = str(error).partition(" Try ")[2].rstrip(".")
        if advice.endswith(" as high"):
            assert Stepped(low, float(advice.removesuffix(" as high")), step).step == step
        elif advice:
            assert Stepped(low, high, float(advice)).high == high


@given(OPTIONS)
def test_every_option_comes_back_with_its_type(options):
    assume(len(set(options)) == len(options))
    knob = Choice(options)
    again = [knob.value(knob.position(option, "x")) for option in options]
    assert [(type(option), option) for option in again] == [(type(option), option) for option in options]


@pytest.mark.parametrize("other", ["1", True, "", "a.b ", None, [1], 2**60])
def test_options_are_told_apart_by_their_types(other):
    with pytest.raises(InputError, match=r"^x must be one of 1, 'a\.b', 'True', got "):
        Choice([1, "a.b", "True"]).position(other, "x")


def test_an_empty_text_is_an_option():
    decision = manul.Auto(actions={"suffix": Choice(["", "a.b"]), "x": (0, 1)}).decide([1.0], within={"suffix": ""})
    assert decision.action["suffix"] == ""


def test_options_of_numpy_become_those_of_python():
    options = Choice(np.array([1, 2])).options + Choice(np.array(["a", "b"])).options
    assert [type(option) for option in options] == [int, int, str, str]


@given(st.dictionaries(NAMES, st.one_of(st.just((0.0, 1.0)), OPTIONS.map(tuple)), min_size=1, max_size=4))
def test_knobs_of_any_names_and_options_come_back_from_their_json(space):
    actions = {name: each if each == (0.0, 1.0) else Choice(each) for name, each in space.items()}
    assume(sum(len(knob.options) if isinstance(knob, Choice) else 1 for knob in actions.values()) <= 64)
    knobs = ActionSpace(actions)
    again = ActionSpace.from_description(json.loads(json.dumps(knobs.describe())))
    assert again == knobs
    assert repr(again) == repr(knobs)


@pytest.mark.parametrize("length", [1e9, 1e-30])
def test_ranges_whose_joint_density_is_not_usable_are_refused(length):
    with pytest.raises(ParameterError, match=r"^The product of the lengths of all ranges must be in \[1e-50, 1e\+50\]"):
        manul.Auto(actions={f"k{each}": (0, length) for each in range(16)})


def test_an_agent_with_one_knob_refuses_decisions_with_several():
    several, one = manul.Auto(actions={"x": (0, 1)}), manul.Auto()
    with pytest.raises(InputError, match="but it sets several"):
        one.learn([0.5], several.decide([0.5]), 0.5)
    with pytest.raises(InputError, match="but it sets several"):
        one.learn_many([[0.5]], several.decide_many([[0.5]]), [0.5])


@pytest.mark.parametrize("actions", [{"x": 0.5}, {"x": "half"}])
def test_many_actions_have_one_value_per_row(actions):
    with pytest.raises(InputError, match=r"^actions must have one value per row for each knob, got "):
        manul.Auto(actions={"x": (0, 1)}).distributions([[0.5]]).density(actions)
