"""The base class of agents: validation, conversion of contexts, single and batch forms, saving."""

from __future__ import annotations

import inspect
import json
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Generic, Literal, Self, cast, overload

import numpy as np
import numpy.typing as npt

from manul import _core
from manul.actions import schedules
from manul.actions.decision import A, Decision, Decisions, Narrowing, Within
from manul.actions.distribution import Atoms, Distribution
from manul.actions.distributions import Distributions, PlayedRows, PlayerView
from manul.actions.levels import SIZE, DrawnWindows
from manul.actions.pieces import is_product
from manul.actions.ranges import Actions
from manul.actions.schedules import Epsilon
from manul.actions.smoothing import explore, smooth
from manul.actions.space import ActionSpace, numbers_only
from manul.agents.agent_card import agent_card
from manul.agents.learned_twice import LearnedBatches, warn_of_repeated_decision
from manul.agents.player import Draw, Player
from manul.agents.player_host import SKETCH, PlayerHost, Seen
from manul.contexts import conversion
from manul.contexts.batches import NamedBatch
from manul.contexts.schema import Context, Contexts, ContextSchema
from manul.errors import InputError, ParameterError
from manul.outcomes import AnyRange, Outcome, PartValue
from manul.outcomes.parts import PartsReader, Told, ToldMany, read_report, read_reports
from manul.policies.plot_mixin import PlotMixin
from manul.utils import model_files
from manul.utils.validation import Floats, check_half_life, check_seed, check_shape, check_taken

# Half the time of the constructor of a named tuple, and a tenth of that of a decision of Cats.
_new: Callable[[Any, Any], Decision[Any]] = tuple.__new__
_WHOLE_RANGE = np.empty(0)  # players take empty ends as the whole range


