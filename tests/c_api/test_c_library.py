"""The C library decides, learns and saves as Python does, to the byte."""

import hashlib
import json
import threading

import numpy as np
import pytest

import manul
from tests import edge_agents
from tests.c_library import CAgent, Failed

ROUNDS = 150
HALF = 70


def play(name, first, last, agent):
    played = []
    for number in range(first, last):
        context, within = edge_agents.context(name, number), edge_agents.within(name, number)
        drawn = agent.decide(context, within)
        action = agent.action(drawn)
        best = agent.best(context, within)
        agent.learn(context, drawn, edge_agents.outcome(name, number, action))
        played.append((action, drawn.density, drawn.floor, best))
    return played


@pytest.fixture(scope="module", params=edge_agents.AGENTS)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def learned(name):
    """The bytes of an agent that has learned, what it then played in Python, and its bytes afterwards."""
    agent = edge_agents.AGENTS[name]()
    edge_agents.play(name, HALF, agent)
    data = manul.dumps(agent)
    played = edge_agents.play(name, ROUNDS, agent)
    return data, played, manul.dumps(agent)


def test_decisions_densities_and_saved_bytes_are_those_of_python(name, learned):
    data, expected, saved = learned
    agent = CAgent(data)
    assert play(name, 0, ROUNDS, agent) == expected
    assert agent.save() == saved


def test_an_agent_that_has_seen_no_context_starts_as_in_python(name):
    fresh = edge_agents.AGENTS[name]()
    agent = CAgent(manul.dumps(fresh))
    assert agent.save() == manul.dumps(fresh)
    assert play(name, 0, 30, agent) == edge_agents.play(name, 30, fresh)
    assert agent.save() == manul.dumps(fresh)


def test_a_file_is_saved_again_with_the_same_bytes(learned):
    assert CAgent(learned[0]).save() == learned[0]


def test_rows_may_be_arrays_or_json():
    agent = manul.Cats(leaves=8, bandwidth=1 / 8)
    agent.learn([0.1, 1e9], agent.decide([0.1, 1e9]), 0.5)
    one, other = CAgent(manul.dumps(agent)), CAgent(manul.dumps(agent))
    drawn = one.decide(np.array([0.1, 1e9])), other.decide([0.1, 1e9]), agent.decide([0.1, 1e9])
    assert drawn[0].density == drawn[1].density == drawn[2].density
    assert one.action(drawn[0]) == other.action(drawn[1]) == drawn[2].action


def test_a_seed_draws_as_an_agent_with_that_seed():
    agents = [manul.Auto(actions=edge_agents.KNOBS, seed=seed) for seed in (3, 4)]
    copy = CAgent(manul.dumps(agents[0]))
    for number in range(20):
        context = edge_agents.context("auto-knobs-limits", number)
        assert copy.action(copy.decide(context, seed=4)) == agents[1].decide(context).action


def test_a_decision_has_its_number_and_the_agent_the_signature_of_its_bytes(learned):
    agent = CAgent(learned[0])
    assert agent.about["model"] == hashlib.sha256(learned[0]).hexdigest()


def test_decisions_are_counted():
    agent = CAgent(manul.dumps(manul.Cats(leaves=8, bandwidth=1 / 8)))
    assert [agent.decide([0.5]).number for _ in range(3)] == [0, 1, 2]


def test_a_decision_can_be_read_from_text(name, learned):
    one, other = CAgent(learned[0]), CAgent(learned[0])
    context, within = edge_agents.context(name, 3), edge_agents.within(name, 4)
    drawn = one.decide(context, within)
    one.learn(context, drawn, 0.5)
    other.decide(context, within)
    other.learn(context, other.read_decision(one.action(drawn), drawn.density, within), 0.5)
    assert one.save() == other.save()


