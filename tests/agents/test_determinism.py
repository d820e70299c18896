"""The same bytes from single calls, batches, any thread count and every instruction set."""

import hashlib
import os
import subprocess
import sys

import numpy as np
import pytest

import manul
from manul import _core, checks
from manul.agents.player_host import host_of
from manul.utils import model_files

WORLD = manul.worlds.linear(rounds=3000, width=13)

PLAY_EVERYTHING = """
import sys
sys.path.insert(0, ".")
from tests.agents.test_determinism import fingerprint
print(fingerprint())
"""


def fingerprint():
    digest = hashlib.sha256()
    unknown_range = ("Auto without a range", lambda seed: manul.Auto(losses="auto", seed=seed))
    for name, make in sorted([*checks.discover(), unknown_range], key=lambda pair: pair[0]):
        agent = make(1)
        contexts = np.random.default_rng(0).standard_normal((300, 21))
        for rows in np.split(contexts, 30):
            decisions = agent.decide_many(rows)
            least, worst = (0, 9) if agent.outcome.losses == "auto" else agent.outcome.losses
            places = agent.space.rows(decisions.actions, len(rows)) / [
                knob.core[1] or 1 for _, knob in agent.space.knobs
            ]
            losses = least + (worst - least) * np.abs(places.mean(axis=1) - 0.3)
            agent.learn_many(rows, decisions, losses)
        digest.update(name.encode())
        for key, array in sorted(model_files.contents(agent)[2].items()):
            digest.update(key.encode() + array.tobytes())
    digest.update(manul.dumps(named_agent()))
    return digest.hexdigest()


def named_agent():
    agent, rng = manul.Auto(seed=1), np.random.default_rng(0)
    for _ in range(300):
        context = {"age": rng.normal(40.0, 9.0), "city": f"level {rng.integers(40)}", "new": bool(rng.random() < 0.3)}
        decision = agent.decide(context)
        agent.learn(context, decision, abs(decision.action - 0.3))
    return agent


def fingerprint_under(instruction_set):
    environment = {**os.environ, "MANUL_SIMD": instruction_set}
    ran = subprocess.run([sys.executable, "-c", PLAY_EVERYTHING], env=environment, capture_output=True, text=True)
    return ran.stdout.strip() or ran.stderr


def available():
    names = ["baseline", "avx2", "avx512"]
    return names[: names.index(_core.instruction_set()) + 1]


@pytest.mark.whole
@pytest.mark.parametrize("instruction_set", available())
def test_every_instruction_set_gives_the_same_bytes(instruction_set):
    assert fingerprint_under(instruction_set) == fingerprint()


@pytest.mark.whole
def test_unknown_instruction_set_is_one_sentence():
    assert "MANUL_SIMD must be baseline, avx2 or avx512 and supported here, got sse9" in fingerprint_under("sse9")


def make_agents():
    return [manul.Cats(leaves=leaves, bandwidth=1 / 16, seed=3) for leaves in (8, 64, 512)]


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_thread_count_changes_nothing(threads):
    alone = [manul.simulate(agent, WORLD).log.actions for agent in make_agents()]
    together = [run.log.actions for run in manul.worlds.simulate_many(make_agents(), WORLD, threads=threads)]
    assert all(np.array_equal(*pair) for pair in zip(alone, together, strict=True))


def test_simulation_equals_single_calls():
    simulated, single = (manul.Cats(leaves=64, bandwidth=1 / 16, seed=3) for _ in range(2))
    run = manul.simulate(simulated, WORLD)
    for context, target, action in zip(WORLD.contexts, WORLD.targets, run.log.actions, strict=True):
        decision = single.decide(context)
        assert decision.action == action
        single.learn(context, decision, abs(decision.action - target))
    assert all(
        np.array_equal(host_of(simulated).state()[name], array) for name, array in host_of(single).state().items()
    )


def test_numpy_draws_the_same_decision_again():
    from manul.paper.algorithms import uniforms

    assert [_core.draw(seed, t) for seed in (0, 2**63) for t in (0, 10**6)] == [
        uniforms(seed, t) for seed in (0, 2**63) for t in (0, 10**6)
    ]
