"""An agent that takes over from a baseline by evidence."""

from __future__ import annotations

import math
from functools import partial
from itertools import takewhile
from numbers import Integral, Real
from typing import Any, NamedTuple, Self, Unpack

import numpy as np
import numpy.typing as npt

from manul.actions.decision import Decision, Decisions, Within
from manul.actions.distribution import Distribution
from manul.actions.ranges import Actions
from manul.actions.space import check_one_knob
from manul.agents.agent_registry import AGENTS
from manul.agents.base import densities_by_row, largest_densities_by_row, moments_by_row
from manul.agents.mapped import Mapped, SaveableAgent
from manul.agents.player_host import PlayerHost
from manul.agents.rollout import arms, rollout_files
from manul.agents.rollout.baselines import Baseline, BaselineArm, check_baseline
from manul.agents.rollout.in_flight import InFlight
from manul.agents.rollout.rollout_evidence import Evidence, evidence_of
from manul.agents.rollout.rollout_plan import PlanSettings, RolloutPlan
from manul.agents.rollout.rollout_progress import Progress
from manul.contexts import conversion
from manul.contexts.schema import Context, ContextSchema
from manul.errors import InputError, ParameterError
from manul.policies.plot_mixin import PlotMixin
from manul.policies.policy import Agent
from manul.utils import model_files
from manul.utils.validation import Floats, check_seed, check_shape


class ArmDecision(NamedTuple):
    """A decision of a rollout: as `Decision`, with the arm that made it, "learner" or "baseline", and its number.

    The density is that of the mixture of both arms.
    """

    action: float
    density: float
    within: Within | None
    floor: float | None
    arm: str
    number: int


class ArmDecisions(NamedTuple):
    """Many decisions of a rollout as arrays."""

    actions: Floats
    densities: Floats
    lows: Floats | None
    highs: Floats | None
    floors: Floats | None
    arms: list[str]
    numbers: list[int]


