"""Auto with an outcome whose parts are predicted: the core against its twin, and what every agent must keep."""

import copy
import itertools

import numpy as np
import pytest

import manul
from manul.agents.player_host import host_of
from manul.utils import model_files
from tests.twins.parts import GRID, YesNo

SPACES = [(10.0, 50.0), {"price": (10.0, 50.0)}, manul.Stepped(10, 50, 1)]


def number(decision):
    return decision.action["price"] if isinstance(decision.action, dict) else decision.action


def market(seed, rounds, width=3):
    rng = np.random.default_rng(seed)
    contexts = rng.normal(size=(rounds, width)).astype(np.float32)
    limits = 25 + 4 * contexts[:, 0] + 3 * rng.logistic(size=rounds)
    return contexts, limits


def trained(actions=(10.0, 50.0), rounds=60, outcome=None, seed=3, **settings):
    agent = manul.Auto(actions=actions, outcome=outcome or manul.Sale(cost=10.0), seed=seed, **settings)
    contexts, limits = market(seed, rounds)
    for context, limit in zip(contexts, limits, strict=True):
        decision = agent.decide(context)
        agent.learn(context, decision, parts={"bought": number(decision) <= limit})
    return agent, contexts


@pytest.mark.parametrize("hint", ["falls", "rises"])
@pytest.mark.parametrize("low", [10.0, 0.0])
def test_predictions_are_those_of_the_twin(hint, low):
    actions = np.linspace(low, 50.0, len(GRID))
    outcome = manul.Outcome(
        better="high", range="auto", formula="bought", parts={"bought": "yes/no"}, hints={"bought": hint}
    )
    agent = manul.Auto(actions=(low, 50.0), outcome=outcome, seed=1)
    twin = YesNo(actions, {"falls": -1, "rises": 1}[hint], 3)
    contexts, limits = market(1, 6)  # before the seventh round, there is no critic of the loss
    for context, limit in zip(contexts, limits, strict=True):
        decision = agent.decide(context)
        seen = decision.action <= limit
        agent.learn(context, decision, parts={"bought": seen})
        twin.learn(context.astype(float), (decision.action - low) / (50.0 - low), float(seen))
    predicted = -agent.predict_losses(contexts, np.tile(actions, (len(contexts), 1)))
    np.testing.assert_allclose(predicted, [twin.predict(context.astype(float)) for context in contexts], rtol=2e-4)


def test_the_posteriors_after_many_rounds_are_those_of_the_twin():
    agent = manul.Auto(actions=(10.0, 50.0), outcome=manul.Sale(cost=10.0), seed=2)
    twin = YesNo(np.linspace(10.0, 50.0, len(GRID)), -1, 3)
    contexts, limits = market(2, 150)
    for context, limit in zip(contexts, limits, strict=True):
        decision = agent.decide(context)
        seen = decision.action <= limit
        agent.learn(context, decision, parts={"bought": seen})
        twin.learn(context.astype(float), (decision.action - 10.0) / 40.0, float(seen))
    weights = host_of(agent).player.state()["part_experts"][7 : 7 + len(twin.weights)]
    np.testing.assert_allclose(weights, twin.weights, atol=2e-3)


@pytest.mark.parametrize("actions", SPACES)
def test_the_density_of_a_decision_is_that_of_its_distribution(actions):
    agent, contexts = trained(actions)
    for context in contexts[:20]:
        decision = agent.decide(context)
        drawn = {"price": [number(decision)]} if isinstance(decision.action, dict) else [number(decision)]
        assert agent.distribution(context).density(decision.action) == pytest.approx(decision.density)
        assert agent.distributions([context]).density(drawn)[0] == pytest.approx(decision.density)
        assert 0 < decision.floor <= decision.density * (1 + 1e-12)


@pytest.mark.parametrize("nearby", [None, 0.2])
def test_densities_integrate_to_one(nearby):
    agent, contexts = trained(nearby=nearby)
    for within in (None, (12.0, 18.0)):
        low, high = within or (10.0, 50.0)
        points = low + (np.arange(40_000) + 0.5) / 40_000 * (high - low)
        rows = np.tile(contexts[0], (len(points), 1))
        ends = None if within is None else np.tile(within, (len(points), 1))
        assert agent.distributions(rows, ends).density(points).mean() * (high - low) == pytest.approx(1, abs=2e-3)


