"""Estimation of densities for logs that have none, with a registered density model.

The log cannot show whether the model is right, so the resulting log is marked, and the doctor reports it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from manul.actions.decision import Within
from manul.errors import InputError
from manul.logs.formats.log_schema import context_layout, user_columns
from manul.utils.registry import Registry
from manul.utils.validation import (
    Floats,
    are_within,
    check_choice,
    check_has_rows,
    check_range,
    check_seed,
    range_advice,
    reject,
)

if TYPE_CHECKING:
    from manul.logs.log import Log

DEFAULT = "critic"
FOLDS = 2
BLOCKS = 50  # of neighbouring rows, dealt to the folds in turn, so that each fold sees the whole time
MOST_REPEATED = 0.5  # of the rows may have an action that occurs twice; otherwise actions are on a grid
Density = Literal["logged", "estimate"]


class DensityModel(Protocol):
    """A model of the logged policy: the density of any action given the context."""

    def densities(self, contexts: Any, actions: Floats, ranges: Floats) -> Floats:
        """The density of one action per context, or of a row of actions per context; `ranges` are (low, high) pairs."""


Fit = Callable[[Any, Floats, Floats, int], DensityModel]
_Function = TypeVar("_Function", bound=Fit)

DENSITY_MODELS = Registry[Fit]("density model", "manul.agents", suggestion=DEFAULT)


def register_density_model(name: str) -> Callable[[_Function], _Function]:
    """Register a density model under a `name`, for `estimate_densities`.

    Decorate a function of contexts, logged actions, their ranges, one (low, high) per row, and a seed, that returns an
    object with `densities(contexts, actions, ranges)`. Contexts are rows of numbers, or an Arrow table or dicts if they
    have names.

    >>> import manul, numpy as np
    >>> class Uniform:
    ...     def densities(self, contexts, actions, ranges):
    ...         return np.ones_like(actions) / (ranges[:, 1] - ranges[:, 0]).reshape(-1, *[1] * (actions.ndim - 1))
    >>> @manul.register.density_model("uniform")
    ... def uniform(contexts, actions, ranges, seed):
    ...     return Uniform()
    >>> log = manul.Log(np.zeros((4, 1), np.float32), np.arange(4.0), np.ones(4), np.ones(4), action_range=(0, 4))
    >>> manul.offpolicy.estimate_densities(log, model="uniform").densities
    array([0.25, 0.25, 0.25, 0.25])
    >>> DENSITY_MODELS.remove("uniform")
    """
    return DENSITY_MODELS.decorator(name)


def estimate_densities(log: Log, *, actions: Within | None = None, model: str = DEFAULT, seed: int = 0) -> Log:
    """Estimate the densities of a log from its contexts and actions, for logs without densities.

    The density of each row is that of a model of the other half of the log. The whole log is in memory, and each half
    of the model learns from at most 50,000 rows. The log is marked: `densities_estimated` is True.

    >>> import manul
    >>> log = manul.simulate(manul.Cats(leaves=16, bandwidth=1/4), manul.worlds.linear(rounds=2000)).log
    >>> estimated = estimate_densities(log)
    >>> estimated.densities_estimated
    True
    >>> [finding.title for finding in manul.offpolicy.doctor(estimated) if finding.title.startswith("estimated")]
    ['estimated densities']
    """
    check_has_rows(len(log))
    require_one_knob(log, "Estimating densities")
    fit, first = DENSITY_MODELS[model], check_seed(seed)
    contexts, ranges = contexts_of(log), ranges_of(log, actions)
    densities, spread = np.empty(len(log)), _spread_out(log.actions, ranges, first)
    for number, (train, held_out) in enumerate(folds(len(log), FOLDS)):
        fitted = fit(select(contexts, train), spread[train], ranges[train], first + number)
        densities[held_out] = fitted.densities(select(contexts, held_out), log.actions[held_out], ranges[held_out])
    return log.with_estimated_densities(densities)


def require_one_knob(log: Log, purpose: str) -> None:
    """Reject a log with several knobs where actions are single numbers."""
    if log.knobs is not None:
        names = ", ".join(log.knobs.names)
        raise InputError(f"{purpose} takes logs with one knob, but the actions of this one set {names}.", "log")


def _spread_out(actions: Floats, ranges: Floats, seed: int) -> Floats:
    """Actions on a grid, such as whole euros, spread evenly over its cells: a density would be a row of spikes otherwise."""
    step = resolution(actions)
    moved = actions + step * (np.random.default_rng(seed).random(len(actions)) - 0.5) if step else actions
    return np.clip(moved, ranges[:, 0], ranges[:, 1]) if step else actions


def resolution(actions: Floats) -> float:
    """The usual distance between an action and the next different one, if most actions occur more than once; otherwise 0.

    >>> resolution(np.array([9.99, 10.99, 9.99, 11.99, 11.99]))
    1.0
    >>> resolution(np.array([0.1, 0.25, 0.3, 0.7]))
    0.0
    """
    values, counts = np.unique(actions, return_counts=True)
    if counts[counts > 1].sum() <= MOST_REPEATED * len(actions) or len(values) < 2:
        return 0.0
    gaps = np.diff(values)
    nearest = np.minimum(np.append(gaps, np.inf), np.append(np.inf, gaps))
    order = np.argsort(nearest, kind="stable")
    middle = np.searchsorted(np.cumsum(counts[order]), len(actions) / 2)
    return round(float(nearest[order][middle]), 12)


def ranges_of(log: Log, actions: Within | None = None) -> Floats:
    """One (low, high) per row; raises InputError if an action is outside."""
    low, high = check_range("actions", actions or log.action_range or (0.0, 1.0))
    ranges = np.tile([low, high], (len(log), 1))
    if log.lows is not None and log.highs is not None:
        ranges = np.column_stack([log.lows, log.highs])
    outside = ~are_within(log.actions, np.maximum(ranges[:, 0], low), np.minimum(ranges[:, 1], high))
    reject(outside, log.actions, "actions", f"in [{low:g}, {high:g}]", range_advice("actions"))
    return ranges


def contexts_of(log: Log) -> Any:
    """The contexts of a log for the batch methods of agents: rows of numbers, an Arrow table, or dicts if they are sparse."""
    layout = context_layout(log.table.schema)
    if layout == "columns":
        return log.table.select(user_columns(log.table.schema))
    return log.contexts if layout == "dense" else list(log.context_rows())


def select(contexts: Any, rows: npt.NDArray[np.intp]) -> Any:
    """A selection of contexts."""
    if isinstance(contexts, list):
        return [contexts[row] for row in rows]
    return contexts[rows] if isinstance(contexts, np.ndarray) else contexts.take(rows)


def folds(count: int, parts: int) -> Iterator[tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]]:
    """The rows to train on and the held-out rows of each fold; a single row is in both."""
    numbers = np.arange(count)
    fold = numbers * min(BLOCKS, count) // count % parts
    for part in range(parts):
        held_out = numbers[fold == part]
        train = numbers[fold != part]
        if len(held_out):
            yield (train if len(train) else held_out), held_out


def needs_density(density: Density) -> bool:
    """Whether rows must have densities, because they are not estimated."""
    check_choice("density", density, ("logged", "estimate"))
    return density == "logged"
