"""Law: rewards r and losses -r give the same decisions and the same bytes, and results that mirror each other."""

import asyncio
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import manul
from manul.agents.agent_registry import AGENTS
from manul.outcomes import Outcome
from manul.utils import model_files
from tests.service.conftest import Service

SPAN = (-20.0, 100.0)  # of the rewards
BOTH = {"losses": Outcome.of(losses=(-100.0, 20.0)), "rewards": Outcome.of(rewards=SPAN)}
ROUNDS = 60
CONTEXTS = np.random.default_rng(0).standard_normal((ROUNDS, 2)).astype(np.float32)
SMALL = {"leaves": 8, "bandwidth": 1 / 8}
KNOBS = {"price": (10, 50), "days": manul.Stepped(1, 5, 1), "template": manul.Choice(["plain", "bold"])}
MAKERS = {
    entry.name: lambda entry=entry, **outcome: entry.make(
        **{name: value for name, value in SMALL.items() if name in entry.settings}, **outcome
    )
    for entry in AGENTS
}
MAKERS |= {
    "several knobs": lambda **outcome: manul.Auto(actions=KNOBS, **outcome),
    "mapped": lambda **outcome: manul.Mapped(agent=manul.Auto(**outcome), features=manul.maps.Crosses()),
    "rollout": lambda **outcome: manul.Rollout(manul.Auto(**outcome), baseline=0.5, steps=(0.5,), budget=1e9),
    "pareto": lambda **outcome: manul.agents.ParetoGreedy(policies=manul.policies.Constant(choices=9), **outcome),
}


def rewards_of(count=ROUNDS):
    return np.random.default_rng(1).uniform(*SPAN, count).round(3) * (np.arange(count) % 4 > 0)


def bytes_of(agent):
    return {name: array.tobytes() for name, array in model_files.contents(agent)[2].items()}


def learned(make, outcome, rewards):
    """The agent, its decisions, and the settings in its file."""
    agent = make(outcome=outcome)
    decisions = []
    for context, reward in zip(CONTEXTS, rewards.tolist(), strict=False):
        decisions.append(agent.decide(context))
        agent.learn(context, decisions[-1], **outcome.told(0.0 - reward))
    return agent, decisions, json.dumps(model_files.contents(agent)[1], default=str)


@pytest.mark.parametrize("kind", MAKERS)
def test_an_agent_learns_the_same_from_rewards_and_from_their_losses(kind):
    (one, drawn, plain), (other, again, stated) = (learned(MAKERS[kind], BOTH[sign], rewards_of()) for sign in BOTH)
    assert (drawn, bytes_of(one)) == (again, bytes_of(other))
    assert json.loads(plain.replace('"losses": [-100.0, 20.0]', '"rewards": [-20.0, 100.0]')) == json.loads(stated)
    assert [manul.loads(manul.dumps(each)).outcome for each in (one, other)] == [*BOTH.values()]


@pytest.mark.parametrize("kind", ["auto", "several knobs", "mapped"])
def test_so_does_an_agent_that_does_not_know_the_range(kind):
    pair = [learned(MAKERS[kind], Outcome.of(**{sign: "auto"}), 1e6 * rewards_of()) for sign in BOTH]
    assert bytes_of(pair[0][0]) == bytes_of(pair[1][0])


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(*SPAN), min_size=1, max_size=12))
def test_so_does_every_list_of_rewards(values):
    (one, *_), (other, *_) = (learned(MAKERS["cats"], outcome, np.array(values)) for outcome in BOTH.values())
    assert bytes_of(one) == bytes_of(other)


def logs(rows=900):
    """A log of losses, and the same log as one of rewards."""
    rng = np.random.default_rng(2)
    contexts, actions = rng.random((rows, 2)).astype(np.float32), rng.uniform(0, 10, rows)
    rewards = np.clip(90 - 4 * (actions - 10 * contexts[:, 0]) ** 2, *SPAN) * (np.arange(rows) % 4 > 0)
    given = {"floors": np.full(rows, 0.1), "action_range": (0, 10)}
    return [
        manul.Log(contexts, actions, np.full(rows, 0.1), 0.0 - rewards, outcome=each, **given) for each in BOTH.values()
    ]


