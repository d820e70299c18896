"""What every agent shares: checks, conversions, single and batch forms, saving."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from manul import _core
from manul.actions.distribution import Atoms, Distribution
from manul.actions.ranges import Actions
from manul.actions.smoothing import explore, smooth
from manul.agents.player import AnyPlayer
from manul.agents.player_host import SKETCH, PlayerHost
from manul.contexts import conversion
from manul.errors import InputError
from manul.policies.plottable import Drawn
from manul.types import Context, Decision, Decisions, Floats, Policy, Within
from manul.utils import model_files
from manul.utils.validation import check_epsilon, check_half_life, check_outcomes, check_range, check_seed, check_shape

_NOTHING = np.empty(0)


class BaseAgent(Drawn, PlayerHost[AnyPlayer]):
    """An agent around a player: a class of its own says what its `parameters` are, and how to `make_player(width)`.

    The width is that of the first context.
    """

    def __init__(
        self, *, actions: Within, losses: Within, epsilon: float, seed: int, half_life: float | None = None
    ) -> None:
        self.actions = check_range("actions", actions)
        self.losses = check_range("losses", losses)
        self.epsilon = check_epsilon(epsilon)
        self.seed = check_seed(seed)
        self._range = Actions(*self.actions)
        super().__init__(check_half_life(half_life))

    @property
    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """What the constructor needs to make this agent again."""

    @property
    def narrowest_bandwidth(self) -> float:
        """The smallest bandwidth that a narrowed range must have room for."""
        return 0.0

    def narrowed(self, within: Within | None) -> Within:
        """The range of one decision; refuses one that leaves nothing to play."""
        return self._range.narrow(within, self.narrowest_bandwidth)

    def _played(self, centre: float, bandwidth: float, within: Within) -> Distribution | Atoms:
        return explore(smooth(centre, bandwidth, within), self.epsilon, within)

    def distribution(self, context: Context, within: Within | None = None) -> Distribution | Atoms:
        """The distribution that `decide` draws from."""
        low, high = self.narrowed(within)
        player, seen = self.player_and_context(context)
        with self.explained():
            centre, bandwidth = player.window(seen, low, high)
        return self._played(centre, bandwidth, (low, high))

    def decide(self, context: Context, within: Within | None = None) -> Decision:
        """Draw an action."""
        low, high = self.actions if within is None else self.narrowed(within)
        native = self._native
        try:
            drawn: Any = NotImplemented if native is None else native.decide(context, low, high)
        except _core.Rejected:
            drawn = NotImplemented  # the checks of the slow way say why
        if drawn is NotImplemented:
            player, seen = self.player_and_context(context)
            with self.explained():
                drawn = player.decide(seen, low, high)
        action, density = drawn
        return Decision(action, density, within)

    def learn(self, context: Context, decision: Decision, loss: float) -> None:
        """Take in what a decision led to."""
        try:
            action, density, within = decision
        except (TypeError, ValueError):
            raise InputError(
                f"decision must be what decide returned; got {decision!r}. Pass it on as it is.", "decision"
            ) from None
        low, high = self.actions if within is None else self.narrowed(within)
        if self._native is not None:
            try:
                if self._native.learn(context, action, density, loss, low, high) is not NotImplemented:
                    return
            except (TypeError, _core.Rejected):  # no number, or one that is out of range: the checks say why
                pass
        outcome = (_number("action", action), _number("density", density), _number("loss", loss), [low], [high])
        self.check_outcomes(*map(_numbers, outcome))
        player, seen = self.player_and_context(context)
        with self.explained():
            player.learn(seen, float(action), float(density), float(loss), low, high)

    def decide_many(self, contexts: npt.ArrayLike, within: npt.ArrayLike | None = None) -> Decisions:
        """Draw an action for each row; `within` is one (low, high) per row."""
        names = self._named_rows(contexts)
        if names is not None:
            return self._decide_named(names, within)
        rows = conversion.matrix(contexts)
        lows, highs = self._ends(within, len(rows))
        player = self.player_for(rows)
        actions, densities = np.empty(len(rows)), np.empty(len(rows))
        player.decide_many(rows, lows, highs, actions, densities)
        return Decisions(actions, densities, *((lows, highs) if within is not None else (None, None)))

    def decide_again(self, number: int, context: Context, within: Within | None = None) -> Decision:
        """Draw the decision of a number, which is any below 2^64, without counting it."""
        low, high = self.actions if within is None else self.narrowed(within)
        native = self._native
        try:
            drawn: Any = NotImplemented if native is None else native.decide_again(context, low, high, number)
        except _core.Rejected:
            drawn = NotImplemented  # the checks of the slow way say why
        if drawn is NotImplemented:
            player, seen = self.player_and_context(context)
            with self.explained():
                drawn = self._draw(player, seen, low, high, number)
        action, density = drawn
        return Decision(action, density, within)

    def decide_many_again(
        self, numbers: npt.ArrayLike, contexts: npt.ArrayLike, within: npt.ArrayLike | None = None
    ) -> Decisions:
        """Draw the decision of each row's number without counting it."""
        rows, keys = conversion.matrix(contexts), np.ascontiguousarray(numbers, dtype=np.uint64)
        lows, highs = self._ends(within, len(rows))
        player = self.player_for(rows)
        actions, densities = np.empty(len(rows)), np.empty(len(rows))
        if isinstance(player, _core.Player):
            player.decide_many_again(rows, lows, highs, keys, actions, densities)
        else:
            ends = zip(lows, highs, strict=True) if len(lows) else [self.actions] * len(rows)
            for place, (row, (low, high)) in enumerate(zip(rows, ends, strict=True)):
                actions[place], densities[place] = self._draw(player, row, low, high, int(keys[place]))
        return Decisions(actions, densities, *((lows, highs) if within is not None else (None, None)))

    def _draw(self, player: AnyPlayer, seen: Any, low: float, high: float, number: int) -> tuple[float, float]:
        if isinstance(player, _core.Player):
            again: tuple[float, float] = player.decide_again(seen, low, high, number)
            return again
        counted = player.decisions
        try:
            player.decisions = number
            return player.decide(seen, low, high)
        finally:
            player.decisions = counted

    def densities_many(
        self, contexts: npt.ArrayLike, actions: npt.ArrayLike, within: npt.ArrayLike | None = None
    ) -> Floats:
        """The density of each row's action, which may have been drawn by another policy."""
        names, asked = self._named_rows(contexts), _numbers(actions)
        rows: Any = conversion.matrix(contexts) if names is None else names
        check_shape("actions", asked, len(rows))
        lows, highs = self._ends(within, len(rows))
        player = self.player_for(rows) if names is None else None
        if not isinstance(player, _core.Player):
            played = distributions(self, rows, within)
            return np.array([each.density(action) for each, action in zip(played, asked, strict=True)])
        densities = np.empty(len(rows))
        player.densities_many(rows, lows, highs, asked, densities)
        return densities

    def moments_many(self, contexts: npt.ArrayLike, within: npt.ArrayLike | None = None) -> tuple[Floats, Floats]:
        """The expected action of each row, and its expected square."""
        names = self._named_rows(contexts)
        rows: Any = conversion.matrix(contexts) if names is None else names
        lows, highs = self._ends(within, len(rows))
        player = self.player_for(rows) if names is None else None
        means, squares = np.empty(len(rows)), np.empty(len(rows))
        if isinstance(player, _core.Player):
            player.moments_many(rows, lows, highs, means, squares)
        else:
            for number, played in enumerate(distributions(self, rows, within)):
                means[number], squares[number] = played.mean(), played.square()
        return means, squares

    def learn_many(self, contexts: npt.ArrayLike, decisions: Decisions, losses: npt.ArrayLike) -> None:
        """Take in what many decisions led to, in order; all of them or, where one cannot be used, none."""
        names = self._named_rows(contexts)
        rows = conversion.matrix(contexts) if names is None else np.empty((len(names), 0), np.float32)
        actions, densities, paid = (_numbers(each) for each in (decisions.actions, decisions.densities, losses))
        lows = _NOTHING if decisions.lows is None else _numbers(decisions.lows)
        highs = _NOTHING if decisions.highs is None else _numbers(decisions.highs)
        for name, array in (("actions", actions), ("densities", densities), ("losses", paid)):
            check_shape(name, array, len(rows))
        self.check_outcomes(
            actions, densities, paid, *((lows, highs) if len(lows) else np.array(self.actions)[:, np.newaxis])
        )
        if names is None:
            self.player_for(rows).learn_many(rows, actions, densities, paid, lows, highs)
        else:
            self._learn_named(names, actions, densities, paid, lows, highs)

    def contents(self) -> model_files.Contents:
        """What a file of the agent holds."""
        return type(self).__name__, {**self._settings_saved(), **self.contexts_saved()}, self.state()

    def save(self, path: str | Path) -> None:
        """Write to a `.manul` file."""
        model_files.write(path, *self.contents())

    @classmethod
    def from_saved(cls, parameters: model_files.Parameters, arrays: model_files.Arrays) -> Self:
        """The agent that was saved with these parameters and arrays."""
        width, names = parameters.pop("width"), parameters.pop("names")
        agent = cls._from_parameters(parameters)
        if width is None and names is None and not arrays:
            return agent
        columns = model_files.check_width(width) if names is None else SKETCH
        if (names is not None and width != 0) or not agent._fits(columns, arrays):
            raise model_files.mismatch_error()
        agent.restore(agent.start(columns) if names is None else agent.start_named(names), arrays)
        return agent

    def _settings_saved(self) -> model_files.Parameters:
        return self.parameters

    @classmethod
    def _from_parameters(cls, parameters: model_files.Parameters) -> Self:
        settings: Any = {name: tuple(value) if isinstance(value, list) else value for name, value in parameters.items()}
        return cls(**settings)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.parameters.items() if value is not None)
        return f"{type(self).__name__}({shown})"

    def _fits(self, width: int, arrays: model_files.Arrays) -> bool:
        """Whether arrays can be this agent's, as far as must be known before a player is made."""
        return width <= sum(array.size for array in arrays.values())  # there is a number for each at least

    def _named_rows(self, contexts: Any) -> list[conversion.Fields] | None:
        if self.player is not None and not self._names:
            return None
        return conversion.to_dicts(contexts)

    def _decide_named(self, contexts: list[conversion.Fields], within: npt.ArrayLike | None) -> Decisions:
        lows, highs = self._ends(within, len(contexts))
        ranges = zip(lows, highs, strict=True) if len(lows) else [None] * len(contexts)
        for each in contexts:
            self.distribution(each)
        made = [self.decide(each, ends) for each, ends in zip(contexts, ranges, strict=True)]
        actions, densities = (np.array([each[i] for each in made], dtype=np.float64) for i in (0, 1))
        return Decisions(actions, densities, *((lows, highs) if within is not None else (None, None)))

    def _learn_named(
        self,
        contexts: list[conversion.Fields],
        actions: Floats,
        densities: Floats,
        losses: Floats,
        lows: Floats,
        highs: Floats,
    ) -> None:
        for each in contexts:
            self.distribution(each)
        for number, each in enumerate(contexts):
            within = (float(lows[number]), float(highs[number])) if len(lows) else None
            self.learn(each, Decision(float(actions[number]), float(densities[number]), within), float(losses[number]))

    def _ends(self, within: npt.ArrayLike | None, count: int) -> tuple[Floats, Floats]:
        if within is None:
            return _NOTHING, _NOTHING
        pairs = np.asarray(within, dtype=np.float64)
        check_shape("within", pairs, count, 2)
        for low, high in pairs:
            self.narrowed((low, high))
        return np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])

    def check_outcomes(self, actions: Floats, densities: Floats, losses: Floats, lows: Floats, highs: Floats) -> None:
        """Refuses outcomes that cannot be learned from."""
        check_outcomes(actions, densities, losses, lows, highs, loss_range=self.losses)


def _number(name: str, value: object) -> list[float]:
    try:
        return [float(value)]  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise InputError(f"{name} must be a number; got {value!r}. Convert it first.", name) from None


def _numbers(values: npt.ArrayLike) -> Floats:
    return np.ascontiguousarray(values, dtype=np.float64)


def distributions(policy: Policy, rows: Any, within: npt.ArrayLike | None) -> list[Distribution | Atoms]:
    """The distribution of each row, in its range."""
    pairs = [None] * len(rows) if within is None else [(low, high) for low, high in np.asarray(within).tolist()]
    return [policy.distribution(row, ends) for row, ends in zip(rows, pairs, strict=True)]
