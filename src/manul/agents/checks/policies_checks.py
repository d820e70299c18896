"""What any policy must satisfy; each check raises an AssertionError naming what does not hold."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from manul.agents.checks.common import ROUNDS, WIDTH, random_contexts, refuses
from manul.logs.log import Log
from manul.policies.tree_training import train_tree
from manul.types import Policy, Within
from manul.utils import model_files


class CheckablePolicy(Policy, model_files.Saveable, Protocol):
    """A policy that names its range and saves itself; its epsilon is above 0."""

    actions: Within


MakePolicy = Callable[[int], CheckablePolicy]

POLICIES: dict[str, tuple[Callable[..., CheckablePolicy], list[dict[str, Any]]]] = {
    "TreePolicy": (
        train_tree,
        [
            {"leaves": 16, "bandwidth": 1 / 8},
            {"leaves": 64, "bandwidth": 0.7, "actions": (-2.0, 8.0), "losses": (-1.0, 3.0), "partition": True},
            {"leaves": 8, "bandwidth": 0.5},
        ],
    ),
}


def discover_policies() -> Iterator[tuple[str, MakePolicy]]:
    """Every policy that can be saved and is no agent, in several settings; one without an example is an error.

    >>> "TreePolicy 0" in dict(discover_policies())
    True
    """
    kinds = zip(model_files.KINDS.names(), model_files.KINDS, strict=True)
    missing = {name for name, kind in kinds if not kind.learns} - set(POLICIES)
    assert not missing, f"POLICIES must have a setting for each policy; none for {missing}."
    for name, (train, settings) in POLICIES.items():
        for number, setting in enumerate(settings):
            yield f"{name} {number}", _policy_maker(train, setting)


def _policy_maker(train: Callable[..., CheckablePolicy], setting: dict[str, Any]) -> MakePolicy:
    (low, high), (least, worst) = setting.get("actions", (0.0, 1.0)), setting.get("losses", (0.0, 1.0))

    def make(seed: int) -> CheckablePolicy:
        contexts, played = random_contexts(ROUNDS, seed), np.random.default_rng(seed).random(ROUNDS)
        losses = least + (worst - least) * np.abs(played - 1 / (1 + np.exp(-contexts[:, 0])))
        uniform = np.full(ROUNDS, 1 / (high - low))
        return train(Log(contexts.astype(np.float32), low + (high - low) * played, uniform, losses), **setting)

    return make


def check_policy(make: MakePolicy) -> None:
    """All checks of a policy, one after the other.

    >>> check_policy(dict(discover_policies())["TreePolicy 0"])
    """
    for check in POLICY_CHECKS:
        check(make)


def policy_gives_a_density(make: MakePolicy) -> None:
    """Integrates to 1 and is positive on the whole range."""
    policy = make(0)
    for context in random_contexts(20):
        distribution = policy.distribution(context)
        assert abs(distribution.integral() - 1) < 1e-9, "a distribution must integrate to 1"
        assert (distribution.density_many(np.linspace(*policy.actions, 1001)) > 0).all(), "a density must be positive"


def policy_keeps_narrowed_ranges(make: MakePolicy) -> None:
    """With `within`, the distribution covers just that range."""
    policy = make(1)
    low, high = policy.actions
    within = (low + 0.1 * (high - low), high)
    if getattr(policy, "bandwidth", 0.0) > 0.45 * (high - low):
        refuses(lambda: policy.distribution(random_contexts(1)[0], within))
        return
    for context in random_contexts(20):
        distribution = policy.distribution(context, within)
        assert abs(distribution.integral() - 1) < 1e-9, "a distribution must integrate to 1"
        outside = np.linspace(low, within[0], 10, endpoint=False)
        assert not distribution.density_many(outside).any(), "a distribution must stay in its narrowed range"


def policy_comes_back_as_saved(make: MakePolicy) -> None:
    """What is loaded gives the same distributions to the byte."""
    policy = make(2)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "policy.manul")
        policy.save(path)
        loaded = model_files.load(path)
    assert type(loaded) is type(policy)
    assert _distributions(policy) == _distributions(loaded), "a loaded policy must equal the saved one"


def policy_is_the_same_each_time(make: MakePolicy) -> None:
    """One seed gives one policy, and asking it changes nothing."""
    policy = make(3)
    first = _distributions(policy)
    assert first == _distributions(policy) == _distributions(make(3)), "one seed must give one policy"


def policy_refuses_bad_contexts(make: MakePolicy) -> None:
    """Each context that cannot be used raises InputError with one sentence."""
    policy = make(4)
    low, high = policy.actions
    for bad in (np.full(WIDTH, np.nan), np.full(WIDTH, np.inf), np.zeros(WIDTH + 1)):
        refuses(lambda bad=bad: policy.distribution(bad))  # type: ignore[misc]
    refuses(lambda: policy.distribution(np.zeros(WIDTH), (low - 1, high)))


POLICY_CHECKS = (
    policy_gives_a_density,
    policy_keeps_narrowed_ranges,
    policy_comes_back_as_saved,
    policy_is_the_same_each_time,
    policy_refuses_bad_contexts,
)


def _distributions(policy: CheckablePolicy) -> list[bytes]:
    grid = np.linspace(*policy.actions, 501)
    return [policy.distribution(context).density_many(grid).tobytes() for context in random_contexts(50)]
