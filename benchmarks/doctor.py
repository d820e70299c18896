"""How often the doctor finds defects that are planted in logs, and how often it objects to clean logs.

Run: python -m benchmarks.doctor [--clean LOGS] [--planted LOGS] [--defects NAME,NAME] [--processes NUMBER]

Clean logs are those of agents in ordinary worlds and in `HOSTILE` ones, where a test could mistake something natural for a
defect. A defect is found if the doctor names it; notes count for defects that a clean world can look like.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from typing import Any, NamedTuple

import numpy as np

import manul
from benchmarks.hostile_logs import HOSTILE
from manul.offpolicy import doctor

ROWS = 4000
SHORT = 1000  # rows: a shorter log is rightly called a small sample
LOGGERS = {
    "Cats": lambda seed: manul.Cats(leaves=16, bandwidth=1 / 8, epsilon=0.05, seed=seed),
    "Cats, epsilon .2": lambda seed: manul.Cats(leaves=32, bandwidth=1 / 16, epsilon=0.2, seed=seed),
    "Auto, fading": lambda seed: manul.Auto(epsilon=manul.schedules.Fading(), seed=seed),
    "Auto, epsilon .05": lambda seed: manul.Auto(epsilon=0.05, seed=seed),
    "discrete": lambda seed: manul.agents.DiscreteTree(leaves=8, epsilon=0.1, seed=seed),
    "uniform": lambda seed: manul.Cats(leaves=16, bandwidth=1 / 8, epsilon=1.0, seed=seed),
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
    """Absolute, positive, binary, or heavy-tailed losses."""
    distance = np.abs(actions - 1 / (1 + np.exp(-contexts[:, 0] - 0.5 * contexts[:, 1])))
    if kind == "binary":
        return (rng.random(len(actions)) < distance).astype(np.float64)
    if kind == "heavy":
        return np.minimum(distance * rng.pareto(1.5, len(actions)), 1.0)
    if kind == "positive":
        return np.minimum(
            0.1 + 0.8 * distance * rng.uniform(0.7, 1.3, len(actions)) + 0.1 * rng.random(len(actions)), 1
        )
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


def clean_log(seed):
    """A clean log and what it is: every second one is of a hostile world."""
    if seed % 2:
        name = list(HOSTILE)[seed // 2 % len(HOSTILE)]
        return name, HOSTILE[name](seed)
    return "ordinary", log_of(seed // 2)


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


def lose(log, rng):
    """The log with 0 in place of half of the losses in the upper fifth."""
    lost = (log.losses > np.quantile(log.losses, 0.8)) & (rng.random(len(log)) < 0.5)
    return change(log, losses=np.where(lost, 0.0, log.losses))


CONTINUOUS = ("Cats", "Cats, epsilon .2", "Auto, fading", "Auto, epsilon .05", "uniform")
LEARNED = CONTINUOUS[:-1]
WINDOWS = CONTINUOUS[:2]


class Defect(NamedTuple):
    """How a defect is planted, by what titles it is found, and in logs of which agents."""

    plant: Any
    titles: tuple[str, ...]
    loggers: tuple[str, ...] = WINDOWS
    losses: str = "absolute"
    rows: int = ROWS


def _named(title, plant, **settings):
    return {title: Defect(plant, (title,), **settings)}


DENSITIES = ("wrong densities", "actions too predictable")
PLANTED = {
    **_named("repeated ids", lambda log, _: change(log, ids=[*log.ids[:-100], *log.ids[:100]])),
    **_named(
        "time out of order", lambda log, _: change(log, times=np.concatenate([log.times[2000:], log.times[:2000]]))
    ),
    **_named("one action", lambda log, _: one_action(log)),
    **_named(
        "leaked action", lambda log, rng: replace_column(log, 30 * log.actions + 0.01 * rng.standard_normal(len(log)))
    ),
    **_named("column set after the decision", lambda log, _: replace_column(log, explored(log))),
    **_named("leaked loss", lambda log, _: replace_column(log, 10 - 3 * log.losses)),
    **_named("end filled with a default", lambda log, rng: fill(log, rng, 1.0)),
    **_named("end partly filled with a default", lambda log, rng: fill(log, rng, 0.5)),
    **_named("wrong densities", lambda log, _: change(log, densities=log.densities / 2)),
    **_named("missing exploration", lambda log, _: log.rows(np.flatnonzero(~explored(log).astype(bool)))),
    **_named("duplicated rows", lambda log, _: manul.Log.concat([log, log.rows(slice(0, 200))])),
    "losses of the row before": Defect(
        lambda log, _: change(log, losses=np.roll(log.losses, 1)), ("shifted losses",), CONTINUOUS
    ),
    "losses of the row after": Defect(
        lambda log, _: change(log, losses=np.roll(log.losses, -1)), ("shifted losses",), CONTINUOUS
    ),
    "shuffled losses": Defect(
        lambda log, rng: change(log, losses=rng.permutation(log.losses)), ("unexplained losses",), CONTINUOUS
    ),
    "shuffled contexts": Defect(
        lambda log, rng: change(log, contexts=rng.permutation(log.contexts)),
        ("contexts do not explain the actions",),
        LEARNED,
    ),
    "rounded actions": Defect(
        lambda log, _: change(log, actions=log.actions.round(1)),
        ("rounded actions", "few different actions"),
        CONTINUOUS,
    ),
    "zeros for large losses": Defect(lose, ("losses filled with a default",), CONTINUOUS, "positive"),
    "losses cut at a ceiling": Defect(
        lambda log, _: change(log, losses=np.minimum(log.losses, np.quantile(log.losses, 0.8))),
        ("losses end at a ceiling",),
        CONTINUOUS,
    ),
    "rewards as losses": Defect(
        lambda log, _: change(log, losses=1 - log.losses), ("explored actions cost less",), LEARNED
    ),
    "densities 10 % too large": Defect(
        lambda log, _: change(log, densities=1.1 * log.densities),
        ("missing exploration", "actions with no support"),
        ("Cats, epsilon .2", "uniform"),
        rows=20_000,
    ),
    "mean density in 30 % of rows": Defect(
        lambda log, rng: change(
            log, densities=np.where(rng.random(len(log)) < 0.3, log.densities.mean(), log.densities)
        ),
        ("densities filled with a default", "missing exploration", "actions with no support"),
        LEARNED,
    ),
    "halved densities": Defect(lambda log, _: change(log, densities=log.densities / 2), DENSITIES, CONTINUOUS),
    "action in the context": Defect(
        lambda log, _: replace_column(log, log.actions), ("leaked action", "actions too predictable"), CONTINUOUS
    ),
}


def problems(log):
    """The titles of errors and warnings."""
    return [finding.title for finding in doctor(log) if finding.severity != "note"]


def flagged(seed):
    """What a clean log is, and the titles of its problems."""
    name, log = clean_log(seed)
    return seed, name, [title for title in problems(log) if len(log) >= SHORT or title != "small effective sample"]


def is_found(defect, seed):
    """Which agent's log a defect is planted in, and whether it is found."""
    planted = PLANTED[defect]
    logger = planted.loggers[seed % len(planted.loggers)]
    settings = {"losses": planted.losses, "kind": "independent", "learning": True}
    clean = log_of(1000 + seed, planted.rows, logger=logger, **settings)
    findings = doctor(planted.plant(clean, np.random.default_rng(seed)))
    return logger, bool({finding.title for finding in findings} & {*planted.titles})


