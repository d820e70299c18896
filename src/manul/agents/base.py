"""The base class of agents: validation, conversion of contexts, single and batch forms, saving."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, Literal, Self, cast, overload

import numpy as np
import numpy.typing as npt

from manul import _core
from manul.actions import schedules
from manul.actions.decision import A, Decision, Decisions, Narrowing, Within
from manul.actions.distribution import Atoms, Distribution
from manul.actions.ranges import Actions
from manul.actions.schedules import Epsilon
from manul.actions.smoothing import explore, smooth
from manul.actions.space import ActionSpace
from manul.agents.agent_card import setting_rows
from manul.agents.learned_twice import warn_of_repeated_decision
from manul.agents.player import Draw, Player
from manul.agents.player_host import COUNTERS, SKETCH, PlayerHost
from manul.contexts.schema import Context, Contexts
from manul.errors import InputError, ParameterError
from manul.outcomes import AnyRange, Outcome
from manul.policies.plot_mixin import PlotMixin
from manul.policies.policy import Policy
from manul.utils import model_files
from manul.utils.validation import Floats, check_half_life, check_seed, check_shape, check_taken

# Half the time of the constructor of a named tuple, and a tenth of that of a decision of Cats.
_new: Callable[[Any, Any], Decision[Any]] = tuple.__new__
_WHOLE_RANGE = np.empty(0)  # players take empty ends as the whole range


class BaseAgent(PlotMixin, PlayerHost[Any], Generic[A]):
    """An agent around a player: a subclass defines `make_player(width)` and stores its arguments as attributes.

    The first context sets the width.
    """

    _native: Any
    needs_range = True  # of losses or rewards; False if the agent also learns with "auto"
    takes_knobs = False  # whether actions may be other than numbers in a range

    def __init__(
        self,
        *,
        actions: Any,
        losses: AnyRange | None = None,
        rewards: AnyRange | None = None,
        outcome: Outcome | None = None,
        epsilon: Epsilon,
        seed: int,
        half_life: float | None = None,
    ) -> None:
        self.space: ActionSpace[A] = ActionSpace(actions)
        if not self.space.is_number and not self.takes_knobs:
            got = "a mapping" if self.space.is_named else repr(actions)
            raise ParameterError(
                f"{type(self).__name__} sets one knob: actions must be (low, high), got {got}. Use Auto.",
                "actions",
            )
        self.actions = self.space.actions
        self.outcome = Outcome.of(losses=losses, rewards=rewards, outcome=outcome)
        if self.needs_range:
            self.outcome.known_losses(type(self).__name__, " Only Auto learns without a range.")
        checked = schedules.check_epsilon(epsilon)
        self._schedule = schedules.as_schedule(checked)
        self.epsilon: Epsilon | Literal["auto"] = checked
        self.seed = check_seed(seed)
        if self.space.is_number:
            self._range = Actions(*self.space.ends)
        super().__init__(check_half_life(half_life))

    @property
    def losses(self) -> AnyRange:
        """The range of losses; of negative rewards if the agent was made with rewards."""
        return self.outcome.losses

    @property
    def parameters(self) -> dict[str, Any]:
        """The arguments of the constructor."""
        names = inspect.signature(type(self)).parameters
        return self._with_outcome({name: getattr(self, name) for name in names if name not in ("rewards", "outcome")})

    def card_rows(self) -> Iterable[tuple[str, object]]:
        """The settings in a notebook."""
        return setting_rows(self.parameters)

    def _with_outcome(self, parameters: dict[str, Any]) -> dict[str, Any]:
        """The parameters, with the argument that says the outcome in place of the losses."""
        ((own, said),) = self.outcome.arguments.items()
        return {
            own if name == "losses" else name: said if name == "losses" else parameters[name] for name in parameters
        }

    @property
    def _common(self) -> dict[str, Any]:
        losses = self.outcome.loss_bounds
        return {"actions": self.actions, "losses": losses, "epsilon": self.epsilon, "seed": self.seed}

    @property
    def _player_settings(self) -> dict[str, Any]:
        """The settings that all players of the core have."""
        return {**self._common, "epsilon": self._schedule.core}

    @property
    def current_epsilon(self) -> float:
        """The epsilon of the next decision, which changes with the rounds learned if it is a schedule."""
        return self._schedule.at(0.0) if self.player is None else self.player.epsilon

    @property
    def narrowest_bandwidth(self) -> float:
        """The smallest bandwidth; a narrowed range must be at least twice as wide."""
        return 0.0

    def _counters(self, player: Any) -> tuple[str, ...]:
        changes = self._schedule.changes and isinstance(player, _core.Player)
        return COUNTERS if changes else super()._counters(player)

    def narrow(self, within: Any) -> Within:
        """The range of one decision, `within` or the whole; raises InputError if the agent has no action in it."""
        return self._range.narrow(within, self.narrowest_bandwidth)

    def _explore(self, centre: float, bandwidth: float, within: Within) -> Distribution | Atoms:
        return explore(smooth(centre, bandwidth, within), self.current_epsilon, within)

    def distribution(self, context: Context, within: Narrowing | None = None) -> Any:
        """The distribution that `decide` draws from in a `context`; `within` narrows the range of actions."""
        ends = self.narrow(within)
        return self._explore(*self._window(context, ends), ends)

    def best(self, context: Context, within: Narrowing | None = None) -> A:
        """The greedy action, the centre of the window that `decide` draws from with probability 1 - epsilon.

        The `context` and `within` are as in `decide`. The action has no density, so there is nothing to learn or to
        log.

        >>> import manul
        >>> manul.Auto(actions=(0.0, 32.0)).best([0.3, 1.2])
        16.0
        """
        return cast(A, self._window(context, self.narrow(within))[0])

    def _window(self, context: Context, within: Within) -> tuple[float, float]:
        player, features = self.player_and_context(context)
        with self._explain_rejection():
            window: Within = player.window(features, *within)
            return window

    def decide(self, context: Context, within: Narrowing | None = None) -> Decision[A]:
        """Draw an action for a `context`, a row of numbers or a mapping of fields; `within` narrows the range of actions."""
        low, high = self.actions if within is None else self.narrow(within)
        native = self._native
        try:
            draw: Any = NotImplemented if native is None else native.decide(context, low, high)
        except _core.Rejected:
            draw = NotImplemented  # the slow path raises the error with its reason
        if draw is NotImplemented:
            player, features = self.player_and_context(context)
            with self._explain_rejection():
                draw = player.decide(features, low, high)
        action, density, floor = draw
        return _new(Decision, (action, density, within, floor, None, None, None))

    @overload
    def learn(self, context: Context, decision: Decision[A], loss: float) -> None: ...
    @overload
    def learn(self, context: Context, decision: Decision[A], *, reward: float) -> None: ...
    def learn(
        self, context: Context, decision: Decision[A], loss: float | None = None, *, reward: float | None = None
    ) -> None:
        """Learn from the `loss` of a `decision` in its `context`, or from its `reward` if the agent was made with rewards."""
        if not isinstance(loss, float) or reward is not None or self.outcome.better == "high":
            loss = self.outcome.read(loss, reward)
        if type(decision) is Decision:
            action, density, within, floor = decision[:4]
            if decision is self._latest and floor is not None:  # a decision without a floor was not drawn by an agent
                warn_of_repeated_decision(decision, stacklevel=2)
        else:
            action, density, within = _parts(decision)
        low, high = self.actions if within is None else self.narrow(within)
        if self._native is not None:
            try:
                late: Any = self._native.learn(context, action, density, loss, low, high)
            except (TypeError, _core.Rejected):  # the checks below raise the error with its reason
                late = NotImplemented
            if late is not NotImplemented:
                self._latest = decision
                if late:
                    self._warn_of_late_fields([context], stacklevel=2)
                return
        _check_one_knob(decision)
        outcome = (_number("action", action), _number("density", density), _number("loss", loss), [low], [high])
        self._check_taken(*map(_numbers, outcome))
        player, features = self.player_and_context(context)
        with self._explain_rejection():
            player.learn(features, float(cast(float, action)), float(density), float(loss), low, high)
        self._latest = decision
        self._warn_of_late_fields([features], stacklevel=2)

    def decide_many(self, contexts: Contexts, within: Any = None) -> Decisions[A]:
        """Draw an action for each of the `contexts`, rows, mappings or a data frame; `within` has one (low, high) per row."""
        batch = self.batch(contexts)
        lows, highs = self._ends(within, len(batch))
        actions, densities, floors = (np.empty(len(batch)) for _ in range(3))
        with self._player_and_contexts(batch) as (player, rows):
            player.decide_many(rows, lows, highs, actions, densities, floors)
        ends: Any = {} if within is None else {"lows": lows, "highs": highs}
        decisions = Decisions(actions, densities, floors=floors, **ends)
        self._batches.draw(decisions)
        return decisions

    def decide_again(self, number: int, context: Context, within: Narrowing | None = None) -> Decision[A]:
        """Draw the decision with this `number`, any below 2^64, for a `context` and `within` as in `decide`, without counting it."""
        low, high = self.actions if within is None else self.narrow(within)
        native = self._native
        try:
            draw: Any = NotImplemented if native is None else native.decide_again(context, low, high, number)
        except _core.Rejected:
            draw = NotImplemented  # the slow path raises the error with its reason
        if draw is NotImplemented:
            player, features = self.player_and_context(context)
            with self._explain_rejection():
                draw = self._draw(player, features, low, high, number)
        action, density, floor = draw
        return _new(Decision, (action, density, within, floor, None, None, None))

    def decide_many_again(self, numbers: npt.ArrayLike, contexts: Contexts, within: Any = None) -> Decisions[A]:
        """Draw the decisions with these `numbers`, for `contexts` and `within` as in `decide_many`, without counting them."""
        batch, keys = self.batch(contexts), np.ascontiguousarray(numbers, dtype=np.uint64)
        lows, highs = self._ends(within, len(batch))
        actions, densities, floors = (np.empty(len(batch)) for _ in range(3))
        with self._player_and_contexts(batch) as (player, rows):
            if isinstance(player, _core.Player):
                player.decide_many_again(rows, lows, highs, keys, actions, densities, floors)
            else:
                ranges = zip(lows, highs, strict=True) if len(lows) else [self.actions] * len(rows)
                for index, (row, (low, high)) in enumerate(zip(rows, ranges, strict=True)):
                    draw = self._draw(player, row, low, high, int(keys[index]))
                    actions[index], densities[index], floors[index] = draw
        ends: Any = {} if within is None else {"lows": lows, "highs": highs}
        return Decisions(actions, densities, floors=floors, **ends)

    def _draw(self, player: Player, features: Any, low: float, high: float, number: int) -> Draw:
        if isinstance(player, _core.Player):
            draw: Draw = player.decide_again(features, low, high, number)
            return draw
        decisions = player.decisions
        try:
            player.decisions = number
            return player.decide(features, low, high)
        finally:
            player.decisions = decisions

    def densities_many(self, contexts: Contexts, actions: Any, within: Any = None) -> Floats:
        """The density of each row's action; any policy may have drawn the `actions`. `contexts` and `within` are as in `decide_many`."""
        batch, points = self.batch(contexts), _numbers(actions)
        check_shape("actions", points, len(batch))
        lows, highs = self._ends(within, len(batch))
        with self._player_and_contexts(batch) as (player, rows):
            if not isinstance(player, _core.Player):
                return densities_by_row(self, rows, points, within)
            densities = np.empty(len(batch))
            player.densities_many(rows, lows, highs, points, densities)
            return densities

    def largest_densities_many(self, contexts: Contexts, within: npt.ArrayLike | None = None) -> Floats:
        """The largest density of any action of each row. `contexts` and `within` are as in `decide_many`."""
        batch = self.batch(contexts)
        lows, highs = self._ends(within, len(batch))
        with self._player_and_contexts(batch) as (player, rows):
            if not isinstance(player, _core.Player):
                return largest_densities_by_row(self, rows, within)
            densities = np.empty(len(batch))
            player.largest_densities_many(rows, lows, highs, densities)
            return densities

    def moments_many(self, contexts: Contexts, within: npt.ArrayLike | None = None) -> tuple[Floats, Floats]:
        """The expected action and the expected squared action of each row. `contexts` and `within` are as in `decide_many`."""
        batch = self.batch(contexts)
        lows, highs = self._ends(within, len(batch))
        with self._player_and_contexts(batch) as (player, rows):
            if not isinstance(player, _core.Player):
                return moments_by_row(self, rows, within)
            means, squares = np.empty(len(batch)), np.empty(len(batch))
            player.moments_many(rows, lows, highs, means, squares)
            return means, squares

    def learn_many(
        self,
        contexts: Contexts,
        decisions: Decisions[A],
        losses: npt.ArrayLike | None = None,
        *,
        rewards: npt.ArrayLike | None = None,
    ) -> None:
        """Learn from the `losses` or `rewards` of many `decisions` in their `contexts`, in order; if one of them is invalid, from none."""
        loss_values = self.outcome.read_many(losses, rewards)
        _check_one_knob(decisions)
        batch = self.batch(contexts)
        actions, densities = _numbers(decisions.actions), _numbers(decisions.densities, "densities")
        lows = _WHOLE_RANGE if decisions.lows is None else _numbers(decisions.lows, "lows")
        highs = _WHOLE_RANGE if decisions.highs is None else _numbers(decisions.highs, "highs")
        for name, array in (("actions", actions), ("densities", densities), (self.outcome.keywords, loss_values)):
            check_shape(name, array, len(batch))
        self._check_taken(
            actions, densities, loss_values, *((lows, highs) if len(lows) else np.array(self.actions)[:, np.newaxis])
        )
        with self._player_and_contexts(batch) as (player, rows):
            player.learn_many(rows, actions, densities, loss_values, lows, highs)
        self._batches.learn(decisions, stacklevel=2)
        self._warn_of_late_fields(batch, stacklevel=2)

    def _description(self) -> tuple[str, model_files.Parameters]:
        settings = self._saved_settings()
        settings = {**settings, "epsilon": schedules.describe(settings["epsilon"])}
        if "outcome" in settings:
            settings |= self.outcome.describe()
        return type(self).__name__, settings

    @classmethod
    def from_saved(cls, parameters: model_files.Parameters, arrays: model_files.Arrays) -> Self:
        """The agent that was saved with these `parameters` and `arrays`."""
        width, names = parameters.pop("width"), parameters.pop("names")
        settings = {**parameters, "epsilon": schedules.from_description(parameters["epsilon"])}
        if "outcome" in settings:
            settings["outcome"] = Outcome.from_description(settings)
        agent = cls._from_parameters(settings)
        if width is None and names is None and not arrays:
            return agent
        columns = model_files.check_width(width) if names is None else SKETCH
        if (names is not None and width != 0) or not agent._fits(columns, arrays):
            raise model_files.mismatch_error()
        agent.restore(agent.start(columns) if names is None else agent.start_named(names), arrays)
        return agent

    def _saved_settings(self) -> model_files.Parameters:
        return self.parameters

    @classmethod
    def _from_parameters(cls, parameters: model_files.Parameters) -> Self:
        settings: Any = {name: tuple(value) if isinstance(value, list) else value for name, value in parameters.items()}
        return cls(**settings)

    def __repr__(self) -> str:
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.parameters.items() if value is not None)
        return f"{type(self).__name__}({arguments})"

    def _fits(self, width: int, arrays: model_files.Arrays) -> bool:
        """Whether the arrays of a file are large enough for a width, checked before memory is allocated for a player."""
        return width <= sum(array.size for array in arrays.values())  # a player has at least one number per column

    def _ends(self, within: npt.ArrayLike | None, count: int) -> tuple[Floats, Floats]:
        if within is None:
            return _WHOLE_RANGE, _WHOLE_RANGE
        if isinstance(within, list | tuple):
            within = [self.actions if each is None else each for each in within]
        pairs = np.asarray(within, dtype=np.float64)
        check_shape("within", pairs, count, 2)
        for low, high in pairs:
            self.narrow((low, high))
        return np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])

    def _check_taken(self, actions: Floats, densities: Floats, losses: Floats, lows: Floats, highs: Floats) -> None:
        check_taken(actions, densities, lows, highs)
        self.outcome.check(losses)


