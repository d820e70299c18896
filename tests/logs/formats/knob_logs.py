"""Logs with several knobs for the tests, generated from a seed."""

import numpy as np

from manul import Choice, Log, Stepped

NAMES = ["price", "density", "a.b", "two words", "größe", "action", "x,y", 'quo"te', "loss", "within"]
CHOICES = [
    ["a", "b", ""],
    [1, 2, 3],
    [0.5, -1.0],
    [True, False],
    ["1", 1, 2.5],
    ["true", True, "True", 7],
    ["é, 'x'", "null"],
]


def random_knobs(rng):
    """From one to six knobs of all kinds, with awkward names."""
    names = rng.permutation(NAMES)[: rng.integers(1, 7)].tolist()
    kinds = [(-1.5, 1e6), (0.0, 1e-3), Stepped(1, 14, 1), Stepped(-0.3, 0.3, 0.1), *(Choice(each) for each in CHOICES)]
    return {name: kinds[rng.integers(len(kinds))] for name in names}


def values(knob, rng, rows):
    """Random values of a knob."""
    if isinstance(knob, Choice):
        return [knob.options[place] for place in rng.integers(len(knob.options), size=rows)]
    if isinstance(knob, Stepped):
        return [knob.low + place * knob.step for place in rng.integers(knob.count, size=rows)]
    return rng.uniform(*knob, rows).tolist()


def narrower(knob, value):
    """Options, or a range, with a value."""
    if isinstance(knob, Choice):
        return [value]
    low, high = (knob.low, knob.high) if isinstance(knob, Stepped) else knob
    return (low, value) if value - low > (high - low) / 100 else (low, high)


def knob_log(seed=0, rows=9):
    """A log with random knobs, and each optional column in half of the cases."""
    rng = np.random.default_rng(seed)
    knobs = random_knobs(rng)
    actions = {name: values(knob, rng, rows) for name, knob in knobs.items()}
    by_knob = {name: rng.uniform(0.1, 1, rows) for name in knobs}
    densities = np.prod([*by_knob.values()], axis=0)
    within = [
        {name: narrower(knobs[name], actions[name][row]) for name in knobs if rng.random() < 0.5} or None
        for row in range(rows)
    ]
    optional = {
        "densities_by_knob": by_knob,
        "within": within,
        "floors": densities / 2,
        "times": np.arange(rows) + 0.5,
        "ids": [f"n{row}" if row else None for row in range(rows)],
    }
    given = {name: column for name, column in optional.items() if rng.random() < 0.5}
    contexts = rng.normal(size=(rows, rng.integers(0, 3))).astype(np.float32)
    rewards = bool(rng.random() < 0.3)
    return Log(contexts, actions, densities, rng.random(rows), knobs=knobs, rewards=rewards, **given)


def contents(log):
    """Everything that a log says, with the types of options."""
    actions = {name: [(type(value), value) for value in column.tolist()] for name, column in log.actions.items()}
    by_knob = log.densities_by_knob
    densities = None if by_knob is None else {name: column.tolist() for name, column in by_knob.items()}
    columns = [
        None if (view := getattr(log, name)) is None else view.tolist()
        for name in ("densities", "losses", "rewards", "floors", "times")
    ]
    return [log.knobs, actions, densities, log.within, *columns, log.ids, list(log.context_rows())]
