"""Whatever a context with names holds, the answer is a decision, an InputError, or what the caller's own code raised."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas
import pytest

import manul
from manul import _core
from manul.agents.player_host import host_of
from manul.errors import InputError
from manul.utils import model_files
from tests.saved_agents import AGENTS, NAMED, learned

SURROGATE = "\ud800"


class Text(str):
    """A text that is no plain str."""


class Number:
    """A number that runs code when it is asked for its value."""

    def __init__(self, action):
        self.action = action

    def __float__(self):
        self.action()
        return 1.0


def fail(error):
    raise error


@pytest.fixture(params=["auto", "cats", "cats-paper", "adaptive", "discrete-linear"])
def agent(request):
    return learned(AGENTS[request.param](), NAMED)


@pytest.mark.parametrize(
    "context",
    [{SURROGATE: 1.0}, {"a": SURROGATE}, {"a": [SURROGATE]}, {"a": {SURROGATE: 1}}, {"a": {"b": [1, SURROGATE]}}, {"a": (SURROGATE,)},
     {Text(SURROGATE): 1}, {"a": Text(SURROGATE)}, {"a\udfff": None}],
)  # fmt: skip
def test_lone_surrogates_are_refused_in_every_call(agent, context):
    before = model_files.dumps(agent)
    decision = agent.decide({})
    for call in (
        lambda: agent.decide(context),
        lambda: agent.decide_again(1, context),
        lambda: agent.distribution(context),
        lambda: agent.learn(context, decision, 0.5),
        lambda: agent.decide_many([{}, context]),
        lambda: agent.learn_many([{}, context], agent.decide_many([{}, {}]), [0.5, 0.5]),
        lambda: agent.distributions([context]).density([0.5]),
    ):
        with pytest.raises(InputError, match=r"must be .*Unicode"):
            call()
    assert fields(model_files.dumps(agent)) == fields(before)


def fields(data):
    return model_files.decode(data)[1]


@pytest.mark.parametrize("error", [KeyError("mine"), RuntimeError("mine"), AttributeError("mine"), KeyboardInterrupt()])
def test_what_the_callers_code_raises_reaches_the_caller(agent, error):
    before = fields(model_files.dumps(agent))
    decision = agent.decide({})
    with pytest.raises(type(error)) as raised:
        agent.learn({"fresh": "text", "other": 1.5, "x": Number(lambda: fail(error))}, decision, 0.5)
    assert raised.value is error
    assert fields(model_files.dumps(agent)) == before


@pytest.mark.parametrize("error", [TypeError("mine"), ValueError("mine")])
def test_objects_that_are_no_numbers_are_refused(agent, error):
    with pytest.raises(InputError, match="'x' must be a number, text"):
        agent.decide({"x": Number(lambda: fail(error))})


def test_whole_numbers_beyond_the_floats_are_infinite(agent):
    with pytest.raises(InputError, match="must be a finite number"):
        agent.decide({"x": 10**400})


def test_contexts_that_change_while_they_are_read_do_no_harm(agent):
    changed = {"x": Number(lambda: changed.clear()), "y": Number(lambda: None), **{f"f{n}": n for n in range(100)}}
    shrunk = [Number(lambda: shrunk.clear()), *(float(n) for n in range(1000))]
    grown = {"x": Number(lambda: grown.update({f"f{n}": [n] for n in range(3000)}))}
    for context in (changed, {"a": shrunk}, grown, {"a": {"b": changed}}):
        assert 0 <= agent.decide(context).action <= 1


def test_an_agent_inside_its_own_context_is_refused(agent):
    with pytest.raises(RuntimeError, match="in use"):
        agent.decide({"x": Number(lambda: agent.decide({"y": 1.0}))})
    assert 0 <= agent.decide({"y": 1.0}).action <= 1


def test_an_agent_inside_a_batch_of_its_own_is_refused_and_nothing_is_learned(agent):
    before, decisions = model_files.dumps(agent), manul.Decisions(np.array([0.5, 0.5]), np.ones(2))
    for call in (
        lambda: agent.decide_many([{"y": 1.0}]),
        lambda: agent.learn_many([{"y": 1.0}] * 2, decisions, [0.5] * 2),
        lambda: agent.learn({"y": 1.0}, manul.Decision(0.5, 1.0), 0.5),
    ):
        with pytest.raises(RuntimeError, match="in use"):
            agent.learn_many([{"fresh": "text"}, {"x": Number(call)}], decisions, [0.5] * 2)
        assert model_files.dumps(agent) == before


def test_batches_that_change_while_they_are_read_do_no_harm(agent):
    rows = [{"x": Number(lambda: rows.clear())}, {"y": 1.0}, {"z": "text"}]
    assert len(agent.decide_many(rows).actions) == 3
    emptied = [{"x": Number(lambda: emptied[1].clear())}, {f"f{n}": n for n in range(100)}]
    assert len(agent.decide_many(emptied).actions) == 2


def test_outcomes_that_change_while_contexts_are_read_are_checked_again(agent):
    losses, before = np.full(2, 0.5), model_files.dumps(agent)
    rows = [{"fresh": 1.0}, {"x": Number(lambda: losses.fill(np.nan))}]
    with pytest.raises(_core.Rejected):
        agent.learn_many(rows, manul.Decisions(np.array([0.5, 0.5]), np.ones(2)), losses)
    assert model_files.dumps(agent) == before


@pytest.mark.parametrize("error", [KeyError("mine"), KeyboardInterrupt()])
def test_what_the_callers_code_raises_in_a_batch_reaches_the_caller(agent, error):
    before = model_files.dumps(agent)
    table = pandas.DataFrame({"fresh": ["text", "text"], "x": [1.0, Number(lambda: fail(error))]})
    with pytest.raises(type(error)) as raised:
        agent.learn_many(table, manul.Decisions(np.array([0.5, 0.5]), np.ones(2)), [0.5, 0.5])
    assert raised.value is error
    assert model_files.dumps(agent) == before


def test_the_core_refuses_batches_of_other_sizes(agent):
    one, two = np.zeros(1), np.zeros(2)
    player = host_of(agent).native
    for contexts in (
        [{}],
        [{}, 3],
        {"a": [1]},
        {"a": np.zeros(3)},
        {"a": "xy"},
        (np.array([0, 9, 9]), np.zeros(1, np.int64), one),
    ):
        with pytest.raises(_core.Rejected):
            player.decide_many(contexts, np.empty(0), np.empty(0), two, two, two)
    assert len(agent.decide_many([{}, {}]).actions) == 2


def test_one_thread_at_a_time_reads_contexts(agent):
    rows = [{"n": float(n), "city": "Oslo"} for n in range(3000)]
    with ThreadPoolExecutor(4) as threads:
        ended = [threads.submit(agent.decide_many, rows) for _ in range(12)]
        errors = [each.exception() for each in ended]
    assert all(error is None or "in use" in str(error) for error in errors)
    assert errors.count(None) >= 1


def test_very_deep_and_endless_contexts_are_refused(agent):
    endless = {}
    endless["again"] = endless
    items = []
    items.append(items)
    for context in (endless, {"a": items}):
        with pytest.raises(InputError, match="at most 32 levels deep"):
            agent.decide(context)


def test_texts_with_a_nul_are_told_apart():
    agent = manul.Cats(leaves=8, bandwidth=1 / 8)
    agent.learn({"a": "x\0y"}, agent.decide({"a": "x\0z"}), 0.5)
    assert "a=x\0y" in fields(model_files.dumps(agent))["names"]["features"].values()


@pytest.mark.parametrize("kind", ["auto", "adaptive", "smoothed-linear"])
def test_names_that_were_refused_are_not_remembered(kind):
    agent = learned(AGENTS[kind](), NAMED[:5])
    before = fields(model_files.dumps(agent))
    with pytest.raises(InputError):
        agent.learn({"fresh": "text", "size": "text"}, agent.decide({}), 0.5)
    assert fields(model_files.dumps(agent)) == before


def test_long_texts_are_remembered_up_to_16_mib():
    agent = manul.Cats(leaves=8, bandwidth=1 / 8, table_bits=10)
    for number in range(40):
        agent.learn({"note": f"{number}" + "x" * 10**6}, manul.Decision(0.5, 1.0), 0.5)
    assert sum(map(len, fields(model_files.dumps(agent))["names"]["features"].values())) < 18 * 10**6
