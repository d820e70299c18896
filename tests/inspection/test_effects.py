"""Effects of features: they have the signs of worlds with a known optimum, and no direction if there is none."""

import datetime

import numpy as np
import pytest

import manul
from manul.errors import InputError, ParameterError
from manul.inspection import effects
from manul.inspection.local_effects import category_ladder, local_effects, number_ladder

UP, DOWN, UNCLEAR = "raises the action", "lowers the action", "no clear direction"
DEPENDS, LITTLE, VALLEY = "depends on the other features", "has little or no effect", "is lowest near "
ROUNDS = 6000


class Formula:
    """A policy that always plays a function of the row."""

    actions = (-10.0, 10.0)

    def __init__(self, function):
        self.function = function

    def distribution(self, context, within=None):
        return manul.policies.Atoms(np.array([float(self.function(context))]), np.ones(1), 1.0)


def independent(seed):
    return np.random.default_rng(seed).uniform(-1, 1, (ROUNDS, 3))


def correlated(seed):
    one, noise, other = np.random.default_rng(seed).normal(size=(3, ROUNDS))
    return np.column_stack([one, 0.8 * one + 0.6 * noise, other])


# The contexts, their optimum, and the direction or the shape of each column. The second column of the correlated worlds rises with the
# optimum although it lowers it, or does not change it.
WORLDS = {
    "linear": (independent, lambda x: 0.5 + 0.3 * x[1] - 0.15 * x[2], [LITTLE, UP, DOWN]),
    "interaction": (independent, lambda x: 0.5 + 0.4 * x[0] * x[1], [DEPENDS, DEPENDS, LITTLE]),
    "slope that depends": (independent, lambda x: 0.5 + 0.25 * x[0] + 0.15 * x[0] * x[1], [UP, DEPENDS, LITTLE]),
    "valley": (independent, lambda x: 0.2 + 0.6 * x[0] ** 2 - 0.15 * x[1], [VALLEY, DOWN, LITTLE]),
    "correlated": (correlated, lambda x: 0.5 + 0.15 * x[0] - 0.1 * x[1], [UP, DOWN, LITTLE]),
    "correlated but irrelevant": (correlated, lambda x: 0.5 + 0.15 * x[0], [UP, LITTLE, LITTLE]),
}
LINEAR = ("linear", "correlated", "correlated but irrelevant")
CASES = (
    [("auto", name) for name in WORLDS] + [("cats", name) for name in LINEAR] + [("linear", name) for name in LINEAR]
)
AGENTS = {
    "auto": lambda seed: manul.Auto(seed=seed),
    "cats": lambda seed: manul.Cats(leaves=64, bandwidth=1 / 32, seed=seed),
    "linear": lambda seed: manul.agents.SmoothedGreedy(policies=manul.policies.Linear(), bandwidth=1 / 16, seed=seed),
}


@pytest.mark.parametrize(("agent", "world"), CASES)
def test_every_direction_is_that_of_the_optimum(agent, world):
    make, optimum, shapes = WORLDS[world]
    contexts, learner = make(0), AGENTS[agent](0)
    manul.simulate(learner, manul.worlds.Regression(contexts, np.clip(optimum(contexts.T), 0, 1)))
    found = effects(learner, contexts)
    columns = [found[f"column {number}"] for number in range(3)]
    assert all(column.shape.startswith(shape) for column, shape in zip(columns, shapes, strict=True))
    assert [column.direction for column in columns] == [each if each in (UP, DOWN) else UNCLEAR for each in shapes]
    assert len(found.sentences()) == sum(shape != LITTLE for shape in shapes)


SHAPES = {
    "valley": (lambda x: (x - 5) ** 2 / 2.5 - 5, "is lowest near 5 and higher on both sides", 10),
    "hill": (lambda x: 5 - 2 * abs(x - 6), "is highest near 6 and lower on both sides", 12),
    "hill with a short way down": (lambda x: min(x, 14 - x), "is highest near 7 and lower on both sides", 7),
    "step": (lambda x: 8.0 * (x > 4), UP, 8),
    "two waves": (lambda x: 4 * np.sin(x), "rises to 2, falls to 5, rises to 8 and falls to 10", 7.8),
    "many waves": (lambda x: 4.0 * (x % 2), "rises and falls several times", 4),
    "nothing": (lambda x: 0 * x, LITTLE, None),
    "hardly anything": (lambda x: 0.05 * x, LITTLE, None),
}


@pytest.mark.parametrize("name", SHAPES)
def test_a_shape_is_said_in_words_with_the_size_of_its_largest_rise_or_fall(name):
    function, words, size = SHAPES[name]
    found = effects(Formula(lambda row: function(row[0])), [[float(each)] for each in range(11)] * 20)
    (feature,) = found
    assert (feature.shape, feature.swing) == (words, size if size is None else pytest.approx(size, rel=0.1))
    assert words in str(found)
    assert len(found.sentences()) == (size is not None)


