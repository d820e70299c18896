"""`manul inspect` of an agent with several knobs: the best action, what is played, and the effect of each knob."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import manul
from manul.cli import main
from manul.errors import ParameterError
from manul.inspection.inspect import inspect
from manul.inspection.knob_effects import knob_effects, pair_effect
from manul.inspection.knobs_in_context import knobs_in_context

KNOBS = {"price": (10, 50), "days": manul.Stepped(1, 14, 1), "template": manul.Choice(["plain", "bold", 3])}
OSLO = {"city": "Oslo", "age": 40}


def loss(context, action):
    """Oslo wants a price of 20 and Rome one of 40, both want 5 days and bold."""
    target = 20 if context["city"] == "Oslo" else 40
    wrong = 0.0 if action["template"] == "bold" else 0.2
    return min(1.0, abs(action["price"] - target) / 80 + abs(action["days"] - 5) / 60 + wrong)


@pytest.fixture(scope="module")
def agent():
    agent, rng = manul.Auto(actions=KNOBS, seed=1), np.random.default_rng(0)
    for city, age in zip(rng.choice(["Oslo", "Rome"], 800), rng.normal(40, 9, 800), strict=True):
        context = {"city": str(city), "age": float(age)}
        decision = agent.decide(context)
        agent.learn(context, decision, loss(context, decision.action))
    return agent


@pytest.fixture(scope="module")
def path(agent, tmp_path_factory):
    path = tmp_path_factory.mktemp("knobs") / "agent.manul"
    agent.save(path)
    return path


def manul_inspect(*arguments):
    result = CliRunner().invoke(main, ["inspect", *map(str, arguments)])
    assert result.exit_code == 0, result.stderr
    return result.stdout


def read(*arguments):
    return json.loads(manul_inspect(*arguments, "--json"), parse_constant=pytest.fail)


def test_the_text_shows_the_knobs_the_critic_and_the_effect_of_each_knob(path):
    page = manul_inspect(path, "--context", json.dumps(OSLO))
    assert "  knob days       1 to 14 in steps of 1\n  knob template   plain, bold, 3\n" in page
    assert "  rounds learned  800\n" in page
    assert "of each range\n" in page
    assert all(f"predicted loss by {name}, with the other knobs at their best\n" in page for name in KNOBS)
    assert page.count("  best\n") == 3


def test_the_json_has_the_best_action_and_a_curve_per_knob(path, agent):
    found = read(path, "--context", json.dumps(OSLO))
    assert [name for name, _ in found["parameters"]["actions"]] == list(KNOBS)
    assert (found["rounds"], found["report"]["rounds"]) == (800, 800)
    (played,) = found["played"]
    assert played["best"] == agent.best(OSLO)
    assert played["best"]["price"] == pytest.approx(20, abs=3)
    assert played["knobs"]["template"]["distribution"]["probabilities"][1][0] == "bold"
    low, high = played["knobs"]["price"]["window"]
    assert low <= played["best"]["price"] <= high


def test_an_effect_is_the_prediction_with_the_other_knobs_at_their_best(agent):
    best = agent.best(OSLO)
    for effect in knob_effects(agent, OSLO):
        actions = [{**best, effect.name: value} for value in effect.values]
        assert effect.losses == pytest.approx(agent.predict_losses([OSLO] * len(actions), actions))
        assert effect.best_loss == pytest.approx(agent.predict_losses([OSLO], [best])[0])


def test_the_best_action_lies_in_its_windows_even_if_the_loss_is_flat():
    agent = manul.Auto(actions={"price": (-1e9, 1e9), "x": (0, 1), "flag": manul.Choice([True, False])}, seed=1)
    for context in np.random.default_rng(0).normal(size=(300, 2)):
        agent.learn(context, agent.decide(context), 0.5)
    policy = knobs_in_context(agent, [1.0, 2.0])
    for name, length in (("price", 2e9), ("x", 1)):
        low, high = policy.window(name)
        assert low <= policy.best[name] <= high < low + 0.2 * length


def test_a_pair_is_the_prediction_over_two_knobs(agent):
    pair, best = pair_effect(agent, OSLO, "price", "template"), agent.best(OSLO)
    assert pair.losses.shape == (3, 32)
    action = {**best, "price": pair.values[0][5], "template": 3}
    assert pair.losses[2, 5] == pytest.approx(agent.predict_losses([OSLO], [action])[0])


def test_the_loss_rises_away_from_the_best_price_and_template(agent):
    price, _, template = knob_effects(agent, OSLO)
    assert min(price.losses[0], price.losses[-1]) > price.best_loss
    assert min(template.losses[0], template.losses[2]) > template.best_loss == template.losses[1]


def test_steps_are_thinned_and_their_ends_are_kept():
    agent = manul.Auto(actions={"many": manul.Stepped(0, 1, 0.001), "few": manul.Stepped(0, 1, 0.5)})
    many, few = knob_effects(agent, None)
    assert (len(many.values), many.values[0], many.values[-1], few.values) == (65, 0.0, 1.0, (0.0, 0.5, 1.0))


def test_more_options_than_can_be_listed_are_inspected_given_the_best(tmp_path):
    agent = manul.Auto(actions={**{f"choice{n}": manul.Choice(list("abcd")) for n in range(6)}, "price": (0, 1)})
    agent.decide([0.5])
    agent.save(tmp_path / "agent.manul")
    knobs = read(tmp_path / "agent.manul", "--context", "[0.5]")["played"][0]["knobs"]
    assert knobs["choice0"]["distribution"]["probabilities"] == [[knobs["choice0"]["best"], 1.0]]
    assert len(knobs["choice5"]["curve"]) == 4


def test_an_agent_behind_a_map_is_inspected_through_it(tmp_path):
    mapped = manul.Mapped(agent=manul.Auto(actions=KNOBS), features=manul.maps.Crosses())
    mapped.learn([1.0, 2.0], mapped.decide([1.0, 2.0]), 0.5)
    mapped.save(tmp_path / "mapped.manul")
    (played,) = read(tmp_path / "mapped.manul", "--context", "[1, 2]")["played"]
    assert (played["context"], played["best"]) == ([1, 2], mapped.best([1.0, 2.0]))


def test_an_agent_that_has_seen_nothing_can_be_inspected(tmp_path):
    manul.Auto(actions=KNOBS).save(tmp_path / "new.manul")
    found = read(tmp_path / "new.manul", "--context", "[0.5]", "--plot", tmp_path / "new.png")
    assert (found["rounds"], found["report"]) == (None, None)


def test_inspection_does_not_change_the_agent(agent):
    before = manul.dumps(agent)
    knob_effects(agent, OSLO), pair_effect(agent, OSLO, "price", "days")
    assert manul.dumps(agent) == before


def test_the_picture_comes_with_its_table(path, tmp_path):
    manul_inspect(path, "--context", json.dumps(OSLO), "--plot", tmp_path / "out.png")
    table = (tmp_path / "out.csv").read_text().splitlines()
    assert table[0] == "series,price,density,days,probability,template,predicted loss"
    assert sum(line.startswith("best,") for line in table) == 3
    assert sum(line.startswith("bold,") for line in table) == 2


def test_a_heat_map_has_the_options_on_its_axis_and_a_table(agent, tmp_path):
    axes = pair_effect(agent, OSLO, "days", "template").plot()
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["plain", "bold", "3"]
    manul.plotting.save(axes, tmp_path / "pair.png")
    assert (tmp_path / "pair.csv").read_text().startswith("series,days,template,predicted loss\nbest,5.0,1.0,\n")


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (("prise", "days"), "unknown knob 'prise'. Did you mean price?"),
        (("days", "days"), "a pair must have two knobs, got 'days' twice."),
    ],
)
def test_a_pair_that_cannot_be_drawn_gets_one_sentence(agent, names, sentence):
    with pytest.raises(ParameterError) as caught:
        pair_effect(agent, OSLO, *names)
    assert str(caught.value) == sentence


def test_several_contexts_are_inspected(path):
    rome = {"city": "Rome", "age": 40}
    one, other = (policy.best["price"] for policy in inspect(path, OSLO, rome).played)
    assert one < 30 < other
