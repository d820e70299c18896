"""How often the doctor finds defects that are planted in logs, and how often it objects to clean logs.

Run: python -m benchmarks.doctor [CLEAN_LOGS [PLANTED_LOGS]]
"""

from __future__ import annotations

import sys
from collections import Counter

import numpy as np

import manul
from manul.offpolicy import doctor

ROWS = 4000
LOGGERS = {
    "Cats": lambda seed: manul.Cats(leaves=16, bandwidth=1 / 8, epsilon=0.05, seed=seed),
    "Cats, epsilon .2": lambda seed: manul.Cats(leaves=32, bandwidth=1 / 16, epsilon=0.2, seed=seed),
    "Auto, fading": lambda seed: manul.Auto(seed=seed),
    "Auto, epsilon .05": lambda seed: manul.Auto(epsilon=0.05, seed=seed),
    "discrete": lambda seed: manul.DiscreteTree(leaves=8, epsilon=0.1, seed=seed),
}


def contexts_of(rng, kind, rows):
    """Contexts: independent, of users who come in runs of rows or return at random, or with a counter."""
    if kind in ("runs of users", "returning users"):
        users = (
            np.repeat(np.arange(rows // 20 + 1), 20)[:rows] if kind == "runs of users" else rng.integers(0, 50, rows)
        )
        return rng.standard_normal((users.max() + 1, 4))[users].astype(np.float32)
    contexts = rng.standard_normal((rows, 4)).astype(np.float32)
    if kind == "counter":
        contexts[:, 3] = np.arange(rows)
    return contexts


KINDS = ("independent", "runs of users", "returning users", "counter")


def loss_of(rng, contexts, actions, kind):
    """Absolute, binary, or heavy-tailed losses."""
    distance = np.abs(actions - 1 / (1 + np.exp(-contexts[:, 0] - 0.5 * contexts[:, 1])))
    if kind == "binary":
        return (rng.random(len(actions)) < distance).astype(np.float64)
    if kind == "heavy":
        return np.minimum(distance * rng.pareto(1.5, len(actions)), 1.0)
    return np.clip(distance + 0.05 * rng.standard_normal(len(actions)), 0, 1)


def log_of(seed, rows=ROWS, logger=None, kind=None, losses=None, learning=None):
    """A clean log with ids and times; what is not given cycles with the seed."""
    rng = np.random.default_rng(seed)
    logger = logger or list(LOGGERS)[seed % len(LOGGERS)]
    kind = kind or KINDS[seed // len(LOGGERS) % len(KINDS)]
    losses = losses or ("absolute", "binary", "heavy")[seed % 3]
    learning = seed % 4 != 3 if learning is None else learning
    agent, contexts = LOGGERS[logger](seed), contexts_of(rng, kind, rows)
    columns = []
    for start in range(0, rows, 20):
        part = contexts[start : start + 20]
        decisions = agent.decide_many(part)
        outcomes = loss_of(rng, part, decisions.actions, losses)
        if learning or start < rows // 8:
            agent.learn_many(part, decisions, outcomes)
        columns.append((decisions.actions, decisions.densities, outcomes))
    actions, densities, outcomes = map(np.concatenate, zip(*columns, strict=True))
    if not learning:  # a fixed policy logs only after it has learned
        start = rows // 8
        contexts, actions, densities, outcomes = (column[start:] for column in (contexts, actions, densities, outcomes))
    times, ids = 1e9 + np.cumsum(rng.exponential(60, len(actions))), [str(number) for number in range(len(actions))]
    return manul.Log(contexts, actions, densities, outcomes, times=times, ids=ids)


def change(log, **columns):
    """The log with other columns."""
    names = ("contexts", "actions", "densities", "losses", "times", "ids")
    return manul.Log(**{name: getattr(log, name) for name in names} | columns)


def replace_column(log, values):
    """The log with other values of its third feature."""
    contexts = log.contexts.copy()
    contexts[:, 2] = values
    return change(log, contexts=contexts)


def fill(log, rng, share, rows=200, value=0.0):
    """The log whose last losses are a default, or a share of them."""
    losses = log.losses.copy()
    losses[-rows:] = np.where(rng.random(rows) < share, value, losses[-rows:])
    return change(log, losses=losses)


def one_action(log):
    """The log with a single action, of uniform density."""
    ones = np.ones(len(log))
    return change(log, actions=0.5 * ones, densities=ones, losses=np.abs(0.5 - log.losses))


def explored(log):
    """A column that is 1 if the action was outside the greedy window."""
    return (log.densities < 1).astype(np.float32)


PLANTED = {
    "repeated ids": lambda log, _: change(log, ids=[*log.ids[:-100], *log.ids[:100]]),
    "time out of order": lambda log, _: change(log, times=np.concatenate([log.times[2000:], log.times[:2000]])),
    "one action": lambda log, _: one_action(log),
    "leaked action": lambda log, rng: replace_column(log, 30 * log.actions + 0.01 * rng.standard_normal(len(log))),
    "column set after the decision": lambda log, _: replace_column(log, explored(log)),
    "leaked loss": lambda log, _: replace_column(log, 10 - 3 * log.losses),
    "end filled with a default": lambda log, rng: fill(log, rng, 1.0),
    "end partly filled with a default": lambda log, rng: fill(log, rng, 0.5),
    "wrong densities": lambda log, _: change(log, densities=log.densities / 2),
    "missing exploration": lambda log, _: log.rows(np.flatnonzero(~explored(log).astype(bool))),
    "duplicated rows": lambda log, _: manul.Log.concat([log, log.rows(slice(0, 200))]),
}


def problems(log):
    """The titles of errors and warnings."""
    return [finding.title for finding in doctor(log) if finding.severity != "note"]


def flagged(logs):
    """The clean logs with problems: the seed and the titles."""
    each = ((seed, problems(log_of(seed))) for seed in range(logs))
    return [(seed, titles) for seed, titles in each if titles]


def found(defect, logs):
    """In how many logs with a planted defect it is found; the loggers are continuous and explore."""
    hits = 0
    for seed in range(logs):
        logger = list(LOGGERS)[seed % 2]
        clean = log_of(1000 + seed, logger=logger, losses="absolute", kind="independent", learning=True)
        hits += defect in problems(PLANTED[defect](clean, np.random.default_rng(seed)))
    return hits


def main(clean=100, planted=20):
    """Print the rates."""
    bad = flagged(clean)
    print(f"clean logs with an error or a warning: {len(bad)} of {clean}")
    for seed, titles in bad:
        print(f"  seed {seed}: {', '.join(titles)}")
    print(Counter(title for _, titles in bad for title in titles) or "no titles")
    for defect in PLANTED:
        print(f"{defect:33} found in {found(defect, planted)} of {planted}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