class BaseAgent(PlotMixin, model_files.FileMixin, Generic[A]):
    """An agent around a player: a subclass defines `_make_player(width)` and stores its arguments as attributes.

    The first context sets the width. Names that begin with an underscore are for subclasses, not for users of an agent.
    """

    _needs_range = True  # of losses or rewards; False if the agent also learns with "auto"
    _takes_knobs = False  # whether actions may be other than numbers in a range
    _plays_windows = True  # and with the probability epsilon any action
    _models_parts = False  # whether the player learns the parts of outcomes too

    def __init__(
        self,
        *,
        actions: Any = (0.0, 1.0),
        losses: AnyRange | None = None,
        rewards: AnyRange | None = None,
        outcome: Outcome | None = None,
        epsilon: Epsilon = 0.05,
        seed: int = 0,
        half_life: float | None = None,
    ) -> None:
        self.space: ActionSpace[A] = ActionSpace(actions)
        if not self.space.is_number and not self._takes_knobs:
            got = "a mapping" if self.space.is_named else repr(actions)
            raise ParameterError(
                f"{type(self).__name__} sets one knob: actions must be (low, high), got {got}. Use Auto.",
                "actions",
            )
        self.actions = self.space.actions
        self.outcome = Outcome.of(losses=losses, rewards=rewards, outcome=outcome)
        if self._needs_range:
            self.outcome.known_losses(type(self).__name__, " Only Auto learns without a range.")
        checked = schedules.check_epsilon(epsilon)
        self._schedule = schedules.as_schedule(checked)
        self.epsilon: Epsilon | Literal["auto"] = checked
        self.seed = check_seed(seed)
        if self.space.is_number:
            self._range = Actions(*self.space.ends)
        self._host = PlayerHost(check_half_life(half_life), fades=self._schedule.changes)
        self._latest: object = None  # the decision that was learned last
        self._batches = LearnedBatches()

    @abstractmethod
    def _make_player(self, width: int) -> Any:
        """A new player for contexts of this `width`."""

    def _make_named_player(self) -> Any:
        """A new player for named contexts, whose features share the columns of a row."""
        player = self._make_player(SKETCH)
        if not isinstance(player, _core.BasePlayer):
            raise InputError(
                f"context must be a row of numbers for {type(self).__name__}, got a mapping. Encode it with manul.maps.Columns.",
                "context",
            )
        player.sketch_names()
        return player

    @property
    def _narrowest_bandwidth(self) -> float:
        """The smallest bandwidth; a narrowed range must be at least twice as wide."""
        return 0.0

    @property
    def _seen(self) -> Seen:
        return self._host.seen

    @property
    def schema(self) -> ContextSchema:
        """The fields of contexts that the agent has learned, by path, or the width of rows of numbers."""
        seen = self._host.seen
        return ContextSchema.of_leaves(self._host.fields) if seen.named else ContextSchema(seen.width)

    @property
    def tells_levels(self) -> bool:
        """Whether decisions can say what they were drawn from: not if knobs depend on each other."""
        return is_product(self.space)

    @property
    def nbytes(self) -> int:
        """The size of the learned state in a file, in bytes."""
        return 0 if self._host.player is None else self._host.player.nbytes

    @property
    def outcome(self) -> Outcome:
        """What the agent learns from."""
        return self._outcome

    @outcome.setter
    def outcome(self, outcome: Outcome) -> None:
        self._outcome, self._reader = outcome, PartsReader.of(outcome, self.space)

    @property
    def losses(self) -> AnyRange:
        """The range of losses; of negative rewards if the agent was made with rewards."""
        return self.outcome.losses

    @property
    def parameters(self) -> dict[str, Any]:
        """The arguments of the constructor."""
        names = inspect.signature(type(self)).parameters
        return self._with_outcome({name: getattr(self, name) for name in names if name not in ("rewards", "outcome")})

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
        player = self._host.player
        return self._schedule.at(0.0) if player is None else player.epsilon

    def _narrow(self, within: Any) -> Within:
        """The range of one decision, `within` or the whole; raises InputError if the agent has no action in it."""
        return self._range.narrow(within, self._narrowest_bandwidth)

    def _explore(self, centre: float, bandwidth: float, within: Within) -> Distribution | Atoms:
        return explore(smooth(centre, bandwidth, within), self.current_epsilon, within)

    def distribution(self, context: Context, within: Narrowing | None = None) -> Any:
        """The distribution that `decide` draws from in a `context`; `within` narrows the range of actions."""
        ends = self._narrow(within)
        return self._explore(*self._window(context, ends), ends)

    def best(self, context: Context, within: Narrowing | None = None) -> A:
        """The greedy action, the centre of the window that `decide` draws from with probability 1 - epsilon.

        The `context` and `within` are as in `decide`. The action has no density, so there is nothing to learn or to
        log.

        >>> import manul
        >>> manul.Auto(actions=(0.0, 32.0)).best([0.3, 1.2])
        16.0
        """
        return cast(A, self._window(context, self._narrow(within))[0])

    def _window(self, context: Context, within: Within) -> tuple[float, float]:
        player, features = self._host.player_and_context(self, context)
        with self._host.explain_rejection():
            window: Within = player.window(features, *within)
            return window

    def decide(self, context: Context, within: Narrowing | None = None, *, levels: bool = False) -> Decision[A]:
        """Draw an action for a `context`, a row of numbers or a mapping of fields; `within` narrows the range of actions.

        With `levels`, the decision says what it was drawn from, so that a log of it can prove more.
        """
        if levels:
            decision = self.decide_again(self._host.decisions, context, within, levels=True)
            self._host.player.decisions += 1
            return decision
        low, high = self.actions if within is None else self._narrow(within)
        native = self._host.native
        try:
            draw: Any = NotImplemented if native is None else native.decide(context, low, high)
        except _core.Rejected:
            draw = NotImplemented  # the slow path raises the error with its reason
        if draw is NotImplemented:
            player, features = self._host.player_and_context(self, context)
            with self._host.explain_rejection():
                draw = player.decide(features, low, high)
        action, density, floor = draw
        return _new(Decision, (action, density, within, floor, None, None, None, None))

    @overload
    def learn(
        self, context: Context, decision: Decision[A], loss: float, *, parts: Mapping[str, PartValue] | None = None
    ) -> None: ...
    @overload
    def learn(
        self, context: Context, decision: Decision[A], *, reward: float, parts: Mapping[str, PartValue] | None = None
    ) -> None: ...
    @overload
    def learn(self, context: Context, decision: Decision[A], *, parts: Mapping[str, PartValue]) -> None: ...
    def learn(
        self,
        context: Context,
        decision: Decision[A],
        loss: float | None = None,
        *,
        reward: float | None = None,
        parts: Mapping[str, PartValue] | None = None,
    ) -> None:
        """Learn from the `loss` of a `decision` in its `context`, or from its `reward` if the agent was made with rewards.

        If the outcome has a formula, `parts` are enough; a loss or reward beside them is learned instead of its value.
        """
        told: tuple[Any, ...] = ()
        if parts is not None:
            read = self._read_parts(context, decision, loss, reward, parts)
            loss, told = read.loss, read[1:] if self._models_parts else ()
        elif not isinstance(loss, float) or reward is not None or self.outcome.better == "high":
            loss = self.outcome.read(loss, reward)
        if type(decision) is Decision:
            action, density, within, floor, _, _, _, _ = decision
            if decision is self._latest and floor is not None:  # a decision without a floor was not drawn by an agent
                warn_of_repeated_decision(decision, stacklevel=2)
        else:
            action, density, within = _parts(decision)
        low, high = self.actions if within is None else self._narrow(within)
        native = self._host.native
        if native is not None:
            try:
                late: Any = native.learn(context, action, density, loss, low, high, *told)
            except (TypeError, _core.Rejected):  # the checks below raise the error with its reason
                late = NotImplemented
            if late is not NotImplemented:
                self._latest = decision
                if late:
                    self._host.warn_of_late_fields([context], stacklevel=2)
                return
        _check_one_knob(decision)
        outcome = (_number("action", action), _number("density", density), _number("loss", loss), [low], [high])
        self._check_taken(*map(_numbers, outcome))
        player, features = self._host.player_and_context(self, context)
        with self._host.explain_rejection():
            player.learn(features, float(cast(float, action)), float(density), float(loss), low, high, *told)
        self._latest = decision
        self._host.warn_of_late_fields([features], stacklevel=2)

    def decide_many(self, contexts: Contexts, within: Any = None, *, levels: bool = False) -> Decisions[A]:
        """Draw an action for each of the `contexts`, rows, mappings or a data frame; `within` has one (low, high) per row.

        `levels` are as in `decide`.
        """
        batch = self._host.batch(contexts)
        lows, highs = row_ends(self, within, len(batch))
        actions, densities, floors = (np.empty(len(batch)) for _ in range(3))
        windows = np.empty(SIZE * len(batch)) if levels else None
        with self._host.player_and_contexts(self, batch) as (player, rows):
            if isinstance(player, _core.Player):
                player.decide_many(rows, lows, highs, actions, densities, floors, windows)
            else:
                _fill_windows(windows, player, rows, self._ends(lows, highs, len(rows)))
                player.decide_many(rows, lows, highs, actions, densities, floors)
        ends: Any = {} if within is None else {"lows": lows, "highs": highs}
        decisions = Decisions(actions, densities, floors=floors, drawn=self._drawn(windows, lows, highs), **ends)
        self._batches.draw(decisions)
        return decisions

    def _drawn(self, windows: Floats | None, lows: Any, highs: Any) -> DrawnWindows | None:
        """What decisions with these `windows` are drawn from, in these ranges; empty ends are the whole range."""
        if windows is None:
            return None
        low, high = self.actions if np.size(lows) == 0 else (lows, highs)
        return DrawnWindows(self.space, windows, low, high)

    def decide_again(
        self, number: int, context: Context, within: Narrowing | None = None, *, levels: bool = False
    ) -> Decision[A]:
        """Draw the decision with this `number`, any below 2^64, for a `context` and `within` as in `decide`, without counting it.

        `levels` are as in `decide`.
        """
        windows = np.empty(SIZE) if levels else None
        low, high = self.actions if within is None else self._narrow(within)
        native = self._host.native
        try:
            draw: Any = NotImplemented if native is None else native.decide_again(context, low, high, number, windows)
        except _core.Rejected:
            draw = NotImplemented  # the slow path raises the error with its reason
        if draw is NotImplemented:
            player, features = self._host.player_and_context(self, context)
            with self._host.explain_rejection():
                draw = self._draw(player, features, low, high, number, windows)
        action, density, floor = draw
        return _new(Decision, (action, density, within, floor, None, None, None, self._drawn(windows, low, high)))

    def decide_many_again(
        self, numbers: npt.ArrayLike, contexts: Contexts, within: Any = None, *, levels: bool = False
    ) -> Decisions[A]:
        """Draw the decisions with these `numbers`, for `contexts`, `within` and `levels` as in `decide_many`, without counting them."""
        batch, keys = self._host.batch(contexts), np.ascontiguousarray(numbers, dtype=np.uint64)
        lows, highs = row_ends(self, within, len(batch))
        actions, densities, floors = (np.empty(len(batch)) for _ in range(3))
        windows = np.empty(SIZE * len(batch)) if levels else None
        with self._host.player_and_contexts(self, batch) as (player, rows):
            if isinstance(player, _core.Player):
                player.decide_many_again(rows, lows, highs, keys, actions, densities, floors, windows)
            else:
                ranges = self._ends(lows, highs, len(rows))
                _fill_windows(windows, player, rows, ranges)
                for index, (row, (low, high)) in enumerate(zip(rows, ranges, strict=True)):
                    draw = self._draw(player, row, low, high, int(keys[index]))
                    actions[index], densities[index], floors[index] = draw
        ends: Any = {} if within is None else {"lows": lows, "highs": highs}
        return Decisions(actions, densities, floors=floors, drawn=self._drawn(windows, lows, highs), **ends)

    def _draw(
        self, player: Player, features: Any, low: float, high: float, number: int, windows: Floats | None = None
    ) -> Draw:
        if isinstance(player, _core.Player):
            draw: Draw = player.decide_again(features, low, high, number, windows)
            return draw
        _fill_windows(windows, player, [features], [(low, high)])
        decisions = player.decisions
        try:
            player.decisions = number
            return player.decide(features, low, high)
        finally:
            player.decisions = decisions

    def _ends(self, lows: Floats, highs: Floats, count: int) -> list[tuple[float, float]]:
        """The range of each of `count` rows; empty ends are the whole range."""
        return list(zip(lows, highs, strict=True)) if len(lows) else [self.actions] * count

    def distributions(self, contexts: Contexts, within: Any = None) -> Distributions[A]:
        """The distributions that `decide_many` draws from, for `contexts` and `within` as there; valid until the agent learns.

        >>> import manul
        >>> manul.Auto(actions=(0.0, 32.0)).distributions([[0.3], [1.2]]).density([16.0, 4.0])
        array([0.03125, 0.03125])
        """
        batch = self._host.batch(contexts)
        lows, highs = row_ends(self, within, len(batch))
        rows = self._played_rows(batch, np.column_stack([lows, highs]) if len(lows) else None)
        if isinstance(batch, NamedBatch) or self._host.is_native(self, batch):
            return PlayerView(rows, lows, highs, self.actions, windows=self._plays_windows)
        return Distributions([rows.distribution(row) for row in range(len(batch))])

    def _played_rows(self, batch: conversion.Row | NamedBatch, within: Any) -> PlayedRows:
        def distribution(row: int) -> Any:
            return self.distribution(batch[row], None if within is None else within[row])

        learned = 0 if self._host.native is None else self._host.native.learned
        return PlayedRows(len(batch), distribution, partial(self._host.player_and_contexts, self, batch), learned)

    def learn_many(
        self,
        contexts: Contexts,
        decisions: Decisions[A],
        losses: npt.ArrayLike | None = None,
        *,
        rewards: npt.ArrayLike | None = None,
        parts: Mapping[str, npt.ArrayLike] | None = None,
    ) -> None:
        """Learn from the `losses` or `rewards` of many `decisions` in their `contexts`, in order; if one of them is invalid, from none.

        `parts` are columns by name, as in `learn`; a loss or reward beside them that is NaN was not reported.
        """
        _check_one_knob(decisions)
        batch = self._host.batch(contexts)
        told = self._read_many(contexts, batch, decisions, losses, rewards, parts)
        loss_values = told.losses
        actions, densities = _numbers(decisions.actions), _numbers(decisions.densities, "densities")
        lows = _WHOLE_RANGE if decisions.lows is None else _numbers(decisions.lows, "lows")
        highs = _WHOLE_RANGE if decisions.highs is None else _numbers(decisions.highs, "highs")
        for name, array in (("actions", actions), ("densities", densities), (self.outcome.keywords, loss_values)):
            check_shape(name, array, len(batch))
        self._check_taken(
            actions, densities, loss_values, *((lows, highs) if len(lows) else np.array(self.actions)[:, np.newaxis])
        )
        with self._host.player_and_contexts(self, batch) as (player, rows):
            player.learn_many(rows, actions, densities, loss_values, lows, highs, *self._modelled(told))
        self._batches.learn(decisions, stacklevel=2)
        self._host.warn_of_late_fields(batch, stacklevel=2)

    def _read_parts(self, context: Any, decision: Any, loss: Any, reward: Any, parts: Any) -> Told:
        action = decision.action if isinstance(decision, Decision) else _parts(decision)[0]
        return read_report(self.outcome, self._reader, context, action, loss, reward, parts)

    def _read_many(
        self, contexts: Any, batch: Any, decisions: Decisions[A], losses: Any, rewards: Any, parts: Any
    ) -> ToldMany:
        named = batch if isinstance(batch, NamedBatch) else contexts
        return read_reports(self.outcome, self._reader, named, decisions.actions, losses, rewards, parts)

    def _modelled(self, told: ToldMany) -> tuple[Any, ...]:
        """The further arguments of a player that learns the parts too."""
        return told[1:] if self._models_parts and told.parts is not None else ()

    def _description(self) -> tuple[str, model_files.Parameters]:
        """The kind and the settings of a file, without those of contexts."""
        settings = self._saved_settings()
        settings |= {"epsilon": schedules.describe(settings["epsilon"]), **self.outcome.describe()}
        return type(self).__name__, settings

    def _own_arrays(self) -> model_files.Arrays:
        """Copies of the arrays of its file that the player does not have."""
        return {}

    def _contents(self) -> model_files.Contents:
        kind, settings = self._description()
        return kind, {**settings, **self._host.context_parameters()}, self._host.state()

    @classmethod
    def from_saved(cls, parameters: model_files.Parameters, arrays: model_files.Arrays) -> Self:
        """The agent that was saved with these `parameters` and `arrays`."""
        width, names = parameters.pop("width"), parameters.pop("names")
        settings = {**parameters, "epsilon": schedules.from_description(parameters["epsilon"])}
        if "outcome" in settings:
            settings["outcome"] = Outcome.from_description(settings)
        agent = cls._from_parameters(settings)
        if width is None and names is None and not agent._are_of_player(arrays):
            return agent
        columns = model_files.check_width(width) if names is None else SKETCH
        if (names is not None and width != 0) or not agent._fits(columns, arrays):
            raise model_files.mismatch_error()
        host = agent._host
        agent._restore(host.start(agent, columns) if names is None else host.start_named(agent, names), arrays)
        return agent

    def _are_of_player(self, arrays: model_files.Arrays) -> bool:
        """Whether a file without contexts has arrays of a player; what it has beside them is restored."""
        return bool(arrays)

    def _restore(self, player: Any, arrays: model_files.Arrays) -> None:
        """Restore the state of a file, its `arrays`, in a new `player`."""
        self._host.restore(player, arrays)

    def _saved_settings(self) -> model_files.Parameters:
        return self.parameters

    @classmethod
    def _from_parameters(cls, parameters: model_files.Parameters) -> Self:
        settings: Any = {name: tuple(value) if isinstance(value, list) else value for name, value in parameters.items()}
        return cls(**settings)

    def _repr_html_(self) -> str:
        return agent_card(self)

    def __repr__(self) -> str:
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.parameters.items() if value is not None)
        return f"{type(self).__name__}({arguments})"

    def _fits(self, width: int, arrays: model_files.Arrays) -> bool:
        """Whether the arrays of a file are large enough for a width, checked before memory is allocated for a player."""
        return width <= sum(array.size for array in arrays.values())  # a player has at least one number per column

    def _check_taken(self, actions: Floats, densities: Floats, losses: Floats, lows: Floats, highs: Floats) -> None:
        check_taken(actions, densities, lows, highs)
        self.outcome.check(losses)


