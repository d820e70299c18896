"""Files that were changed at random are refused in one sentence, or are played like any other: nothing else may happen.

`make sanitize` runs this under AddressSanitizer and UBSan, `make soak` with 2,000 changes.
"""

import os
import random
from contextlib import suppress

import numpy as np
import pytest

from manul.errors import ManulError
from manul.utils import model_files
from tests.saved_agents import KINDS, NAMED, ROWS, saved

MUTATIONS = 2000 if os.environ.get("MANUL_SOAK") else 75
NAMES = list(KINDS)
VALUES = [
    None,
    True,
    -1,
    0,
    1,
    2,
    3,
    63,
    64,
    65,
    1024,
    2**20,
    2**31,
    2**32,
    2**63,
    2**64,
    10**30,
    0.5,
    -0.5,
    1e-320,
    1e-30,
    1e30,
    1e300,
]
VALUES += [
    float("nan"),
    float("inf"),
    -float("inf"),
    "",
    "Auto",
    "text",
    "\ud800",
    [],
    [0, 1],
    [1.0, 0.0],
    {},
    {"name": "Tree", "leaves": 4},
]
NUMBERS = [
    0,
    1,
    -1,
    0.5,
    1e-45,
    1e-30,
    -1e-30,
    3e38,
    -3e38,
    1e300,
    -1e300,
    2.0**52,
    2.0**53,
    2.0**63,
    2.0**64,
    np.nan,
    np.inf,
    -np.inf,
]
TYPES = ["f2", "f4", "f8", "i1", "i4", "i8", "u1", "u4", "u8", "?"]


@pytest.mark.parametrize("seed", range(MUTATIONS))
def test_a_changed_file_is_refused_or_played(seed):
    rng, name = random.Random(seed), NAMES[seed % len(NAMES)]
    data = changed_bytes(rng, saved(name)) if rng.random() < 0.1 else changed_contents(rng, saved(name))
    with suppress(ManulError), np.errstate(all="ignore"):
        agent = model_files.loads(data)
        for context in contexts_for(name):
            play(agent, context)
        model_files.loads(model_files.dumps(agent))


def play(agent, context):
    """A round in which everything is asked of an agent or policy."""
    with suppress(ManulError):
        agent.distribution(context).density(0.5)
    if not hasattr(agent, "learn"):
        return
    with suppress(ManulError):
        decision = agent.decide(context)
        low, high = agent.actions
        assert low <= decision.action <= high
        assert decision.density > 0
        agent.learn(context, decision, agent.outcome.losses[0])
        agent.distributions([context]).density([decision.action])
        agent.distributions([context]).moments()


def contexts_for(name):
    if name == "mapped-columns":
        return [{field: row[field] for field in ("city", "size")} for row in NAMED[:5]]
    return NAMED[:25] if name.endswith("named") else ROWS[:25]


def changed_bytes(rng, data):
    if rng.random() < 0.3:
        return data[: rng.randrange(len(data))]
    changed = bytearray(data)
    for _ in range(rng.randint(1, 4)):  # half of them in the header
        changed[rng.randrange(len(data) if rng.random() < 0.5 else min(len(data), 2000))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def changed_contents(rng, data):
    """Other contents under a right checksum."""
    kind, parameters, arrays = model_files.decode(data)
    arrays = {name: arrays[name].copy() for name in sorted(arrays)}  # their order in memory is not the same each time
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        if arrays and rng.random() < 0.6:
            change_array(rng, arrays)
        else:
            change_setting(rng, parameters)
    if rng.random() < 0.05:
        kind = rng.choice(model_files.KINDS.names())
    return model_files.encode(kind, parameters, arrays)


def change_setting(rng, settings):
    """Changes one value somewhere inside, a key as well now and then."""
    keys = list(settings) if isinstance(settings, dict) else list(range(len(settings)))
    if not keys:
        return
    key = rng.choice(keys)
    if isinstance(settings[key], dict | list) and rng.random() < 0.7:
        change_setting(rng, settings[key])
    elif isinstance(settings, dict) and rng.random() < 0.2:
        settings[str(rng.choice(VALUES))] = settings.pop(key)
    elif isinstance(settings[key], int | float) and rng.random() < 0.4:
        settings[key] = settings[key] * rng.choice([2, -1, 0.5, 1.5]) + rng.choice([-1, 0, 1])
    else:
        settings[key] = rng.choice(VALUES)


def change_array(rng, arrays):
    name, other = rng.choice(list(arrays)), rng.choice(list(arrays))
    array, how = arrays[name], rng.randrange(8)
    if how == 0:
        arrays[name] = array.reshape(rng.choice([(1, -1), (-1, 1), (1, 1, -1)]))
    elif how == 1:
        arrays[name] = np.resize(array, rng.choice([0, 1, len(array) + 1, max(len(array) - 1, 0), 2 * len(array)]))
    elif how == 2:
        with np.errstate(all="ignore"):
            arrays[name] = array.astype(rng.choice(TYPES))
    elif how == 3:
        arrays[name], arrays[other] = arrays[other], array
    elif how == 4:
        arrays[rng.choice([name + "x", "0." + name, "decisions", other])] = arrays.pop(name)
    elif array.size:
        change_values(rng, array, whole=how == 5)


def change_values(rng, array, *, whole):
    flat = array.reshape(-1)
    if rng.random() < 0.5:  # bits
        raw = flat.view(np.uint8)
        for _ in range(raw.size if whole and raw.size < 4096 else 3):
            raw[rng.randrange(raw.size)] ^= 1 << rng.randrange(8)
        return
    with np.errstate(all="ignore"):
        value = np.array(rng.choice(NUMBERS)).astype(array.dtype)
    flat[slice(None) if whole else rng.randrange(flat.size)] = value
