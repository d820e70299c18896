"""Values and protocols that all packages share."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, overload, runtime_checkable

import numpy as np
import numpy.typing as npt

from manul.actions.distribution import Atoms, Distribution
from manul.errors import require_package
from manul.utils.html_cards import card
from manul.utils.rewards import negate, negate_pair

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes

Floats = npt.NDArray[np.float64]
Context = npt.ArrayLike | Mapping[str, object] | tuple[object, ...] | None
Contexts = npt.ArrayLike | Mapping[str, object] | Iterable[object]
Within = tuple[float, float]


class Decision(NamedTuple):
    """An action, its density, the range it was drawn from if that was narrowed, and the smallest density of that range.

    The `floor` is the smallest density that the policy gave any action; None if it is unknown. It bounds the weights of
    off-policy estimates, so log it with the density.

    >>> Decision(21.4, 0.24)
    Decision(action=21.4, density=0.24)
    """

    action: float
    density: float
    within: Within | None = None
    floor: float | None = None

    def __repr__(self) -> str:
        narrowed = "" if self.within is None else f", within={self.within!r}"
        floor = "" if self.floor is None else f", floor={self.floor!r}"
        return f"Decision(action={self.action!r}, density={self.density!r}{narrowed}{floor})"


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Decisions:
    """Many decisions as arrays; `lows` and `highs` are None if every decision had the whole range, `floors` if unknown.

    An index gives one decision, a slice or an array of indices gives several, and a loop goes over all of them.

    >>> decisions = Decisions(np.array([21.4, 8.0]), np.array([0.24, 0.5]))
    >>> decisions[0], len(decisions[1:])
    (Decision(action=21.4, density=0.24), 1)
    >>> [decision.action for decision in decisions]
    [21.4, 8.0]
    """

    actions: Floats
    densities: Floats
    lows: Floats | None = None
    highs: Floats | None = None
    floors: Floats | None = None

    def __len__(self) -> int:
        return len(self.actions)

    def __iter__(self) -> Iterator[Decision]:
        actions, densities, lows, highs, floors = (_values(column, len(self)) for column in self._columns())
        for action, density, low, high, floor in zip(actions, densities, lows, highs, floors, strict=True):
            yield Decision(action, density, None if low is None else (low, high), floor)

    @overload
    def __getitem__(self, rows: int) -> Decision: ...
    @overload
    def __getitem__(self, rows: slice | npt.NDArray[Any]) -> Decisions: ...
    def __getitem__(self, rows: Any) -> Decision | Decisions:
        columns = self._columns()
        if not isinstance(rows, int | np.integer):
            return Decisions(*(None if column is None else np.asarray(column)[rows] for column in columns))  # type: ignore[arg-type]
        action, density, low, high, floor = (None if column is None else float(column[rows]) for column in columns)
        assert action is not None
        assert density is not None
        return Decision(action, density, None if low is None or high is None else (low, high), floor)

    def _columns(self) -> tuple[Floats | None, ...]:
        return self.actions, self.densities, self.lows, self.highs, self.floors

    def to_pandas(self) -> pandas.DataFrame:
        """The decisions as a pandas data frame, with the column names of a log.

        >>> Decisions(np.array([21.4]), np.array([0.24])).to_pandas().to_dict("records")
        [{'action': 21.4, 'density': 0.24}]
        """
        names = ("action", "density", "low", "high", "floor")
        return _frame(dict(zip(names, self._columns(), strict=True)))


@dataclass(frozen=True)
class Objection:
    """A reason not to trust an estimate; with an `error`, the estimate must not be used, and is not printed or drawn.

    >>> print(Objection("warning", "small sample", "12 of 5,000 decisions match: not enough to say."))
    warning: small sample. 12 of 5,000 decisions match: not enough to say.
    """

    severity: Literal["error", "warning"]
    title: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.severity}: {self.title}. {self.sentence}"


class KnobsDecision(NamedTuple):
    """The values of several knobs, their joint density, the density of each, the ranges they were drawn from if those were
    narrowed, and the smallest density that any action had."""

    action: dict[str, Any]
    density: float
    densities: dict[str, float]
    within: Mapping[str, Any] | None = None
    floor: float | None = None


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class KnobsDecisions:
    """Many decisions with several knobs: actions and densities as columns by knob, joint densities as an array.

    An index gives one decision, a slice or an array of indices gives several, and a loop goes over all of them.

    >>> decisions = KnobsDecisions({"price": np.array([21.4])}, np.array([0.24]), {"price": np.array([0.24])})
    >>> decisions[0].action, decisions.to_pandas().columns.tolist()
    ({'price': 21.4}, ['action.price', 'density', 'density.price'])
    """

    actions: dict[str, npt.NDArray[Any]]
    densities: Floats
    densities_by_knob: dict[str, Floats]
    within: Sequence[Mapping[str, Any] | None] | None = None
    floors: Floats | None = None

    def __len__(self) -> int:
        return len(self.densities)

    def __iter__(self) -> Iterator[KnobsDecision]:
        return (self[row] for row in range(len(self)))

    @overload
    def __getitem__(self, rows: int) -> KnobsDecision: ...
    @overload
    def __getitem__(self, rows: slice | npt.NDArray[Any]) -> KnobsDecisions: ...
    def __getitem__(self, rows: Any) -> KnobsDecision | KnobsDecisions:
        if isinstance(rows, int | np.integer):
            return KnobsDecision(
                {name: _value(column[rows]) for name, column in self.actions.items()},
                float(self.densities[rows]),
                {name: float(column[rows]) for name, column in self.densities_by_knob.items()},
                None if self.within is None else self.within[int(rows)],
                None if self.floors is None else float(self.floors[rows]),
            )
        places = np.arange(len(self))[rows]
        return KnobsDecisions(
            {name: column[places] for name, column in self.actions.items()},
            self.densities[places],
            {name: column[places] for name, column in self.densities_by_knob.items()},
            None if self.within is None else [self.within[place] for place in places.tolist()],
            None if self.floors is None else self.floors[places],
        )

    def to_pandas(self) -> pandas.DataFrame:
        """The decisions as a pandas data frame, with the column names of a log."""
        columns: dict[str, Any] = {f"action.{name}": column for name, column in self.actions.items()}
        columns |= {"density": self.densities}
        columns |= {f"density.{name}": column for name, column in self.densities_by_knob.items()}
        if self.within is not None:
            columns["within"] = [None if each is None else json.dumps(each, default=list) for each in self.within]
        return _frame({**columns, "floor": self.floors})


def _values(column: Floats | None, count: int) -> list[Any]:
    return [None] * count if column is None else np.asarray(column).tolist()


def _value(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _frame(columns: Mapping[str, Any]) -> pandas.DataFrame:
    require_package("pandas")
    import pandas

    return pandas.DataFrame({name: column for name, column in columns.items() if column is not None})


class Reward(NamedTuple):
    """A mean reward with its confidence interval; higher is better."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Estimate:
    """The estimated loss of a policy with its confidence interval, diagnostics of the weights, and objections, if any.

    `effective_size` is the effective sample size: the number of decisions by the policy itself that would be as
    informative. A mean weight far from 1 means that the logged densities are wrong. `bandwidth` is the half-width of the
    window around the actions of a deterministic policy, and `smoothing` says it in words, also for several knobs. If the log
    has `rewards`, `value`, `low` and `high` are negative rewards all the same; `reward` has the rewards, which texts and
    plots show.

    >>> print(Estimate(0.25, 0.2, 0.3, effective_size=120.0, largest_weight=4.0, mean_weight=1.0, rows=1000))
    0.25 [0.2, 0.3] (95 % empirical-likelihood, snips), 1,000 rows, effective sample size 120
    """

    value: float
    low: float
    high: float
    effective_size: float
    largest_weight: float
    mean_weight: float
    rows: int
    estimator: str = "snips"
    interval: str = "empirical-likelihood"
    level: float = 0.95
    bandwidth: float | None = None
    objections: tuple[Objection, ...] = ()
    rewards: bool = False
    smoothing: str = ""

    @property
    def reward(self) -> Reward | None:
        """The estimated mean reward and its interval; None if the log has losses.

        >>> sizes = {"effective_size": 120.0, "largest_weight": 4.0, "mean_weight": 1.0, "rows": 1000}
        >>> Estimate(-43.0, -46.0, -40.0, **sizes, rewards=True).reward
        Reward(value=43.0, low=40.0, high=46.0)
        """
        return Reward(negate(self.value), *negate_pair((self.low, self.high))) if self.rewards else None

    def __str__(self) -> str:
        value, low, high = self.reward or (self.value, self.low, self.high)
        name = "mean reward " if self.rewards else ""
        ends = f"{name}{value:.4g} [{low:.4g}, {high:.4g}] ({100 * self.level:g} % {self.interval}, {self.estimator})"
        if not self.usable:
            ends = f"{name or 'loss '}cannot be known ({self.estimator})"
        elif self.interval == "none":
            ends = f"{name}{value:.4g} (no interval, {self.estimator})"
        size = f"{self.rows:,} rows, effective sample size {self.effective_size:,.0f}"
        smoothed = f", smoothed over {self.smoothing}" if self.smoothing else ""
        return "\n".join([f"{ends}, {size}{smoothed}", *map(str, self.objections)])

    def _repr_html_(self) -> str:
        value, low, high = self.reward or (self.value, self.low, self.high)
        interval = "none" if self.interval == "none" else f"{low:.4g} to {high:.4g}, {self.interval}"
        name = "mean reward (higher is better)" if self.rewards else "value"
        rows: list[tuple[str, object]] = [(name, value), (f"{100 * self.level:g} % interval", interval)]
        rows = [*(rows if self.usable else [(name, "cannot be known")]), ("estimator", self.estimator)]
        rows += [("rows", f"{self.rows:,}"), ("effective sample size", f"{self.effective_size:,.0f}")]
        rows += [("smoothed over", self.smoothing)] if self.smoothing else []
        return card(
            "Estimate", [*rows, *((each.severity, f"{each.title}. {each.sentence}") for each in self.objections)]
        )

    @property
    def usable(self) -> bool:
        """Whether no objection is an error."""
        return all(objection.severity != "error" for objection in self.objections)

    def plot(self, axes: Axes | None = None, *, label: str | None = None) -> Axes:
        """Draw the estimate and its interval; several estimates may share axes. If one cannot be known, its row is empty."""
        from manul.utils.plotting import interval_plot

        value, low, high = self.reward or (self.value, self.low, self.high)
        name = label or self.estimator
        if not self.usable:
            value, low, high, name = math.nan, math.nan, math.nan, f"{name}: cannot be known"
        return interval_plot(value, low, high, axes, label=name, rewards=self.rewards)


@runtime_checkable
class Policy(Protocol):
    """Maps a context to a distribution over actions."""

    def distribution(self, context: Context, within: Within | None = None) -> Distribution | Atoms:
        """The distribution of the action for a context."""


@runtime_checkable
class Agent(Policy, Protocol):
    """A policy that decides and learns; the batch methods give exactly the results of the single ones."""

    def decide(self, context: Context, within: Within | None = None) -> Decision:
        """Draw an action."""

    def learn(self, context: Context, decision: Decision, loss: float) -> None:
        """Learn from the loss of a decision."""

    def decide_many(self, contexts: npt.ArrayLike, within: npt.ArrayLike | None = None) -> Decisions:
        """Draw an action for each row."""

    def learn_many(self, contexts: npt.ArrayLike, decisions: Decisions, losses: npt.ArrayLike) -> None:
        """Learn from the losses of many decisions, in order."""