def check_ranges(agents: Sequence[BaseAgent[Any]], lows: Floats, highs: Floats, *, logged: bool = False) -> None:
    """Check that all agents, which have the same range of actions, have one in each of these narrower ranges, which may be those of a
    log."""
    widest = max(agents, key=lambda agent: agent._narrowest_bandwidth)
    least = 2 * widest._narrowest_bandwidth
    narrow = np.flatnonzero(highs - lows < least * (1 - 1e-12))
    if logged and len(narrow):  # a log cannot be changed, as the argument of a decision can
        rule = (
            f"within must be at least two bandwidths ({least:g}) wide, got ({lows[narrow[0]]:g}, {highs[narrow[0]]:g})"
        )
        raise InputError(
            f"{rule} in the log. Leave such decisions out: log.rows(log.highs - log.lows >= {least:g}).", "within"
        )
    for number in (np.argmin(highs - lows), np.argmin(lows), np.argmax(highs)) if len(lows) else ():
        widest._narrow((float(lows[number]), float(highs[number])))


def row_ends(agent: BaseAgent[Any], within: npt.ArrayLike | None, count: int) -> tuple[Floats, Floats]:
    """The ends of the range of each row, or none if it is the whole; raises InputError if an agent has no action in one."""
    if not agent.space.is_number:
        raise numbers_only(agent.space, "This method")
    if within is None:
        return _WHOLE_RANGE, _WHOLE_RANGE
    if isinstance(within, list | tuple):
        within = [agent.actions if each is None else each for each in within]
    pairs = np.asarray(within, dtype=np.float64)
    check_shape("within", pairs, count, 2)
    for low, high in pairs:
        agent._narrow((low, high))
    return np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])


