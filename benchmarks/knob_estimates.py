"""How true off-policy estimates of several knobs are: the model alone, estimates with weights, and the gain of `optimize`.

    python -m benchmarks.knob_estimates [LOGS]      # default: 30 logs of 2,000 rounds per case

`dm`: the model's estimate for a learned policy minus its true loss, on uniform logs and on logs of an `Auto` that learns.
`dr`: how often the interval for wide windows around a constant holds the truth, on uniform logs. `optimize`: how often the
expected gain is below the true one, and how often its sign is wrong.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import manul
from benchmarks.limits import standard_error
from manul.worlds import several
from manul.worlds.several import Several

ROUNDS, EARLIER = 2000, 4000  # of a log, and of the world that the learned policy has seen
WORLDS: dict[str, Callable[[int], Several]] = {
    "sep2": lambda rounds: several.separable(rounds=rounds, knobs=2, seed=7),
    "price2": lambda rounds: several.price_and_discount(rounds=rounds, seed=7),
    "bowl4": lambda rounds: several.bowl(rounds=rounds, knobs=4, seed=7),
}
CONSTANT, TWO, MORE = 0.4, 0.25, 0.35  # a constant action and its half-widths, as shares of the ranges


def part(world: Several, first: int, count: int) -> Several:
    """Some rounds of a world, one after the other."""
    return Several(
        contexts=world.contexts[first : first + count],
        actions=world.actions,
        expected=lambda numbers, columns: world.expected(numbers + first, columns),
        best={name: column[first : first + count] for name, column in world.best.items()},
        noise=world.noise[first : first + count],
    )


def true_loss(policy: Any, world: Several) -> float:
    """The expected loss of a policy, averaged over four draws per round."""
    numbers = 10**9 + 4 * np.arange(len(world), dtype=np.uint64)
    draws = [policy.decide_many_again(numbers + np.uint64(each), world.contexts).actions for each in range(4)]
    return float(np.mean([world.expected_losses(actions).mean() for actions in draws]))


def learned(world: Several) -> Any:
    """A policy that was trained on a log with much exploration."""
    log = manul.simulate(manul.Auto(actions=world.actions, epsilon=0.2, seed=99), world).log  # type: ignore[call-overload]
    policy: Any = manul.Auto(actions=world.actions, epsilon=0.0, nearby=0.0, seed=1)  # type: ignore[arg-type]
    decisions = manul.actions.decision.Decisions(log.actions, log.densities, {})
    policy.learn_many(log.contexts, decisions, log.losses)
    return policy


def model_errors(world: Several, policy: Any, epsilon: Any, logs: int) -> tuple[list[float], list[tuple[float, float]]]:
    """The errors of dm, and for each log the true and the expected gain of `optimize`."""
    errors, gains = [], []
    for number in range(logs):
        rounds = part(world, EARLIER + number * ROUNDS, ROUNDS)
        agent: Any = manul.Auto(actions=world.actions, epsilon=epsilon, seed=number)  # type: ignore[arg-type]
        log = manul.simulate(agent, rounds).log
        errors.append(manul.evaluate(policy, log, "dm").value - true_loss(policy, rounds))
        best = manul.optimize(log)
        gains.append((float(log.losses.mean()) - true_loss(best.policy, rounds), best.verdict.gain))
    return errors, gains


def covered(world: Several, number: int) -> bool:
    """Whether the interval for wide windows around a constant holds its true loss."""
    rounds, rng = part(world, EARLIER + number * ROUNDS, ROUNDS), np.random.default_rng(number)
    spans: dict[str, Any] = world.actions
    actions = {name: rng.uniform(low, high, ROUNDS) for name, (low, high) in spans.items()}
    by_knob = {name: np.full(ROUNDS, 1 / (high - low)) for name, (low, high) in spans.items()}
    losses, densities = rounds.expected_losses(actions) + rounds.noise, np.prod([*by_knob.values()], axis=0)
    log = manul.Log(rounds.contexts, actions, densities, losses, knobs=spans, densities_by_knob=by_knob)
    half = TWO if len(spans) == 2 else MORE
    centres = {name: low + CONSTANT * (high - low) for name, (low, high) in spans.items()}
    halves = {name: half * (high - low) for name, (low, high) in spans.items()}
    estimate = manul.evaluate(lambda _context: centres, log, bandwidth=halves)
    draws = [
        rounds.expected_losses({name: centres[name] + halves[name] * rng.uniform(-1, 1, ROUNDS) for name in spans})
        for _ in range(16)
    ]
    return bool(estimate.low <= np.mean(draws) <= estimate.high)


def main() -> None:
    logs = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    for name, draw in WORLDS.items():
        world = draw(EARLIER + logs * ROUNDS)
        policy = learned(part(world, 0, EARLIER))
        for kind, epsilon in (("uniform", 1.0), ("Auto", "auto")):
            errors, gains = model_errors(world, policy, epsilon, logs)
            low = sum(expected < true for true, expected in gains)
            wrong = sum(expected * true < 0 for true, expected in gains)
            print(
                f"{name}, {kind} log: dm minus truth {np.mean(errors):+.4f} ± {standard_error(errors):.4f}; optimize: expected "
                f"gain below the true one in {low} of {logs}, of the wrong sign in {wrong}",
                flush=True,
            )
        held = sum(covered(world, number) for number in range(logs))
        print(f"{name}: interval of dr around a constant held the truth in {held} of {logs} logs", flush=True)


if __name__ == "__main__":
    main()
