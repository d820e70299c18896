"""Files and texts that somebody forged for the C library are refused in one sentence, and never crash it."""

import json
import random
import struct

import pytest

import manul
from manul.utils import model_files
from tests import edge_agents
from tests.c_library import CAgent, Failed

pytestmark = pytest.mark.whole

NAMES = ("cats-named", "auto-named", "auto-knobs-limits", "cats-rows")
BAD_JSON = [
    b"",
    b"{",
    b"[1,]",
    b"[01]",
    b"[1.]",
    b"[.5]",
    b"[1e]",
    b"[-]",
    b"[+1]",
    b"[1] 2",
    b"nul",
    b"NaN",
    b"[Infinity]",
    b'{"a" 1}',
    b'{"a": 1, "a": 2}',
    b"{1: 2}",
    b'{"a": "\x01"}',
    b'{"a": "\\x"}',
    b'{"a": "\\u12g4"}',
    b'{"a": "\\ud800"}',
    b'{"a": "\\udc00"}',
    b'{"a": "\\ud800\\u0041"}',
    b'{"a": "\xff"}',
    b'{"a": "\xc0\x80"}',
    b'{"a": "\xed\xa0\x80"}',
    b'{"a": "\xf4\x90\x80\x80"}',
    b'{"a": "\xe2\x82',
    b"[" * 100_000,
    b'{"a":' * 100_000,
    b'"text"',
    b"7",
    b"true",
    b'["a"]',
    b"[[1]]",
    b"[1e999]",
]


@pytest.fixture(scope="module")
def agents():
    made = {}
    for name in NAMES:
        made[name] = edge_agents.AGENTS[name]()
        edge_agents.play(name, 30, made[name])
    return made


@pytest.mark.parametrize("text", BAD_JSON, ids=range(len(BAD_JSON)))
def test_what_is_no_context_is_refused_and_changes_nothing(agents, text):
    agent = CAgent(manul.dumps(agents["cats-named"]))
    before = agent.save()
    with pytest.raises(Failed) as failed:
        agent.decide(text)
    assert str(failed.value).endswith(".")
    assert agent.save() == before


@pytest.mark.parametrize(
    "number",
    ["0", "-0", "1", "0.1", "123456789012345678", "1e22", "1e23", "5e-324", "2.2250738585072011e-308", "1e-400", "9007199254740993",
     "0.1e-5", "1E+2", "179769313486231570000e288", "0.30000000000000004", "8.41e21", "3.0e-1", "100000000000000000000000"],
)  # fmt: skip
def test_numbers_are_read_as_in_python(number):
    agent = CAgent(manul.dumps(manul.Auto()))
    assert struct.pack("<d", agent.read_decision(number.encode(), 1.0).values[0].value) == struct.pack(
        "<d", float(number)
    )


def forged(data, change):
    """A file with other settings or arrays, whose checksum is right."""
    kind, parameters, arrays = model_files.decode(data)
    parameters, arrays = change(json.loads(json.dumps(parameters)), dict(arrays))
    return model_files.encode(kind, parameters, arrays)


def failure(call, *arguments):
    """The sentence with which a call fails, or nothing."""
    try:
        call(*arguments)
    except Failed as failed:
        sentence = str(failed)
        assert sentence.endswith(".")
        return sentence
    return ""


def use(data):
    """Opens a file, and uses it if that works."""
    agent = CAgent(data)
    for context in ({"cost": 9}, {"city": "Oslo", "age": 1}, [1.0, 0.0, 3.0], None):
        failure(decide_and_learn, agent, context)
    agent.save()


def decide_and_learn(agent, context):
    agent.learn(context, agent.decide(context), 0.5)
    agent.best(context)


def tried(data):
    """The sentence with which a file is refused, or nothing."""
    return failure(use, data)


@pytest.mark.parametrize("name", NAMES)
def test_damaged_bytes_are_refused(agents, name):
    data = manul.dumps(agents[name])
    noise = random.Random(name)
    header = 8 + int.from_bytes(data[:8], "little")
    for _ in range(60):
        damaged = bytearray(data)
        for _ in range(noise.choice([1, 1, 3])):
            damaged[noise.randrange(noise.choice([8, header, len(data)]))] ^= 1 << noise.randrange(8)
        assert bytes(damaged) == data or tried(bytes(damaged))
    for size in (0, 3, 8, 9, header - 1, header, len(data) - 1):
        assert tried(data[:size])
    assert tried(data + b"\0")


VALUES = [None, True, -1, 0, 1e308, 2**70, "x", [], {}, [0, 1], [1, 0], [[1]], 1e-320, {"low": 0, "high": 1, "step": 1e-9}, ["a <= b", "("],
          {"options": ["a"]}, [["a", [0, 1]]], [["a", [0, 1]], ["a", [0, 1]]], {"columns": {}, "features": {}, "fields": {}}]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_forged_settings_never_crash(agents, name):
    data = manul.dumps(agents[name])
    settings = model_files.decode(data)[1]
    for setting in settings:
        for value in VALUES:
            tried(forged(data, lambda parameters, arrays: ({**parameters, setting: value}, arrays)))  # noqa: B023
        tried(forged(data, lambda parameters, arrays: ({k: v for k, v in parameters.items() if k != setting}, arrays)))  # noqa: B023


@pytest.mark.parametrize("name", NAMES)
def test_forged_arrays_never_crash(agents, name):
    data = manul.dumps(agents[name])
    noise = random.Random(name)
    for array in model_files.decode(data)[2]:

        def change(parameters, arrays, array=array):
            kind = noise.randrange(5)
            values = arrays[array].copy()
            if kind == 0:
                del arrays[array]
            elif kind == 1:
                arrays[array] = values[: len(values) // 2]
            elif kind == 2:
                arrays[array] = values.astype("<f4" if values.dtype != "<f4" else "<f8")
            elif kind == 3:
                values[: 1 + len(values) // 2] = noise.choice([0, 1, 2**31 - 1])
                arrays[array] = values
            else:
                values.view("u1")[noise.randrange(max(1, values.nbytes)) :][:8] = noise.randrange(256)
                arrays[array] = values
            return parameters, arrays

        tried(forged(data, change))


LIMITS = [
    "(" * 60,
    "price <= 1" + "+1" * 300,
    "price <= exp(exp(exp(price)))",
    "discount",
    "price <= `",
    "days <= 1 if",
    "price <= .5e",
    "1",
]


@pytest.mark.parametrize("limit", LIMITS)
def test_forged_limits_are_refused(agents, limit):
    data = manul.dumps(agents["auto-knobs-limits"])
    assert tried(forged(data, lambda parameters, arrays: ({**parameters, "limits": [limit]}, arrays)))
