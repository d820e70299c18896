"""Limits between knobs: never violated, with densities that integrate to 1, and one sentence if they leave no value."""

import copy
import functools
import pickle

import numpy as np
import pytest

import manul
from manul.agents.player_host import host_of
from manul.errors import InputError, ParameterError
from manul.utils import model_files
from tests.agents.test_knobs import CONTEXTS, SPACES, play


def dear_offers(chosen):
    return {"discount": (0, 0.3 * (chosen["price"] - 5) / 45)} if "price" in chosen else {}


def limited_agent(limits=dear_offers, **settings):
    return manul.Auto(actions=SPACES["two"], limits=limits, **settings)


def unlimited_copy(agent):
    limits, agent.limits = agent.limits, None
    loaded, agent.limits = manul.loads(manul.dumps(agent)), limits
    return loaded


WAYS_TO_COPY = {
    "save": lambda agent: agent.save("never.manul"),
    "dumps": manul.dumps,
    "pickle": pickle.dumps,
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "mapped": lambda agent: manul.dumps(manul.Mapped(agent=agent, features=manul.maps.Crosses())),
    "upload": lambda agent: model_files.contents(agent),
}


@pytest.mark.parametrize("way", WAYS_TO_COPY)
def test_no_copy_of_an_agent_is_made_without_its_limits(way, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        ParameterError, match=r"whose limits are a function cannot be saved, copied or served.*as texts"
    ):
        WAYS_TO_COPY[way](play(limited_agent(), 5))
    assert not list(tmp_path.iterdir())


def test_limits_that_are_set_again_after_loading_hold():
    agent = play(limited_agent(epsilon=0.3), 100)
    loaded = unlimited_copy(agent)
    loaded.limits = agent.limits
    assert (
        loaded.decide_many(CONTEXTS[:50]).actions["discount"].tolist()
        == agent.decide_many(CONTEXTS[:50]).actions["discount"].tolist()
    )


@pytest.fixture(scope="module")
def limited():
    """An agent that has learned, and its decisions: each takes milliseconds, because its limits are a function."""
    agent = play(limited_agent(epsilon=0.3, nearby=0.5), 200)
    return agent, agent.decide_many(CONTEXTS[:300])


def assert_same(agent, one, other):
    first, second = (agent.space.rows(each.actions, len(each)) for each in (one, other))
    assert first == pytest.approx(second, rel=1e-12)
    assert one.densities == pytest.approx(other.densities, rel=1e-12)
    assert one.floors == pytest.approx(other.floors, rel=1e-12)


def test_limits_in_a_function_and_as_a_text_give_the_same_decisions(limited):
    # That texts have exact densities is a law, tests/laws/test_limits.py.
    agent = play(limited_agent(["discount <= 0.3 * (price - 5) / 45"], epsilon=0.3, nearby=0.5), 200)
    assert_same(agent, limited[1], agent.decide_many(CONTEXTS[:300]))


def test_limits_are_never_violated(limited):
    actions = limited[1].actions
    assert (actions["discount"] <= 0.3 * (actions["price"] - 5) / 45 * (1 + 1e-12)).all()


@pytest.mark.whole
def test_with_limits_the_density_integrates_to_that_of_the_first_knob(limited):
    agent, context = limited[0], CONTEXTS[0]
    free = unlimited_copy(agent)
    for price, count in ((12.0, 600), (30.0, 2000)):  # windows of discounts are as wide at all prices
        widest = 0.3 * (price - 5) / 45
        discounts = (np.arange(count) + 0.5) / count * widest
        columns = {"price": np.full(count, price), "discount": discounts}
        mass = agent.distributions(np.tile(context, (count, 1))).density(columns).mean() * widest
        assert mass == pytest.approx(free.distribution(context).marginal("price").density(price), rel=0.02)