def _fill_windows(windows: Floats | None, player: Player, rows: Any, ranges: Sequence[tuple[float, float]]) -> None:
    """What a player in Python draws from, as the core writes it: the ends of the window, and the shares nearby and anywhere."""
    if windows is None:
        return
    for index, (row, (low, high)) in enumerate(zip(rows, ranges, strict=True)):
        first, last = smooth(*player.window(row, low, high), (low, high)).edges.tolist()
        windows[SIZE * index : SIZE * (index + 1)] = first, last, 0.0, player.epsilon


def file_views(agent: Any) -> model_files.Arrays | None:
    """The arrays of an agent's file without copies of them, valid until it learns; None if the core does not hold them."""
    views = agent._host.views() if isinstance(agent, BaseAgent) else None
    return None if views is None else {**views, **agent._own_arrays()}


def file_pieces(agent: BaseAgent[Any], views: model_files.Arrays) -> Iterator[bytes]:
    """The bytes of an agent's file in pieces, with the arrays of `file_views`. Meanwhile it may decide, but not learn."""
    kind, settings = agent._description()
    texts = {name: json.dumps(value, sort_keys=True) for name, value in settings.items()} | agent._host.context_texts()
    text = ", ".join(f"{json.dumps(name)}: {texts[name]}" for name in sorted(texts))
    return model_files.pieces(kind, f"{{{text}}}", views, trained_on=model_files.trained_on(agent))


def fresh_copy(agent: BaseAgent[A]) -> BaseAgent[A]:
    """An agent with the settings of one that has seen no context; `copy` saves and loads, which policies in Python cannot."""
    fresh = object.__new__(type(agent))
    vars(fresh).update(vars(agent))
    fresh._host, fresh._batches = agent._host.empty(), LearnedBatches()
    return fresh


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
