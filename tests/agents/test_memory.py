"""How much memory a loop's agent takes: known before it is allocated, and little before it has learned."""

import subprocess
import sys

import pytest

GROWTH = """
import sys, numpy as np
from manul.agents import expected_nbytes
from manul.service import loop_settings
from manul.service.engine.loop_agent import make_agent

def resident():
    with open("/proc/self/statm") as file:
        return 4096 * int(file.read().split()[1])

def grown(settings, width, rounds):
    rng, before = np.random.default_rng(0), resident()
    agent = make_agent(settings)
    for _ in range(0, rounds, 50):
        contexts = rng.standard_normal((50, width), np.float32)
        decisions = agent.decide_many(contexts)
        agent.learn_many(contexts, decisions, rng.random(len(contexts)))
    return expected_nbytes(make_agent(settings), width), resident() - before

warm = loop_settings.NewLoop(name="a", actions=(0, 1))
make_agent(warm).decide_again(0, [1.0] * 4)
grown(warm, 4, 1000)
"""
SETTINGS = {
    "auto": "'auto'",
    "cats": "loop_settings.KINDS['cats'](leaves={leaves}, bandwidth=0.01, epsilon=1.0)",
    "adaptive": "loop_settings.KINDS['adaptive'](leaves={leaves}, epsilon=1.0)",
}


def measured(program):
    done = subprocess.run([sys.executable, "-c", GROWTH + program], capture_output=True, text=True, check=True)
    return [int(number) for number in done.stdout.split()]


@pytest.mark.whole
@pytest.mark.parametrize(
    ("kind", "leaves", "width", "rounds"),
    [("auto", 0, 100, 33_000), ("cats", 1024, 2000, 10_000), ("cats", 4096, 500, 30_000), ("adaptive", 64, 3000, 1000)],
)  # fmt: skip
def test_the_estimate_is_what_a_loop_comes_to_take(kind, leaves, width, rounds):
    agent = SETTINGS[kind].format(leaves=leaves)
    settings = f'loop_settings.NewLoop(name="a", actions=(0, 1), agent={agent})'
    estimated, taken = measured(f"print(*grown({settings}, {width}, {rounds}))")
    assert estimated > 10 * 2**20
    assert estimated / 2 <= taken <= 2 * estimated


@pytest.mark.whole
def test_the_estimate_of_the_largest_loops_takes_no_memory():
    agent = "loop_settings.KINDS['adaptive'](leaves=65536)"
    settings = f'loop_settings.NewLoop(name="a", actions=(0, 1), agent={agent})'
    taken, *estimated = measured(
        f"settings, before = {settings}, resident()\n"
        "estimates = [expected_nbytes(make_agent(settings), width) for width in (65536, 4096, 1, None)]\n"
        "print(resident() - before, *estimates)"
    )
    assert taken < 2**20
    assert estimated[0] > 2**38
    assert sorted(estimated, reverse=True) == [*estimated[:2], estimated[3], estimated[2]]


@pytest.mark.whole
@pytest.mark.parametrize("context", ["[1.0, 2.0]", "{'age': 1.0, 'city': 'Oslo'}"])
def test_loops_that_have_learned_nothing_are_small(context):
    (taken,) = measured(
        "before = resident()\n"
        "kept = [make_agent(warm) for _ in range(100)]\n"
        f"for agent in kept: agent.decide_again(0, {context})\n"
        "print((resident() - before) // len(kept))"
    )
    assert taken < 250_000
