"""The checks of an agent; each raises an AssertionError if it fails."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from manul.actions.decision import Decision, Decisions, Within
from manul.agents.base import BaseAgent
from manul.agents.critic_report import loss_unit
from manul.agents.mapped import Mapped, SaveableAgent
from manul.agents.player_host import host_of
from manul.agents.rollout import Rollout
from manul.checks.action_spaces import space_of
from manul.contexts.schema import Context
from manul.errors import InputError
from manul.outcomes import outcome_of
from manul.utils import model_files

Make = Callable[[int], SaveableAgent]
WIDTH, ROUNDS = 3, 400  # of the contexts, and to learn


def discover() -> Iterator[tuple[str, Make]]:
    """Yield every saveable agent, in several settings.

    >>> "Cats 0" in dict(discover())
    True
    """
    for name, kind in zip(model_files.KINDS.names(), model_files.KINDS, strict=True):
        assert kind.examples or not kind.learns, f"{name} must be registered with examples"
        for number, make in enumerate(kind.examples if kind.learns else ()):
            yield f"{name} {number}", make


def check_agent(make: Make) -> None:
    """Run all checks of an agent.

    >>> import manul
    >>> check_agent(lambda seed: manul.Cats(leaves=8, bandwidth=1/8, seed=seed))
    """
    model_files.contents(make(0))  # an agent that cannot be saved says so at once
    for check in CHECKS:
        check(make)


def check_rejected(call: Callable[[], object]) -> None:
    """Check that the call raises InputError with a one-line message and its field."""
    rejection: InputError | None = None
    try:
        call()
    except InputError as error:
        rejection = error
    assert rejection is not None, "invalid input must raise InputError"
    assert rejection.field is not None, f"an InputError must have a field: {rejection}"
    assert "\n" not in str(rejection), f"the message of an InputError must be one line: {rejection}"


def random_contexts(count: int, seed: int = 0) -> npt.NDArray[np.float64]:
    """Random contexts that are exact in single precision."""
    return np.random.default_rng(seed).standard_normal((count, WIDTH)).astype(np.float32).astype(np.float64)


def distribution_is_a_density(make: Make) -> None:
    """Densities integrate to 1 and are positive on the support if epsilon > 0, before and after learning."""
    agent = make(0)
    for contexts in (random_contexts(5), _play(agent, ROUNDS)):
        for context in contexts[:20]:
            space_of(agent).check_density(agent.distribution(context))


def decisions_carry_their_density(make: Make) -> None:
    """The density of a decision is that of the mixture, whether the action was explored or greedy."""
    agent = make(1)
    _play(agent, ROUNDS)
    for context in random_contexts(200):
        expected = agent.distribution(context)
        decision = agent.decide(context)
        same = np.isclose(decision.density, expected.density(decision.action), rtol=1e-9, atol=0)
        assert same, "the density of a decision must be that of the distribution"


def inverse_densities_average_to_the_range(make: Make) -> None:
    """The mean of 1/density over an agent's own actions is the length of the range, within five standard errors.

    With several knobs, this holds for the density of each, and the joint density is their product.
    """
    agent = make(2)
    _play(agent, ROUNDS)
    space_of(agent).check_inverse_densities(agent.decide_many(random_contexts(10_000)))


def same_seed_same_bytes(make: Make) -> None:
    """Agents with the same seed have the same state; another seed draws other actions."""
    one, two, other = make(3), make(3), make(4)
    for agent in (one, two, other):
        _play(agent, ROUNDS)
    assert _same(one, two), "the same seed must give the same state"
    rows, other_rows = (space_of(one).rows(agent.decide_many(random_contexts(50))) for agent in (one, other))
    assert rows != other_rows, "another seed must draw other actions"


def batches_equal_single_calls(make: Make) -> None:
    """The batch forms decide_many and learn_many are equal to decide and learn, bit for bit."""
    single, batch = make(5), make(5)
    for size in (1, 7, 64):
        contexts = random_contexts(size, seed=size)
        decisions = [single.decide(context) for context in contexts]
        many = batch.decide_many(contexts)
        rows = [(decision.action, decision.density) for decision in decisions]
        assert rows == space_of(single).rows(many), "decide_many must equal decide"
        losses = _losses(single, many)
        for context, decision, loss in zip(contexts, decisions, losses, strict=True):
            single.learn(context, decision, **outcome_of(single).told(float(loss)))
        batch.learn_many(contexts, many, **outcome_of(batch).told_many(losses))
        assert _same(single, batch), "learn_many must equal learn"


def saved_agents_resume_identically(make: Make) -> None:
    """A loaded agent decides and learns like the saved one."""
    agent = make(6)
    _play(agent, ROUNDS)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "agent.manul")
        agent.save(path)
        loaded = model_files.load(path)
    assert type(loaded) is type(agent)
    for each in (agent, loaded):
        _play(each, 50)
    assert _same(agent, loaded), "a loaded agent must continue like the saved one"


def bandwidth_of(policy: object) -> float:
    """The bandwidth of an agent or policy, 0 if it has none."""
    return getattr(policy, "bandwidth", None) or 0.0


def narrowed_ranges_are_kept(make: Make) -> None:
    """With `within`, actions and densities stay inside it, also in learning."""
    agent = make(7)
    space = space_of(agent)
    within = space.within
    _play(agent, 50)
    if space.is_too_wide(bandwidth_of(agent)):
        check_rejected(lambda: agent.decide(random_contexts(1)[0], within))
        return
    for number, context in enumerate(random_contexts(100)):
        if number % 5 == 0:  # with limits, a look at a whole distribution takes as long as 50 decisions
            space.check_density(agent.distribution(context, within), within)
        decision = agent.decide(context, within)
        assert space.contains(within, decision.action), "an action must lie in its narrowed range"
        agent.learn(context, decision, **outcome_of(agent).told(_loss_span(agent)[0]))


def no_context_is_a_plain_bandit(make: Make) -> None:
    """None, an empty list and an empty array are the same empty context."""
    agent = make(8)
    empty: list[Context] = [None, [], np.empty(0)]
    for context in empty * 20:
        agent.learn(context, agent.decide(context), **outcome_of(agent).told(_loss_span(agent)[0]))
    assert len(agent.decide_many(np.empty((3, 0))).densities) == 3


def bad_input_changes_nothing(make: Make) -> None:
    """Each invalid call raises InputError and does not change the agent."""
    agent = make(9)
    contexts = _play(agent, 50)
    good = agent.decide(contexts[0])
    before = _state(agent)
    space, nan, row = space_of(agent), float("nan"), contexts[0]
    beyond = float("inf") if agent.outcome.range == "auto" else _loss_span(agent)[1] + 1

    def learn(context: Context, decision: Decision, loss: float = _loss_span(agent)[1]) -> None:
        agent.learn(context, decision, **outcome_of(agent).told(loss))

    calls: list[Callable[[], object]] = [
        lambda: agent.decide(np.full(WIDTH, nan)),
        lambda: agent.decide(np.full(WIDTH, np.inf)),
        lambda: agent.decide(np.zeros(WIDTH + 1)),
        lambda: agent.decide_many(np.full((2, WIDTH), nan)),
        lambda: learn(np.full(WIDTH, nan), good),
        lambda: learn(np.zeros(WIDTH + 1), good),
        lambda: learn(row, good, nan),
        lambda: learn(row, good, beyond),
        lambda: learn(row, good._replace(density=0.0)),
        lambda: learn(row, good._replace(density=nan)),
        lambda: agent.learn_many(
            contexts[:2], space.twice(good), **outcome_of(agent).told_many(np.array([_loss_span(agent)[1], nan]))
        ),
        *(partial(agent.decide, row, within) for within in space.bad_ranges()),
        *(partial(learn, row, good._replace(action=action)) for action in space.bad_actions(good)),
    ]
    for call in calls:
        check_rejected(call)
        after = _state(agent)
        assert all(np.array_equal(before[name], after[name]) for name in before), (
            "invalid input must not change the agent"
        )


CHECKS = (
    distribution_is_a_density,
    decisions_carry_their_density,
    inverse_densities_average_to_the_range,
    same_seed_same_bytes,
    batches_equal_single_calls,
    saved_agents_resume_identically,
    narrowed_ranges_are_kept,
    no_context_is_a_plain_bandit,
    bad_input_changes_nothing,
)


def _loss_span(agent: SaveableAgent) -> Within:
    return loss_unit(agent.outcome.losses)


def _losses(agent: SaveableAgent, decisions: Decisions) -> npt.NDArray[np.float64]:
    lowest, highest = _loss_span(agent)
    return lowest + (highest - lowest) * space_of(agent).shares(decisions)


def _play(agent: SaveableAgent, rounds: int) -> npt.NDArray[np.float64]:
    contexts = random_contexts(rounds)
    for first in range(0, rounds, 10):
        rows = contexts[first : first + 10]
        decisions = agent.decide_many(rows)
        agent.learn_many(rows, decisions, **outcome_of(agent).told_many(_losses(agent, decisions)))
    return contexts


def _state(agent: SaveableAgent) -> model_files.Arrays:
    """What the agent has learned; a map in front of it learns nothing, and may be saved in several ways."""
    if isinstance(agent, Mapped | Rollout):
        return _state(agent.agent)
    return host_of(agent).state() if isinstance(agent, BaseAgent) else model_files.contents(agent)[2]


def _same(one: SaveableAgent, two: SaveableAgent) -> bool:
    left, right = _state(one), _state(two)
    return left.keys() == right.keys() and all(left[name].tobytes() == right[name].tobytes() for name in left)