def test_limits_may_depend_on_options_and_take_away_options():
    actions = {"price": (10, 50), "template": manul.Choice(["a", "b"]), "days": manul.Stepped(1, 14, 1)}

    def limits(chosen):
        if not chosen:
            return {"template": ["b"]}
        return {"price": (30, 40)} if "price" not in chosen else {"days": (1, 4)}

    texts = ["template == 'b'", "price >= 30", "price <= 40", "days <= 4"]
    agent, twin = (play(manul.Auto(actions=actions, limits=each, epsilon=0.5), 40) for each in (limits, texts))
    decisions = agent.decide_many(CONTEXTS[:100])
    assert set(decisions.actions["template"]) == {"b"}
    assert set(decisions.actions["days"]) == {1, 2, 3, 4}
    assert ((decisions.actions["price"] >= 30) & (decisions.actions["price"] <= 40)).all()
    assert_same(agent, decisions, twin.decide_many(CONTEXTS[:100]))


def test_limits_that_leave_nothing_are_one_sentence_and_change_nothing():
    agent = manul.Auto(actions=SPACES["two"], limits=lambda _: {"discount": (0.4, 0.5)})
    with pytest.raises(InputError, match=r"^limits leave no value of discount, got \(0\.4, 0\.5\)\.$"):
        agent.decide([1.0])
    with pytest.raises(InputError, match=r"^limits leave no value of discount, got \(0\.4, 0\.5\)\.$"):
        agent.decide_many([[1.0]])
    assert host_of(agent).decisions == 0


def test_errors_of_the_limits_function_reach_the_caller():
    agent = manul.Auto(actions=SPACES["two"], limits=lambda chosen: {"discount": (0, 0.3 * chosen["cost"])})
    with pytest.raises(KeyError, match="cost"):
        agent.decide([1.0])


def test_limits_hold_for_a_later_choice_whose_best_option_they_exclude():
    options = {"a": manul.Choice(["p", "q"]), "b": manul.Choice(["u", "v", "w"])}
    agent = manul.Auto(actions=options, limits=lambda chosen: {"b": ["v", "w"]} if "a" in chosen else {})
    free = manul.Auto(actions=options)
    for _ in range(300):
        decision = free.decide([0.5])
        for each in (free, agent):
            each.learn([0.5], decision, 0.1 + 0.6 * (decision.action["b"] != "u"))
    assert free.best([0.5])["b"] == "u"
    decisions = [agent.decide([0.5]) for _ in range(200)]
    assert {each.action["b"] for each in decisions} <= {"v", "w"}
    assert min(each.density for each in decisions) > 0
    assert agent.best([0.5])["b"] in ("v", "w")


def test_what_limits_return_is_checked():
    for result, sentence in ((None, "mapping"), ({"zz": 1}, "unknown knob"), ({"x": (10**400, 1)}, "must be")):
        agent = manul.Auto(actions={"x": (0, 1)}, limits=lambda _, result=result: result)
        with pytest.raises(InputError, match=sentence):
            agent.decide([0.5])


def by_template(chosen):
    """Limits that take away options, values of steps, and most of a number."""
    if "price" in chosen:
        return {"days": (1, 4)}
    return {"price": (10, 12)} if chosen.get("template") == "a" else {"gift": [True]}


LIMITED = {
    "numbers": (SPACES["two"], lambda chosen: {"discount": (0, 0.3 * (chosen["price"] - 9.9) / 41)} if chosen else {}),
    "all kinds": (SPACES["hybrid"], by_template),
    "choices without limits": (SPACES["hybrid"], None),
}


@functools.cache
def explorer_of(name, rounds):
    actions, limits = LIMITED[name]
    return play(manul.Auto(actions=actions, limits=limits, epsilon=0.05, seed=2), rounds)


@pytest.mark.parametrize("rounds", [0, 100])
@pytest.mark.parametrize("within", [None, {"price": (10, 10.5)}])
@pytest.mark.parametrize("name", LIMITED)
def test_no_allowed_action_has_a_density_below_the_floor(name, within, rounds):
    actions, limits = LIMITED[name]
    agent = explorer_of(name, rounds)
    context, count = CONTEXTS[0], 150
    everywhere = manul.Auto(actions=actions, limits=limits, epsilon=1.0).decide_many(
        [context] * count, [within] * count
    )
    densities = agent.distributions([context] * count, [within] * count).density(everywhere.actions)
    floors = [agent.decide(context, within).floor for _ in range(20)]
    assert 0 < max(floors) <= densities.min() * (1 + 1e-12)
    assert agent.decide_many([context] * 3, [within] * 3).floors == pytest.approx(floors[:3])
