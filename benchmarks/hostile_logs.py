"""Clean logs of worlds in which something natural looks like a defect; each is a function of a seed."""

from __future__ import annotations

from math import erf

import numpy as np

import manul

AGENTS = (
    lambda seed, **settings: manul.Cats(leaves=16, bandwidth=1 / 8, epsilon=0.05, seed=seed, **settings),
    lambda seed, **settings: manul.Auto(seed=seed, **settings),
    lambda seed, **settings: manul.Cats(leaves=32, bandwidth=1 / 16, epsilon=0.2, seed=seed, **settings),
    lambda seed, **settings: manul.Auto(epsilon=0.05, seed=seed, **settings),
    lambda seed, **settings: manul.Cats(leaves=16, bandwidth=1 / 8, epsilon=1.0, seed=seed, **settings),
)


def agent_of(seed, **settings):
    """An agent; the kind cycles with the seed."""
    return AGENTS[seed // 2 % len(AGENTS)](seed, **settings)


def target(contexts):
    """The best action."""
    return 1 / (1 + np.exp(-contexts[:, 0] - 0.5 * contexts[:, 1]))


def play(seed, loss, rows=3000, width=4, contexts=None, batch=20, delay=0, seen=None, agent=None):
    """A log of an agent; `loss(rng, contexts, actions, times)` gives the losses, and the agent sees `seen(contexts)`."""
    rng, agent = np.random.default_rng([seed, 7]), agent or agent_of(seed)
    x = rng.standard_normal((rows, width)).astype(np.float32) if contexts is None else contexts(rng, rows)
    waiting, columns = [], []
    for start in range(0, rows, batch):
        part = x[start : start + batch]
        shown = part if seen is None else seen(part)
        decisions = agent.decide_many(shown)
        losses = loss(rng, part, decisions.actions, np.arange(start, start + len(part)) / rows)
        waiting.append((shown, decisions, losses))
        if len(waiting) > delay:
            agent.learn_many(*waiting.pop(0))
        columns.append((decisions.actions, decisions.densities, losses))
    actions, densities, losses = map(np.concatenate, zip(*columns, strict=True))
    return x, actions, densities, losses


def log(*columns, **settings):
    """A log of columns."""
    return manul.Log(*columns, **settings)


def distance(rng, x, a, _time):
    """The distance from the best action, with noise."""
    return np.clip(np.abs(a - target(x)) + 0.05 * rng.standard_normal(len(a)), 0, 1)


def useless(rng, _x, a, _time):
    """Losses that depend on nothing."""
    return rng.random(len(a))


def useless_binary(rng, _x, a, _time):
    return (rng.random(len(a)) < 0.1).astype(np.float64)


def rare(rng, x, a, _time):
    return (rng.random(len(a)) < 0.04 * np.abs(a - target(x))).astype(np.float64)


def zero_inflated(rng, x, a, _time):
    """Claims: most are zero, whatever the action; the others depend on it."""
    return np.where(rng.random(len(a)) < 0.7, 0.0, np.clip(np.abs(a - target(x)) * rng.lognormal(0, 0.5, len(a)), 0, 1))


def capped(rng, x, a, time):
    """No charge is above 0.3."""
    return np.minimum(distance(rng, x, a, time), 0.3)


def rising(rng, x, a, time):
    return np.clip(0.5 * np.abs(a - target(x)) + 0.5 * time + 0.05 * rng.standard_normal(len(a)), 0, 1)


def falling(rng, _x, a, time):
    return np.clip(0.6 - 0.5 * time + 0.1 * rng.standard_normal(len(a)), 0, 1)


def seasonal(rng, x, a, time):
    level = 0.4 + 0.3 * np.sin(20 * np.pi * time)
    return np.clip(level + 0.3 * np.abs(a - target(x)) + 0.05 * rng.standard_normal(len(a)), 0, 1)


def context_only(rng, x, a, _time):
    return np.clip(target(x) + 0.1 * rng.standard_normal(len(a)), 0, 1)


def action_only(rng, _x, a, _time):
    return np.clip(np.abs(a - 0.7) + 0.1 * rng.standard_normal(len(a)), 0, 1)


def ratings(rng, x, a, time):
    return np.round(4 * distance(rng, x, a, time)) / 4


def wandering(rng, rows):
    """Contexts that change slowly."""
    noise = rng.standard_normal((rows, 4))
    walk = np.zeros((rows, 4))
    for row in range(1, rows):
        walk[row] = 0.98 * walk[row - 1] + 0.2 * noise[row]
    return walk.astype(np.float32)


def users(rng, rows):
    """Runs of 30 rows of the same user."""
    return np.repeat(rng.standard_normal((rows // 30 + 1, 4)), 30, axis=0)[:rows].astype(np.float32)


def previous_loss(seed):
    """The context has the loss of the row before, and losses depend on nothing else or little."""
    x, a, p, losses = play(seed, useless if seed % 4 < 2 else distance)
    x[1:, 3] = losses[:-1]
    return log(x, a, p, losses)


def unseen(seed):
    """The policy saw features that the log lacks; those of the log matter for the losses."""
    x, a, p, losses = play(seed, lambda rng, x, a, *_: distance(rng, x[:, 2:], a, 0), seen=lambda x: x[:, :2])
    return log(x[:, 2:], a, p, losses)


def premium(seed):
    """A hidden kind of customers costs more, and their actions vary less."""
    rng = np.random.default_rng(seed)
    hidden, x = rng.random(3000) < 0.5, rng.standard_normal((3000, 3)).astype(np.float32)
    width = np.where(hidden, 0.1, 0.5)
    greedy, explored = rng.random(3000) * (1 - width), rng.random(3000) < 0.1
    a = np.where(explored, rng.random(3000), greedy + width * rng.random(3000))
    p = 0.1 + 0.9 / width * ((a >= greedy) & (a <= greedy + width))
    return log(x, a, p, np.clip(0.3 * hidden + 0.3 * np.abs(a - target(x)) + 0.1 * rng.random(3000), 0, 1))


def price_list(seed):
    """One of eleven prices, by a softmax; densities are probabilities per length of the range."""
    rng = np.random.default_rng(seed)
    x, prices = rng.standard_normal((3000, 3)).astype(np.float32), np.linspace(0, 1, 11)
    scores = np.exp(-(0.0 if seed % 4 < 2 else 6.0) * np.abs(prices - target(x)[:, np.newaxis]))
    chances = scores / scores.sum(axis=1, keepdims=True)
    pick = (rng.random((3000, 1)) > np.cumsum(chances, axis=1)).sum(axis=1).clip(0, 10)
    a = prices[pick]
    return log(x, a, 11 * chances[np.arange(3000), pick], distance(rng, x, a, 0))


def gaussian(seed):
    """A policy with normal noise, cut to the range, and with some exploration."""
    rng = np.random.default_rng(seed)
    x, sd = rng.standard_normal((3000, 3)).astype(np.float32), 0.15
    centre = 0.2 + 0.6 * target(x)
    draws = centre[:, np.newaxis] + sd * rng.standard_normal((3000, 50))
    first = np.argmax((draws >= 0) & (draws <= 1), axis=1)
    a = np.where(rng.random(3000) < 0.1, rng.random(3000), draws[np.arange(3000), first])
    mass = np.array([(erf((1 - c) / sd / 2**0.5) + erf(c / sd / 2**0.5)) / 2 for c in centre])
    p = 0.1 + 0.9 * np.exp(-(((a - centre) / sd) ** 2) / 2) / (sd * np.sqrt(2 * np.pi) * mass)
    return log(x, a, p, distance(rng, x, a, 0))


def prices_with_rewards(seed):
    """A price is earned if the visitor buys; most do not."""
    agent = agent_of(seed, actions=(5.0, 50.0), rewards=(0.0, 50.0)) if seed // 2 % 5 in (1, 3) else None
    agent = agent or manul.Auto(actions=(5.0, 50.0), rewards=(0.0, 50.0), seed=seed)
    rng = np.random.default_rng(seed)
    x, columns = rng.standard_normal((3000, 3)).astype(np.float32), []
    for start in range(0, 3000, 20):
        part = x[start : start + 20]
        decisions = agent.decide_many(part)
        worth = 25 + 5 * part[:, 0] + 6 * rng.standard_normal(len(part))
        rewards = np.where(decisions.actions < worth, decisions.actions, 0.0)
        agent.learn_many(part, decisions, rewards=rewards)
        columns.append((decisions.actions, decisions.densities, rewards))
    a, p, rewards = map(np.concatenate, zip(*columns, strict=True))
    ranges = {"action_range": (5.0, 50.0), "reward_range": (0.0, 50.0)}
    return manul.Log.from_table(
        {"x": x[:, 0], "y": x[:, 1], "action": a.round(2) if seed % 4 < 2 else a, "density": p, "reward": rewards},
        **ranges,
    )


def text_and_missing(seed):
    """Named contexts with text, many kinds and missing values."""
    rng = np.random.default_rng(seed)
    city, age = rng.integers(0, 40, 2000), rng.normal(40, 12, 2000)
    best = rng.random(40)[city]
    agent, rows, columns = agent_of(seed), [], []
    for start in range(0, 2000, 20):
        part = [
            {"city": f"city {city[i]}", "age": None if rng.random() < 0.2 else float(age[i]), "member": "yes"}
            for i in range(start, start + 20)
        ]
        decisions = agent.decide_many(part)
        losses = np.clip(np.abs(decisions.actions - best[start : start + 20]) + 0.05 * rng.standard_normal(20), 0, 1)
        agent.learn_many(part, decisions, losses)
        rows += part
        columns.append((decisions.actions, decisions.densities, losses))
    return manul.Log(rows, *map(np.concatenate, zip(*columns, strict=True)))


def several_knobs(seed):
    """ActionSpace with a range, steps and options; losses depend on them or on nothing."""
    name = ("separable", "bowl", "cliff")[seed % 3]
    world = getattr(manul.worlds.several, name)(rounds=1500, knobs=3, width=4, seed=seed)
    return manul.simulate(manul.Auto(actions=world.actions, seed=seed), world).log


def narrowed(seed):
    """Each decision has a range of its own."""
    agent = manul.Cats(leaves=32, bandwidth=1 / 32, epsilon=0.1, seed=seed)
    return manul.simulate(agent, manul.worlds.ranges(rounds=4000, seed=seed)).log


def wide(seed):
    """Two of 150 columns matter."""
    return log(
        *play(seed, distance, rows=2000, contexts=lambda rng, rows: rng.standard_normal((rows, 150)).astype(np.float32))
    )


def without_contexts(seed):
    """No contexts: one constant column."""
    x, a, p, losses = play(seed, action_only, contexts=lambda _, rows: np.ones((rows, 1), np.float32))
    return log(x, a, p, losses)


def played(loss, **settings):
    """A log of an agent with some losses, contexts and delay."""
    return lambda seed: log(*play(seed, loss, **settings))


HOSTILE = {
    "useless": played(useless),
    "useless, binary": played(useless_binary),
    "useless, long": played(useless, rows=12_000),
    "rare": played(rare),
    "zero-inflated": played(zero_inflated),
    "capped": played(capped),
    "rising": played(rising),
    "falling, useless": played(falling),
    "seasonal": played(seasonal),
    "only contexts matter": played(context_only),
    "only actions matter": played(action_only),
    "ratings": played(ratings),
    "wandering contexts": played(distance, contexts=wandering),
    "wandering contexts, useless": played(useless, contexts=wandering),
    "users": played(distance, contexts=users),
    "users, useless": played(useless_binary, contexts=users),
    "late losses": played(distance, delay=30),
    "50 rows": played(distance, rows=50, batch=1),
    "120 rows": played(distance, rows=120, batch=1),
    "300 rows, binary": played(useless_binary, rows=300, batch=1),
    "600 rows": played(distance, rows=600, batch=5),
    "long": played(distance, rows=15_000, batch=100),
    "previous loss in the context": previous_loss,
    "policy saw more": unseen,
    "hidden kind of customers": premium,
    "list of prices": price_list,
    "normal noise": gaussian,
    "prices and rewards": prices_with_rewards,
    "text and missing values": text_and_missing,
    "several knobs": several_knobs,
    "narrowed ranges": narrowed,
    "wide": wide,
    "without contexts": without_contexts,
}