def test_several_threads_may_use_an_agent():
    agent = CAgent(manul.dumps(manul.Auto(seed=1)))
    failures = []

    def work(thread):
        try:
            for number in range(100):
                drawn = agent.decide([thread, number])
                agent.learn([thread, number], drawn, 0.5)
        except Failed as failed:
            failures.append(failed)

    threads = [threading.Thread(target=work, args=(float(number),)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert manul.loads(agent.save()).decide([0.0, 0.0]).density > 0
    assert agent.decide([0.0, 0.0]).number == 400


def learned_auto():
    agent = manul.Auto()
    agent.learn([0.5], agent.decide([0.5]), 0.5)
    return agent


BAD_CONTEXTS = [
    {"cost": 1e60},
    {"cost": "text"},
    {"at": {"$date": "2023-02-29"}},
    {"clock": {"$time": "25:00"}},
    {"deep": json.loads("[" * 40 + "1" + "]" * 40)},
    {f"field {number}": 1.0 for number in range(5000)},
    [1.0, 2.0],
]


@pytest.mark.parametrize("context", BAD_CONTEXTS, ids=range(len(BAD_CONTEXTS)))
def test_a_bad_context_gets_the_sentence_of_python_and_changes_nothing(context):
    agent = manul.Cats(leaves=8, bandwidth=1 / 8, table_bits=10)
    first = edge_agents.context("cats-named", 1)
    agent.learn(first, agent.decide(first), 0.5)
    copy = CAgent(manul.dumps(agent))
    drawn = copy.decide(first)
    before = copy.save()
    with pytest.raises(manul.errors.InputError) as expected:
        agent.decide(context)
    for call in (copy.decide, copy.best, lambda seen: copy.learn(seen, drawn, 0.5)):
        with pytest.raises(Failed) as failed:
            call(context)
        assert str(failed.value) == str(expected.value)
    assert copy.save() == before


@pytest.mark.parametrize(
    ("name", "within"),
    [
        ("cats-rows", [0.5, 0.6]),
        ("cats-rows", [0.5, 2]),
        ("cats-rows", [0.5, 0.5 + 1e-12]),
        ("auto-steps", [0.11, 0.12]),
        ("auto-choice", ["b"]),
        ("auto-choice", []),
        ("auto-choice", [1]),
        ("auto-knobs-rows", {"price": [60, 70]}),
        ("auto-knobs-rows", {"price": [20, "a"]}),
        ("auto-knobs-rows", {"prize": [20, 30]}),
    ],
)
def test_a_bad_range_gets_the_sentence_of_python(name, within):
    agent = edge_agents.AGENTS[name]()
    context = edge_agents.context(name, 0)
    with pytest.raises(manul.errors.InputError) as expected:
        agent.decide(context, within)
    with pytest.raises(Failed) as failed:
        CAgent(manul.dumps(agent)).decide(context, within)
    assert str(failed.value).split(" Did you")[0].split(" The knobs")[0] == str(expected.value).split(" Did you")[0]
    assert failed.value.field == expected.value.field


@pytest.mark.parametrize("reward", [101.0, float("nan"), float("inf")])
def test_a_bad_outcome_gets_the_sentence_of_python(reward):
    agent = edge_agents.AGENTS["auto-rows"]()
    copy = CAgent(manul.dumps(agent))
    decision, drawn = agent.decide([0.5]), copy.decide([0.5])
    with pytest.raises(manul.errors.InputError) as expected:
        agent.learn([0.5], decision, reward=reward)
    with pytest.raises(Failed) as failed:
        copy.learn([0.5], drawn, reward)
    assert str(failed.value) == str(expected.value)


def test_limits_that_leave_nothing_say_so_as_in_python():
    agent = manul.Auto(actions={"price": (10, 50), "days": manul.Stepped(1, 9, 1)}, limits=["price >= cost"])
    with pytest.raises(manul.errors.InputError) as expected:
        agent.decide({"cost": 60})
    with pytest.raises(Failed) as failed:
        CAgent(manul.dumps(agent)).decide({"cost": 60})
    assert str(failed.value) == str(expected.value)


def test_limits_name_the_field_that_a_context_lacks():
    agent = CAgent(manul.dumps(edge_agents.AGENTS["auto-knobs-limits"]()))
    with pytest.raises(Failed, match=r"The limits need the number 'cost' in the context, which has none\."):
        agent.decide({"city": "Oslo"})


@pytest.mark.parametrize(
    ("agent", "sentence"),
    [
        (lambda: manul.AdaptiveCats(leaves=8, bandwidths=(1 / 4, 1 / 8)), "file has the kind 'AdaptiveCats', but only"),
        (lambda: manul.Auto(actions=(0, 40), outcome=manul.Bid()), "file has an outcome with the formula"),
        (lambda: manul.Auto(prior=learned_auto()), "file has a prior, which only Python reads."),
    ],
)
def test_what_only_python_has_is_refused_in_one_sentence(agent, sentence):
    with pytest.raises(Failed) as failed:
        CAgent(manul.dumps(agent()))
    assert str(failed.value).startswith(sentence)
    assert str(failed.value).endswith(".")
