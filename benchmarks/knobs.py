"""Several knobs: `python -m benchmarks.knobs [section …]`; default: all sections.

`loss`: loss minus optimum over the last fifth of the rounds, of Auto with D knobs and of D one-dimensional Autos, which
all see the same loss. `lightgbm` and `gp`: the same for a LightGBM critic (5,000 rounds) and a Gaussian process (500 rounds)
with random candidates, beside Auto. `cost`: processor time per round after round 2,000, with 20 columns. Every line is a value with
its limit, and is written to results/knobs.json. Losses are means over seeds with standard errors; a seed generates the
world and seeds the agent.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import manul
from benchmarks import gp_ucb, lightgbm_critic
from benchmarks.limits import Check, standard_error
from manul.actions.kinds.choice import Choice
from manul.actions.kinds.stepped import Stepped
from manul.actions.space import ActionSpace
from manul.agents.player_host import host_of
from manul.worlds import several
from manul.worlds.several import Several

ROUNDS, LIGHTGBM_ROUNDS, FEW_ROUNDS, TEMPLATE_ROUNDS, COST_ROUNDS = 20_000, 5000, 500, 15_000, 20_000
CANDIDATES, BLOCK = 256, 64  # random actions among which the critics choose, and contexts predicted at once
FIRST_COST_ROUND, COST_BLOCK = 2000, 100
NO_LIMIT = float("inf")

Array = NDArray[np.float64]
Columns = dict[str, NDArray[Any]]
Player = Callable[[Several, int], Columns]
"""Plays a world with a seed; returns the actions as columns by knob."""


@dataclass(frozen=True)
class Problem:
    """A world, and the largest loss minus optimum that Auto may have."""

    draw: Callable[[int, int], Several]
    limit: float = NO_LIMIT
    rounds: int = ROUNDS


def _world(make: Callable[..., Several], **settings: Any) -> Callable[[int, int], Several]:
    return lambda rounds, seed: make(rounds=rounds, seed=seed, **settings)


PROBLEMS: dict[str, Problem] = {
    "sep2": Problem(_world(several.separable, knobs=2), 0.026),
    "sep4": Problem(_world(several.separable, knobs=4), 0.046),
    "sep8": Problem(_world(several.separable, knobs=8)),
    "bowl4": Problem(_world(several.bowl, knobs=4), 0.016),
    "bowl8": Problem(_world(several.bowl, knobs=8)),
    "price2": Problem(_world(several.price_and_discount), 0.0135),
    "price4": Problem(_world(several.price_and_discount, products=2)),
    "ridge4": Problem(_world(several.ridge, knobs=4)),
    "valleys4": Problem(_world(several.valleys, knobs=4), 0.093),
    "cliff4": Problem(_world(several.cliff, knobs=4), 0.130),
    "templates": Problem(_world(several.templates), 0.036, TEMPLATE_ROUNDS),
    "whole2": Problem(_world(several.separable, knobs=2, steps=20)),
}


def play_auto(world: Several, seed: int) -> Columns:
    """Auto with all knobs."""
    agent: Any = manul.Auto(actions=world.actions, seed=seed)
    return manul.simulate(agent, world).log.actions


def play_separately(world: Several, seed: int) -> Columns:
    """One one-dimensional Auto per knob; steps and options are equal parts of its range.

    >>> sorted(play_separately(several.templates(rounds=30), 0))
    ['price', 'template']
    """
    knobs = ActionSpace(world.actions)
    agents = [manul.Auto(seed=seed + 1000 * number) for number in range(len(knobs.knobs))]
    actions = []
    for number, context in enumerate(world.contexts):
        decisions = [agent.decide(context) for agent in agents]
        action = _action(knobs, [decision.action for decision in decisions])
        loss = world.loss(number, action)
        for agent, decision in zip(agents, decisions, strict=True):
            agent.learn(context, decision, loss)
        actions.append(action)
    return _columns(actions)


def play_lightgbm(world: Several, seed: int) -> Columns:
    """LightGBM predicts the loss; the best of random candidates is played, with exploration that fades.

    The critic is that of `benchmarks.lightgbm_critic`, with one column per knob and per option.
    """
    knobs, rng, rounds = ActionSpace(world.actions), np.random.default_rng(seed), len(world)
    actions = _random_actions(knobs, rng, rounds)
    exploring = rng.random(rounds) < lightgbm_critic.fading(np.arange(rounds, dtype=np.float64))
    losses = np.empty(rounds)
    for first, last in pairwise(lightgbm_critic.fit_rounds(rounds)):
        if first > 0:
            known = np.column_stack([world.contexts[:first], _features(knobs, actions[:first])])
            predict = lightgbm_critic.fit(known, losses[:first], seed)
            for start in range(first, last, BLOCK):
                numbers = np.arange(start, min(start + BLOCK, last))
                candidates = _random_actions(knobs, rng, CANDIDATES * len(numbers))
                contexts = np.repeat(world.contexts[numbers], CANDIDATES, axis=0)
                predicted = predict(np.column_stack([contexts, _features(knobs, candidates)]))
                best = predicted.reshape(-1, CANDIDATES).argmin(axis=1) + CANDIDATES * np.arange(len(numbers))
                actions[numbers] = np.where(exploring[numbers, None], actions[numbers], candidates[best])
        for number in range(first, last):
            losses[number] = world.loss(number, _action(knobs, actions[number]))
    return _columns([_action(knobs, shares) for shares in actions])


def play_gp(world: Several, seed: int) -> Columns:
    """A Gaussian process of `benchmarks.gp_ucb`; the random candidate with the lowest confidence bound is played."""
    knobs = ActionSpace(world.actions)
    actions = gp_ucb.play(
        world.contexts.astype(np.float64),
        lambda shares, number: world.loss(number, _action(knobs, shares)),
        candidates=lambda rng, _: _random_actions(knobs, rng, CANDIDATES),
        features=lambda shares: _features(knobs, shares),
        seed=seed,
    )
    return _columns([_action(knobs, shares) for shares in actions])


def _random_actions(knobs: ActionSpace, rng: np.random.Generator, count: int) -> Array:
    """Shares of the range of each knob; a step or an option has an equal part of the range."""
    return rng.random((count, len(knobs.knobs)))


def _action(knobs: ActionSpace, shares: Sequence[float] | Array) -> dict[str, Any]:
    """The action at shares of the ranges.

    >>> knobs = ActionSpace({"price": (10, 50), "template": Choice(["a", "b"])})
    >>> _action(knobs, [0.5, 0.75])
    {'price': 30.0, 'template': 'b'}
    """
    positions = [
        min(int(share * len(knob.options)), len(knob.options) - 1) if isinstance(knob, Choice) else float(share)
        for (_, knob), share in zip(knobs.knobs, shares, strict=True)
    ]
    return knobs.action(positions)


def _features(knobs: ActionSpace, shares: Array) -> Array:
    """The columns of a critic: the value of a knob, or whether it is an option."""
    columns = []
    for number, (_, knob) in enumerate(knobs.knobs):
        share = shares[:, number]
        if isinstance(knob, Choice):
            part = np.minimum((share * len(knob.options)).astype(np.int64), len(knob.options) - 1)
            columns.extend((part == option).astype(np.float64) for option in range(len(knob.options)))
        elif isinstance(knob, Stepped):
            columns.append((np.minimum(np.floor(share * knob.count), knob.count - 1) + 0.5) / knob.count)
        else:
            columns.append(share)
    return np.column_stack(columns)


def _columns(actions: Sequence[dict[str, Any]]) -> Columns:
    return {name: np.array([action[name] for action in actions]) for name in actions[0]}


def last_fifth(problem: Problem, player: Player, seeds: Sequence[int], rounds: int) -> list[float]:
    """Loss minus optimum over the last fifth of the rounds, per seed; noise cancels.

    >>> len(last_fifth(PROBLEMS["sep2"], play_auto, [0, 1], rounds=50))
    2
    """
    results = []
    for seed in seeds:
        world = problem.draw(rounds, seed)
        regrets = world.regrets(player(world, seed))
        results.append(float(regrets[-(rounds // 5) :].mean()))
    return results


def loss(seeds: Sequence[int], names: Sequence[str]) -> Iterator[Check]:
    """Auto with all knobs against fixed limits and against one Auto per knob."""
    below = []
    for name in names:
        problem = PROBLEMS[name]
        ours = last_fifth(problem, play_auto, seeds, problem.rounds)
        separate = last_fifth(problem, play_separately, seeds, problem.rounds)
        below.append(np.mean(ours) < np.mean(separate))
        yield _check(name, ours, problem.limit, f"one Auto per knob {_describe(separate)}")
    yield Check("share of sets on which one Auto per knob is at least as good", float(1 - np.mean(below)), 0.2)


def lightgbm(seeds: Sequence[int], names: Sequence[str]) -> Iterator[Check]:
    """Auto may lose as much as a LightGBM critic, over the same rounds."""
    for name in names:
        theirs = last_fifth(PROBLEMS[name], play_lightgbm, seeds, LIGHTGBM_ROUNDS)
        ours = last_fifth(PROBLEMS[name], play_auto, seeds, LIGHTGBM_ROUNDS)
        what = f"{name}, {LIGHTGBM_ROUNDS} rounds, LightGBM is the limit"
        yield _check(what, ours, float(np.mean(theirs)), _describe(theirs))


def gp(seeds: Sequence[int], names: Sequence[str]) -> Iterator[Check]:
    """Auto may lose as much as a Gaussian process, over the same few rounds."""
    for name in names:
        theirs = last_fifth(PROBLEMS[name], play_gp, seeds, FEW_ROUNDS)
        ours = last_fifth(PROBLEMS[name], play_auto, seeds, FEW_ROUNDS)
        yield _check(f"{name}, {FEW_ROUNDS} rounds, GP is the limit", ours, float(np.mean(theirs)), _describe(theirs))


def cost(_seeds: Sequence[int], _names: Sequence[str]) -> Iterator[Check]:
    """Microseconds per round, in the core and with Python around it."""
    limits = {1: NO_LIMIT, 2: 45.0, 4: 70.0, 8: 130.0}
    for knobs, limit in limits.items():
        world = several.separable(rounds=COST_ROUNDS, knobs=knobs)
        core, whole = _core_cost(world), _whole_cost(world)
        yield Check(f"D={knobs}, µs per round in the core", core, limit, f"with Python {whole:.1f}")


def _core_cost(world: Several) -> float:
    agent: Any = manul.Auto(actions=world.actions)
    player, names = host_of(agent).start(agent, world.contexts.shape[1]), list(world.actions)
    lows, highs = agent.space.ranges(None)

    def play(number: int) -> float:
        context = world.contexts[number]
        started = time.process_time_ns()
        positions, densities, _ = player.decide(context, lows, highs, number, None)
        spent = time.process_time_ns() - started
        loss = world.loss(number, dict(zip(names, positions, strict=True)))
        drawn = np.array(positions)
        density = float(np.prod(densities))
        started = time.process_time_ns()
        player.learn(context, drawn, density, loss)
        return spent + time.process_time_ns() - started

    return _microseconds(play)


def _whole_cost(world: Several) -> float:
    agent: Any = manul.Auto(actions=world.actions)

    def play(number: int) -> float:
        context = world.contexts[number]
        started = time.process_time_ns()
        decision = agent.decide(context)
        spent = time.process_time_ns() - started
        loss = world.loss(number, decision.action)
        started = time.process_time_ns()
        agent.learn(context, decision, loss)
        return spent + time.process_time_ns() - started

    return _microseconds(play)


def _microseconds(play: Callable[[int], float]) -> float:
    """The mean time of a round; of each block of rounds the fastest half, which other processes disturb least."""
    spent = np.array([play(number) for number in range(COST_ROUNDS)])[FIRST_COST_ROUND:] / 1000
    return float(np.sort(spent.reshape(-1, COST_BLOCK), axis=1)[:, : COST_BLOCK // 2].mean())


def _check(name: str, values: Sequence[float], limit: float, note: str) -> Check:
    error = f" ± {standard_error(values):.2g}, " if len(values) > 1 else " "
    return Check(name, float(np.mean(values)), limit, error.strip() + " " + note)


def _describe(values: Sequence[float]) -> str:
    error = f" ± {standard_error(values):.2g}" if len(values) > 1 else ""
    return f"{np.mean(values):.4g}{error}"


SECTIONS = {"loss": loss, "lightgbm": lightgbm, "gp": gp, "cost": cost}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", choices=[*SECTIONS, []], default=list(SECTIONS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--set", dest="names", action="append", choices=list(PROBLEMS))
    parser.add_argument("--out", type=Path, default=Path("results/knobs.json"))
    arguments = parser.parse_args()
    checks = []
    for section in arguments.sections or SECTIONS:
        for check in SECTIONS[section](range(arguments.seeds), arguments.names or list(PROBLEMS)):
            print(check.line, flush=True)
            checks.append(check)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps([asdict(check) for check in checks], indent=1))
    return 0 if all(check.ok for check in checks) else 1


if __name__ == "__main__":
    sys.exit(main())