@pytest.mark.parametrize("actions", SPACES)
def test_batches_learn_and_decide_as_single_rounds(actions):
    one, contexts = trained(actions)
    both = [copy.deepcopy(one), copy.deepcopy(one)]
    drawn = both[0].decide_many(contexts)
    singles = [both[1].decide(context) for context in contexts]
    prices = drawn.actions["price"] if isinstance(drawn.actions, dict) else drawn.actions
    assert [number(each) for each in singles] == list(prices)
    bought = np.asarray(prices) < 25
    both[0].learn_many(contexts, drawn, parts={"bought": bought})
    for context, decision, seen in zip(contexts, singles, bought, strict=True):
        both[1].learn(context, decision, parts={"bought": bool(seen)})
    states = [host_of(agent).player.state() for agent in both]
    assert all(np.array_equal(states[0][name], states[1][name]) for name in states[0])


@pytest.mark.parametrize("actions", SPACES)
def test_a_saved_agent_continues_exactly(actions, tmp_path):
    agent, contexts = trained(actions)
    agent.save(tmp_path / "agent.manul")
    loaded = manul.load(tmp_path / "agent.manul")
    for context in contexts:
        decisions = agent.decide(context), loaded.decide(context)
        assert decisions[0] == decisions[1]
        for each in (agent, loaded):
            each.learn(context, decisions[0], parts={"bought": number(decisions[0]) < 24})
    assert loaded.decide_again(7, contexts[0]) == agent.decide_again(7, contexts[0])


def test_numbers_of_the_context_enter_the_formula():
    agent = manul.Auto(actions=(10.0, 50.0), outcome=manul.Sale(cost="cost"), seed=1)
    rng = np.random.default_rng(0)
    for cost in rng.choice([10.0, 30.0], 400):
        decision = agent.decide({"cost": cost})
        agent.learn({"cost": cost}, decision, parts={"bought": bool(decision.action < 40 + 3 * rng.logistic())})
    assert agent.best({"cost": 10.0}) < agent.best({"cost": 30.0})
    assert agent.best({"cost": 30.0}) > 30


def test_a_formula_with_a_condition_is_summed_over_it():
    profit = {"better": "high", "range": "auto", "parts": {"bought": "yes/no"}, "hints": {"bought": "falls"}}
    agents = [
        manul.Auto(actions=(10.0, 50.0), outcome=manul.Outcome(formula=formula, **profit), seed=1)
        for formula in ("(action - 10) * bought", "action - 10 if bought else 0", "(action - 10) * bought ** 2")
    ]
    contexts, limits = market(0, 40)
    for (context, limit), agent in itertools.product(zip(contexts, limits, strict=True), agents):
        decision = agent.decide(context)
        agent.learn(context, decision, parts={"bought": decision.action <= limit})
    assert agents[0].best(contexts[0]) == agents[1].best(contexts[0]) == agents[2].best(contexts[0])


def test_a_formula_that_is_not_linear_in_an_amount_is_left_to_the_critic():
    outcome = manul.Outcome(better="high", range="auto", formula="min(spent, 5)", parts={"spent": "amount"})
    agent = manul.Auto(outcome=outcome, seed=1)
    for spent in (1.0, 9.0, 3.0):
        agent.learn([0.5], agent.decide([0.5]), parts={"spent": spent})
    assert agent.report().formula is None


def test_a_wrong_hint_is_reported():
    outcome = manul.Outcome(
        better="high", range="auto", formula="action * bought", parts={"bought": "yes/no"}, hints={"bought": "rises"}
    )
    agent, _ = trained(rounds=400, outcome=outcome)
    assert "hint that 'bought' rises" in agent.report().formula.doubts[0]
    assert trained(rounds=400)[0].report().formula.doubts == ()


def test_a_wrong_formula_is_dropped_where_rewards_are_reported():
    agent = manul.Auto(actions=(10.0, 50.0), outcome=manul.Sale(cost=10.0), seed=1)
    right = manul.Auto(actions=(10.0, 50.0), outcome=manul.Sale(cost=10.0), seed=1)
    contexts, limits = market(0, 60)
    for context, limit in zip(contexts, limits, strict=True):
        for each, wrong in ((agent, True), (right, False)):
            decision = each.decide(context)
            bought = decision.action <= limit
            reward = (30.0 - decision.action if wrong else decision.action - 10.0) * bought
            each.learn(context, decision, reward=reward, parts={"bought": bought})
    assert agent.report().formula.weight == 0
    assert "badly" in str(agent.report().formula)
    assert right.report().formula.explained == pytest.approx(1)
    assert right.report().formula.weight > 0.5


