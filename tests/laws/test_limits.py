"""Limits hold wherever an agent goes, their densities are exact, and the best action is the best one inside them (L6, L7, L8)."""

import copy
import json
import math
import pickle

import numpy as np
import pandas
import pytest

import manul
from manul.actions.limits import Limit, what_is_left
from manul.actions.space import ActionSpace
from manul.agents.player_host import host_of
from manul.errors import InputError, ParameterError
from manul.utils.formulas import parse_rule
from tests.laws.log_span import LogSpan

PRICES = {"price": (10, 50), "discount": (0, 0.5)}
OFFERS = {**PRICES, "template": manul.Choice(["plain", "bold", "sale"]), "days": manul.Stepped(1, 14, 1)}
SPACES = {
    "formula": (PRICES, ["discount <= 1 - 9 / price"]),
    "both sides": (PRICES, ["discount <= (price - 9) / 41", "discount >= (price - 10) / 100"]),
    "context": (PRICES, ["price > 3 * cost", "discount < 1 - 2 * cost / price"]),
    "options": (OFFERS, ["discount <= 0.15 if template != 'sale'", "price >= 20 if template == 'bold'"]),
    "turned round": (OFFERS, ["template in ('plain', 'sale') if discount > 0.2", "template == 'sale' if days > 7"]),
    "steps": (OFFERS, ["days < price / 4", "template != 'bold'", "discount <= days / 28"]),
}
NARROWER = {"price": (12, 45)}


def context(rng):
    return {"cost": float(rng.uniform(2, 8)), "age": float(rng.random())}


def loss(context, action):
    away = abs(action["price"] - 15 - 20 * context["age"]) / 40 + abs(0.45 - action["discount"])
    return min(1.0, 0.5 * away + 0.1 * (action.get("template") == "plain"))


def play(name, rounds=120, **given):
    actions, limits = SPACES[name]
    agent, rng = manul.Auto(actions=actions, limits=limits, **{"epsilon": 0.3, **given}), np.random.default_rng(3)
    for _ in range(rounds):
        now = context(rng)
        decision = agent.decide(now)
        agent.learn(now, decision, loss(now, decision.action))
    return agent


@pytest.fixture(scope="module", params=SPACES)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def agent(name):
    return play(name)


def contexts(count, seed=5):
    rng = np.random.default_rng(seed)
    return [context(rng) for _ in range(count)]


def holds(text, action, now):
    """The limit as Python would read it: the oracle."""
    rule, where = parse_rule(text, "limit")
    values = {**now, **action}
    return (where is not None and not where.value(values)) or rule.value(values) == 1


def assert_inside(name, actions, rows):
    for action, now in zip(actions, rows, strict=True):
        assert all(holds(text, action, now) for text in SPACES[name][1]), (action, now)


def actions_of(decisions):
    return [decision.action for decision in decisions]


@pytest.mark.whole
@pytest.mark.parametrize("within", [None, NARROWER])
def test_the_mean_of_uniform_over_density_is_one(name, within):
    agent, rows = play(name, epsilon=0.8, nearby=0.5), contexts(4000)
    drawn = agent.decide_many(rows, [within] * len(rows))
    left = what_is_left(agent.space, drawn.actions, [within] * len(rows), rows)
    shares = 1 / (drawn.densities * np.prod([*left.lengths.values()], axis=0))
    assert left.inside.all()
    assert abs(shares.mean() - 1) < 5 * shares.std() / math.sqrt(len(rows))


def test_no_decision_alone_or_in_a_batch_breaks_a_limit(agent, name):
    rows = contexts(400)
    assert_inside(name, [agent.decide(each).action for each in rows], rows)
    assert_inside(name, actions_of(agent.decide_many(rows, [NARROWER] * len(rows))), rows)


def test_a_function_limits_a_bent_scale_by_its_values():
    actions = {"price": (0, 1), "reach": LogSpan(1, 1000)}
    agent = manul.Auto(actions=actions, limits=lambda _: {"reach": (10, 100)})
    reaches = [agent.decide([0.5]).action["reach"] for _ in range(50)]
    assert 10 <= min(reaches) < max(reaches) <= 100


def test_no_best_action_breaks_a_limit(agent, name):
    rows = contexts(100)
    assert_inside(name, [agent.best(each) for each in rows], rows)
    assert_inside(name, [agent.best(each, NARROWER) for each in rows], rows)


COPIES = {
    "dumps": lambda agent: manul.loads(manul.dumps(agent)),
    "pickle": lambda agent: pickle.loads(pickle.dumps(agent)),
    "deepcopy": copy.deepcopy,
}


