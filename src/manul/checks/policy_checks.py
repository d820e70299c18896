"""The checks of a policy; each raises an AssertionError if it fails."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from manul.actions.decision import Within
from manul.checks.agent_checks import ROUNDS, WIDTH, bandwidth_of, check_rejected, random_contexts
from manul.logs.log import Log
from manul.offpolicy.optimization.pessimism import optimize_without_densities
from manul.offpolicy.restricted import Restricted
from manul.policies.policy import Policy
from manul.policies.tree_training import train_tree
from manul.utils import model_files


class SaveablePolicy(Policy, model_files.Saveable, Protocol):
    """A policy with a range of actions that can be saved; its epsilon must be above 0."""

    actions: Within


MakePolicy = Callable[[int], SaveablePolicy]


def _train_restricted(log: Log, **settings: Any) -> SaveablePolicy:
    trained = optimize_without_densities(log, **settings).policy
    return Restricted(critic=trained.critic, support=trained.support, bandwidth=trained.bandwidth, epsilon=0.05)


POLICIES: dict[str, tuple[Callable[..., SaveablePolicy], list[dict[str, Any]]]] = {
    "TreePolicy": (
        train_tree,
        [
            {"leaves": 16, "bandwidth": 1 / 8},
            {"leaves": 64, "bandwidth": 0.7, "actions": (-2.0, 8.0), "losses": (-1.0, 3.0), "partition": True},
            {"leaves": 8, "bandwidth": 0.5},
        ],
    ),
    "Restricted": (
        _train_restricted,
        [{"bandwidth": 1 / 16}, {"bandwidth": 0.7, "actions": (-2.0, 8.0), "losses": (-1.0, 3.0)}],
    ),
}


def discover_policies() -> Iterator[tuple[str, MakePolicy]]:
    """Yield every saveable policy that is not an agent, in several settings.

    >>> "TreePolicy 0" in dict(discover_policies())
    True
    """
    kinds = zip(model_files.KINDS.names(), model_files.KINDS, strict=True)
    missing = {name for name, kind in kinds if not kind.learns} - set(POLICIES)
    assert not missing, f"POLICIES must have settings for each policy, got none for {missing}"
    for name, (train, settings) in POLICIES.items():
        for number, setting in enumerate(settings):
            yield f"{name} {number}", _policy_maker(train, setting)


def _policy_maker(train: Callable[..., SaveablePolicy], setting: dict[str, Any]) -> MakePolicy:
    (low, high), (lowest, highest) = setting.get("actions", (0.0, 1.0)), setting.get("losses", (0.0, 1.0))

    def make(seed: int) -> SaveablePolicy:
        contexts, positions = random_contexts(ROUNDS, seed), np.random.default_rng(seed).random(ROUNDS)
        losses = lowest + (highest - lowest) * np.abs(positions - 1 / (1 + np.exp(-contexts[:, 0])))
        uniform = np.full(ROUNDS, 1 / (high - low))
        return train(Log(contexts.astype(np.float32), low + (high - low) * positions, uniform, losses), **setting)

    return make


def check_policy(make: MakePolicy) -> None:
    """Run all checks of a policy.

    >>> check_policy(dict(discover_policies())["TreePolicy 0"])
    """
    for check in POLICY_CHECKS:
        check(make)


def policy_gives_a_density(make: MakePolicy) -> None:
    """Densities integrate to 1 and are positive on the whole range."""
    policy = make(0)
    for context in random_contexts(20):
        distribution = policy.distribution(context)
        assert abs(distribution.integral() - 1) < 1e-9, "a distribution must integrate to 1"
        assert (distribution.density_many(np.linspace(*policy.actions, 1001)) > 0).all(), "a density must be positive"


def policy_keeps_narrowed_ranges(make: MakePolicy) -> None:
    """With `within`, the density is 0 outside that range."""
    policy = make(1)
    low, high = policy.actions
    within = (low + 0.1 * (high - low), high)
    if bandwidth_of(policy) > 0.45 * (high - low):
        check_rejected(lambda: policy.distribution(random_contexts(1)[0], within))
        return
    for context in random_contexts(20):
        distribution = policy.distribution(context, within)
        assert abs(distribution.integral() - 1) < 1e-9, "a distribution must integrate to 1"
        outside = np.linspace(low, within[0], 10, endpoint=False)
        assert not distribution.density_many(outside).any(), "a distribution must stay in its narrowed range"


def policy_survives_saving(make: MakePolicy) -> None:
    """A loaded policy has the same distributions as the saved one, bit for bit."""
    policy = make(2)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "policy.manul")
        policy.save(path)
        loaded = model_files.load(path)
    assert type(loaded) is type(policy)
    assert _distributions(policy) == _distributions(loaded), "a loaded policy must equal the saved one"


def policy_is_deterministic(make: MakePolicy) -> None:
    """The same seed gives the same policy, and calls do not change it."""
    policy = make(3)
    first = _distributions(policy)
    assert first == _distributions(policy) == _distributions(make(3)), "the same seed must give the same policy"


def policy_rejects_bad_contexts(make: MakePolicy) -> None:
    policy = make(4)
    low, high = policy.actions
    for bad in (np.full(WIDTH, np.nan), np.full(WIDTH, np.inf), np.zeros(WIDTH + 1)):
        check_rejected(lambda bad=bad: policy.distribution(bad))  # type: ignore[misc]
    check_rejected(lambda: policy.distribution(np.zeros(WIDTH), (low - 1, high)))


POLICY_CHECKS = (
    policy_gives_a_density,
    policy_keeps_narrowed_ranges,
    policy_survives_saving,
    policy_is_deterministic,
    policy_rejects_bad_contexts,
)


def _distributions(policy: SaveablePolicy) -> list[bytes]:
    grid = np.linspace(*policy.actions, 501)
    return [policy.distribution(context).density_many(grid).tobytes() for context in random_contexts(50)]