def test_a_valley_is_not_described_by_its_change_from_end_to_end():
    found = effects(Formula(lambda row: (row[0] - 5) ** 2 / 2.5 - 5), [[float(each)] for each in range(11)] * 20)
    assert found.sentences() == ["Along column 0, the action is lowest near 5 and higher on both sides, by up to 10."]
    assert str(found).splitlines()[2].split()[:8] == ["column", "0", "0", "to", "10", "10", "10", "to"]
    assert UNCLEAR not in str(found)


def test_effects_that_cancel_out_depend_on_the_other_features():
    contexts = np.random.default_rng(0).uniform(0, 10, (1000, 2))
    found = effects(Formula(lambda row: (row[0] - 5) * (1 if row[1] > 5 else -1)), contexts)
    sentence = found["column 0"].sentences()
    assert next(sentence).endswith("up or down depending on the other features.")
    assert found["column 0"].swing == pytest.approx(9, abs=0.3)


def test_a_feature_whose_values_do_not_matter_may_matter_by_being_there():
    heights = [1.0, 2.0, 3.0, None] * 20
    found = effects(ByField(lambda _: 5.0), {"height": heights, "other": [1.0, 2.0] * 40})
    assert found["height"].shape == "has little or no effect where it is known"
    assert found["other"].shape == LITTLE


def test_the_season_of_a_date_is_a_valley():
    days = [datetime.date(2023, 1, 1) + datetime.timedelta(days=n) for n in range(365)]
    policy = Formula(lambda context: 5 * np.cos(2 * np.pi * days.index(context["at"]) / 365))
    (feature,) = effects(policy, [{"at": day} for day in days])
    assert feature.shape.startswith("is lowest near 2023-0")
    assert feature.shape.endswith(" and higher on both sides")


def test_the_effects_of_an_additive_policy_are_its_terms():
    contexts = np.random.default_rng(0).random((500, 2))
    found = effects(Formula(lambda row: 3 * row[0] + row[1] ** 2), contexts)
    line = found["column 0"]
    assert line.change == pytest.approx(3 * (line.values[-1].value - line.values[0].value), abs=1e-5)
    curve = found["column 1"].values
    assert np.allclose(np.diff([each.effect for each in curve]), np.diff([each.value**2 for each in curve]), atol=1e-5)
    assert curve[0].high - curve[0].low < 0.01


def test_a_feature_beside_a_relevant_one_has_no_effect_although_both_rise():
    one = np.random.default_rng(0).random(500)
    contexts = np.column_stack([one, one + 0.01 * np.random.default_rng(1).random(500)])
    found = effects(Formula(lambda row: 5 * row[0]), contexts)
    assert (found["column 1"].change, found["column 1"].direction) == (0.0, UNCLEAR)


def test_the_intervals_cover_the_effect_over_all_contexts():
    rng, slopes = np.random.default_rng(0), np.random.default_rng(1).normal(2, 1, 20_000)
    table = np.column_stack([rng.choice([0.0, 1.0], 20_000), slopes])
    truth, covered = slopes.mean(), 0
    for first in range(0, 20_000, 400):
        effect = effects(Formula(lambda row: row[0] * row[1]), table[first : first + 400])["column 0"]
        covered += effect.low <= truth <= effect.high
    assert covered >= 44  # of 50


def test_categories_are_compared_with_the_mean_over_the_contexts():
    rows, cities = np.arange(4), ["a", "b", "b", "c"]
    heights = {"a": 0.0, "b": 1.0, "c": 4.0}
    ladder = category_ladder(cities, np.array([heights[city] for city in cities]), rows)
    found = local_effects(ladder, lambda _, values: np.array([heights[value] for value in values]))
    assert ladder.values == ("a", "b", "c")
    assert found.effects.tolist() == [-1.5, -0.5, 2.5]


def test_rare_categories_are_left_out():
    cities = [*"abcdefghijkl" * 3, "rare"]
    assert "rare" not in category_ladder(cities, np.zeros(37), np.arange(37)).values


def test_a_few_numbers_are_their_own_steps_and_many_are_quantiles():
    few, many = np.array([2012.0, 2013.0, 2020.0]), np.arange(1000.0)
    assert number_ladder(few, few.tolist(), np.arange(3)).values == (2012.0, 2013.0, 2020.0)
    ladder = number_ladder(many, many.tolist(), np.arange(1000))
    assert (len(ladder.values), ladder.values[0], ladder.values[-1]) == (11, 49.0, 949.0)


