"""Rewards, which are negative losses: conversion between the two, and the range of either."""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from manul.errors import InputError, ParameterError
from manul.utils.validation import check_range

AnyRange = tuple[float, float] | Literal["auto"]
NUMERIC = "biuf"  # the kinds of NumPy's numbers; a boolean, such as whether somebody bought, is 0 or 1
ANY_NUMBER = (-math.inf, math.inf)  # how the core and the checks write a range that is not known


def negate(value: float) -> float:
    """The loss of a reward, or the reward of a loss; zero has no sign.

    >>> negate(0.25), negate(0.0)
    (-0.25, 0.0)
    """
    return 0.0 - value


def negate_range(span: AnyRange) -> AnyRange:
    """The range of losses for a range of rewards, and the reverse; "auto" stays "auto".

    >>> negate_range((0.0, 100.0))
    (-100.0, 0.0)
    """
    return span if isinstance(span, str) else negate_pair(span)


def negate_pair(span: tuple[float, float]) -> tuple[float, float]:
    """The range of the values with the opposite sign.

    >>> negate_pair((-1.0, 3.0))
    (-3.0, 1.0)
    """
    return negate(span[1]), negate(span[0])


class OutcomeNames(NamedTuple):
    """What the outcome of a decision is called: one of them, and several."""

    one: str
    several: str


def outcome_names(*, rewards: bool) -> OutcomeNames:
    """The words for the outcomes of a log or an agent.

    >>> outcome_names(rewards=True).several
    'rewards'
    """
    return OutcomeNames("reward", "rewards") if rewards else OutcomeNames("loss", "losses")


def check_any_range(name: str, span: AnyRange, kind: str | None) -> AnyRange:
    """Check a range of losses or rewards; "auto" is allowed unless `kind`, an agent that needs a range, is given.

    >>> check_any_range("rewards", "auto", kind=None)
    'auto'
    """
    if isinstance(span, str):
        if span != "auto":
            raise ParameterError(f"{name} must be two numbers (low, high) or 'auto', got {span!r}. Try 'auto'.", name)
        if kind is not None:
            raise ParameterError(
                f"{name} must be two numbers (low, high) for {kind}, got 'auto'. Only Auto learns without a range.",
                name,
            )
        return "auto"
    return check_range(name, span)


def check_ranges(
    losses: AnyRange | None, rewards: AnyRange | None, kind: str | None
) -> tuple[AnyRange, AnyRange | None]:
    """The range of losses, and that of rewards or None; the default is losses in [0, 1].

    >>> check_ranges(None, (0, 100), kind=None)
    ((-100.0, 0.0), (0.0, 100.0))
    """
    if rewards is None:
        return check_any_range("losses", (0.0, 1.0) if losses is None else losses, kind), None
    if losses is not None:
        raise ParameterError(f"losses and rewards exclude each other, got {losses!r} and {rewards!r}.", "rewards")
    span = check_any_range("rewards", rewards, kind)
    return negate_range(span), span


def known_range(span: AnyRange, purpose: str, *, rewards: bool = False) -> tuple[float, float]:
    """The range of losses, or of rewards, if it is known; otherwise an error that names the purpose.

    >>> known_range("auto", "optimize")
    Traceback (most recent call last):
    manul.errors.ParameterError: losses must be two numbers (low, high) for optimize, got 'auto'.
    """
    if isinstance(span, str):
        name = "rewards" if rewards else "losses"
        raise ParameterError(f"{name} must be two numbers (low, high) for {purpose}, got {span!r}.", name)
    return span


def numeric_range(span: AnyRange) -> tuple[float, float]:
    """The range as numbers: infinite if it is not known.

    >>> numeric_range("auto")
    (-inf, inf)
    """
    return ANY_NUMBER if isinstance(span, str) else span


