"""ActionSpace: positions and values, narrower ranges, and what is refused."""

import numpy as np
import pytest

import manul
from manul.actions.distribution import Options
from manul.actions.kinds.span import Span
from manul.actions.space import ActionSpace
from manul.errors import InputError, ParameterError

KNOBS = ActionSpace(
    {
        "price": (10, 50),
        "days": manul.Stepped(1, 14, 1),
        "share": manul.Stepped(0, 0.3, 0.1),
        "template": manul.Choice(["plain", "bold", 3]),
        "gift": manul.Choice([True, False]),
    }
)
ACTION = {"price": 20.0, "days": 3, "share": 0.3, "template": "bold", "gift": False}


def test_positions_are_shares_middles_of_cells_and_numbers_of_options():
    assert KNOBS.positions(ACTION) == pytest.approx([0.25, 2.5 / 14, 3.5 / 4, 1, 1])


def test_an_action_comes_back_from_its_positions():
    assert KNOBS.action(KNOBS.positions(ACTION)) == ACTION


@pytest.mark.parametrize("steps", [1, 7, 14, 999])
def test_every_step_comes_back_from_its_position(steps):
    knob = manul.Stepped(-2.0, -2.0 + 0.1 * steps, 0.1)
    values = [knob.value((step + 0.5) / knob.count) for step in range(knob.count)]
    assert [knob.value(knob.position(value, "knob")) for value in values] == values


def test_positions_stay_in_the_unit_range_at_the_ends():
    span = Span(0.1, 0.7)
    assert (span.position(0.1, "x"), span.position(0.7, "x"), span.value(1.0)) == (0.0, 1.0, 0.7)


def test_the_volume_is_the_inverse_of_the_uniform_density():
    assert KNOBS.volume == pytest.approx(40 * 14 * 4 * 3 * 2)
    assert manul.Auto(actions=KNOBS.actions).decide([1.0]).density == pytest.approx(1 / KNOBS.volume)


def test_knobs_come_back_from_their_description():
    assert ActionSpace.from_description(KNOBS.describe()) == KNOBS


def test_within_takes_the_cells_of_the_steps_inside_and_the_bits_of_options():
    lows, highs = KNOBS.ranges({"price": (12, 20), "days": (2.5, 4.5), "template": ["bold", 3]})
    assert lows == pytest.approx([0.05, 2 / 14, 0, 0b110, 0b11])
    assert highs[:3] == pytest.approx([0.25, 4 / 14, 1])


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"price": 60}, "price must be in [10, 50], got 60."),
        ({"price": "dear"}, "price must be a number, got 'dear'."),
        ({"price": float("nan")}, "price must be a finite number, got nan."),
        ({"days": 2.5}, "days must be one of 1, 2, …, 14, got 2.5."),
        ({"days": 15}, "days must be one of 1, 2, …, 14, got 15."),
        ({"template": "blod"}, "template must be one of 'plain', 'bold', 3, got 'blod'."),
        ({"gift": 1}, "gift must be one of True, False, got 1."),
        ({"prise": 3}, "action has an unknown knob 'prise'. Did you mean price?"),
    ],
)
def test_an_action_that_the_knobs_do_not_have_is_one_sentence(change, sentence):
    with pytest.raises(InputError) as caught:
        KNOBS.positions({**ACTION, **change})
    assert str(caught.value) == sentence


def test_a_missing_knob_is_one_sentence():
    with pytest.raises(InputError, match=r"^action must set the knob 'gift' too\.$"):
        KNOBS.positions({name: value for name, value in ACTION.items() if name != "gift"})


def test_an_action_that_is_no_mapping_is_one_sentence():
    with pytest.raises(
        InputError, match=r"^action must be a mapping of price, days, share, template, gift to values, got 3"
    ):
        KNOBS.positions(3)