@model_files.saveable(
    lambda seed: Rollout(
        AGENTS["auto"].make(actions=(-2.0, 8.0), seed=seed), baseline=1.0, steps=(0.5,), budget=1e9, seed=seed
    ),
)
class Rollout(PlotMixin, model_files.FileMixin):
    """An agent that takes over from a baseline step by step, and goes back by itself if it is worse.

    `baseline` is a constant action, a saved policy, or "caller": then `decide` takes the `action` that the caller would
    choose. The learner's loss may be at most (1 + `tolerance`) times that of the baseline, or its reward at least
    (1 - `tolerance`) times. It gets the shares of traffic in `steps`, one after the other, as soon as it is proven
    not to be worse than that, and goes down a step as soon as it is proven to be worse. The baseline keeps the share
    `holdout` for ever. At all times the learner's expected excess over the baseline is at most `tolerance` times the
    baseline's losses plus `budget` times the width of the range of losses. Each of these three statements is wrong with
    probability at most 1 - `confidence`, however often one looks.

    Each step lasts for at least `least_decisions` with losses. Losses may come late: decisions are judged in their
    order, and one without a loss holds up the others until the loss of a decision arrives that was made `patience`
    decisions later. Then it is left out, and its loss is refused. If `patience_seconds` is given, it is left out at the first
    loss that comes so many seconds after it; `decide` and `learn` then take the `time`. Decisions without losses count as the
    worst possible, so the budget limits how many of them the learner makes. While the arms are proven to be left out at different
    rates, the learner does not move up.

    The settings of the `plan` are given by name: `tolerance`, `confidence`, `steps`, `holdout`, `least_decisions`, `budget`,
    `patience` and `patience_seconds`.

    Set `agent` to replace the learner: the new one begins at the first step, with new evidence and what is left of the budget.

    >>> import manul
    >>> rollout = Rollout(manul.Auto(seed=7), baseline=0.5, tolerance=0.05, steps=(0.05, 0.25, 1.0))
    >>> decision = rollout.decide([0.3, 1.2])
    >>> rollout.learn([0.3, 1.2], decision, loss=0.25)
    >>> rollout.traffic, decision.arm
    (0.05, 'baseline')
    """

    def __init__(
        self,
        agent: SaveableAgent,
        *,
        baseline: Any,
        seed: int = 0,
        **plan: Unpack[PlanSettings],
    ) -> None:
        _check_agent(agent)
        self.plan = RolloutPlan(**plan)
        if baseline is agent:
            raise ParameterError(
                "baseline must not be the agent that learns. Pass a copy or a saved policy.", "baseline"
            )
        self._agent, self.seed = agent, check_seed(seed)
        self.space, self.outcome = agent.space, agent.outcome
        self.actions = self.space.ends
        self.losses = self.outcome.known_losses("a rollout")
        self.baseline: Baseline = check_baseline(baseline, self.actions)
        self.progress = Progress(self.plan, self.losses)
        self.decisions = 0
        self._range = Actions(*self.actions)
        self._density_is_checked = False
        self._in_flight = InFlight()
        self._times: dict[int, float] = {}

    @property
    def schema(self) -> ContextSchema:
        """The fields of contexts that the learner knows."""
        return self.agent.schema if isinstance(self.agent, PlayerHost | Mapped) else ContextSchema()

    @property
    def agent(self) -> SaveableAgent:
        """The agent that learns."""
        return self._agent

    @agent.setter
    def agent(self, agent: SaveableAgent) -> None:
        _check_agent(agent)
        given, expected = ((each.actions, each.outcome.losses, each.outcome.higher) for each in (agent, self))
        if given != expected:
            names = "actions, losses and kind of outcome"
            raise ParameterError(f"agent must have the {names} of the one before, {expected}, got {given}.", "agent")
        self._agent, self._density_is_checked = agent, False
        self.progress.restart()

    @property
    def traffic(self) -> float:
        """The share of the learner in the next decision."""
        return self._in_flight.share(self.progress)

    @property
    def evidence(self) -> Evidence:
        """What is known of the learner against the baseline."""
        return evidence_of(self.progress, self._in_flight)

    def distribution(
        self, context: Context, within: Within | None = None, *, action: float | None = None
    ) -> Distribution:
        """The mixture of learner and baseline that `decide` draws from."""
        baseline = self.baseline.arm(context, self._ends(within), action)
        learner, share = self._learner(context, within), self.traffic
        return learner.mix(baseline.distribution, 1 - share) if share > 0 else baseline.distribution

    def decide(
        self,
        context: Context,
        within: Within | None = None,
        *,
        action: float | None = None,
        time: float | None = None,
    ) -> ArmDecision:
        """Draw an action from the learner or the baseline; `action` is the caller's own one if the baseline is the caller.

        `time` is in seconds, for a rollout with `patience_seconds`.
        """
        self._check_time(time)
        baseline = self.baseline.arm(context, self._ends(within), action)
        if not self._density_is_checked:
            self._learner(context, within)
        return self._draw(context, within, baseline, time)

    def learn(
        self,
        context: Context,
        decision: ArmDecision,
        loss: float | None = None,
        *,
        reward: float | None = None,
        time: float | None = None,
    ) -> None:
        """Learn from the loss or reward of a decision of this rollout, whichever arm made it."""
        self._check_time(time)
        number = self._check_known([getattr(decision, "number", None)])[0]
        outcome: Any = {"loss": loss} if reward is None else {"loss": loss, "reward": reward}
        value = self._check_loss(self.outcome.read(loss, reward))
        self.agent.learn(context, Decision(*decision[:4]), **outcome)
        self._judge(number, value, time)

    def decide_many(
        self,
        contexts: npt.ArrayLike,
        within: npt.ArrayLike | None = None,
        *,
        actions: npt.ArrayLike | None = None,
        time: float | None = None,
    ) -> ArmDecisions:
        """Draw an action for each row; `within` has one (low, high) and `actions` one action of the caller per row."""
        self._check_time(time)
        rows = _rows(contexts)
        pairs = None if within is None else _columns("within", within, len(rows), 2)
        ends = [None] * len(rows) if pairs is None else [(low, high) for low, high in pairs.tolist()]
        own = [None] * len(rows) if actions is None else _columns("actions", actions, len(rows)).tolist()
        # If one row is invalid, nothing is drawn. Rows of numbers are all valid if the first is.
        baselines = [
            self.baseline.arm(row, self._ends(end), each) for row, end, each in zip(rows, ends, own, strict=True)
        ]
        for row, end in zip(rows[:1] if isinstance(rows, np.ndarray) else rows, ends, strict=False):
            self._learner(row, end)
        drawn = [self._draw(*each, time) for each in zip(rows, ends, baselines, strict=True)]
        values, densities, floors = (
            np.array([getattr(each, name) for each in drawn], dtype=np.float64)
            for name in ("action", "density", "floor")
        )
        lows, highs = (None, None) if pairs is None else pairs.T
        return ArmDecisions(
            values, densities, lows, highs, floors, [each.arm for each in drawn], [each.number for each in drawn]
        )

    def learn_many(
        self,
        contexts: npt.ArrayLike,
        decisions: ArmDecisions,
        losses: npt.ArrayLike | None = None,
        *,
        rewards: npt.ArrayLike | None = None,
        time: float | None = None,
    ) -> None:
        """Learn from the losses or rewards of many decisions, in order; if one of them is invalid, from none."""
        self._check_time(time)
        numbers = self._check_known(getattr(decisions, "numbers", [None]))
        outcomes: Any = {"losses": losses} if rewards is None else {"losses": losses, "rewards": rewards}
        values = self.outcome.read_many(losses, rewards)
        check_shape("losses", values, len(numbers))
        self.outcome.check(values)
        self.agent.learn_many(contexts, Decisions(*decisions[:5]), **outcomes)
        for number, value in zip(numbers, values.tolist(), strict=True):
            self._judge(number, value, time)

    def densities_many(
        self, contexts: npt.ArrayLike, actions: npt.ArrayLike, within: npt.ArrayLike | None = None
    ) -> Floats:
        """The density of each row's action, which any policy may have drawn."""
        rows = _rows(contexts)
        return densities_by_row(self, rows, _columns("actions", actions, len(rows)), within)

    def largest_densities_many(self, contexts: npt.ArrayLike, within: npt.ArrayLike | None = None) -> Floats:
        """The largest density of any action of each row."""
        return largest_densities_by_row(self, _rows(contexts), within)

    def moments_many(self, contexts: npt.ArrayLike, within: npt.ArrayLike | None = None) -> tuple[Floats, Floats]:
        """The expected action and the expected squared action of each row."""
        return moments_by_row(self, _rows(contexts), within)

    def _learner(self, context: Context, within: Within | None) -> Distribution:
        learner = self.agent.distribution(context, within)
        if not isinstance(learner, Distribution):
            raise InputError("agent must draw from a density; this one draws from single actions.", "agent")
        self._density_is_checked = True
        return learner

    def _draw(self, context: Context, within: Within | None, baseline: BaselineArm, time: float | None) -> ArmDecision:
        def look_up(action: float) -> tuple[float, float]:
            learner = self._learner(context, within)
            return learner.density(action), float(learner.densities.min())

        share, number = self.traffic, self.decisions
        decide = partial(self.agent.decide, context, within)
        drawn = arms.draw(self.seed, number, share, baseline, decide=decide, look_up=look_up)
        self._in_flight.add(number, self.progress.ticket(learner=drawn.learner, share=share))
        if time is not None:
            self._times[number] = float(time)
        self.decisions += 1
        arm = "learner" if drawn.learner else "baseline"
        return ArmDecision(drawn.action, drawn.density, within, drawn.floor, arm, number)

    def _ends(self, within: Within | None) -> Within:
        return (
            self.actions
            if within is None
            else self._range.narrow(within, getattr(self.agent, "narrowest_bandwidth", 0.0))
        )

    def _check_known(self, numbers: Any) -> list[int]:
        unknown = [
            number
            for number in numbers
            if not isinstance(number, Integral)
            or number not in self._in_flight.tickets
            or number in self.progress.arrived
        ]
        if unknown or len(set(numbers)) < len(numbers):
            raise InputError(
                "decision must come from this rollout, have no loss yet, and be at most `patience` "
                f"({self._patience}) old, got number {(unknown or numbers)[0]}.",
                "decision",
            )
        return list(map(int, numbers))

    def _check_loss(self, loss: float) -> float:
        if not self.losses[0] <= loss <= self.losses[1]:
            self.outcome.check(np.array([loss]))
        return loss

    @property
    def _patience(self) -> str:
        seconds = self.plan.patience_seconds
        return f"{self.plan.patience:,} decisions" if seconds is None else f"{seconds:g} seconds"

    def _check_time(self, time: float | None) -> None:
        if (time is None) != (self.plan.patience_seconds is None):
            rule = "seconds, such as time.time(), since" if time is None else "given only to"
            raise InputError(
                f"time must be {rule} a rollout {'has' if time is None else 'with'} patience_seconds.", "time"
            )
        if time is not None and not (isinstance(time, Real) and math.isfinite(float(time))):
            raise InputError(f"time must be a finite number of seconds, got {time!r}.", "time")

    def _judge(self, number: int, loss: float, time: float | None) -> None:
        progress, tickets = self.progress, self._in_flight.tickets
        progress.add(number, tickets[number], loss)
        self._in_flight.arrive(number)
        for overdue in self._overdue(time):
            progress.add(overdue, tickets[overdue], None)
        self._in_flight.forget_before(progress.next)
        while self._times and (first := next(iter(self._times))) < progress.next:
            del self._times[first]

    def _overdue(self, time: float | None) -> list[int]:
        """The decisions whose patience has ended. Those that hold up no loss are waited for."""
        overdue, seconds = self.progress.overdue(self.decisions), self.plan.patience_seconds
        if time is None or seconds is None:
            return overdue
        late = self.progress.waiting(self.progress.latest, self.decisions) if self.progress.missing else []
        return [*overdue, *takewhile(lambda number: time - self._times[number] >= seconds, late[len(overdue) :])]

    def state(self) -> model_files.Arrays:
        """The complete learned state of the agent inside, as arrays."""
        return self.agent.state()

    def contents(self) -> model_files.Contents:
        """The contents of a file with the rollout."""
        kind, parameters, arrays = model_files.contents(self.agent)
        baseline, baseline_arrays = self.baseline.describe()
        waiting = [[number, *ticket] for number, ticket in self._in_flight.tickets.items()]
        settings = {
            "agent": {"kind": kind, "parameters": parameters},
            "baseline": baseline,
            "plan": self.plan.describe(),
            "seed": self.seed,
            "decisions": self.decisions,
            "progress": rollout_files.describe(self.progress),
            "in_flight": {"tickets": waiting, "total": self._in_flight.total}
            | ({"times": list(self._times.items())} if self._times else {}),
        }
        both = {f"agent.{name}": array for name, array in arrays.items()}
        both |= {f"baseline.{name}": array for name, array in baseline_arrays.items()}
        return "Rollout", settings, both

    @classmethod
    def from_saved(cls, parameters: model_files.Parameters, arrays: model_files.Arrays) -> Self:
        """The rollout that was saved with these parameters and arrays."""
        split = model_files.split_by_prefix(arrays)
        inside, baseline = parameters["agent"], parameters["baseline"]
        if not split.keys() <= ({"agent", "baseline"} if isinstance(baseline, dict) else {"agent"}):
            raise model_files.mismatch_error()
        agent = model_files.restore(inside["kind"], inside["parameters"], split.get("agent", {}))
        if isinstance(baseline, dict):
            baseline = model_files.restore(baseline["kind"], baseline["parameters"], split.get("baseline", {}))
        plan = {**parameters["plan"], "steps": tuple(parameters["plan"]["steps"])}
        rollout = cls(agent, baseline=baseline, seed=parameters["seed"], **plan)
        rollout.progress = rollout_files.restore(rollout.plan, rollout.losses, parameters["progress"])
        rollout.decisions = parameters["decisions"]
        in_flight = dict(parameters["in_flight"])
        times = in_flight.pop("times", [])
        rollout._in_flight = rollout_files.restore_in_flight(rollout.progress, rollout.decisions, **in_flight)
        rollout._times = rollout_files.restore_times(rollout._in_flight, rollout.plan, times)
        return rollout

    def __repr__(self) -> str:
        return f"Rollout({self.agent!r}, baseline={self.baseline.describe()[0]!r}, {self.plan!r})"


def _check_agent(agent: SaveableAgent) -> None:
    check_one_knob(agent, "Rollout")
    if not isinstance(agent, Agent) or isinstance(agent, Rollout):
        raise ParameterError(f"agent must be an agent such as manul.Auto(), got {agent!r}.", "agent")


def _rows(contexts: npt.ArrayLike) -> Any:
    fields = conversion.to_dicts(contexts)
    return conversion.matrix(contexts) if fields is None else fields


def _columns(name: str, values: npt.ArrayLike, *shape: int) -> Floats:
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be numbers, got {values!r:.60}.", name) from None
    check_shape(name, numbers, *shape)
    return numbers