@pytest.mark.parametrize("way", COPIES)
def test_copies_have_the_limits_and_decide_alike(agent, way):
    other, rows = COPIES[way](agent), contexts(200)
    assert other.limits == agent.limits
    numbers = np.arange(200)
    assert actions_of(other.decide_many_again(numbers, rows)) == actions_of(agent.decide_many_again(numbers, rows))
    assert manul.dumps(other) == manul.dumps(agent)


def test_best_is_at_most_the_best_of_256_points_inside(agent):
    lows, highs = (np.tile(ends, (256, 1)) for ends in agent.space.ranges(None))
    for number, now in enumerate(contexts(20)):
        points = np.random.default_rng(number).random(lows.shape)
        limits, fields = agent._limited(now)
        limits.place(lows, highs, points, None if fields is None else np.tile(fields, (256, 1)))
        points = np.array([agent.space.positions(agent.space.action(point)) for point in points])
        best = agent.space.positions(agent.best(now))
        predicted = agent.predict_losses([now], np.vstack([best, points])[np.newaxis])[0]
        assert predicted[0] <= predicted[1:].min() + 1e-6


def test_a_distribution_with_limits_has_the_densities_and_draws_of_the_agent(agent, name):
    now, rng = contexts(1)[0], np.random.default_rng(1)
    distribution, decision = agent.distribution(now), agent.decide(now)
    assert distribution.density(decision.action) == pytest.approx(decision.density, rel=1e-9)
    assert_inside(name, [distribution.sample(rng) for _ in range(50)], [now] * 50)
    assert all(distribution.marginal(knob).integral() == pytest.approx(1) for knob in agent.space.names)


def test_a_distribution_with_limits_is_a_view_until_the_agent_learns():
    agent, now = play("formula", 20), contexts(1)[0]
    distribution, decision = agent.distribution(now), agent.decide(now)
    agent.learn(now, decision, 0.5)
    with pytest.raises(InputError, match="has learned since"):
        distribution.density(decision.action)


def logged(agent, rows, knobs=None):
    drawn = agent.decide_many(rows)
    losses = [loss(now, action) for now, action in zip(rows, actions_of(drawn), strict=True)]
    columns = {"densities_by_knob": drawn.densities_by_knob, "floors": drawn.floors, "loss_range": (0, 1)}
    frame = {key: [row[key] for row in rows] for key in rows[0]}
    knobs = agent.space if knobs is None else knobs
    return manul.Log(pandas.DataFrame(frame), drawn.actions, drawn.densities, losses, knobs=knobs, **columns)


def test_a_policy_optimised_from_a_log_stays_inside_its_limits(agent, name, tmp_path):
    logged(agent, contexts(300)).write(tmp_path / "log.parquet")
    log = manul.Log.read(tmp_path / "log.parquet")
    policy, rows = manul.optimize(log, epsilon=0.3, progress=False).policy, contexts(200, seed=9)
    assert policy.limits == agent.limits
    assert_inside(name, actions_of(policy.decide_many(rows)), rows)
    assert_inside(name, [policy.best(each) for each in rows[:50]], rows[:50])


def test_the_doctor_compares_densities_with_what_limits_leave(agent):
    log = logged(agent, contexts(1500))
    assert not [finding for finding in manul.offpolicy.doctor(log) if finding.severity in ("error", "warning")]


def test_the_doctor_finds_rows_that_break_the_limits(agent):
    log = logged(manul.Auto(actions=agent.actions), contexts(300), agent.space)
    assert "broken limits" in [finding.title for finding in manul.offpolicy.doctor(log)]


def test_the_doctor_says_if_a_log_lacks_what_its_limits_need():
    log = logged(play("context"), contexts(300))
    rows = manul.Log(np.zeros((300, 1)), log.actions, log.densities, log.losses, knobs=log.space, loss_range=(0, 1))
    found = [finding.sentence for finding in manul.offpolicy.doctor(rows) if finding.title == "limits not tested"]
    assert found[0].startswith("The limits need the number 'cost'")


# Limits as values.


def test_limits_are_equal_by_content_and_survive_json(name):
    actions, limits = SPACES[name]
    knobs = ActionSpace(actions).with_limits(limits)
    objects = json.loads(json.dumps([limit._asdict() for limit in knobs.limits]))
    texts = json.loads(json.dumps(list(map(str, knobs.limits))))
    assert knobs.with_limits(texts).limits == knobs.with_limits(objects).limits == knobs.limits