@pytest.mark.parametrize(
    ("within", "sentence"),
    [
        ({"price": (5, 20)}, "within of price must be a range inside [10, 50], got (5, 20)."),
        ({"price": (20, 20)}, "within of price must be a range inside [10, 50], got (20, 20)."),
        ({"price": 20}, "within of price must be (low, high), got 20."),
        ({"days": (2.2, 2.8)}, "within of days must contain one of its steps, got (2.2, 2.8)."),
        ({"template": []}, "within of template must have at least one option, got none."),
        ({"template": "thin"}, "template must be one of 'plain', 'bold', 3, got 'thin'."),
        ({"dyas": (1, 2)}, "within has an unknown knob 'dyas'. Did you mean days?"),
        ((0, 1), "within must be a mapping of knobs to ranges, got (0, 1)."),
    ],
)
def test_a_range_that_leaves_nothing_is_one_sentence(within, sentence):
    with pytest.raises(InputError) as caught:
        KNOBS.ranges(within)
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("make", "start"),
    [
        (lambda: ActionSpace({}), "actions must have 1 to 16 knobs, got 0."),
        (lambda: ActionSpace({f"knob{n}": (0, 1) for n in range(17)}), "actions must have 1 to 16 knobs, got 17."),
        (lambda: ActionSpace({3: (0, 1)}), "names of knobs must be text and not empty, got 3."),
        (lambda: ActionSpace({"price": 3}), "price must be"),
        (lambda: ActionSpace({"price": (3, 1)}), "price must be"),
        (lambda: manul.Stepped(0, 1, 0.3), "step must divide the range from 0 to 1 evenly, got 0.3. Try 0.9 as high."),
        (lambda: manul.Stepped(1, 14, 3), "step must divide the range from 1 to 14 evenly, got 3. Try 13 as high."),
        (lambda: manul.Stepped(0, 1, 5), "step must divide the range from 0 to 1 evenly, got 5. Try 1."),
        (lambda: manul.Stepped(0, 1, 1e12), "step must divide the range from 0 to 1 evenly, got 1e+12. Try 1."),
        (lambda: manul.Stepped(0, 1, 0), "step must be above 0 and finite, got 0."),
        (lambda: manul.Stepped(0, 10, 1e-6), "step must leave at most 1,000,000 steps, got 1e-06."),
        (lambda: manul.Choice(["a"]), "Choice must have 2 to 32 options, got 1."),
        (lambda: manul.Choice(range(33)), "Choice must have 2 to 32 options, got 33."),
        (lambda: manul.Choice(3), "options must be a list of options, got 3."),
        (lambda: manul.Choice("ab"), "Choice must have 2 to 32 options, got 1."),
        (lambda: manul.Choice(["a", "a"]), "options must be distinct, got ['a', 'a']."),
        (lambda: manul.Choice(["a", None]), "options must be text, numbers, True or False, got None."),
        (
            lambda: ActionSpace({name: manul.Choice(range(32)) for name in "abc"}),
            "actions must have at most 64 knobs and options of choices together, got 96.",
        ),
    ],
)
def test_bad_knobs_are_one_sentence(make, start):
    with pytest.raises(ParameterError) as caught:
        make()
    assert str(caught.value).startswith(start)
    assert "\n" not in str(caught.value)


def test_the_most_likely_option_and_the_total_probability():
    options = Options({"a": 0.25, "b": 0.75})
    assert (options.densest(), options.integral(), options.density("c")) == ("b", 1.0, 0.0)


def test_draws_of_a_distribution_have_its_density(rng):
    agent = manul.Auto(actions=KNOBS.actions, epsilon=0.5, nearby=0.5)
    for number in range(30):
        decision = agent.decide([1.0])
        agent.learn([1.0], decision, number % 2)
    distribution = agent.distribution([1.0])
    inverse = np.array([1 / distribution.density(distribution.sample(rng)) for _ in range(2000)])
    assert abs(inverse.mean() - KNOBS.volume) <= 4 * inverse.std() / np.sqrt(len(inverse))
