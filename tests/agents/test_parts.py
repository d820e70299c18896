"""Agents learn from the parts of an outcome: each learns the value of its formula, alone and in batches."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pandas
import pytest

import manul
from manul.agents.agent_registry import AGENTS
from manul.errors import InputError, ParameterError
from manul.utils import model_files

SALE = manul.Outcome(
    "profit",
    better="high",
    range=(-60, 60),
    formula="(action - cost) * bought",
    parts={"bought": "yes/no"},
    hints={"bought": "falls"},
)
SMALL = {"leaves": 8, "bandwidth": 1.0}
SPACES = {"steps": manul.Stepped(10, 50, 5), "named": {"price": (10, 50)}}
KNOBS = {"price": (10, 50), "days": manul.Stepped(1, 5, 1), "kind": manul.Choice(["plain", "bold"])}
MAKERS = {
    entry.name: lambda outcome, entry=entry: entry.make(
        actions=(10.0, 50.0),
        outcome=outcome,
        **{name: value for name, value in SMALL.items() if name in entry.settings},
    )
    for entry in AGENTS
}
MAKERS |= {
    name: lambda outcome, actions=actions: manul.Auto(actions=actions, outcome=outcome)
    for name, actions in SPACES.items()
}
MAKERS |= {
    "numbers": lambda outcome: manul.Auto(actions=manul.Choice([10, 20, 50]), outcome=outcome),
    "rollout": lambda outcome: manul.Rollout(
        manul.Auto(actions=(10, 50), outcome=outcome), baseline=20.0, steps=(0.5,), budget=1e9
    ),
    "mapped": lambda outcome: manul.Mapped(
        agent=manul.Auto(actions=(10, 50), outcome=outcome), features=manul.maps.Crosses()
    ),
}
ROUNDS = 40
CONTEXTS = [{"cost": float(cost), "age": float(age)} for cost, age in np.random.default_rng(0).random((ROUNDS, 2))]
BOUGHT = [bool(each) for each in np.random.default_rng(1).random(ROUNDS) < 0.6]


def bytes_of(agent):
    return {name: array.tobytes() for name, array in model_files.contents(agent)[2].items()}


def price_of(decision):
    return decision.action["price"] if isinstance(decision.action, dict) else decision.action


def tell_parts(_context, _decision, bought):
    return {"parts": {"bought": bought}}


def play(agent, tell):
    for context, bought in zip(CONTEXTS, BOUGHT, strict=True):
        decision = agent.decide(context)
        agent.learn(context, decision, **tell(context, decision, bought))
    return agent


@pytest.mark.parametrize("kind", MAKERS)
def test_an_agent_learns_the_value_of_the_formula(kind):
    plain = manul.Outcome("profit", better="high", range=SALE.range)
    one = play(MAKERS[kind](SALE), tell_parts)
    other = play(
        MAKERS[kind](plain),
        lambda context, decision, bought: {"reward": (price_of(decision) - context["cost"]) * bought},
    )
    if kind not in ("auto", "steps", "named", "numbers", "rollout", "mapped"):  # Auto models the parts too
        assert bytes_of(one) == bytes_of(other)
    assert manul.loads(manul.dumps(one)).outcome == SALE


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("judged", [False, True])
def test_a_batch_is_learned_as_its_rows(kind, judged):
    one, other = MAKERS[kind](SALE), MAKERS[kind](SALE)
    drawn = one.decide_many(CONTEXTS)
    again = other.decide_many(CONTEXTS)
    rewards = np.where(np.arange(ROUNDS) % 3 == 0, 5.0, np.nan) if judged else None
    one.learn_many(CONTEXTS, drawn, parts={"bought": BOUGHT}, rewards=rewards)
    for row, (context, decision, bought) in enumerate(zip(CONTEXTS, again, BOUGHT, strict=True)):
        reported = {"reward": 5.0} if judged and row % 3 == 0 else {}
        other.learn(context, decision, parts={"bought": bought}, **reported)
    assert bytes_of(one) == bytes_of(other)


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("again", [copy.deepcopy, lambda agent: pickle.loads(pickle.dumps(agent))])
def test_a_copy_goes_on_as_its_agent(kind, again):
    agent = play(MAKERS[kind](SALE), tell_parts)
    other = again(agent)
    assert other.outcome == SALE
    for each in (agent, other):
        each.learn(CONTEXTS[0], each.decide(CONTEXTS[0]), parts={"bought": True}, reward=3.0)
    assert bytes_of(agent) == bytes_of(other)


@pytest.mark.parametrize("contexts", [pandas.DataFrame(CONTEXTS), {"cost": [c["cost"] for c in CONTEXTS]}, CONTEXTS])
def test_a_table_has_the_fields_of_the_formula(contexts):
    agent = manul.Auto(actions=(10, 50), outcome=SALE)
    decisions = agent.decide_many(contexts)
    agent.learn_many(contexts, decisions, parts={"bought": np.array(BOUGHT)})
    told = agent._read_many(contexts, contexts, decisions, None, None, {"bought": np.array(BOUGHT)})
    costs = np.array([each["cost"] for each in CONTEXTS])
    assert np.allclose(-told.losses, (decisions.actions - costs) * np.array(BOUGHT))


def test_a_formula_uses_knobs_by_their_names():
    outcome = manul.Outcome(
        "cost", range="auto", formula="days * 2 + (3 if kind == 'bold' else 0) - price * sold", parts={"sold": "count"}
    )
    agent = manul.Auto(actions=KNOBS, outcome=outcome)
    action = {"price": 20.0, "days": 3, "kind": "bold"}
    assert agent._reader.read(None, action, None, None, {"sold": 2}).loss == 6 + 3 - 40
    columns = {"price": np.array([20.0]), "days": np.array([3]), "kind": np.array(["bold"], dtype=object)}
    assert agent._reader.read_many([{}], columns, None, None, {"sold": [2]}).losses.tolist() == [-31]


@pytest.mark.parametrize(
    ("actions", "formula", "message"),
    [
        (KNOBS, "bought * kind", "uses 'kind' as a number, but its options are texts"),
        (KNOBS, "bought * (kind == 'blod')", "unknown option 'blod' of 'kind'. Did you mean bold?"),
        (KNOBS, "bought * (city == 'Oslo')", "compares 'city' with a text, but it is not a choice"),
        ({"bought": (0, 1)}, "bought * 2", "the part 'bought' has the name of a knob"),
    ],
)
def test_a_formula_that_does_not_fit_the_knobs_is_refused(actions, formula, message):
    outcome = manul.Outcome(range="auto", formula=formula, parts={"bought": "yes/no"})
    with pytest.raises(ParameterError, match=message.replace(".", r"\.")):
        manul.Auto(actions=actions, outcome=outcome)


@pytest.mark.parametrize(
    ("context", "parts", "message"),
    [
        ({}, {"bought": 1}, "The formula needs the number 'cost' in the context, which has none."),
        ({"cost": "low"}, {"bought": 1}, "The formula needs the number 'cost' in the context, which has 'low'."),
        ([1.0], {"bought": 1}, "The formula needs the number 'cost', so contexts must have names"),
        ({"cost": 1, "bought": 0}, {"bought": 1}, "the context has a field 'bought', which is a part of the outcome"),
        ({"cost": 1, "action": 3}, {"bought": 1}, "the context has a field 'action', which is a knob in the formula."),
        ({"cost": 1}, {}, "parts must say 'bought', as in {'bought': True}."),
        ({"cost": 1}, {"bougt": 1}, "parts has an unknown part 'bougt'. Did you mean bought?"),
        ({"cost": 1}, {"bought": "yes"}, "the part 'bought' must be True or False, got 'yes'."),
        ({"cost": 1}, {"bought": 0.5}, "the part 'bought' must be True or False, got 0.5."),
        ({"cost": 1}, [1], "parts must be values by name, such as {'bought': True}, got [1]."),
        ({"cost": 1e300}, {"bought": 1}, "reward must be in [-60, 60], got -1e+300."),
    ],
)
def test_what_cannot_be_learned_is_refused_and_nothing_is_learned(context, parts, message):
    agent = manul.Auto(actions=(10, 50), outcome=SALE)
    decision = agent.decide([1.0] if isinstance(context, list) else {"age": 1.0})
    before = bytes_of(agent)
    with pytest.raises(InputError) as one:
        agent.learn(context, decision, parts=parts)
    assert str(one.value).startswith(message)
    assert bytes_of(agent) == before
    if isinstance(parts, dict) and parts:
        decisions = manul.Decisions(np.array([20.0]), np.array([0.5]))
        with pytest.raises(InputError) as many:
            agent.learn_many([context], decisions, parts={name: [value] for name, value in parts.items()})
        assert str(many.value).replace(" in row 0", "").startswith(message)


def test_a_misspelt_knob_is_found_at_the_first_outcome():
    outcome = manul.Outcome(range="auto", formula="(prise - 9) * bought", parts={"bought": "yes/no"})
    agent = manul.Auto(actions={"price": (10, 50)}, outcome=outcome)
    with pytest.raises(InputError, match=r"the number 'prise' in the context, which has none\. Did you mean price\?"):
        agent.learn({"age": 3}, agent.decide({"age": 3}), parts={"bought": True})


def test_an_absent_amount_is_fine_if_the_formula_does_not_need_it():
    agent = manul.Auto(actions=(0, 40), outcome=manul.Bid())
    read = agent._reader.read
    assert read(None, 12.0, None, None, {"won": True, "value": 20.0})[:2] == (-8.0, [1.0, 20.0])
    assert read(None, 12.0, None, None, {"won": False}).loss == 0.0
    assert read(None, 12.0, None, 3.0, {"won": True}).judged
    with pytest.raises(InputError, match=r"the formula '\(value - action\) \* won' needs the amount 'value', which is"):
        read(None, 12.0, None, None, {"won": True})
    with pytest.raises(InputError, match="needs the amount 'value', which is absent in row 1"):
        agent.learn_many([[], []], agent.decide_many([[], []]), parts={"won": [0, 1], "value": [None, np.nan]})


def test_parts_must_be_declared():
    agent = manul.Auto()
    with pytest.raises(InputError, match="parts need an outcome with parts"):
        agent.learn(None, agent.decide(None), loss=0.5, parts={"bought": True})
    with pytest.raises(InputError, match="parts need an outcome with parts"):
        agent.learn_many([[]], agent.decide_many([[]]), [0.5], parts={"bought": [True]})


RECORDED = manul.Outcome(parts={"returned": "yes/no", "latency": "amount"})


@pytest.mark.parametrize("maker", MAKERS)
def test_an_agent_learns_the_same_whether_parts_are_recorded_or_not(maker):
    told, plain = MAKERS[maker](RECORDED), MAKERS[maker](manul.Outcome())
    for number in range(60):
        for agent, parts in ((told, {"parts": {"returned": number % 3 == 0}}), (plain, {})):
            decision = agent.decide([number % 5])
            agent.learn([number % 5], decision, loss=0.25 + number % 2 / 2, **parts)
    assert bytes_of(told) == bytes_of(plain)


def test_recorded_parts_do_not_replace_the_loss():
    agent = manul.Auto(outcome=RECORDED)
    with pytest.raises(InputError, match="pass loss= to learn"):
        agent.learn(None, agent.decide(None), parts={"returned": True})
    with pytest.raises(InputError, match="the part 'latency' must be a finite number, 0 or more, got -1"):
        agent.learn(None, agent.decide(None), loss=0.5, parts={"latency": -1})
    with pytest.raises(InputError, match="parts must have one value per decision, got 2 for 1"):
        agent.learn_many([[]], agent.decide_many([[]]), [0.5], parts={"returned": [True, False]})


def test_a_formula_leaves_out_parts_that_it_does_not_use():
    recorded = replace(SALE, parts={"late": "yes/no", **SALE.parts})
    told, plain = (manul.Auto(actions=(10, 50), outcome=each, seed=3) for each in (recorded, SALE))
    for number in range(60):
        context, bought = CONTEXTS[number % ROUNDS], {"bought": number % 3 == 0}
        told.learn(context, told.decide(context), parts=bought | ({"late": True} if number % 2 else {}))
        plain.learn(context, plain.decide(context), parts=bought)
    assert bytes_of(told) == bytes_of(plain)
    assert manul.loads(manul.dumps(told)).outcome == recorded


def test_a_rollout_takes_only_agents_with_its_formula():
    rollout = MAKERS["rollout"](SALE)
    with pytest.raises(
        ParameterError, match="agent must have the formula and the parts of the outcome of the one before"
    ):
        rollout.agent = manul.Auto(actions=(10, 50), outcome=manul.Sale(range=(-60, 60)))
    rollout.agent = manul.Auto(actions=(10, 50), outcome=SALE)


def test_the_core_gets_the_formula_of_one_number():
    settings = manul.Auto(actions={"bid": (0, 40)}, outcome=manul.Bid(bid="bid"))._reader.core_settings()
    assert settings["program"] == [("value", 2.0), ("value", 0.0), ("-", 0.0), ("value", 1.0), ("*", 0.0)]
    assert (settings["kinds"], settings["hints"], settings["higher"]) == (["yes/no", "amount"], [1, 0], True)
    assert manul.Auto(actions=KNOBS, outcome=manul.Sale(price="price"))._reader.core_settings() is None


@pytest.mark.parametrize(
    ("outcome", "formula", "parts"),
    [
        (manul.Sale(cost=20.0), "(action - 20) * bought", {"bought": "yes/no"}),
        (manul.Sale(units=True), "action * units", {"units": "count"}),
        (manul.Sale(cost="unit cost", price="price"), "(price - `unit cost`) * bought", {"bought": "yes/no"}),
        (manul.Bid(), "(value - action) * won", {"won": "yes/no", "value": "amount"}),
    ],
)
def test_ready_made_outcomes_have_their_formulas(outcome, formula, parts):
    assert (outcome.formula, outcome.parts, outcome.better, outcome.range) == (formula, parts, "high", "auto")
    assert manul.Outcome.from_description(outcome.describe()) == outcome
    assert hash(outcome) == hash(manul.Outcome.from_description(outcome.describe()))
