"""Logs of the decisions of an agent: `Log(contexts, decisions, losses, like=agent)`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import manul
from manul.actions.decision import Decision, Decisions

CONTEXTS = [{"age": age} for age in range(12)]
LOSSES = np.linspace(0.0, 1.0, 12)
SPACES: dict[str, Any] = {
    "number": (10, 50),
    "steps": manul.Stepped(1, 14, 1),
    "choice": manul.Choice(["plain", "bold"]),
    "several": {"price": (10, 50), "days": manul.Stepped(1, 14, 1), "template": manul.Choice(["plain", "bold"])},
}
NARROWER: dict[str, Any] = {
    "number": (20, 30),
    "steps": (2, 5),
    "choice": ["bold"],
    "several": {"price": (20, 30)},
}


@pytest.mark.parametrize("kind", SPACES)
def test_single_decisions_and_batches_give_the_same_log(kind: str) -> None:
    agent, twin = (manul.Auto(actions=SPACES[kind], seed=7) for _ in range(2))
    within = [NARROWER[kind] if age % 2 else None for age in range(12)]
    single = [agent.decide(context, each, levels=True) for context, each in zip(CONTEXTS, within, strict=True)]
    batch = twin.decide_many(CONTEXTS, within, levels=True)
    one, other = (manul.Log(CONTEXTS, decisions, LOSSES, like=agent) for decisions in (single, batch))
    assert one.to_arrow().equals(other.to_arrow())
    assert one.space == agent.space


@pytest.mark.parametrize("kind", SPACES)
def test_an_agent_states_the_densities_of_such_a_log(kind: str) -> None:
    agent = manul.Auto(actions=SPACES[kind], seed=7)
    log = manul.Log(CONTEXTS, agent.decide_many(CONTEXTS), LOSSES, like=agent)
    np.testing.assert_allclose(agent.distributions(CONTEXTS).density(log.actions), log.densities)


def test_rewards_and_parts_stand_for_losses() -> None:
    agent = manul.Auto(actions=(10, 50), outcome=manul.Sale(cost=5.0), seed=7)
    decisions = agent.decide_many(CONTEXTS)
    bought = LOSSES > 0.5
    by_parts = manul.Log(CONTEXTS, decisions, parts={"bought": bought}, like=agent)
    by_rewards = manul.Log(CONTEXTS, decisions, rewards=(decisions.actions - 5.0) * bought, like=agent)
    np.testing.assert_allclose(by_parts.rewards, by_rewards.rewards)


def test_decisions_of_a_rollout_keep_their_arms_and_ids() -> None:
    rollout = manul.Rollout(manul.Auto(actions=(10, 50)), baseline=20.0)
    decisions = [rollout.decide(context) for context in CONTEXTS]
    table = manul.Log(CONTEXTS, decisions, LOSSES, like=rollout).to_arrow()
    assert table["rollout_arm"].to_pylist() == [each.arm for each in decisions]
    assert table["id"].to_pylist() == [str(each.id) for each in decisions]


def test_no_decisions_are_no_rows() -> None:
    assert len(Decisions.of([])) == 0


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"losses": [0.5], "rewards": [0.5]}, "losses and rewards exclude each other"),
        ({"losses": [0.5, 0.5]}, "The columns of a log must have one length"),
        ({}, "Decisions need losses, rewards or parts"),
        ({"losses": [0.5], "like": "agent"}, "like must be an agent, a log or a ContextSchema, got 'agent'"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_sentence(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(manul.ManulError, match=sentence):
        manul.Log([{"age": 1}], [Decision(21.4, 0.24)], **given)


def test_a_whole_range_beside_narrower_ones_must_be_known() -> None:
    decisions = [Decision(21.4, 0.24), Decision(21.4, 0.24, (20.0, 30.0))]
    with pytest.raises(manul.ManulError, match="Pass action_range"):
        manul.Log([{"age": 1}, {"age": 2}], decisions, [0.5, 0.5])


def test_what_is_no_decision_is_named_with_its_row() -> None:
    with pytest.raises(manul.ManulError, match="decisions must be those of an agent, got 'x' in row 1"):
        manul.Log([{"age": 1}, {"age": 2}], [Decision(21.4, 0.24), "x"], [0.5, 0.5])