def loss_of(loss: Any, reward: Any, *, rewards: bool) -> float:
    """The loss of the one outcome that an agent was given; `rewards` says whether it learns from rewards.

    >>> loss_of(None, 0.75, rewards=True)
    -0.75
    """
    _check_given("loss", loss, "reward", reward, rewards=rewards)
    return negate(outcome_number("reward", reward)) if rewards else outcome_number("loss", loss)


def losses_of(losses: Any, rewards_given: Any, *, rewards: bool) -> npt.NDArray[np.float64]:
    """The losses of many outcomes, as `loss_of`.

    >>> losses_of(None, [0.75, 0.0], rewards=True)
    array([-0.75,  0.  ])
    """
    _check_given("losses", losses, "rewards", rewards_given, rewards=rewards)
    name, values = ("rewards", rewards_given) if rewards else ("losses", losses)
    reject_text(name, values)
    try:
        numbers = np.ascontiguousarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} must be numbers, got {values!r:.60}.", name) from None
    return 0.0 - numbers if rewards else numbers


def outcome_number(name: str, value: Any) -> float:
    """One loss or reward as a number; a boolean is 0 or 1, and text is refused, because it is most often another field.

    >>> outcome_number("reward", np.float32(0.5))
    0.5
    >>> outcome_number("reward", "62")
    Traceback (most recent call last):
    manul.errors.InputError: reward must be a number, got '62'.
    """
    try:
        if isinstance(value, float) or not _is_text(value):
            return float(value)
    except (TypeError, ValueError, OverflowError):
        pass
    raise InputError(f"{name} must be a number, got {value!r}.", name)


def reject_text(name: str, values: Any) -> None:
    """Raise InputError if some of many losses or rewards are text.

    >>> reject_text("losses", [0.25, "0.5"])
    Traceback (most recent call last):
    manul.errors.InputError: losses must be numbers, got '0.5' in row 1.
    """
    column = values if isinstance(values, list | tuple) else np.asarray(values)
    if isinstance(column, np.ndarray) and column.dtype.kind in NUMERIC:
        return
    every = column.ravel().tolist() if isinstance(column, np.ndarray) else column
    if {*map(type, every)} <= {float, int, bool}:
        return
    for row, value in enumerate(every):
        if _is_text(value):
            raise InputError(f"{name} must be numbers, got {value!r} in row {row}.", name)


def _is_text(value: Any) -> bool:
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind not in NUMERIC:
        return value.dtype.kind != "O" or (value.ndim == 0 and _is_text(value.item()))
    return isinstance(value, str | bytes | bytearray)


def outcome_of(agent: object, loss: float) -> dict[str, float]:
    """A loss as the keyword that the agent's `learn` takes.

    >>> import manul
    >>> outcome_of(manul.Auto(rewards=(0.0, 1.0)), -0.75)
    {'reward': 0.75}
    """
    return {"loss": loss} if getattr(agent, "rewards", None) is None else {"reward": negate(loss)}


def outcomes_of(agent: object, losses: npt.NDArray[np.float64]) -> dict[str, npt.NDArray[np.float64]]:
    """Losses as the keyword that the agent's `learn_many` takes.

    >>> import manul
    >>> outcomes_of(manul.Auto(), np.array([0.25]))
    {'losses': array([0.25])}
    """
    return {"losses": losses} if getattr(agent, "rewards", None) is None else {"rewards": 0.0 - losses}


def _check_given(loss_name: str, loss: Any, reward_name: str, reward: Any, *, rewards: bool) -> None:
    wanted, other = (reward_name, loss_name) if rewards else (loss_name, reward_name)
    value, surplus = (reward, loss) if rewards else (loss, reward)
    if value is not None and surplus is not None:
        raise InputError(f"{loss_name} and {reward_name} exclude each other; this agent learns from {wanted}.", other)
    made = "rewards" if rewards else "losses"
    if surplus is not None:
        raise InputError(f"{other} must not be given to an agent made with {made}; pass {wanted}=.", other)
    if value is None:
        raise InputError(f"pass {wanted}= to learn; the agent was made with {made}.", wanted)