def _parts(decision: Any) -> tuple[Any, Any, Any]:
    _check_one_knob(decision)
    try:
        action, density, within, *_ = decision
    except (TypeError, ValueError):
        raise InputError(f"decision must be a Decision returned by decide, got {decision!r}.", "decision") from None
    return action, density, within


def _check_one_knob(decision: object) -> None:
    actions = (
        decision.actions
        if isinstance(decision, Decisions)
        else decision.action
        if isinstance(decision, Decision)
        else None
    )
    if isinstance(actions, Mapping):
        raise InputError("decision must set one knob, as the agent does, but it sets several.", "decision")


def _number(name: str, value: object) -> list[float]:
    try:
        return [float(value)]  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} must be a number, got {value!r}.", name) from None


def _numbers(values: npt.ArrayLike, name: str = "actions") -> Floats:
    try:
        return np.ascontiguousarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be numbers, got {values!r:.60}.", name) from None


def densities_by_row(policy: Policy, rows: Any, actions: Floats, within: npt.ArrayLike | None) -> Floats:
    """The density of each row's action, one distribution at a time."""
    pairs = zip(_distributions(policy, rows, within), actions, strict=True)
    return np.array([distribution.density(action) for distribution, action in pairs])


def largest_densities_by_row(policy: Policy, rows: Any, within: npt.ArrayLike | None) -> Floats:
    """The largest density of any action of each row, one distribution at a time."""
    return np.array([each.largest_density() for each in _distributions(policy, rows, within)])


def moments_by_row(policy: Policy, rows: Any, within: npt.ArrayLike | None) -> tuple[Floats, Floats]:
    """The expected action and the expected squared action of each row, one distribution at a time."""
    distributions = _distributions(policy, rows, within)
    return np.array([each.mean() for each in distributions]), np.array([each.square() for each in distributions])


def _distributions(policy: Policy, rows: Any, within: npt.ArrayLike | None) -> list[Distribution | Atoms]:
    pairs = [None] * len(rows) if within is None else [(low, high) for low, high in np.asarray(within).tolist()]
    return [policy.distribution(row, ends) for row, ends in zip(rows, pairs, strict=True)]
