"""The averaged effect of each feature on the action: accumulated local effects over contexts, with 95 % intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, time
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from manul.actions.decision import Within
from manul.actions.distributions import distributions_of
from manul.actions.space import ActionSpace, several_knobs
from manul.agents import Mapped, Rollout
from manul.agents.base import BaseAgent
from manul.agents.player_host import host_of
from manul.contexts import dates
from manul.contexts.records import is_missing
from manul.errors import ParameterError, remedy
from manul.inspection.context_table import ContextTable, context_table, effect_text, value_text
from manul.inspection.local_effects import (
    Ladder,
    LocalEffects,
    Swing,
    Z,
    category_ladder,
    local_effects,
    number_ladder,
)
from manul.policies.policy import HasSchema
from manul.utils.html_cards import text_block
from manul.utils.validation import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The time grows with the rows and the columns, and the standard errors hardly shrink further.
MOST_ROWS, MOST_ROWS_OF_KNOBS, LEAST_ROWS, MOST_CELLS = 2000, 400, 200, 50_000
# A direction is stated if the interval excludes 0, three quarters of the local changes have its sign, and the change is
# at least this share of the range of actions and of the largest change of any feature: a smaller one may be an error of the model.
CONSISTENT, MATERIAL, BESIDE_THE_LARGEST = 0.5, 0.05, 0.1
SEARCHED_Z = 3.3  # of a rise or fall whose ends were searched: 95 % for all 55 pairs of 11 values together
LITTLE, DEPENDS = "has little or no effect", "depends on the other features"
Direction = Literal["raises the action", "lowers the action", "no clear direction"]
UNCLEAR: Direction = "no clear direction"
Kind = Literal["number", "time", "category"]
Ints = npt.NDArray[np.int64]
Predict = Callable[[Any], Floats]


@dataclass(frozen=True)
class ValueEffect:
    """The effect of one value of a feature, compared with the mean over all contexts, its 95 % interval and its direction.

    `count` is the number of contexts with this value, or nearest to it.
    """

    value: Any
    count: int
    effect: float
    low: float
    high: float
    direction: Direction


@dataclass(frozen=True)
class FeatureEffect:
    """The effect of one feature on the action.

    `change` is the change of the action from the first to the last of the `values`, and `low` and `high` its 95 % interval.
    Numbers and times ascend, and cover the middle 90 % of the contexts. Categories are in the order of the mean action of
    their contexts; each has a direction, and the feature has none. `shape` says in words what a number or time does, also
    if it has no direction, such as "is lowest near 3 and higher on both sides". `swing` is the largest rise or fall between
    two values, and `swing_low` and `swing_high` its 95 % interval. If the effect depends on the other features, it is the
    mean size of the changes of single contexts, and has no interval.
    """

    name: str
    kind: Kind
    values: tuple[ValueEffect, ...]
    change: float
    low: float
    high: float
    direction: Direction
    shape: str = UNCLEAR
    swing: float | None = None
    swing_low: float | None = None
    swing_high: float | None = None

    @property
    def size(self) -> float:
        """The difference between the largest and the smallest effect of any value."""
        effects = [value.effect for value in self.values]
        return max(effects) - min(effects)

    def sentences(self) -> Iterator[str]:
        """What the feature does to the action, if that is clear.

        >>> value = ValueEffect("Oslo", 10, -0.3, -0.4, -0.2, "lowers the action")
        >>> list(FeatureEffect("city", "category", (value,), 0.0, 0.0, 0.0, "no clear direction").sentences())
        ['city = Oslo lowers the action by 0.3.']
        """
        size = "" if self.swing is None else effect_text(self.swing)[1:]
        if self.kind != "category" and self.shape == self.direction != UNCLEAR:
            ends = f"from {value_text(self.values[0].value)} to {value_text(self.values[-1].value)}"
            yield f"{self.name} {self.direction} by {effect_text(abs(self.change))[1:]} {ends}."
        elif self.shape == DEPENDS:
            yield f"{self.name} moves the action by {size} in all, up or down depending on the other features."
        elif self.swing is not None:
            yield f"Along {self.name}, the action {self.shape}, by up to {size}."
        for value in self.values if self.kind == "category" else ():
            if value.direction != "no clear direction":
                yield f"{self.name} = {value_text(value.value)} {value.direction} by {effect_text(abs(value.effect))[1:]}."

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw the effect of each value and its 95 % interval."""
        from manul.plotting import effect_plots

        effects, lows, highs = np.array([(each.effect, each.low, each.high) for each in self.values]).T
        values = [each.value for each in self.values]
        draw = effect_plots.category_effects if self.kind == "category" else effect_plots.number_effects
        return draw(self.name, values, (effects, lows, highs), axes)