def five(_context):
    return 5.0


@pytest.fixture(scope="module")
def pair():
    return logs()


@pytest.mark.parametrize("kind", ["parquet", "csv", "jsonl", "jsonl.gz"])
def test_a_log_of_rewards_is_that_of_their_losses_in_every_format(pair, kind, tmp_path):
    read = []
    for number, log in enumerate(pair):
        log.write(tmp_path / f"{number}.{kind}")
        read.append(manul.Log.read(tmp_path / f"{number}.{kind}"))
    assert read[0].losses.tobytes() == read[1].losses.tobytes() == pair[0].losses.tobytes()
    assert (read[0].rewards, read[1].rewards.tobytes()) == (None, (0.0 - pair[0].losses).tobytes())
    assert [log.outcome.better for log in read] == ["low", "high"]


@pytest.mark.parametrize("estimator", ["snips", "dr"])
def test_an_estimate_of_rewards_mirrors_that_of_their_losses(pair, estimator):
    one, other = (manul.evaluate(five, log, estimator, bandwidth=1.0) for log in pair)
    assert (one.value, one.low, one.high) == (other.value, other.low, other.high)
    assert other.numbers == (0.0 - one.value, 0.0 - one.high, 0.0 - one.low)
    assert str(other).split("(")[1:] == str(one).split("(")[1:]
    assert str(other).startswith(f"mean reward {other.numbers[0]:.4g} [")


def test_a_comparison_of_rewards_mirrors_that_of_their_losses(pair):
    (one,), (other,) = (manul.compare({"five": five}, log, bandwidth=1.0) for log in pair)
    assert one._replace(outcome=other.outcome) == other
    assert other.numbers == tuple(0.0 - one.numbers[place] for place in (0, 1, 3, 2))
    assert one.verdict == other.verdict


def test_a_policy_optimised_from_rewards_is_that_of_their_losses(pair):
    one, other = (manul.optimize(log, candidates=["auto"]) for log in pair)
    assert bytes_of(one.policy) == bytes_of(other.policy)
    assert one.table.rows == other.table.rows
    assert (one.verdict.gain, one.verdict.status) == (other.verdict.gain, other.verdict.status)
    assert [each.policy.outcome for each in (one, other)] == [*BOTH.values()]


WAITS = {None: {}, "first": {"wait": 60}, "sum": {"wait": 60, "combine": "sum"}}


@pytest.mark.parametrize("combine", WAITS)
def test_a_loop_learns_the_same_from_rewards_and_from_their_losses(combine, tmp_path):
    one, other = asyncio.run(served(Service(tmp_path / "store.db"), WAITS[combine]))
    assert one == other


async def served(service, waits):
    """The answers and the models of a loop of losses and of one of rewards."""
    async with service.running():
        played = [await play(service, sign, outcome, waits) for sign, outcome in BOTH.items()]
        service.clock.time += 61
        service.engine.end_waits()
        for sign in BOTH:
            await service.learned(sign, 8 if not waits else 10)
        models = [bytes_of(service.engine.loop(sign).model.agent) for sign in BOTH]
        means = [(await service.get(f"/{sign}"))["mean_loss"] for sign in BOTH]
    return [*zip(played, models, means, strict=True)]


async def play(service, sign, outcome, waits):
    default = {f"default_{outcome.keyword}": outcome.from_loss(5.0)} if waits else {}
    await service.post("", 201, name=sign, actions=[0, 1], **{sign: outcome.range}, **waits, **default)
    answers = []
    for number, reward in enumerate(rewards_of(10).tolist()):
        decision = await service.post(f"/{sign}/decisions", context=CONTEXTS[number].tolist())
        answers.append((decision["action"], decision["density"]))
        for part in range(0 if number < 2 else 2 if waits.get("combine") else 1):
            value = outcome.from_loss(0.0 - reward / (1 + part))
            path = f"/{sign}/decisions/{decision['id']}/loss"
            answers.append((await service.post(path, **{outcome.keyword: value}, key=str(part)))["status"])
        if not waits:
            await service.learned(sign, max(number - 1, 0))
    return answers
