"""The spaces of actions that every law is tried with: each registered kind of knob without a name, and several knobs."""

import numpy as np

import manul
from manul.actions.kinds.knob import KINDS
from manul.actions.limits import what_is_left
from tests.laws.log_span import LogSpan

CONTEXTS = np.random.default_rng(1).random((40, 2)).astype(np.float32)
# One of each kind of knob; a new kind is added by its name.
KNOBS = {
    "span": (10.0, 50.0),
    "steps": manul.Stepped(1, 14, 1),
    "choice": manul.Choice(["plain", "bold", 3, True]),
    "log": LogSpan(1.0, 1000.0, "log"),
}
SPACES = {
    **KNOBS,
    "named": {"price": (10.0, 50.0)},
    "several": {"price": (10, 50), "days": KNOBS["steps"], "template": manul.Choice(["a", "b"]), "reach": KNOBS["log"]},
    "limited": manul.ActionSpace(
        {"price": (10, 50), "discount": (0, 0.5), "template": manul.Choice(["plain", "bold", "long"])},
        ["discount <= 1 - 9 / price", "template in ('bold', 'long') if discount > 0.25"],
    ),
}


def test_every_kind_is_tried():
    assert {*KNOBS} == {*KINDS.names()}


def narrower(space):
    """A part of each knob of a space."""
    parts = {
        name: knob.sweep(4)[1:3] if knob.is_option else (knob.sweep(4)[1], knob.sweep(4)[3])
        for name, knob in space.knobs
    }
    return space.unwrap(parts)


def baseline_of(space):
    """An action of a space, as a user writes it, that is in its narrower ranges too."""
    return space.unwrap({name: knob.sweep(4)[1 if knob.is_option else 2] for name, knob in space.knobs})


def loss_of(space, action):
    """A loss in [0, 1] that is lowest in the lower third of each knob."""
    sizes = [knob.volume - 1 if knob.is_option else 1.0 for _, knob in space.knobs]
    return float(np.abs(space.positions(action) / np.array(sizes) - 0.3).mean())


def uniform_over(space, decisions):
    """The density of each action if all that is allowed were equally likely, over its own one."""
    if space.limited is not None:
        left = what_is_left(space, decisions.actions)
        return 1 / (decisions.densities * np.prod([*left.lengths.values()], axis=0))
    return 1 / space.relative(decisions.densities, space.rows(decisions.actions, len(decisions)))


def trained(actions, rounds=60, **settings):
    """An agent that has learned some rounds."""
    agent = manul.Auto(actions=actions, **{"epsilon": 0.5, "seed": 7, **settings})
    for number in range(rounds):
        context = CONTEXTS[number % len(CONTEXTS)]
        decision = agent.decide(context, narrower(agent.space) if number % 3 == 0 else None)
        agent.learn(context, decision, loss_of(agent.space, decision.action))
    return agent