def weights(rounds):
    """The weight of a formula after each round in a market with a cliff, which logistic regressions do not have."""
    agent = manul.Auto(actions=(10.0, 50.0), outcome=manul.Sale(cost=10.0), seed=1)
    contexts, limits = market(0, rounds)
    found = []
    for context, limit in zip(contexts, limits, strict=True):
        decision = agent.decide(context)
        cliff = 24 + 8 * context[1]
        agent.learn(context, decision, parts={"bought": decision.action <= min(limit, cliff)})
        found.append(agent.report().formula.weight)
    return np.array(found)


def test_the_weight_of_a_formula_is_steady():
    assert np.abs(np.diff(weights(700)[200:])).max() < 0.05


def test_after_a_wrong_formula_the_first_actions_avoid_each_other():
    agent = manul.Auto(actions=(10.0, 50.0), outcome=manul.Sale(cost=10.0), seed=1)
    contexts, limits = market(0, 60)
    played, leads = [], True
    for context, limit in zip(contexts, limits, strict=True):
        decision = agent.decide(context)
        if not leads:
            played.append(decision.action)
        bought = decision.action <= limit
        agent.learn(context, decision, reward=(30.0 - decision.action) * bought, parts={"bought": bought})
        leads = agent.report().formula.weight > 0
    gaps = np.diff(np.sort([10.0, *played[:9], 50.0]))
    assert gaps.max() < 40 / 4


def test_a_file_with_odds_keeps_the_weight_of_its_formula():
    agent, _ = trained(rounds=80)
    kind, parameters, arrays = model_files.contents(agent)
    now = arrays["judge"]
    for odds, weight in ((1.0, 1 / (1 + np.exp(-1.0))), (-7.0, 0.0)):
        judge = np.array([now[0], odds, *now[1:5], *now[11:]])
        old = model_files.restore(kind, dict(parameters), {**arrays, "judge": judge})
        assert old.report().formula.weight == pytest.approx(weight, abs=1e-12)
        assert np.array_equal(host_of(old).state()["judge"][11:], now[11:])


def test_outcomes_without_parts_are_left_to_the_critic():
    told, alone = (
        manul.Auto(actions=(10.0, 50.0), seed=1, **outcome)
        for outcome in ({"outcome": manul.Sale(cost=10.0)}, {"rewards": "auto"})
    )
    contexts, limits = market(0, 40)
    for context, limit in zip(contexts, limits, strict=True):
        decision = alone.decide(context)
        for agent in (told, alone):
            agent.learn(context, decision, reward=(decision.action - 10) * (decision.action <= limit))
    assert told.best(contexts[0]) == alone.best(contexts[0])


def test_exploration_is_rare_where_it_costs_most_of_the_value():
    agent = manul.Auto(actions=(0.0, 60.0), outcome=manul.Bid(), seed=1)
    rng = np.random.default_rng(0)
    for _ in range(100):
        decision = agent.decide([0.0])
        won = bool(decision.action > 6 * np.exp(rng.logistic() / 5))
        agent.learn([0.0], decision, parts={"won": won, "value": 10.0} if won else {"won": False})
    floor = agent.decide([0.0]).floor * 60
    assert floor < agent.current_epsilon / 2
    assert manul.Auto(actions=(0.0, 60.0), outcome=manul.Bid(), epsilon=0.1).decide([0.0]).floor * 60 >= 0.1


def player(start=None, *, inherits=False, width=3):
    agent = manul.Auto(actions=(10.0, 50.0), outcome=manul.Sale(cost=10.0), seed=1)
    settings = agent._player_settings
    settings["parts"] |= {"inherits": inherits} | ({} if start is None else {"start": (start - 10.0) / 40.0})
    return type(agent._make_player(width))(width=width, **settings)


@pytest.mark.parametrize("start", [15.0, 25.0, 40.0])
def test_a_start_is_where_the_first_decision_is(start):
    centre, bandwidth = player(start).window(np.zeros(3), 10.0, 50.0)
    assert centre == pytest.approx(start, abs=2.0)
    assert bandwidth < 2


def test_a_player_takes_over_what_another_one_has_learned():
    agent, contexts = trained(rounds=500)
    heir, cold = player(inherits=True), player()
    assert heir.inherit(host_of(agent).player)
    known = [agent.best(context) for context in contexts[:50]]
    errors = [
        np.abs([own.window(context, 10.0, 50.0)[0] - best for context, best in zip(contexts[:50], known, strict=True)])
        for own in (heir, cold)
    ]
    assert errors[0].mean() < 1.5 < errors[1].mean()
    restored = player(inherits=True)
    restored.restore(heir.state())
    assert restored.window(contexts[0], 10.0, 50.0) == heir.window(contexts[0], 10.0, 50.0)
    assert not player(inherits=True, width=2).inherit(host_of(agent).player)