def test_files_of_agents_without_limits_do_not_mention_them():
    assert b"limits" not in manul.dumps(manul.Auto(actions=PRICES))
    assert b"limits" not in manul.dumps(manul.Auto(actions=(0, 1)))


def test_knobs_are_set_after_those_that_their_limits_mention():
    knobs = ActionSpace(OFFERS).with_limits(["price >= 20 * discount", "discount <= days / 28"])
    assert [knobs.names[number] for number in knobs.limited.order] == ["template", "days", "discount", "price"]


REFUSED = {
    "discount <= 1 - 9 / prise if": "incomplete",
    "prise * 2 <= 3": "must compare one knob with a formula",
    "price <= __import__('os').system('ls')": "not part of formulas|not a function",
    "price <= 10 ** 10 ** 10 ** 10 if template == 'bald'": "unknown option 'bald'",
    "template == 'bald'": "must be one of 'plain'",
    "price >= template": "its options are texts",
    "price >= 60": "leave no range of price",
    "price == 20": "leave no range of price",
    "discount <= price - 20": "leave no range of discount if price is 1[0-9].*Limit price too",
    "discount <= 1 / (price - price)": "leave no range of discount",
    "price >= 20 if price > 5": "must not depend on it itself",
    "template == 'sale' if price * discount > 3": "Write it as a limit of discount",
    "days in (1, 2)": "must compare one knob with a formula",
    "price <= " + "(" * 60 + "1" + ")" * 60: "nested at most 40 deep",
    "price <= " + "1 + " * 130 + "1": "at most 500 characters",
    "price <= " + "1+" * 200 + "1": "at most 200 parts",
}


@pytest.mark.parametrize("text", REFUSED)
def test_limits_that_cannot_hold_are_refused_when_the_agent_is_made(text):
    with pytest.raises(ParameterError, match=REFUSED[text]) as error:
        manul.Auto(actions=OFFERS, limits=[text])
    assert error.value.field == "limits"
    assert "\n" not in str(error.value)


def test_limits_that_depend_on_each_other_are_refused():
    with pytest.raises(ParameterError, match="limits of price and discount depend on each other"):
        manul.Auto(actions=PRICES, limits=["price >= 20 * discount", "discount <= price / 100"])


@pytest.mark.parametrize(
    ("now", "sentence"),
    [
        ({"age": 1.0}, "need the number 'cost' in the context, which has none"),
        ({"cost": "low"}, "need the number 'cost' in the context, which has 'low'"),
        ([1.0, 2.0], "contexts must have names, but this one has none"),
        ({"cost": 30.0}, "leave no range of price with this cost"),
    ],
)
def test_a_context_that_leaves_nothing_is_refused_with_a_sentence_and_changes_nothing(now, sentence):
    agent = play("context", 0)
    for call in (agent.decide, agent.best, lambda each: agent.decide_many([each])):
        with pytest.raises(InputError, match=sentence):
            call(now)
    assert host_of(agent).decisions == 0
    assert agent.decide({"cost": 3.0}).density > 0


def test_a_limit_may_be_given_as_a_value():
    agent = manul.Auto(actions=PRICES, limits=[Limit("discount", most="1 - 9 / price"), {"knob": "price", "least": 12}])
    assert list(map(str, agent.limits)) == ["discount <= 1 - 9 / price", "price >= 12"]


def test_the_distribution_of_a_rollout_has_the_densities_of_its_decisions(agent):
    rng = np.random.default_rng(5)
    rollout = manul.Rollout(manul.loads(manul.dumps(agent)), baseline=agent, steps=(0.5,), budget=1e9)
    for now in (context(rng) for _ in range(10)):
        single, many = rollout.distribution(now), rollout.distributions([now])
        decision = rollout.decide(now)
        densities = (each.density(decision.action) for each in (single, many[0]))
        assert [*densities, *many.density([decision.action])] == pytest.approx([decision.density] * 3)


def test_the_distribution_of_a_rollout_draws_from_both_arms():
    trained, fresh, now = play("formula"), manul.Auto(actions=PRICES, limits=SPACES["formula"][1]), {"age": 0.2}
    rollout = manul.Rollout(fresh, baseline=trained, steps=(0.5,), budget=1e9)
    means = [policy.distribution(now).marginal("price").mean() for policy in (fresh, trained, rollout)]
    assert means[0] - means[1] > 5
    assert means[2] == pytest.approx((means[0] + means[1]) / 2, abs=1.5)  # four standard errors of 1,024 draws