@dataclass(frozen=True)
class Effects:
    """The effects of all features of contexts on the action, or on one of several knobs; the largest effect is first.

    `rows` is the number of contexts, and `left_out` are features without an effect to show: those with one value, or lists.
    """

    features: tuple[FeatureEffect, ...]
    rows: int
    action: str = "mean action"
    left_out: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> FeatureEffect:
        found = {feature.name: feature for feature in self.features}
        if name not in found:
            raise ParameterError(f"unknown feature {name!r}. {remedy(name, found, 'Use one of features.')}", "feature")
        return found[name]

    def __iter__(self) -> Iterator[FeatureEffect]:
        return iter(self.features)

    def __len__(self) -> int:
        return len(self.features)

    def sentences(self) -> list[str]:
        """What each feature does to the action, if that is clear."""
        return [sentence for feature in self.features for sentence in feature.sentences()]

    def table(self) -> list[dict[str, Any]]:
        """One row per feature and value, for a data frame or a file."""
        return [
            {"feature": feature.name, "value": each.value, "contexts": each.count, "effect": each.effect}
            | {"low": each.low, "high": each.high}
            for feature in self.features
            for each in feature.values
        ]

    def plot(self, most: int = 12, panels: Iterator[Axes] | None = None) -> Figure:
        """Draw the largest effects, at most `most`, on the same vertical scale; on the next of `panels` if they are given."""
        from manul import plotting

        if not self.features:
            raise ParameterError("nothing to plot: the contexts have no feature with two values.", "features")
        shown = self.features[:most]
        panels = iter(plotting.new_grid(len(shown), 3)) if panels is None else panels
        ends = [end for feature in shown for value in feature.values for end in (value.low, value.high)]
        margin = 0.05 * (max(ends) - min(ends) or 1.0)
        for feature in shown:
            axes = feature.plot(next(panels))
            axes.set_ylim(min(ends) - margin, max(ends) + margin)
            axes.set_ylabel(f"effect on the {self.action}")
        return axes.figure.canvas.figure

    def _repr_html_(self) -> str:
        return text_block(self)

    def __str__(self) -> str:
        from manul.inspection.text import effects_text

        return effects_text(self)


