"""Auto for several knobs, which `Auto` creates if `actions` is a mapping."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import astuple, replace
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from manul import _core
from manul.actions import schedules
from manul.actions.decision import KnobsDecision, KnobsDecisions
from manul.actions.knob_positions import check_positions
from manul.actions.knobs import Choice, Knobs, KnobValue
from manul.actions.knobs_distribution import KnobsDistribution
from manul.actions.ladders import branch
from manul.actions.limited_distribution import LimitedDistribution
from manul.actions.limits import FunctionLimits, Limit, LimitsFunction, field_values
from manul.actions.schedules import Epsilon, Fading
from manul.agents.critic_report import Report, critic_report, loss_unit
from manul.agents.learned_twice import warn_of_repeated_decision
from manul.agents.player_host import COUNTERS, PlayerHost
from manul.contexts import conversion
from manul.contexts.named_batches import NamedBatch
from manul.contexts.schema import Context, Contexts
from manul.errors import InputError, ParameterError
from manul.utils import model_files
from manul.utils.rewards import AnyRange, check_ranges, loss_of, losses_of, numeric_range
from manul.utils.validation import (
    LARGEST_DENSITY,
    LEAST_DENSITY,
    USABLE,
    Floats,
    check_losses,
    check_number,
    check_seed,
    check_shape,
    reject,
    usable_densities,
)

FEATURES = 2**16  # of named contexts with weights of their own; further ones share them
MOST_COMBINATIONS = 1024  # of options, for a whole distribution
Within = Mapping[str, Any]


class AutoKnobs(PlayerHost[_core.KnobsPlayer]):
    """Auto for several knobs: `actions` maps names to (low, high), `Stepped` or `Choice`.

    Each decision sets all knobs. They are drawn independently, so the density of an action is the product of the densities
    of its knobs; steps and options have probabilities. A share `nearby` of the decisions explores near the best action,
    and a share `epsilon` anywhere. `limits` are texts, such as "discount <= 1 - 9 / price" (`manul.actions.limits`), or a
    function of the knobs that are set already, options first and then in order, that returns ranges for others; it must
    depend on its argument only, and an agent with a function cannot be saved or copied.

    >>> import manul
    >>> agent = manul.Auto(actions={"price": (10, 50), "template": manul.Choice(["a", "b"])}, seed=7)
    >>> decision = agent.decide({"country": "SE"})
    >>> sorted(decision.action), round(decision.density, 4), decision.densities["template"]
    (['price', 'template'], 0.0125, 0.5)
    >>> agent.learn({"country": "SE"}, decision, loss=0.25)
    """

    _native: _core.KnobsPlayer | None

    def __init__(
        self,
        *,
        actions: Mapping[str, Any],
        epsilon: Epsilon | Literal["auto"] = "auto",
        nearby: float = 0.1,
        losses: AnyRange | None = None,
        rewards: AnyRange | None = None,
        limits: Sequence[str | Limit] | LimitsFunction | None = (),
        seed: int = 0,
    ) -> None:
        self.knobs = Knobs.check(actions)
        self.losses, self.rewards = check_ranges(losses, rewards, None)
        fades = isinstance(epsilon, str) and epsilon == "auto"
        self._schedule = Fading() if fades else schedules.check_epsilon(epsilon)  # type: ignore[arg-type]
        self.epsilon: Epsilon | Literal["auto"] = "auto" if fades else self._schedule
        self.nearby = check_number("nearby", nearby, 0, 1, "Try 0.1.", ends="[)")
        self.limits = limits
        self.seed = check_seed(seed)
        super().__init__(None)

    @property
    def actions(self) -> dict[str, Any]:
        return self.knobs.actions

    @property
    def limits(self) -> tuple[Limit, ...] | LimitsFunction:
        """The limits between the knobs."""
        return self._limits.function if isinstance(self._limits, FunctionLimits) else self.knobs.limits

    @limits.setter
    def limits(self, limits: Sequence[str | Limit] | LimitsFunction | None) -> None:
        function = FunctionLimits(self.knobs.knobs, limits) if callable(limits) else None
        self.knobs = self.knobs.with_limits(None if callable(limits) else limits)
        self._limits = function or self.knobs.limited

    @property
    def current_epsilon(self) -> float:
        """The share of decisions that explore anywhere now, which fades with the rounds learned if it is a schedule."""
        return schedules.epsilon_at(self._schedule, 0.0) if self.player is None else self.player.epsilon

    def decide(self, context: Context, within: Within | None = None) -> KnobsDecision:
        """Set all knobs; `within` maps knobs to narrower ranges, or to the options that are allowed."""
        decision = self.decide_again(self.decisions, context, within)
        assert self.player is not None
        self.player.decisions += 1
        return decision

    def decide_again(self, number: int, context: Context, within: Within | None = None) -> KnobsDecision:
        """Draw the decision with this number, any below 2^64, without counting it as a new decision."""
        lows, highs = self.knobs.ranges(within)
        limits, fields = self._limited(context)
        draw: Any = NotImplemented
        with self._explain_limits():
            if self._native is not None:
                with suppress(_core.Rejected):  # the slow path raises the error with its reason
                    draw = self._native.decide(context, lows, highs, number, limits, fields)
            if draw is NotImplemented:
                player, features = self.player_and_context(context)
                with self.explain_rejection():
                    draw = player.decide(features, lows, highs, number, limits, fields)
        positions, densities, floor = draw
        return self._decision(positions, densities, floor, within)

    def _decision(
        self, positions: Sequence[float], densities: Sequence[float], floor: float, within: Within | None
    ) -> KnobsDecision:
        by_knob = self.knobs.densities(densities)
        joint = math.prod(by_knob.values())
        return KnobsDecision(
            self.knobs.action(positions), joint, by_knob, within, min(floor / self._unit_volume, joint)
        )

    @cached_property
    def _unit_volume(self) -> float:
        """What the joint density of positions is divided by."""
        return math.prod(knob.unit for _, knob in self.knobs.knobs)

    def decide_many(self, contexts: Contexts, within: Sequence[Within | None] | None = None) -> KnobsDecisions:
        """Set all knobs for each row; `within` has one mapping per row."""
        first = self.decisions
        batch: Any = self.batch(contexts)
        decisions = self.decide_many_again(np.arange(first, first + len(batch), dtype=np.uint64), batch, within)
        if self.player is not None:
            self.player.decisions += len(batch)
        self._batches.draw(decisions)
        return decisions

    def decide_many_again(
        self, numbers: npt.ArrayLike, contexts: Contexts, within: Sequence[Within | None] | None = None
    ) -> KnobsDecisions:
        """Draw the decision with each row's number without counting them as new decisions."""
        batch, keys = self.batch(contexts), np.ascontiguousarray(numbers, dtype=np.uint64)
        check_shape("numbers", keys.astype(np.float64), len(batch))
        lows, highs = self._tables(within, len(batch))
        positions, densities = np.zeros(lows.shape), np.zeros(lows.shape)
        floors = np.zeros(len(batch))
        limited = self._limited_rows(batch)
        with self._explain_limits(), self.player_and_contexts(batch) as (player, rows):
            player.decide_many(rows, lows, highs, keys, positions, densities, floors, *limited)
        return self._decisions(positions, densities, floors, within)

    def _decisions(self, positions: Floats, densities: Floats, floors: Floats, within: Any) -> KnobsDecisions:
        actions = self.knobs.columns([self.knobs.action(row) for row in positions])
        scaled = densities / self.knobs.units
        by_knob = dict(zip(self.knobs.names, scaled.T, strict=True))
        joint = scaled.prod(axis=1)
        return KnobsDecisions(actions, joint, by_knob, within, np.minimum(floors / self._unit_volume, joint))

    def learn(
        self, context: Context, decision: KnobsDecision, loss: float | None = None, *, reward: float | None = None
    ) -> None:
        """Learn from the loss of a decision, or from its reward if the agent was made with rewards."""
        value = loss_of(loss, reward, rewards=self.rewards is not None)
        try:
            action, density = decision.action, float(decision.density)
        except (AttributeError, TypeError, ValueError):
            raise InputError(f"decision must be one returned by decide, got {decision!r}.", "decision") from None
        if decision is self._latest and decision.floor is not None:
            warn_of_repeated_decision(decision, stacklevel=2)
        positions, scaled = self.knobs.positions(action), density * self.knobs.volume
        late: Any = NotImplemented
        if self._native is not None and LEAST_DENSITY <= density <= LARGEST_DENSITY:
            with suppress(TypeError, _core.Rejected):  # the checks below raise the error with its reason
                late = self._native.learn(context, positions, scaled, value)
        if late is NotImplemented:
            self._check_outcomes(np.array([density]), np.array([value]))
            player, context = self.player_and_context(context)
            with self.explain_rejection():
                late = player.learn(context, positions, scaled, value)
        self._latest = decision
        if late:
            self.warn_of_late_fields([context], stacklevel=2)

    def learn_many(
        self,
        contexts: Contexts,
        decisions: KnobsDecisions,
        losses: npt.ArrayLike | None = None,
        *,
        rewards: npt.ArrayLike | None = None,
    ) -> None:
        """Learn from the losses or rewards of many decisions, in order; if one of them is invalid, from none."""
        values = losses_of(losses, rewards, rewards=self.rewards is not None)
        batch = self.batch(contexts)
        positions = self._positions(decisions.actions, len(batch))
        densities = np.ascontiguousarray(decisions.densities, dtype=np.float64)
        for name, column in (("densities", densities), ("losses" if self.rewards is None else "rewards", values)):
            check_shape(name, column, len(batch))
        self._check_outcomes(densities, values)
        with self.player_and_contexts(batch) as (player, rows):
            player.learn_many(rows, positions, densities * self.knobs.volume, values)
        self._batches.learn(decisions, stacklevel=2)
        self.warn_of_late_fields(batch, stacklevel=2)

    def densities_many(self, contexts: Contexts, actions: Any, within: Sequence[Within | None] | None = None) -> Floats:
        """The joint density of each row's action, which any policy may have drawn."""
        batch = self.batch(contexts)
        positions = self._positions(actions, len(batch))
        lows, highs = self._tables(within, len(batch))
        densities = np.zeros(lows.shape)
        limited = self._limited_rows(batch)
        with self.player_and_contexts(batch) as (player, rows):
            player.densities_many(rows, lows, highs, positions, densities, *limited)
        joint: Floats = (densities / self.knobs.units).prod(axis=1)
        return joint

    def predict_losses(self, contexts: Contexts, actions: Any) -> Floats:
        """The predicted loss of each row's action, or of several per row: an array of rows, actions and positions."""
        batch = self.batch(contexts)
        shape = np.shape(actions)[:2] if isinstance(actions, np.ndarray) and actions.ndim == 3 else (len(batch),)
        table = actions.reshape(-1, actions.shape[2]) if len(shape) == 2 else actions
        positions = self._positions(table, len(batch) * math.prod(shape[1:]))
        shares = np.empty(shape)
        with self.player_and_contexts(batch) as (player, rows):
            player.predict_many(rows, math.prod(shape[1:]), positions, shares.reshape(-1))
        low, high = loss_unit(self.losses)
        return low + shares * (high - low)

    def best(self, context: Context, within: Within | None = None) -> dict[str, KnobValue]:
        """The action without exploration, for which there is nothing to learn or to log.

        >>> import manul
        >>> manul.Auto(actions={"price": (10, 50), "discount": (0, 0.3)}).best([0.3])
        {'price': 30.0, 'discount': 0.15}
        """
        lows, highs = self.knobs.ranges(within)
        limits, fields = self._limited(context)
        player, features = self.player_and_context(context)
        with self._explain_limits(), self.explain_rejection():
            return self.knobs.action(player.best(features, lows, highs, limits, fields))

    def distribution(self, context: Context, within: Within | None = None) -> KnobsDistribution:
        """The distribution that `decide` draws from; with limits, it is a view of the agent until that learns."""
        if self._limits is not None:
            return self._limited_distribution(context, within)
        lows, highs = self.knobs.ranges(within)
        player, features = self.player_and_context(context)
        choices = [index for index, (_, knob) in enumerate(self.knobs.knobs) if isinstance(knob, Choice)]
        allowed = [[bit for bit in range(32) if int(lows[index]) >> bit & 1] for index in choices]
        if np.prod([len(options) for options in allowed]) > MOST_COMBINATIONS:
            raise InputError(
                f"distribution lists at most {MOST_COMBINATIONS} combinations of options. Narrow them with within.",
                "within",
            )
        branches = []
        for combination in itertools.product(*allowed):
            positions = lows.copy()
            positions[choices] = combination
            with self.explain_rejection():
                parts, chance = player.distributions(features, lows, highs, positions)
            branches.append(branch(self.knobs, dict(zip(choices, combination, strict=True)), chance, parts))
        return KnobsDistribution(self.knobs, tuple(branches))

    def _limited_distribution(self, context: Context, within: Within | None) -> LimitedDistribution:
        self.decide_again(0, context, within)  # what limits leave nothing of has no distribution
        player = self.player
        assert player is not None
        learned = player.learned

        def check() -> None:
            if self.player is not player or player.learned != learned:
                raise InputError("The agent has learned since this distribution was made. Ask for it again.", "agent")

        def density(action: Mapping[str, Any]) -> float:
            check()
            return float(self.densities_many([context], [action], [within])[0])

        def draws(numbers: npt.NDArray[np.uint64]) -> dict[str, npt.NDArray[Any]]:
            check()
            return self.decide_many_again(numbers, [context] * len(numbers), [within] * len(numbers)).actions

        return LimitedDistribution(self.knobs, (), density_of=density, draws_of=draws)

    def report(self) -> Report:
        """The state of the critic, as in `Auto.report`; its bandwidth is a share of each knob's range."""
        player = self.player or self.make_player(0)
        report = critic_report(player.report(), loss_unit(self.losses), self.current_epsilon)
        return replace(report, bandwidth=None, bandwidth_share=report.bandwidth)

    def make_player(self, width: int) -> _core.KnobsPlayer:
        """A new player for contexts of this width."""
        return _core.KnobsPlayer(width=width, **self._player_settings)

    def _make_named_player(self) -> _core.KnobsPlayer:
        return _core.KnobsPlayer(width=0, features=FEATURES, **self._player_settings)

    @property
    def _player_settings(self) -> dict[str, Any]:
        schedule = self._schedule
        return {
            "knobs": self.knobs.kinds,
            "losses": numeric_range(self.losses),
            "epsilon": astuple(schedule) if isinstance(schedule, Fading) else schedule,
            "seed": self.seed,
            "nearby": self.nearby,
        }

    def _counters(self, _player: _core.KnobsPlayer) -> tuple[str, ...]:
        return COUNTERS if isinstance(self._schedule, Fading) else COUNTERS[:1]

    def _check_outcomes(self, densities: Floats, losses: Floats) -> None:
        reject(~usable_densities(densities), densities, "density", USABLE, "Pass the density of the decision.")
        check_losses(losses, numeric_range(self.losses), rewards=self.rewards is not None)

    def _tables(self, within: Sequence[Within | None] | None, count: int) -> tuple[Floats, Floats]:
        if within is None:
            lows, highs = self.knobs.ranges(None)
            return np.tile(lows, (count, 1)), np.tile(highs, (count, 1))
        if len(within) != count:
            raise InputError(
                f"within must have one mapping for each of the {count} contexts, got {len(within)}.", "within"
            )
        ends, size = [self.knobs.ranges(each) for each in within], len(self.knobs.knobs)
        lows, highs = (np.array([pair[side] for pair in ends]).reshape(-1, size) for side in (0, 1))
        return lows, highs

    def _positions(self, actions: Any, count: int) -> Floats:
        """One row of positions per action, which are mappings, columns by knob, or a table of positions."""
        if isinstance(actions, np.ndarray) and actions.ndim == 2:
            return check_positions(self.knobs, actions, count)
        if isinstance(actions, Mapping):
            scalars = [column for column in actions.values() if isinstance(column, str) or np.ndim(column) != 1]
            if scalars:
                raise InputError(
                    f"actions must have one value per row for each knob, got {scalars[0]!r:.60}.", "actions"
                )
            lengths = {len(column) for column in actions.values()}
            if len(lengths) > 1:
                raise InputError(f"actions must have as many values for each knob, got {sorted(lengths)}.", "actions")
            columns = {
                name: column.tolist() if hasattr(column, "tolist") else column for name, column in actions.items()
            }
            actions = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
        rows = [self.knobs.positions(action) for action in actions]
        if len(rows) != count:
            raise InputError(
                f"actions must have one action for each of the {count} contexts, got {len(rows)}.", "actions"
            )
        return np.array(rows).reshape(count, len(self.knobs.knobs))

    def _limited(self, context: Any) -> tuple[_core.KnobLimits | None, Floats | None]:
        """The limits of one decision, and the numbers of the context that they need."""
        limits = self._limits
        if limits is None or not limits.fields:
            return None if limits is None else limits.core, None
        named = conversion.to_dict(context) if conversion.is_named(context) else None
        return limits.core, field_values(limits, named)

    def _limited_rows(self, batch: conversion.Row | NamedBatch) -> tuple[_core.KnobLimits | None, Floats | None]:
        limits = self._limits
        if limits is None or not limits.fields:
            return self._limited(None)
        values = [field_values(limits, row) for row in _rows_with(batch, limits.fields)]
        return limits.core, np.array(values, dtype=np.float64).reshape(len(batch), len(limits.fields))

    @contextmanager
    def _explain_limits(self) -> Iterator[None]:
        try:
            yield
        except _core.NothingLeft as nothing:
            assert self._limits is not None
            raise self._limits.explain(nothing) from None

    @property
    def parameters(self) -> dict[str, Any]:
        """The arguments of the constructor, except for limits that are a function."""
        outcomes = {"losses": self.losses} if self.rewards is None else {"rewards": self.rewards}
        limits = {"limits": list(map(str, self.knobs.limits))} if self.knobs.limits else {}
        common = {"actions": self.actions, **limits, "epsilon": self.epsilon, "nearby": self.nearby}
        return {**common, **outcomes, "seed": self.seed}

    def contents(self) -> model_files.Contents:
        """The contents of a file with the agent; one whose limits are a function has none."""
        if isinstance(self._limits, FunctionLimits):
            raise ParameterError(
                "An agent whose limits are a function cannot be saved, copied or served, because the copy would break them. "
                "Write the limits as texts, such as limits=['discount <= 1 - 9 / price'].",
                "limits",
            )
        settings = {**self.parameters, "actions": self.knobs.describe(), "epsilon": schedules.describe(self.epsilon)}
        return "Auto", {**settings, **self.context_parameters()}, self.state()

    @classmethod
    def from_saved(cls, parameters: model_files.Parameters, arrays: model_files.Arrays) -> Self:
        """The agent that was saved with these parameters and arrays."""
        settings = dict(parameters)
        width, names = settings.pop("width"), settings.pop("names")
        settings["actions"] = Knobs.from_description(settings["actions"]).actions
        settings["epsilon"] = schedules.from_description(settings["epsilon"])
        arguments: Any = {name: tuple(value) if isinstance(value, list) else value for name, value in settings.items()}
        agent = cls(**arguments)
        if width is None and names is None and not arrays:
            return agent
        if names is not None and width != 0:
            raise model_files.mismatch_error()
        player = agent.start(model_files.check_width(width)) if names is None else agent.start_named(names)
        agent.restore(player, arrays)
        return agent

    def __repr__(self) -> str:
        return f"Auto({', '.join(f'{name}={value!r}' for name, value in self.parameters.items())})"


def _rows_with(batch: conversion.Row | NamedBatch, names: Sequence[str]) -> Iterator[Mapping[str, Any] | None]:
    """The rows of a batch, of tables only the columns with these names; None for rows of numbers."""
    columns = batch.contexts if isinstance(batch, NamedBatch) else None
    if isinstance(columns, dict):
        columns = {name: columns[name] for name in names if name in columns}
        return ({name: values[row] for name, values in columns.items()} for row in range(len(batch)))
    return (batch[row] if isinstance(batch, NamedBatch) else None for row in range(len(batch)))