class ByField(Formula):
    """A policy of the field height, if the context has one."""

    def distribution(self, context, within=None):
        return (
            super().distribution(context) if "height" in context else manul.policies.Atoms(np.zeros(1), np.ones(1), 1.0)
        )


def test_tables_of_every_kind_have_the_same_effects():
    import pandas
    import polars
    import pyarrow

    columns = {"height": [1.0, 2.0, None, 4.0] * 5, "colour": ["red", "blue", "red", None] * 5}
    policy = ByField(lambda row: row["height"] + (row.get("colour") == "red"))
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    expected = effects(policy, columns).table()
    for table in (rows, pandas.DataFrame(columns), polars.DataFrame(columns), pyarrow.table(columns)):
        assert effects(policy, table).table() == expected
    assert {row["feature"] for row in expected} == {"height", "colour"}


def test_a_log_has_the_effects_of_its_contexts():
    world = manul.worlds.linear(rounds=500, width=2)
    agent = manul.Cats(leaves=16, bandwidth=1 / 16)
    log = manul.simulate(agent, world).log
    assert effects(agent, log).table() == effects(agent, world.contexts).table()


def test_looking_at_effects_changes_nothing():
    agent = manul.Auto()
    for city in ("Oslo", "Rome"):
        agent.learn({"city": city}, agent.decide({"city": city}), 0.5)
    before = manul.dumps(agent)
    effects(agent, {"city": ["Oslo", "Paris"], "age": [1.0, 2.0]})
    assert manul.dumps(agent) == before


def test_each_knob_has_its_effects():
    rng, agent = np.random.default_rng(0), manul.Auto(actions={"price": (0, 1), "days": manul.Stepped(1, 9, 1)})
    for size in rng.random(1500):
        decision = agent.decide([size])
        loss = (abs(decision.action["price"] - size) + abs(decision.action["days"] - 9 + 8 * size) / 8) / 2
        agent.learn([size], decision, loss)
    contexts = rng.random((300, 1))
    assert effects(agent, contexts)["column 0"].direction == UP
    assert effects(agent, contexts, knob="days")["column 0"].direction == DOWN
    with pytest.raises(ParameterError, match=r"unknown knob 'day'\. Did you mean days\?"):
        effects(agent, contexts, knob="day")


def test_times_are_drawn_as_times(tmp_path):
    import datetime

    days = [datetime.datetime(2015, 1, 1) + datetime.timedelta(days=31 * number) for number in range(100)]
    found = effects(ByField(lambda row: row["height"].year - 2019), {"height": days, "same": [1] * 100})
    assert (found["height"].kind, found.left_out) == ("time", ("same",))
    axes = found["height"].plot()
    axes.figure.canvas.draw()
    assert "2018" in [tick.get_text() for tick in axes.get_xticklabels()]
    manul.plotting.save(axes, tmp_path / "time.png")
    assert "2015-" in (tmp_path / "time.csv").read_text()


BAD = {
    "one context": ({"age": 31}, "contexts must be a table with one row per context, or columns by name, got 31"),
    "lengths": ({"age": [1, 2], "size": [1]}, "the columns must have one length, got lengths"),
    "no rows": ({"age": []}, "contexts must have at least one row"),
    "text for rows": ({"age": ["x", "y"]}, "column 'age' must be numbers, because the policy takes rows of numbers"),
    "width": ([[1.0, 2.0]], "context must have 1 numbers, like the first one, got 2"),
}


@pytest.mark.parametrize("name", BAD)
def test_contexts_that_do_not_fit_are_one_sentence(name):
    contexts, sentence = BAD[name]
    agent = manul.Auto()
    agent.decide([1.0])
    with pytest.raises(InputError, match=sentence):
        effects(agent, contexts)


def test_an_agent_that_has_seen_nothing_has_no_effects():
    with pytest.raises(ParameterError, match="the agent has seen no contexts yet"):
        effects(manul.Auto(), [[1.0]])


def test_an_unknown_feature_is_suggested():
    found = effects(Formula(lambda row: row[0]), [[1.0], [2.0]])
    with pytest.raises(ParameterError, match=r"unknown feature 'colum 0'\. Did you mean column 0\?"):
        found["colum 0"]


def test_dates_of_json_are_times_for_effects():
    days = [datetime.date(2024, 1, 1) + datetime.timedelta(days=n) for n in range(200)]
    policy = Formula(lambda context: days.index(context["at"]) / 100)
    contexts = [{"at": {"$date": day.isoformat()}} for day in days]
    found = effects(policy, contexts)
    assert found == effects(policy, [{"at": day} for day in days])
    assert (found.features[0].kind, found.features[0].direction) == ("time", UP)
