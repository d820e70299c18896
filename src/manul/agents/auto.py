"""Auto, an agent without tuning: it models the loss of every action and chooses near the minimum.

It is not from the paper: a small ensemble of networks and a forest of boosted trees model the loss of contexts and
actions, trained on remembered rounds (`src/core/critic`). Its actions are smoothed and explored as in Cats, so its logs
can be used off-policy.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Self, TypedDict, Unpack, cast, overload

import numpy as np
import numpy.typing as npt

from manul import _core
from manul.actions.decision import A, Decision, Decisions, Narrowing
from manul.actions.kinds.choice import Choice, O
from manul.actions.kinds.knob import Knob, mix_levels
from manul.actions.kinds.span import Span
from manul.actions.kinds.stepped import Stepped
from manul.actions.limits import FunctionLimits, Limit, LimitsFunction
from manul.actions.ranges import Actions
from manul.actions.schedules import Epsilon, Fading
from manul.actions.smoothing import explore, smooth
from manul.actions.space import ActionSpace, KnobLike, Pair
from manul.agents.agent_registry import register_agent
from manul.agents.base import BaseAgent, row_ends
from manul.agents.critic_report import Report, critic_report, formula_report, loss_unit
from manul.agents.player_host import Seen, host_of
from manul.agents.priors import PARTS, Prior, prior_in, prior_of
from manul.contexts.schema import Context, Contexts
from manul.errors import InputError, ParameterError
from manul.outcomes import AnyRange, Outcome
from manul.outcomes.budgets import Late, Period, Sign
from manul.utils import model_files
from manul.utils.validation import Floats, are_within, check_bandwidth, check_number, check_shape

Limits = Sequence[str | Limit] | LimitsFunction | None
NARROWEST_SHARE = 1 / 1024  # the narrowest bandwidth that it chooses, as a share of the range
FEATURES = 2**16  # of named contexts with weights of their own; further ones share them
POINTS = 96  # of the core's grid of actions for outcomes with parts
_ODDS = 12  # numbers of a judge of formulas with odds, as in files of earlier versions
_EARLY = {
    "early",
    "early_process",
    "early_parameters",
    "early_columns",
    "early_factor",
    "early_factor_2",
    "early_errors",
    "constant_expert",
}
IN_EXPECTATION = ("spend_at_most", "keep", "late", "carry", "decline", "zone")  # arguments
_FOREST = {"predictions", "edges", "edge_counts", "trees", "tree_targets", "column_gains", "forest", "mixing"}  # arrays


class Settings(TypedDict, total=False):
    """The arguments of Auto for every space, as type checkers see them."""

    epsilon: Epsilon | Literal["auto"]
    losses: AnyRange | None
    rewards: AnyRange | None
    outcome: Outcome | None
    nearby: float | None
    start: Any
    prior: Any
    seed: int
    spend_at_most: tuple[str, float, Period] | None
    keep: tuple[str, Sign, float] | None
    late: Late | None
    carry: bool
    decline: float | None
    zone: str | None


@register_agent(
    "auto",
    settings=("nearby", "start", "prior", "limits"),
    examples=(
        lambda seed: Auto(seed=seed),
        lambda seed: Auto(actions=(-2.0, 8.0), losses=(-1.0, 3.0), seed=seed),
        lambda seed: Auto(start=0.2, seed=seed),
    ),
)
class Auto(BaseAgent[A]):
    """An agent without tuning: it chooses its own bandwidth and detects changes of the world.

    `actions` are (low, high), `Stepped` or `Choice`, or several of them by name, which each decision sets together: they are
    drawn independently, so the density of an action is the product of the densities of its knobs; steps and options have
    probabilities. `limits` between knobs are texts, such as "discount <= 1 - 9 / price" or "price >= 20 if template == 'bold'",
    or a function of the knobs that are set already, options first and then in order, that returns ranges for others; an
    agent with a function cannot be saved or copied.

    With `epsilon="auto"`, exploration fades as in `manul.schedules.Fading()`, from 5 % of the decisions to 0.2 %, is up to
    five times rarer if the first rounds explain the losses, and starts again after a change of the world. With a number, it
    is constant. With `losses="auto"` or `rewards="auto"`, the agent learns from any finite numbers; an `outcome` says the
    same with a name and a wait. The same `seed` and
    input give the same decisions. With `bandwidth`, in action units, it always plays this bandwidth, such as the one
    that `optimize` has chosen. With `nearby`, such as 0.05, this share of the decisions explores near the best action,
    and less as epsilon fades: its logs say more about other policies, for a little more loss. With several knobs it is
    0.1 by default.

    `start` is an action that is known to be sensible, such as today's price: the first decisions are near it, within 1 % of
    the range to each side, and later ones within a part of the range that grows to the whole in about 400 rounds, or more if
    most losses are equal, as long as hardly anybody buys. A small epsilon explores the whole range from the start. Of several
    knobs it may map some to values; an option is the one of most of the first ten decisions.

    `prior` is another Auto with the same actions and outcome, the path of its file, or a log, from which one is trained
    first. The agent starts from her model as it is now, for contexts like hers. Evidence drops it if it is wrong, within
    tens of rounds, and by round 1,536 in any case; `report().prior` is its share in the predictions, and None afterwards.
    It is for a range of numbers.

    `spend_at_most` is a budget for a range of numbers and an outcome with parts: a formula of what is spent, an amount, and a period,
    such as ("won * action", 2000.0, "day"). The period is an "hour", "day" or "week" in the time `zone`, "UTC" by default, of the
    time `at` which is decided, or a number of decisions. The budget is spent where it earns most, by a price that is learned, and
    never exceeded if costs are known at once and have an upper bound: what is left cuts the range before an action is drawn, and
    `decline` is the action that spends nothing, by default an end of the range. If costs come `late`, "reserve" holds back what is
    expected plus a margin, and "carry" takes what was expected wrongly from the next period. With `carry`, what a period leaves is
    added to the next one. Set `spend_at_most` to change the amount.

    `keep` is a bound on the mean of a second outcome, such as ("bought", ">=", 0.05) or ("(action - 20) * bought", ">=", 1.5). It has
    a learned price too, and holds in the mean, in the long run; if it cannot be kept, the report and a warning say so.

    >>> import manul
    >>> agent = Auto(actions=(0.0, 32.0), seed=7)
    >>> decision = agent.decide([0.3, 1.2])
    >>> agent.learn([0.3, 1.2], decision, loss=0.25)
    >>> agent = Auto(actions={"price": (10, 50), "template": Choice(["a", "b"])}, seed=7)
    >>> decision = agent.decide({"country": "SE"})
    >>> sorted(decision.action), round(decision.density, 4), decision.densities["template"]
    (['price', 'template'], 0.0125, 0.5)
    >>> agent = Auto(actions=(0.0, 40.0), outcome=manul.Bid(), spend_at_most=("won * action", 30.0, "day"))
    >>> agent.decide({"source": "portal"}).within
    (0.0, 30.0)
    """

    _needs_range = False
    _takes_knobs = True
    _early = True  # whether it has experts for the first rounds

    if not TYPE_CHECKING:

        def __new__(cls, *, actions=(0.0, 1.0), spend_at_most=None, keep=None, **_):
            """An agent around the player for one number, with limits in expectation or without, or around that for any other space."""
            from manul.agents.auto_knobs import AutoKnobs
            from manul.agents.limited_auto import LimitedAuto

            limited = spend_at_most is not None or keep is not None
            number = ActionSpace(actions).is_number
            return object.__new__(
                cls if cls is not Auto else (LimitedAuto if limited else Auto) if number else AutoKnobs
            )

    if TYPE_CHECKING:

        def decide(
            self, context: Context, within: Narrowing | None = None, *, at: datetime | None = None, levels: bool = False
        ) -> Decision[A]: ...
        def decide_many(
            self,
            contexts: Contexts,
            within: Any = None,
            *,
            at: datetime | Sequence[datetime] | None = None,
            levels: bool = False,
        ) -> Decisions[A]: ...

    @overload
    def __init__(
        self: Auto[float],
        *,
        actions: Pair | Span | Stepped = (0.0, 1.0),
        bandwidth: float | None = None,
        **settings: Unpack[Settings],
    ) -> None: ...
    @overload
    def __init__(self: Auto[O], *, actions: Choice[O], **settings: Unpack[Settings]) -> None: ...
    @overload
    def __init__(
        self: Auto[dict[str, Any]],
        *,
        actions: Mapping[str, KnobLike],
        limits: Limits = (),
        **settings: Unpack[Settings],
    ) -> None: ...
    @overload
    def __init__(
        self, *, actions: ActionSpace[A] | Knob[A], limits: Limits = (), **settings: Unpack[Settings]
    ) -> None: ...
    def __init__(
        self,
        *,
        actions: Any = (0.0, 1.0),
        epsilon: Epsilon | Literal["auto"] = "auto",
        losses: AnyRange | None = None,
        rewards: AnyRange | None = None,
        outcome: Outcome | None = None,
        bandwidth: float | None = None,
        nearby: float | None = None,
        start: Any = None,
        prior: Any = None,
        seed: int = 0,
        limits: Any = (),
        spend_at_most: Any = None,
        keep: Any = None,
        late: Late | None = None,
        carry: bool = False,
        decline: float | None = None,
        zone: str | None = None,
    ) -> None:
        fades = isinstance(epsilon, str) and epsilon == "auto"
        schedule = Fading() if fades else cast(Epsilon, epsilon)
        outcome = Outcome.of(losses=losses, rewards=rewards, outcome=outcome)
        super().__init__(actions=actions, outcome=outcome, epsilon=schedule, seed=seed)
        if fades:
            self.epsilon = "auto"
        self.nearby = None if nearby is None else check_number("nearby", nearby, 0, 1, "Try 0.1.", ends="[)")
        self.start = start
        self.limits = limits
        self._spend_at_most, self._keep = spend_at_most, keep
        self.late, self.carry, self.decline, self.zone = late, carry, decline, zone
        self._check_limits_in_expectation()
        self._check_settings(bandwidth)
        parts_of = Auto._parts_in_core
        self.prior: Prior | None = None if prior is None else prior_of(prior, self, parts_of)
        if self.prior is not None:
            self._take_contexts(self.prior.seen)

    @property
    def start(self) -> Any:
        """The action near which the first decisions are, or those knobs of it that have one."""
        return self._start

    @start.setter
    def start(self, start: Any) -> None:
        self._starts: list[float] = []  # positions of knobs
        if start is not None:
            try:
                self._starts = self.space.start(start)
            except InputError as error:
                raise ParameterError(str(error), "start") from None
        pairs = zip(self.space.knobs, self._starts, strict=False)
        values = {
            name: knob.value(place) if knob.is_option else float(start[name] if name else start)
            for (name, knob), place in pairs
            if not math.isnan(place)
        }
        self._start = self.space.unwrap(values) if values else None

    @property
    def limits(self) -> Limits:
        """The limits between the knobs."""
        return self._limits.function if isinstance(self._limits, FunctionLimits) else self.space.limits or None

    @limits.setter
    def limits(self, limits: Limits) -> None:
        if limits and not self.space.is_named:
            raise ParameterError("limits are between named knobs, as in actions={'price': (10, 50), ...}.", "limits")
        function = FunctionLimits(self.space.knobs, limits) if callable(limits) else None
        if limits != ():  # otherwise they are those of the space, if `actions` is one
            self.space = self.space.with_limits(None if callable(limits) else limits)
        self._limits = function or self.space.limited

    def _check_limits_in_expectation(self) -> None:
        """Refuse limits in expectation of knobs whose parts are not predicted, and settings of a budget without one."""
        for name, value in (("spend_at_most", self._spend_at_most), ("keep", self._keep)):
            if value is not None and not self.space.is_number:
                rule = f"{name} is for a range of numbers (low, high)"
                raise ParameterError(f"{rule}, got {self.space.actions}. Use such actions.", name)
        settings = {"late": self.late, "carry": self.carry, "decline": self.decline, "zone": self.zone}
        for name, value in settings.items() if self._spend_at_most is None else ():
            if value is not None and value is not False:
                raise ParameterError(
                    f"{name} is for a budget, as in spend_at_most=('won * action', 2000.0, 'day').", name
                )

    @property
    def spend_at_most(self) -> Any:
        """What is spent at most: a formula, an amount, which can be changed at any time, and a period; None without a budget."""
        return None

    @spend_at_most.setter
    def spend_at_most(self, spend_at_most: Any) -> None:
        raise ParameterError(
            f"spend_at_most cannot be added to an agent, got {spend_at_most!r:.60}. Make a new one.", "spend_at_most"
        )

    @property
    def keep(self) -> Any:
        """What is kept in the mean: a part or formula, a sign, and a number; None without a bound."""
        return None

    @property
    def spending(self) -> Outcome | None:
        """What a budget pays for, as an outcome that `evaluate` and `compare` judge in logs with the parts; None without a budget."""
        return None

    @property
    def kept(self) -> Outcome | None:
        """What is kept, as an outcome like `spending`."""
        return None

    @property
    def parameters(self) -> dict[str, Any]:
        """The arguments of the constructor; those of limits in expectation only if there are some."""
        named = super().parameters
        given = {name: value for name, value in named.items() if value is not None and value is not False}
        return {name: value for name, value in named.items() if name not in IN_EXPECTATION or name in given}

    def _take_contexts(self, seen: Seen) -> None:
        """Take contexts like those that a prior has seen."""
        if seen.named:
            self._host.start_named(self)
        else:
            assert seen.width is not None
            self._host.start(self, seen.width)

    def _check_settings(self, bandwidth: float | None) -> None:
        """Check the settings that depend on the space."""
        self.bandwidth = None if bandwidth is None else check_bandwidth(bandwidth, self._range)

    # Otherwise it would be that of `__new__`.
    __signature__ = inspect.Signature(list(inspect.signature(__init__, eval_str=True).parameters.values())[1:])

    @classmethod
    def _from_parameters(cls, parameters: model_files.Parameters) -> Self:
        settings = {**parameters, "actions": ActionSpace.from_description(parameters["actions"])}
        early = settings.pop("early", True)
        agent = super()._from_parameters(settings)
        agent._early = early
        return agent

    def _description(self) -> tuple[str, model_files.Parameters]:
        kind, settings = super()._description()
        return kind, settings if self._early else {**settings, "early": False}

    def _restore(self, player: Any, arrays: model_files.Arrays) -> None:
        """Restore the state of a file, its `arrays`, in a new `player`.

        In files of older versions, the features of named contexts share columns, there is no forest, which then starts to grow,
        and there are no experts for the first rounds, which are then left out. Models of parts, which agents that `optimize`
        returns do not have yet, start anew. The odds of a formula become its weight.
        """
        if self._host.seen.named and "deep_features" not in arrays:
            names = player.fields, player.names, player.columns
            player = self._host.hold(super()._make_named_player(), self._host.seen)
            player.fields, player.names, player.columns = names
        for group in (_FOREST, PARTS):
            if not group & arrays.keys():
                arrays = {**{name: array for name, array in player.state().items() if name in group}, **arrays}
        if "early" not in arrays:
            new = {name: array for name, array in player.views().items() if name in _EARLY}
            arrays = {**{name: np.zeros_like(array) for name, array in new.items()}, **arrays}
        if len(arrays.get("judge", ())) == _ODDS:
            arrays = {**arrays, "judge": _judge_with_a_share(arrays["judge"])}
        self.prior = prior_in(arrays, player, self._host.seen)
        if self.prior is not None:
            seen = self._host.seen
            player = self._host.hold(
                self._make_named_player() if seen.named else self._make_player(seen.width or 0), seen
            )
        super()._restore(player, arrays)

    def report(self, context: Context = None, *, points: int = 64) -> Report:
        """The current state; with a `context`, also the predicted loss of `points` actions.

        >>> agent = Auto()
        >>> for _ in range(30):
        ...     decision = agent.decide([0.5])
        ...     agent.learn([0.5], decision, abs(decision.action - 0.3))
        >>> report = agent.report([0.5])
        >>> report.rounds, report.alarms, len(report.losses)
        (30, 0, 64)
        """
        player, features = self._host.player, None
        if context is not None or player is None:
            player, features = self._host.player_and_context(self, context)
        curve: dict[str, Any] = {} if context is None else self._curve(features, points)
        state = player.report()
        curve["formula"] = formula_report(state, self.outcome)
        return critic_report(state, loss_unit(self.losses), self.current_epsilon, **curve)

    def predict_losses(self, contexts: npt.ArrayLike, actions: npt.ArrayLike) -> Floats:
        """The predicted losses of `actions`: one action for each of the `contexts`, or a row of actions per context.

        >>> agent = Auto()
        >>> for _ in range(30):
        ...     decision = agent.decide([0.5])
        ...     agent.learn([0.5], decision, abs(decision.action - 0.3))
        >>> agent.predict_losses([[0.5], [0.5]], [[0.1, 0.3, 0.9], [0.2, 0.3, 0.9]]).shape
        (2, 3)
        """
        batch, points = self._host.batch(contexts), np.asarray(actions, dtype=np.float64)
        check_shape("actions", points[:, 0] if points.ndim == 2 else points, len(batch))
        outside = points[~are_within(points, *self.actions)]
        if len(outside):
            raise InputError(
                f"actions must be in [{self._range.low:g}, {self._range.high:g}], got {outside[0]:g}.", "actions"
            )
        shares = np.empty(points.size)
        with self._host.player_and_contexts(self, batch) as (player, rows):
            table = np.ascontiguousarray(points.reshape(len(batch), -1))
            player.predict_many(rows, table, shares)
        low, high = loss_unit(self.losses)
        return low + shares.reshape(points.shape) * (high - low)

    def _saved_settings(self) -> model_files.Parameters:
        settings = self.parameters
        del settings["prior"]  # which is among the arrays
        for name in ("bandwidth", "nearby", "limits", "start"):  # files of earlier versions do not have them
            if settings[name] is None:
                del settings[name]
        return settings

    @property
    def _plays_windows(self) -> bool:  # type: ignore[override]
        return not self.nearby and not self._models_parts  # whose epsilon depends on the context

    def distribution(self, context: Context, within: Narrowing | None = None) -> Any:
        ends = self._narrow(within)
        player, features = self._host.player_and_context(self, context)
        with self._host.explain_rejection():
            centre, bandwidth, epsilon = player.played(features, *ends)
        if self.nearby:
            return mix_levels(player.levels(centre, bandwidth, *ends, epsilon))
        return explore(smooth(centre, bandwidth, ends), epsilon, ends)

    def _curve(self, context: Any, points: int) -> dict[str, Any]:
        actions = self._range.low + (np.arange(points) + 0.5) / points * self._range.span
        contexts: Any = [context] if isinstance(context, dict) else np.asarray(context)[np.newaxis]
        return {"actions": actions, "losses": self.predict_losses(contexts, actions[np.newaxis])[0]}

    def _make_player(self, width: int) -> _core.Player:
        player: _core.Player = self._with_prior(Seen(width), width=width)
        return player

    def _make_named_player(self) -> _core.Player:
        player: _core.Player = self._with_prior(Seen(0, named=True), width=0, features=FEATURES)
        return player

    def _with_prior(self, seen: Seen, **contexts: Any) -> _core.Player:
        def make(**others: Any) -> _core.Player:
            return _core.AutoPlayer(**{**contexts, **self._player_settings, **others})

        if self.prior is None:
            return make()
        self.prior.check_seen(seen)
        player: _core.Player = self.prior.give(make(prior=True), make)
        return player

    @property
    def _player_settings(self) -> dict[str, Any]:
        own: dict[str, Any] = {
            "bandwidth": self.bandwidth or 0.0,
            "nearby": self.nearby or 0.0,
            "by_evidence": self.epsilon == "auto",
        }
        own["early"] = self._early
        start = {} if self.start is None else {"start": float(self.start)}
        return {**super()._player_settings, **own, **start, "parts": self._parts_in_core()}

    @property
    def _models_parts(self) -> bool:  # type: ignore[override]
        return self._reader is not None and self._reader.is_in_core

    def _parts_in_core(self) -> dict[str, Any] | None:
        """The formula of the outcome as the core takes it; None if there is none, or several knobs."""
        settings = None if self._reader is None else self._reader.core_settings()
        if settings is None:
            return None
        actions = self.space.knobs[0][1].column(np.linspace(0.0, 1.0, POINTS)).tolist()
        started = {"start": self._starts[0]} if self._starts else {}
        return {**settings, "actions": actions, "cost_aware": self.epsilon == "auto", "inherits": True, **started}


def _judge_with_a_share(judge: Floats) -> Floats:
    """The judge of a formula in the core, from a file whose judge had the odds that the formula is better: with the same weight."""
    rounds, odds, centre, spread, *squares = judge[:6].tolist()
    unit, weight = min(squares) or 1.0, 1 / (1 + np.exp(-odds))
    # A regression of 100 rounds beside the 100 of the prior, and a test that only a formula without weight has failed.
    share, test = [(2 * weight - 1) * 100 * unit, 100 * unit], [10 * unit if odds < -6 else 0.0, unit**2]
    return np.array([rounds, centre, spread, *squares, *share, unit, 1.0, *test, *judge[6:]])


def as_critic(agent: Auto[Any]) -> Auto[Any]:
    """A new agent that only learns from a log: without the experts for the first rounds, whose predictions fit their own decisions."""
    agent._early = False
    return agent


def window_centres(
    critic: Auto[Any], contexts: npt.ArrayLike, bandwidth: float, within: npt.ArrayLike | None = None
) -> Floats:
    """The centre of the window of this `bandwidth` with the lowest predicted loss, for each of the `contexts`,
    with `within` as in `decide_many`.

    >>> window_centres(Auto(actions=(0.0, 32.0)), [[0.5]], 16.0)
    array([16.])
    """
    host = host_of(critic)
    batch = host.batch(contexts)
    lows, highs = row_ends(critic, within, len(batch))
    width, centres = check_bandwidth(bandwidth, Actions(*critic.actions)), np.empty(len(batch))
    with host.player_and_contexts(critic, batch) as (player, rows):
        player.centres_many(rows, lows, highs, width, centres)
    return centres
