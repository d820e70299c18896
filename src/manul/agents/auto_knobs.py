"""Auto for steps, options and several knobs, which `Auto` creates for such `actions`."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from manul import _core
from manul.actions.decision import A, Decision, Decisions, Narrowing
from manul.actions.distributions import KnobsView
from manul.actions.joint import JointDistribution, branch
from manul.actions.levels import SIZE, DrawnWindows
from manul.actions.limited_distribution import LimitedDistribution
from manul.actions.limits import FunctionLimits, field_values
from manul.agents.auto import FEATURES, Auto
from manul.agents.critic_report import Report, critic_report, formula_report, loss_unit
from manul.agents.learned_twice import warn_of_repeated_decision
from manul.contexts import conversion
from manul.contexts.batches import NamedBatch, rows_with
from manul.contexts.schema import Context, Contexts
from manul.errors import InputError, ParameterError
from manul.outcomes import PartValue
from manul.utils import model_files
from manul.utils.validation import (
    LARGEST_DENSITY,
    LEAST_DENSITY,
    USABLE,
    Floats,
    check_shape,
    reject,
    usable_densities,
)

NEARBY = 0.1  # by default: several knobs are explored nearby, because anywhere is far in many dimensions
MOST_COMBINATIONS = 1024  # of options, for a whole distribution


class AutoKnobs(Auto[A]):
    """Auto for every space but a range of numbers, around the core's player for several knobs."""

    def _check_settings(self, bandwidth: float | None) -> None:
        if bandwidth is not None:
            raise ParameterError(
                "bandwidth applies to a range of numbers; with other knobs, Auto chooses it.", "bandwidth"
            )
        self.bandwidth = None
        default = 0.0 if self._models_parts else NEARBY
        self.nearby: float = default if self.nearby is None else self.nearby

    def decide(self, context: Context, within: Narrowing | None = None, *, levels: bool = False) -> Decision[A]:
        """Set all knobs for a `context`; `within` maps knobs to narrower ranges, or to the options that are allowed.

        With `levels`, the decision says what it was drawn from, unless the knobs depend on each other.
        """
        decision = self.decide_again(self._host.decisions, context, within, levels=levels)
        self._host.player.decisions += 1
        return decision

    def decide_again(
        self, number: int, context: Context, within: Narrowing | None = None, *, levels: bool = False
    ) -> Decision[A]:
        windows = np.empty(SIZE * len(self.space.knobs)) if levels else None
        lows, highs = self.space.ranges(within)
        limits, fields = self._limited(context)
        draw: Any = NotImplemented
        try:
            if self._host.native is not None:
                draw = self._host.native.decide(context, lows, highs, number, limits, fields, windows)
        except _core.Rejected:
            draw = NotImplemented  # the slow path raises the error with its reason
        except _core.NothingLeft as nothing:
            raise self._explained(nothing) from None
        if draw is NotImplemented:
            player, features = self._host.player_and_context(self, context)
            with self._explain_limits(), self._host.explain_rejection():
                draw = player.decide(features, lows, highs, number, limits, fields, windows)
        positions, densities, floor = draw
        drawn = None if windows is None else DrawnWindows(self.space, windows, lows, highs)
        return self._decision(positions, densities, floor, within, drawn)

    def _decision(
        self,
        positions: Sequence[float],
        densities: Sequence[float],
        floor: float,
        within: Narrowing | None,
        drawn: DrawnWindows | None,
    ) -> Decision[A]:
        units = self.space.row_units(positions)
        by_knob = [density / unit for density, unit in zip(densities, units, strict=True)]
        joint = math.prod(by_knob)
        named = dict(zip(self.space.names, by_knob, strict=True)) if self.space.is_named else None
        floor = min(floor / self._unit_volume, joint)
        return Decision(self.space.action(positions), joint, within, floor, named, drawn=drawn)

    @cached_property
    def _unit_volume(self) -> float:
        """What the joint density of positions is divided by, at most."""
        return float(self.space.largest_units.prod())

    def decide_many(
        self, contexts: Contexts, within: Sequence[Narrowing | None] | None = None, *, levels: bool = False
    ) -> Decisions[A]:
        """Set all knobs for each row of `contexts`; `within` has one mapping per row, and `levels` are as in `decide`."""
        first = self._host.decisions
        batch: Any = self._host.batch(contexts)
        numbers = np.arange(first, first + len(batch), dtype=np.uint64)
        decisions = self.decide_many_again(numbers, batch, within, levels=levels)
        if self._host.player is not None:
            self._host.player.decisions += len(batch)
        self._batches.draw(decisions)
        return decisions

    def decide_many_again(
        self,
        numbers: npt.ArrayLike,
        contexts: Contexts,
        within: Sequence[Narrowing | None] | None = None,
        *,
        levels: bool = False,
    ) -> Decisions[A]:
        batch, keys = self._host.batch(contexts), np.ascontiguousarray(numbers, dtype=np.uint64)
        check_shape("numbers", keys.astype(np.float64), len(batch))
        lows, highs = self.space.boxes(within, len(batch))
        positions, densities = np.zeros(lows.shape), np.zeros(lows.shape)
        floors = np.zeros(len(batch))
        limited = self._limited_rows(batch)
        windows = np.empty(SIZE * lows.size) if levels else None
        with self._explain_limits(), self._host.player_and_contexts(self, batch) as (player, rows):
            player.decide_many(rows, lows, highs, keys, positions, densities, floors, *limited, windows)
        drawn = None if windows is None else DrawnWindows(self.space, windows, lows, highs)
        return self._decisions(positions, densities, floors, within, drawn)

    def _decisions(
        self, positions: Floats, densities: Floats, floors: Floats, within: Any, drawn: DrawnWindows | None
    ) -> Decisions[A]:
        scaled = densities / self.space.units(positions)
        joint: Floats = np.multiply.reduce(list(scaled.T))  # in the order of the knobs, as for one decision
        return Decisions(
            self.space.unwrap(self.space.columns(positions)),
            joint,
            floors=np.minimum(floors / self._unit_volume, joint),
            densities_by_knob=dict(zip(self.space.names, scaled.T, strict=True)) if self.space.is_named else None,
            within=within,
            drawn=drawn,
        )

    def learn(
        self,
        context: Context,
        decision: Decision[A],
        loss: float | None = None,
        *,
        reward: float | None = None,
        parts: Mapping[str, PartValue] | None = None,
    ) -> None:
        told: tuple[Any, ...] = ()
        if parts is None:
            value = self.outcome.read(loss, reward)
        else:
            read = self._read_parts(context, decision, loss, reward, parts)
            value, told = read.loss, read[1:] if self._models_parts else ()
        try:
            action, density = decision.action, float(decision.density)
        except (AttributeError, TypeError, ValueError):
            raise InputError(f"decision must be one returned by decide, got {decision!r}.", "decision") from None
        if decision is self._latest and decision.floor is not None:
            warn_of_repeated_decision(decision, stacklevel=2)
        positions = self.space.positions(action)
        scaled = density * self.space.row_volume(positions)
        late: Any = NotImplemented
        native = self._host.native
        if native is not None and LEAST_DENSITY <= density <= LARGEST_DENSITY:
            try:
                late = native.learn(context, positions, scaled, value, *told)
            except (TypeError, _core.Rejected):
                late = NotImplemented  # the checks below raise the error with its reason
        if late is NotImplemented:
            self._check_outcomes(np.array([density]), np.array([value]))
            player, context = self._host.player_and_context(self, context)
            with self._host.explain_rejection():
                late = player.learn(context, positions, scaled, value, *told)
        self._latest = decision
        if late:
            self._host.warn_of_late_fields([context], stacklevel=2)

    def learn_many(
        self,
        contexts: Contexts,
        decisions: Decisions[A],
        losses: npt.ArrayLike | None = None,
        *,
        rewards: npt.ArrayLike | None = None,
        parts: Mapping[str, npt.ArrayLike] | None = None,
    ) -> None:
        batch = self._host.batch(contexts)
        told = self._read_many(contexts, batch, decisions, losses, rewards, parts)
        values = told.losses
        positions = self.space.rows(decisions.actions, len(batch))
        densities = np.ascontiguousarray(decisions.densities, dtype=np.float64)
        for name, column in (("densities", densities), (self.outcome.keywords, values)):
            check_shape(name, column, len(batch))
        self._check_outcomes(densities, values)
        with self._host.player_and_contexts(self, batch) as (player, rows):
            player.learn_many(rows, positions, self.space.relative(densities, positions), values, *self._modelled(told))
        self._batches.learn(decisions, stacklevel=2)
        self._host.warn_of_late_fields(batch, stacklevel=2)

    def distributions(self, contexts: Contexts, within: Sequence[Narrowing | None] | None = None) -> KnobsView[A]:
        batch = self._host.batch(contexts)
        boxes = self.space.boxes(within, len(batch))
        return KnobsView(self._played_rows(batch, within), *boxes, self.space, self._limited_rows(batch))

    def predict_losses(self, contexts: Contexts, actions: Any) -> Floats:
        """The predicted loss of one of the `actions` for each of the `contexts`, or of several: an array of rows, actions and positions."""
        batch = self._host.batch(contexts)
        shape = np.shape(actions)[:2] if isinstance(actions, np.ndarray) and actions.ndim == 3 else (len(batch),)
        table = actions.reshape(-1, actions.shape[2]) if len(shape) == 2 else actions
        positions = self.space.rows(table, len(batch) * math.prod(shape[1:]))
        shares = np.empty(shape)
        with self._host.player_and_contexts(self, batch) as (player, rows):
            player.predict_many(rows, math.prod(shape[1:]), positions, shares.reshape(-1))
        low, high = loss_unit(self.losses)
        return low + shares * (high - low)

    def best(self, context: Context, within: Narrowing | None = None) -> A:
        """The action without exploration, for a `context` and `within` as in `decide`, for which there is nothing to learn or to log.

        >>> import manul
        >>> manul.Auto(actions={"price": (10, 50), "discount": (0, 0.3)}).best([0.3])
        {'price': 30.0, 'discount': 0.15}
        """
        lows, highs = self.space.ranges(within)
        limits, fields = self._limited(context)
        player, features = self._host.player_and_context(self, context)
        with self._explain_limits(), self._host.explain_rejection():
            return cast(A, self.space.action(player.best(features, lows, highs, limits, fields)))

    def distribution(self, context: Context, within: Narrowing | None = None) -> JointDistribution:
        """The distribution that `decide` draws from, for a `context` and `within` as there.

        With limits, it is a view of the agent until that learns.
        """
        if self._limits is not None:
            return self._limited_distribution(context, within)
        lows, highs = self.space.ranges(within)
        player, features = self._host.player_and_context(self, context)
        choices = [index for index, (_, knob) in enumerate(self.space.knobs) if knob.is_option]
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
            with self._host.explain_rejection():
                parts, chance = player.distributions(features, lows, highs, positions)
            branches.append(branch(self.space, dict(zip(choices, combination, strict=True)), chance, parts))
        return JointDistribution(self.space, tuple(branches))

    def _limited_distribution(self, context: Context, within: Narrowing | None) -> LimitedDistribution:
        self.decide_again(0, context, within)  # what limits leave nothing of has no distribution
        view = self.distributions([context], [within])

        def draws(numbers: npt.NDArray[np.uint64]) -> dict[str, npt.NDArray[Any]]:
            with view.playing():
                drawn = self.decide_many_again(numbers, [context] * len(numbers), [within] * len(numbers))
            return dict(self.space.wrap(drawn.actions))

        return LimitedDistribution(
            self.space, (), density_of=lambda action: float(view.density([action])[0]), draws_of=draws
        )

    def report(self, context: Context = None, *, points: int = 64) -> Report:
        """The state of the critic, with a `context` and `points` as in `Auto.report`; its bandwidth is a share of each knob's range.

        With a context, `actions` and `losses` have the predicted loss along each knob, with the others at the best action.
        """
        player = self._host.player or self._make_player(0)
        curves = {} if context is None else self._curves(context, points)
        state = player.report()
        curves["formula"] = formula_report(state, self.outcome)
        report = critic_report(state, loss_unit(self.losses), self.current_epsilon, **curves)
        return replace(report, bandwidth=None, bandwidth_share=report.bandwidth)

    def _curves(self, context: Context, points: int) -> dict[str, Any]:
        _, seen = self._host.player_and_context(self, context)
        best = self.space.positions(self.best(context))
        values, losses = {}, {}
        for place, (name, knob) in enumerate(self.space.knobs):
            values[name] = knob.as_column(knob.sweep(points), name)
            table = np.tile(best, (len(values[name]), 1))
            table[:, place] = knob.positions(values[name], name)
            contexts: Any = [seen] * len(table) if isinstance(seen, dict) else np.tile(seen, (len(table), 1))
            losses[name] = self.predict_losses(contexts, table)
        return {"actions": self.space.unwrap(values), "losses": self.space.unwrap(losses)}

    def _make_player(self, width: int) -> Any:
        return _core.KnobsPlayer(width=width, **self._player_settings)

    def _make_named_player(self) -> Any:
        return _core.KnobsPlayer(width=0, features=FEATURES, **self._player_settings)

    @property
    def _player_settings(self) -> dict[str, Any]:
        return {
            "knobs": self.space.core,
            "losses": self.outcome.loss_bounds,
            "epsilon": self._schedule.core,
            "seed": self.seed,
            "nearby": self.nearby,
            "starts": self._starts,
            "parts": self._parts_in_core(),
            "by_evidence": self.epsilon == "auto",
            "early": self._early,
        }

    def _check_outcomes(self, densities: Floats, losses: Floats) -> None:
        reject(~usable_densities(densities), densities, "density", USABLE, "Pass the density of the decision.")
        self.outcome.check(losses)

    def _limited(self, context: Any) -> tuple[_core.KnobLimits | None, Floats | None]:
        """The limits of one decision, and the numbers of the context that they need."""
        limits = self._limits
        if limits is None or not limits.fields:
            return None if limits is None else limits.core, None
        named = conversion.to_dict(context) if conversion.is_named(context) else None
        return limits.core, field_values(limits.fields, named)

    def _limited_rows(self, batch: conversion.Row | NamedBatch) -> tuple[_core.KnobLimits | None, Floats | None]:
        limits = self._limits
        if limits is None or not limits.fields:
            return self._limited(None)
        values = [field_values(limits.fields, row) for row in rows_with(batch, limits.fields)]
        return limits.core, np.array(values, dtype=np.float64).reshape(len(batch), len(limits.fields))

    @contextmanager
    def _explain_limits(self) -> Iterator[None]:
        try:
            yield
        except _core.NothingLeft as nothing:
            raise self._explained(nothing) from None

    def _explained(self, nothing: _core.NothingLeft) -> InputError:
        assert self._limits is not None
        return self._limits.explain(nothing)

    @property
    def parameters(self) -> dict[str, Any]:
        """The arguments of the constructor, except for limits that are a function."""
        limits = {"limits": list(map(str, self.space.limits))} if self.space.limits else {}
        start = {} if self.start is None else {"start": self.start}
        own = {"actions": self.actions, **limits, "epsilon": self.epsilon, "nearby": self.nearby, **start}
        return {**own, **self.outcome.arguments, "seed": self.seed}

    def _saved_settings(self) -> model_files.Parameters:
        if isinstance(self._limits, FunctionLimits):
            raise ParameterError(
                "An agent whose limits are a function cannot be saved, copied or served, because the copy would break them. "
                "Write the limits as texts, such as limits=['discount <= 1 - 9 / price'].",
                "limits",
            )
        return {**self.parameters, "actions": self.space.describe()}

    def _description(self) -> tuple[str, model_files.Parameters]:
        return "Auto", super()._description()[1]

    def __repr__(self) -> str:
        return f"Auto({', '.join(f'{name}={value!r}' for name, value in self.parameters.items())})"