def effects(policy: Any, contexts: object, *, knob: str | None = None) -> Effects:
    """The averaged effect of each feature of the contexts on the mean action of a policy, or on the best value of a knob.

    `contexts` are a matrix, a data frame, columns by name, a list of dicts, or a log. Of more than 2,000, or
    fewer if they have many columns, a random sample is used.
    `knob` names one of several knobs; by default, the first one with numbers.

    >>> import manul
    >>> world = manul.worlds.Regression(contexts := np.random.default_rng(0).random((5000, 2)), contexts[:, 0])
    >>> agent = manul.Cats(leaves=32, bandwidth=1/16)
    >>> run = manul.simulate(agent, world)
    >>> [(effect.name, effect.direction) for effect in effects(agent, contexts)]
    [('column 0', 'raises the action'), ('column 1', 'no clear direction')]
    """
    knobs = several_knobs(policy)
    _check_seen(policy)
    table = contexts if isinstance(contexts, ContextTable) else context_table(contexts)
    most = MOST_ROWS if knobs is None else MOST_ROWS_OF_KNOBS
    table = table.sample(max(min(most, MOST_CELLS // len(table.columns)), LEAST_ROWS))
    if table.named and isinstance(policy, HasSchema) and policy.schema.width:
        table = table.as_rows()
    predict, (low, high), action = _mean_action(policy) if knobs is None else _best_value(policy, knobs, knob)
    actions = predict(table.contexts)
    ladders = {name: _ladder(column, actions) for name, column in table.columns.items()}
    measured = [
        (name, kind, ladder, local_effects(ladder, partial(_moved, predict, table, name)))
        for name, (kind, ladder) in ladders.items()
        if ladder is not None
    ]
    largest = max((float(np.ptp(found.effects)) for *_, found in measured), default=0.0)
    least = max(MATERIAL * (high - low), BESIDE_THE_LARGEST * largest)
    features = [_feature(name, kind, ladder, found, least) for name, kind, ladder, found in measured]
    features = [_where_known(feature, table.columns[feature.name]) for feature in features]
    left_out = tuple(name for name, (_, ladder) in ladders.items() if ladder is None)
    return Effects(tuple(sorted(features, key=lambda feature: -feature.size)), len(table), action, left_out)


def _check_seen(policy: Any) -> None:
    inside = policy.agent if isinstance(policy, Mapped | Rollout) else policy
    if isinstance(inside, BaseAgent) and host_of(inside).player is None:
        raise ParameterError("the agent has seen no contexts yet, so features have no effect.", "policy")


def _mean_action(policy: Any) -> tuple[Predict, Within, str]:
    return lambda contexts: distributions_of(policy, contexts).moments()[0], policy.actions, "mean action"


def _best_value(policy: Any, knobs: ActionSpace, name: str | None) -> tuple[Predict, Within, str]:
    numeric = {each: knob for each, knob in knobs.knobs if not knob.is_option}
    if name is None:
        name = next(iter(numeric), None)
    if name is None or name not in numeric:
        if not numeric:
            raise ParameterError("effects needs a knob with numbers, but the actions are options.", "policy")
        rule = f"The knobs with numbers are {', '.join(numeric)}."
        raise ParameterError(f"unknown knob {name!r}. {remedy(str(name), numeric, rule)}", "knob")

    def best(contexts: Any) -> Floats:
        return np.array([knobs.wrap(policy.best(context))[name] for context in contexts], dtype=np.float64)

    ends = numeric[name].sweep(2)
    return best, (float(ends[0]), float(ends[1])), f"best {name or 'action'}"


def _moved(predict: Predict, table: ContextTable, name: str, rows: Ints, values: list[Any]) -> Floats:
    return predict(table.with_values(name, rows, values))


def _ladder(column: Sequence[Any], actions: Floats) -> tuple[Kind, Ladder | None]:
    """The kind of a column and the ladder of its values; None if it has fewer than two, or values that are neither."""
    rows = np.array([row for row, value in enumerate(column) if not is_missing(value)], dtype=np.int64)
    known = [column[row] for row in rows.tolist()]
    if all(isinstance(value, str | bool | np.bool_) for value in known):
        kind: Kind = "category"
        ladder = category_ladder(known, actions[rows], rows)
    elif all(isinstance(value, int | float | np.number | Decimal) for value in known):
        kind, ladder = "number", number_ladder(np.array(known, dtype=np.float64), known, rows)
    elif all(isinstance(value, date | time) for value in known):
        kind, ladder = "time", number_ladder(np.array(list(map(_seconds, known))), known, rows)
    else:
        return "category", None
    return kind, ladder if len(ladder.values) > 1 else None


def _seconds(moment: date | time) -> float:
    if isinstance(moment, date):
        return dates.seconds(moment)
    return 3600.0 * moment.hour + 60.0 * moment.minute + moment.second


def _feature(name: str, kind: Kind, ladder: Ladder, found: LocalEffects, least: float) -> FeatureEffect:
    values = []
    ranges = zip(found.effects.tolist(), (Z * found.errors).tolist(), found.consistencies.tolist(), strict=True)
    for value, count, (effect, half, consistency) in zip(ladder.values, ladder.counts.tolist(), ranges, strict=True):
        # Half of the least change, because this is the difference from the mean, not from end to end.
        direction = _direction(effect, half, consistency, least / 2)
        values.append(ValueEffect(value, count, effect, effect - half, effect + half, direction))
    half = Z * found.change_error
    ends = found.change - half, found.change + half
    direction = _direction(found.change, half, found.change_consistency, least)
    if kind == "category":
        return FeatureEffect(name, kind, tuple(values), found.change, *ends, UNCLEAR)
    shape, swing, low, high = _shape(ladder, found, direction, least)
    return FeatureEffect(name, kind, tuple(values), found.change, *ends, direction, shape, swing, low, high)


def _where_known(feature: FeatureEffect, column: Sequence[Any]) -> FeatureEffect:
    """The effect of a column with missing values is that of its values; it may still matter whether there is one."""
    if feature.shape != LITTLE or not any(map(is_missing, column)):
        return feature
    return replace(feature, shape=f"{LITTLE} where it is known")


def _shape(
    ladder: Ladder, found: LocalEffects, direction: Direction, least: float
) -> tuple[str, float | None, float | None, float | None]:
    """What a feature does in words, and its largest rise or fall with its interval, if there is one."""
    swings = found.swings(least)
    clear = all(_direction(each.change, SEARCHED_Z * each.error, each.consistency, least) != UNCLEAR for each in swings)
    if swings and clear:
        largest = max(swings, key=lambda swing: abs(swing.change))
        size, half = abs(largest.change), SEARCHED_Z * largest.error
        # A rise from end to end keeps the words and the numbers of its direction.
        words = direction if len(swings) == 1 and direction != UNCLEAR else _turns(ladder, swings)
        return words, size, size - half, size + half
    if direction == UNCLEAR and found.cancelled >= least:
        return DEPENDS, float(found.sizes.sum()), None, None
    return LITTLE if direction == UNCLEAR and found.sizes.sum() < least else direction, None, None, None


def _near(value: Any) -> str:
    """The text of a value that is known up to a step of the ladder."""
    return f"{value:.2g}" if isinstance(value, float | np.floating) and abs(float(value)) < 100 else value_text(value)


def _turns(ladder: Ladder, swings: Sequence[Swing]) -> str:
    places = [swings[0].first, *(swing.last for swing in swings)]
    texts = [_near(ladder.values[place]) for place in places]
    rises = swings[0].change > 0
    if len(swings) == 1:
        return f"{'rises' if rises else 'falls'} from {texts[0]} to {texts[1]}"
    if len(swings) == 2:
        return (
            f"is {'highest' if rises else 'lowest'} near {texts[1]} and {'lower' if rises else 'higher'} on both sides"
        )
    turns = [f"{('falls', 'rises')[swing.change > 0]} to {text}" for swing, text in zip(swings, texts[1:], strict=True)]
    return f"{', '.join(turns[:-1])} and {turns[-1]}" if len(turns) <= 4 else "rises and falls several times"


def _direction(effect: float, half: float, consistency: float, least: float) -> Direction:
    """The direction of an effect whose interval extends by `half` to both sides."""
    if abs(effect) <= half or abs(effect) < least or abs(consistency) < CONSISTENT:
        return "no clear direction"
    return "raises the action" if effect > 0 else "lowers the action"
