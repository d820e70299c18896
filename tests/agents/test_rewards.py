"""Agents that learn from rewards instead of losses."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas
import pytest

import manul
from manul.agents.player_host import host_of
from manul.errors import InputError, ParameterError

MAKERS = {
    "auto": lambda **ranges: manul.Auto(**ranges),
    "cats": lambda **ranges: manul.Cats(leaves=16, bandwidth=1 / 8, **ranges),
    "paper": lambda **ranges: manul.Cats.paper(leaves=16, bandwidth=1 / 8, **ranges),
    "adaptive": lambda **ranges: manul.AdaptiveCats(leaves=16, **ranges),
    "discrete tree": lambda **ranges: manul.agents.DiscreteTree(leaves=16, **ranges),
    "discrete linear": lambda **ranges: manul.agents.DiscreteLinear(leaves=16, **ranges),
    "smoothed": lambda **ranges: manul.agents.SmoothedGreedy(
        policies=manul.policies.Linear(), bandwidth=1 / 8, **ranges
    ),
    "constants": lambda **ranges: manul.agents.ParetoGreedy(policies=manul.policies.Constant(), **ranges),
    "mapped": lambda **ranges: manul.Mapped(agent=manul.Auto(**ranges), features=manul.maps.Crosses()),
}
CONTEXTS = np.random.default_rng(0).standard_normal((60, 2)).astype(np.float32)


@pytest.fixture(params=MAKERS)
def make(request):
    return MAKERS[request.param]


def bytes_of(agent):
    return {name: array.tobytes() for name, array in host_of(agent).state().items()}


def test_a_reward_is_the_loss_with_the_opposite_sign(make):
    by_reward, by_loss = make(rewards=(0, 100)), make(losses=(-100, 0))
    for context in CONTEXTS:
        decision = by_reward.decide(context)
        assert decision == by_loss.decide(context)
        by_reward.learn(context, decision, reward=100 * decision.action)
        by_loss.learn(context, decision, loss=-100 * decision.action)
    assert bytes_of(by_reward) == bytes_of(by_loss)
    assert (by_reward.outcome.rewards, by_reward.outcome.losses, by_loss.outcome.rewards) == (
        (0.0, 100.0),
        (-100.0, 0.0),
        None,
    )


def test_batches_of_rewards_equal_single_rewards(make):
    single, batch = make(rewards=(-1, 1)), make(rewards=(-1, 1))
    decisions = [single.decide(context) for context in CONTEXTS]
    many = batch.decide_many(CONTEXTS)
    for context, decision in zip(CONTEXTS, decisions, strict=True):
        single.learn(context, decision, reward=decision.action)
    batch.learn_many(CONTEXTS, many, rewards=many.actions)
    assert bytes_of(single) == bytes_of(batch)


def test_batches_of_named_contexts_take_rewards():
    agent = manul.Cats(leaves=16, bandwidth=1 / 8, rewards=(0, 1))
    contexts = [{"city": "Oslo"}, {"city": "Bergen"}]
    agent.learn_many(contexts, agent.decide_many(contexts), rewards=[0.5, 1.0])
    assert host_of(agent).decisions == 2


def test_a_saved_agent_keeps_its_rewards(make, tmp_path):
    agent = make(rewards=(0, 100))
    agent.learn(CONTEXTS[0], agent.decide(CONTEXTS[0]), reward=50)
    agent.save(tmp_path / "agent.manul")
    loaded = manul.load(tmp_path / "agent.manul")
    assert repr(loaded) == repr(agent)
    assert (loaded.outcome.rewards, loaded.outcome.losses) == ((0.0, 100.0), (-100.0, 0.0))
    loaded.learn(CONTEXTS[1], loaded.decide(CONTEXTS[1]), reward=100)


def test_parameters_name_the_range_that_was_given():
    agent = manul.Cats(leaves=16, bandwidth=1 / 8, rewards=(0, 100))
    assert "rewards=(0.0, 100.0)" in repr(agent)
    assert "losses" not in agent.parameters
    assert "rewards" not in manul.Auto().parameters


def refused_outcome(agent, outcome):
    """The error message of an outcome that is refused and changes nothing."""
    decision = agent.decide(CONTEXTS[0])
    before = bytes_of(agent)
    with pytest.raises(InputError) as error:
        agent.learn(CONTEXTS[0], decision, **outcome)
    assert bytes_of(agent) == before
    return str(error.value)


@pytest.mark.parametrize(
    ("ranges", "message"),
    [
        (
            {"losses": (0, 1), "rewards": (0, 1)},
            "losses and rewards exclude each other, got (0, 1) and (0, 1).",
        ),
        ({"rewards": (1, 0)}, "rewards must be finite with low < high, got (1.0, 0.0)."),
        ({"rewards": (math.nan, 1)}, "rewards must be finite with low < high, got (nan, 1.0)."),
        ({"rewards": (0, math.inf)}, "rewards must be finite with low < high, got (0.0, inf)."),
        ({"rewards": 1}, "rewards must be two numbers (low, high), got 1. Try (0, 1)."),
        ({"rewards": (0, 1, 2)}, "rewards must be two numbers (low, high), got (0, 1, 2). Try (0, 1)."),
        ({"rewards": "autom"}, "rewards must be two numbers (low, high) or 'auto', got 'autom'. Try 'auto'."),
        ({"losses": "autom"}, "losses must be two numbers (low, high) or 'auto', got 'autom'. Try 'auto'."),
    ],
)
def test_a_range_that_is_not_one_is_refused(make, ranges, message):
    with pytest.raises(ParameterError) as error:
        make(**ranges)
    assert str(error.value) == message


@pytest.mark.parametrize("name", ["losses", "rewards"])
def test_only_auto_learns_without_a_range(name):
    with pytest.raises(ParameterError) as error:
        manul.Cats(leaves=16, bandwidth=1 / 8, **{name: "auto"})
    rule = f"{name} must be two numbers (low, high) for Cats, got 'auto'. Only Auto learns without a range."
    assert str(error.value) == rule


@pytest.mark.parametrize(
    ("outcome", "message"),
    [
        ({"loss": 0.5}, "loss must not be given to an agent made with rewards; pass reward=."),
        ({"loss": 0.5, "reward": 0.5}, "loss and reward exclude each other; this agent learns from reward."),
        ({}, "pass reward= to learn; the agent was made with rewards."),
        ({"reward": 101}, "reward must be in [0, 100], got 101. Declare the range with rewards=(low, high)."),
        ({"reward": math.inf}, "reward must be in [0, 100], got inf. Declare the range with rewards=(low, high)."),
        ({"reward": math.nan}, "reward is NaN (not a number); leave out decisions whose reward is not known."),
        ({"reward": "much"}, "reward must be a number, got 'much'."),
        ({"reward": 10**400}, f"reward must be a number, got {10**400}."),
    ],
)
def test_a_bad_reward_is_refused_and_changes_nothing(make, outcome, message):
    assert refused_outcome(make(rewards=(0, 100)), outcome) == message


@pytest.mark.parametrize(
    ("outcome", "message"),
    [
        ({"reward": 0.5}, "reward must not be given to an agent made with losses; pass loss=."),
        ({"loss": 0.5, "reward": 0.5}, "loss and reward exclude each other; this agent learns from loss."),
        ({}, "pass loss= to learn; the agent was made with losses."),
        ({"loss": math.nan}, "loss is NaN (not a number); leave out decisions whose loss is not known."),
    ],
)
def test_an_agent_of_losses_takes_losses_only(make, outcome, message):
    assert refused_outcome(make(), outcome) == message


@pytest.mark.parametrize(
    ("outcomes", "message"),
    [
        ({"losses": [0, 0]}, "losses must not be given to an agent made with rewards; pass rewards=."),
        ({}, "pass rewards= to learn; the agent was made with rewards."),
        (
            {"rewards": [0, math.nan]},
            "reward is NaN (not a number) in row 1; leave out decisions whose reward is not known.",
        ),
        ({"rewards": [0, 2]}, "reward must be in [0, 1], got 2 in row 1. Declare the range with rewards=(low, high)."),
        ({"rewards": [0]}, "rewards must have one number for each of the 2 contexts, got shape (1,)."),
        ({"rewards": ["much", 0]}, "rewards must be numbers, got 'much' in row 0."),
    ],
)
def test_bad_batches_of_rewards_change_nothing(make, outcomes, message):
    agent = make(rewards=(0, 1))
    decisions = agent.decide_many(CONTEXTS[:2])
    before = bytes_of(agent)
    with pytest.raises(InputError) as error:
        agent.learn_many(CONTEXTS[:2], decisions, **outcomes)
    assert str(error.value) == message
    assert bytes_of(agent) == before


NO_NUMBERS = ["0.5", b"0.5", np.str_("0.5"), np.array("0.5"), np.timedelta64(1, "s")]
NUMBERS = [1, True, np.bool_(True), 0.5, np.float32(0.5), np.int64(1), Decimal("0.5"), Fraction(1, 2), np.array(0.5)]


def make_several(**ranges):
    return manul.Auto(actions={"price": (10, 50), "days": manul.Stepped(1, 14, 1)}, **ranges)


def make_rollout(**ranges):
    return manul.Rollout(agent=manul.Auto(**ranges), baseline=0.5)


EVERY_MAKER = {**MAKERS, "several knobs": make_several, "rollout": make_rollout}


@pytest.fixture(params=EVERY_MAKER)
def make_any(request):
    return EVERY_MAKER[request.param]


@pytest.mark.parametrize("value", NO_NUMBERS, ids=repr)
@pytest.mark.parametrize("name", ["loss", "reward"])
def test_text_is_no_loss_or_reward(make_any, name, value):
    ranges = {"losses": (0, 1)} if name == "loss" else {"rewards": (0, 1)}
    agent, untouched = make_any(**ranges), make_any(**ranges)
    decision = agent.decide(CONTEXTS[0])
    with pytest.raises(InputError) as error:
        agent.learn(CONTEXTS[0], decision, **{name: value})
    assert (str(error.value), error.value.field) == (f"{name} must be a number, got {value!r}.", name)
    for each in (agent, untouched):
        each.learn(CONTEXTS[0], decision if each is agent else each.decide(CONTEXTS[0]), **{name: 0.5})
    assert manul.dumps(agent) == manul.dumps(untouched)


@pytest.mark.parametrize("values", [["0.5", 0], [True, "1"], np.array(["0", "1"])], ids=repr)
@pytest.mark.parametrize("name", ["losses", "rewards"])
def test_batches_of_text_are_refused(make_any, name, values):
    agent, untouched = make_any(**{name: (0, 1)}), make_any(**{name: (0, 1)})
    decisions = agent.decide_many(CONTEXTS[:2])
    with pytest.raises(InputError, match=f"^{name} must be numbers, got .* in row [01]\\.$"):
        agent.learn_many(CONTEXTS[:2], decisions, **{name: values})
    untouched.decide_many(CONTEXTS[:2])
    assert manul.dumps(agent) == manul.dumps(untouched)


@pytest.mark.parametrize("value", NUMBERS, ids=repr)
def test_numbers_of_every_kind_are_losses_and_rewards(make_any, value):
    by_reward, by_loss = make_any(rewards=(-1, 1)), make_any(losses=(-1, 1))
    for agent, name in ((by_reward, "reward"), (by_loss, "loss")):
        agent.learn(CONTEXTS[0], agent.decide(CONTEXTS[0]), **{name: value})
    many = by_reward.decide_many(CONTEXTS[:2])
    by_reward.learn_many(CONTEXTS[:2], many, rewards=[value, value])
    counted = by_reward if isinstance(by_reward, manul.Rollout) else host_of(by_reward)
    assert counted.decisions == 3


@pytest.mark.parametrize("make_column", [list, tuple, np.array, pandas.Series], ids=repr)
def test_columns_of_every_kind_are_rewards(make_column):
    agent = manul.Auto(rewards=(0, 1))
    agent.learn_many(CONTEXTS[:2], agent.decide_many(CONTEXTS[:2]), rewards=make_column([Decimal("0.5"), Decimal(1)]))
    assert host_of(agent).decisions == 2


def test_an_agent_of_rewards_runs_in_a_world_of_losses():
    world = manul.worlds.linear(rounds=300, width=2)
    by_reward = manul.simulate(manul.Auto(rewards=(-1, 0)), world)
    assert by_reward.log.losses.tolist() == manul.simulate(manul.Auto(losses=(0, 1)), world).log.losses.tolist()


@pytest.mark.parametrize("check", manul.checks.CHECKS, ids=lambda check: check.__name__)
def test_an_agent_of_rewards_passes_the_checks_of_agents(check):
    check(lambda seed: manul.Cats(leaves=16, bandwidth=1 / 8, rewards=(-1, 3), seed=seed))