def main():
    """Print the rates."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--clean", type=int, default=200, help="clean logs")
    parser.add_argument("--first", type=int, default=0, help="the first clean log, to run them in pieces")
    parser.add_argument("--planted", type=int, default=20, help="logs for each defect")
    parser.add_argument("--defects", help="names, separated by commas; default: all")
    parser.add_argument("--processes", type=int, default=int(os.environ.get("PROCESSES", "1")))
    options = parser.parse_args()
    defects = [*PLANTED] if options.defects is None else [name for name in options.defects.split(",") if name]
    with ProcessPoolExecutor(options.processes) as pool:
        each = pool.map(flagged, range(options.first, options.first + options.clean))
        bad = [(seed, name, titles) for seed, name, titles in each if titles]
        print(f"clean logs with an error or a warning: {len(bad)} of {options.clean}")
        for seed, name, titles in bad:
            print(f"  seed {seed}, {name}: {', '.join(titles)}")
        for defect in defects:
            results = [*pool.map(is_found, [defect] * options.planted, range(options.planted))]
            missed = Counter(logger for logger, hit in results if not hit)
            where = f"; missed: {', '.join(f'{logger} {count}' for logger, count in missed.items())}" if missed else ""
            print(f"{defect:33} found in {sum(hit for _, hit in results)} of {options.planted}{where}", flush=True)


if __name__ == "__main__":
    main()
