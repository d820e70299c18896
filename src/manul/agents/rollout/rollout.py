"""An agent that takes over from a baseline by evidence."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import takewhile
from numbers import Integral, Real
from typing import Any, Generic, Protocol, Self, Unpack, cast

import numpy as np
import numpy.typing as npt

from manul.actions.decision import A, Decision, Decisions, Narrowing
from manul.actions.distribution import Atoms
from manul.actions.distributions import Distributions, Mixture, distributions_of
from manul.actions.kinds.choice import Choice
from manul.actions.levels import DrawnLevels, join_drawn
from manul.actions.space import ActionSpace
from manul.agents.agent_registry import AGENTS
from manul.agents.base import BaseAgent
from manul.agents.limits_in_expectation import limits_in_expectation
from manul.agents.mapped import Mapped, SaveableAgent
from manul.agents.rollout import rollout_files
from manul.agents.rollout.baselines import Baseline, BaselineArm, check_baseline, mixed_levels
from manul.agents.rollout.in_flight import InFlight
from manul.agents.rollout.predictions import predicted_loss
from manul.agents.rollout.rollout_evidence import Evidence, evidence_of
from manul.agents.rollout.rollout_plan import PlanSettings, RolloutPlan
from manul.agents.rollout.rollout_progress import Progress
from manul.contexts import conversion
from manul.contexts.schema import Context, ContextSchema
from manul.errors import InputError, ParameterError
from manul.outcomes import PartValue
from manul.outcomes.parts import PartsReader, part_columns, part_numbers, read_report, read_reports
from manul.policies.plot_mixin import PlotMixin
from manul.policies.policy import Agent, TellsLevels
from manul.utils import model_files
from manul.utils.html_cards import card
from manul.utils.validation import check_numbers, check_seed, check_shape


class Decides(Protocol[A]):
    """An agent, by the type of its actions."""

    def decide(self, context: Context, within: Narrowing | None = None) -> Decision[A]:
        """Draw an action."""


@model_files.saveable(
    lambda seed: Rollout(
        AGENTS["auto"].make(actions=(-2.0, 8.0), seed=seed), baseline=1.0, steps=(0.5,), budget=1e9, seed=seed
    ),
    lambda seed: Rollout(
        AGENTS["auto"].make(actions={"price": (10, 50), "kind": Choice(["a", "b"])}, epsilon=0.05, seed=seed),
        baseline={"price": 20, "kind": "b"},
        steps=(0.5,),
        budget=1e9,
        seed=seed,
    ),
)
class Rollout(PlotMixin, model_files.FileMixin, Generic[A]):
    """An agent that takes over from a baseline step by step, and goes back by itself if it is worse.

    `baseline` is an action (a number, an option, or a mapping of all knobs), a saved policy, or "caller": then `decide` takes the
    `action` that the caller would choose. The learner's loss may be at most (1 + `tolerance`) times that of the baseline, or its
    reward at least (1 - `tolerance`) times. It gets the shares of traffic in `steps`, one after the other, as soon as it is proven
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
    `patience`, `patience_seconds`, `outcome_range` and `guard`. The statements need a range of losses or rewards: that of the agent, or
    `outcome_range`, which an agent with "auto" needs. Losses or rewards beyond it count as its ends, so the statements hold for
    losses or rewards that are cut off there.

    `guard={"returned": ("<=", 1.02)}` watches a part of the outcome that `learn` is told beside the loss: its mean may be at most 1.02
    times that of the baseline. The learner moves up only if it is proven not to be worse in the loss and in all guards, and goes down
    as soon as it is proven to be worse in one of them. `">="` is for parts that must not fall.

    With `learns=False` the agent stays as it is: a test of two fixed policies against each other.

    The same `seed` and input give the same decisions. Set `agent` to replace the learner: the new one begins at the
    first step, with new evidence and what is left of the budget.

    >>> import manul
    >>> rollout = Rollout(manul.Auto(seed=7), baseline=0.5, tolerance=0.05, steps=(0.05, 0.25, 1.0))
    >>> decision = rollout.decide([0.3, 1.2])
    >>> rollout.learn([0.3, 1.2], decision, loss=0.25)
    >>> rollout.traffic, decision.arm
    (0.05, 'baseline')
    """

    def __init__(
        self,
        agent: Decides[A],
        *,
        baseline: Any,
        seed: int = 0,
        learns: bool = True,
        **plan: Unpack[PlanSettings],
    ) -> None:
        saveable = cast(SaveableAgent, agent)
        _check_agent(saveable)
        self.plan = RolloutPlan(**plan)
        if not isinstance(learns, bool):
            raise ParameterError(f"learns must be True or False, got {learns!r}.", "learns")
        if baseline is agent:
            raise ParameterError(
                "baseline must not be the agent that learns. Pass a copy or a saved policy.", "baseline"
            )
        self._agent, self.seed, self.learns = saveable, check_seed(seed), learns
        self.space: ActionSpace[A] = saveable.space
        self.actions, self.outcome = saveable.actions, saveable.outcome
        self._reader = PartsReader.of(self.outcome, self.space)
        self.baseline: Baseline = check_baseline(baseline, self.space)
        self.progress = Progress(self.plan, self.plan.loss_range(self.outcome), guards=self.plan.guards(self.outcome))
        self.decisions = 0
        self._density_is_checked = False
        self._in_flight = InFlight()
        self._times: dict[int, float] = {}

    @property
    def schema(self) -> ContextSchema:
        """The fields of contexts that the learner knows."""
        return self.agent.schema if isinstance(self.agent, BaseAgent | Mapped) else ContextSchema()

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
        if (agent.outcome.formula, agent.outcome.parts) != (self.outcome.formula, self.outcome.parts):
            raise ParameterError("agent must have the formula and the parts of the outcome of the one before.", "agent")
        self._agent, self._density_is_checked = agent, False
        self.progress.restart()

    @property
    def traffic(self) -> float:
        """The share of the learner in the next decision."""
        return self._in_flight.share(self.progress)

    @property
    def evidence(self) -> Evidence:
        """What is known of the learner against the baseline."""
        return evidence_of(self.progress, self._in_flight, self.outcome)

    def distribution(self, context: Context, within: Narrowing | None = None, *, action: A | None = None) -> Any:
        """The mixture of learner and baseline that `decide` draws from, for a `context`, `within` and `action` as there."""
        baseline = self.baseline.arm(context, within, action)
        learner, share = self._learner(context, within), self.traffic
        return learner.mix(baseline.distribution, 1 - share) if share > 0 else baseline.distribution

    def decide(
        self,
        context: Context,
        within: Narrowing | None = None,
        *,
        action: A | None = None,
        time: float | None = None,
        levels: bool = False,
    ) -> Decision[A]:
        """Draw an action from the learner or the baseline, for a `context` and `within` as in `Auto.decide`.

        `action` is the caller's own one if the baseline is the caller. The decision has the density of the mixture of both
        arms, the `arm` that made it, and its number as `id`. Several knobs have one joint density: a mixture is no product
        of densities by knob. `time` is in seconds, for a rollout with `patience_seconds`. With `levels`, the decision says what
        it was drawn from, if there is one knob.
        """
        self._check_time(time)
        baseline = self.baseline.arm(context, within, action)
        if self.space.is_number and not self._density_is_checked:
            self._learner(context, within)
        drawn_from = self._drawn_from(context, within, baseline) if levels else None
        return self._draw(context, within, baseline, time)._replace(drawn=drawn_from)

    @property
    def tells_levels(self) -> bool:
        """Whether decisions can say what they were drawn from: if those of the learner can, and there is one knob."""
        return isinstance(self.agent, TellsLevels) and self.agent.tells_levels and len(self.space.knobs) == 1

    def _drawn_from(self, context: Context, within: Any, baseline: BaselineArm) -> DrawnLevels | None:
        """What the next decision is drawn from, if it is known."""
        if not self.tells_levels:
            return None
        learner = self.agent.decide_again(self.decisions, context, within, levels=True)
        return mixed_levels(self.space, learner, baseline, self.traffic)

    def learn(
        self,
        context: Context,
        decision: Decision[A],
        loss: float | None = None,
        *,
        reward: float | None = None,
        parts: Mapping[str, PartValue] | None = None,
        time: float | None = None,
    ) -> None:
        """Learn from the `loss`, `reward` or `parts` of a `decision` of this rollout in its `context`, whichever arm made it.

        The `time` is that of `decide`.
        """
        self._check_time(time)
        number = self._check_known([decision.id if isinstance(decision, Decision) else None])[0]
        outcome: Any = {"loss": loss, "reward": reward, "parts": parts}
        value = read_report(self.outcome, self._reader, context, decision.action, loss, reward, parts).loss
        self.outcome.check(np.array([value]))
        if self.learns:
            self.agent.learn(context, decision, **{name: each for name, each in outcome.items() if each is not None})
        self._judge(number, value, None if parts is None else part_numbers(self.outcome, parts), time)

    def decide_many(
        self,
        contexts: npt.ArrayLike,
        within: Any = None,
        *,
        actions: Any = None,
        time: float | None = None,
        levels: bool = False,
    ) -> Decisions[A]:
        """Draw an action for each row of `contexts`; `within` has a narrower range and `actions` an action of the caller for each row.

        The `time` and `levels` are those of `decide`.
        """
        self._check_time(time)
        rows = _rows(contexts)
        ranges = self._ranges(within, len(rows))
        own = [None] * len(rows) if actions is None else self.space.each(actions, len(rows))
        # If one row is invalid, nothing is drawn. Rows of numbers with the whole range are all valid if the first is.
        baselines = [self.baseline.arm(*each) for each in zip(rows, ranges, own, strict=True)]
        alike = isinstance(rows, np.ndarray) and within is None
        for row, narrowed in zip(rows[:1] if alike else rows, ranges, strict=False):
            self._look_up(row, narrowed, None)
        drawn, drawn_from = [], []
        for each in zip(rows, ranges, baselines, strict=True):
            drawn_from.append(self._drawn_from(*each) if levels else None)
            drawn.append(self._draw(*each, time))
        ends: Any = {} if within is None else {"within": ranges}
        if self.space.is_number and within is not None:
            lows, highs = np.array(ranges, dtype=np.float64).reshape(-1, 2).T
            ends = {"lows": lows, "highs": highs}
        densities, names = np.array([each.density for each in drawn], dtype=np.float64), self.space.names
        return Decisions(
            self.space.unwrap(self.space.columns_of([each.action for each in drawn])),
            densities,
            floors=np.array([each.floor for each in drawn], dtype=np.float64),
            densities_by_knob={names[0]: densities} if self.space.is_named and len(names) == 1 else None,
            arms=np.array([each.arm for each in drawn]),
            ids=np.array([each.id for each in drawn], dtype=np.int64),
            drawn=DrawnLevels(join_drawn(drawn_from)) if levels else None,
            **ends,
        )

    def learn_many(
        self,
        contexts: npt.ArrayLike,
        decisions: Decisions[A],
        losses: npt.ArrayLike | None = None,
        *,
        rewards: npt.ArrayLike | None = None,
        parts: Mapping[str, npt.ArrayLike] | None = None,
        time: float | None = None,
    ) -> None:
        """Learn from the `losses`, `rewards` or `parts` of many `decisions` in their `contexts`, in order; if one is invalid, from none.

        The `time` is that of `decide`.
        """
        self._check_time(time)
        known = isinstance(decisions, Decisions) and decisions.ids is not None
        numbers = self._check_known(list(decisions.ids) if known else [None])  # type: ignore[arg-type]
        outcomes: Any = {"losses": losses, "rewards": rewards, "parts": parts}
        values = read_reports(self.outcome, self._reader, contexts, decisions.actions, losses, rewards, parts).losses
        check_shape("losses", values, len(numbers))
        self.outcome.check(values)
        given = {name: each for name, each in outcomes.items() if each is not None}
        if self.learns:
            self.agent.learn_many(contexts, decisions, **given)
        columns = {} if parts is None else part_columns(self.outcome, parts)
        for place, (number, value) in enumerate(zip(numbers, values.tolist(), strict=True)):
            self._judge(number, value, {name: float(column[place]) for name, column in columns.items()}, time)

    def distributions(self, contexts: npt.ArrayLike, within: Any = None) -> Distributions[A]:
        """The mixtures that `decide_many` draws from, for `contexts` and `within` as there; valid until the learner learns."""
        rows, share = _rows(contexts), self.traffic
        ranges = self._ranges(within, len(rows))
        learner = distributions_of(self.agent, contexts, within)
        if len(rows) and self.space.is_number and not self._density_is_checked:
            self._learner(rows[0], ranges[0])
        arms = [self.baseline.arm(row, each, None).distribution for row, each in zip(rows, ranges, strict=True)]
        baseline: Distributions[A] = Distributions(arms, learner.space)
        return Mixture(learner, baseline, share) if share > 0 else baseline

    def _learner(self, context: Context, within: Any) -> Any:
        learner = self.agent.distribution(context, within)
        if isinstance(learner, Atoms):
            raise InputError("agent must draw from a density; this one draws from single actions.", "agent")
        self._density_is_checked = True
        return learner

    def _look_up(self, context: Context, within: Any, action: Any) -> tuple[float, float | None]:
        """The learner's density of an action, 0 for None, and its smallest density."""
        if self.space.is_number:
            learner = self._learner(context, within)
            return 0.0 if action is None else learner.density(action), float(learner.densities.min())
        floor = self.agent.decide_again(self.decisions, context, within).floor
        if action is None:
            return 0.0, floor
        learner = distributions_of(self.agent, conversion.one_row(context), None if within is None else [within])
        return float(learner.density([action])[0]), floor

    def _draw(self, context: Context, within: Any, baseline: BaselineArm, time: float | None) -> Decision[A]:
        share, number = self.traffic, self.decisions
        decide, look_up = partial(self.agent.decide, context, within), partial(self._look_up, context, within)
        predicted = predicted_loss(self.agent, context, within, baseline.action, share)
        drawn = baseline.draw(self.seed, number, share, decide=decide, look_up=look_up)
        ticket = self.progress.ticket(learner=drawn.arm == "learner", share=share, predicted=predicted)
        self._in_flight.add(number, ticket)
        if time is not None:
            self._times[number] = float(time)
        self.decisions += 1
        return drawn._replace(within=within, id=number)

    def _ranges(self, within: Any, count: int) -> list[Any]:
        """The narrower range of each row, or None."""
        if within is None:
            return [None] * count
        if self.space.is_number:
            ends = check_numbers("within", [self.space.ends if each is None else each for each in within], count, 2)
            return [None if each is None else tuple(pair) for each, pair in zip(within, ends.tolist(), strict=True)]
        self.space.boxes(within, count)
        return list(within)

    def _check_known(self, numbers: Sequence[Any]) -> list[int]:
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
                f"({self._patience}) old, got id {(unknown or numbers)[0]}.",
                "decision",
            )
        return list(map(int, numbers))

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

    def _judge(self, number: int, loss: float, parts: Mapping[str, float] | None, time: float | None) -> None:
        progress, tickets = self.progress, self._in_flight.tickets
        progress.add(number, tickets[number], loss, parts)
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

    def __reduce__(self) -> tuple[Any, ...]:
        return model_files.by_attributes(self)

    def _contents(self) -> model_files.Contents:
        kind, parameters, arrays = model_files.contents(self.agent)
        baseline, baseline_arrays = self.baseline.describe()
        waiting = [[number, *rollout_files.ticket_parts(each)] for number, each in self._in_flight.tickets.items()]
        settings = {
            "agent": {"kind": kind, "parameters": parameters},
            "baseline": baseline,
            "plan": self.plan.describe(),
            "seed": self.seed,
            **({} if self.learns else {"learns": False}),  # files of earlier versions do not have it
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
        """The rollout that was saved with these `parameters` and `arrays`."""
        split = model_files.split_by_prefix(arrays)
        inside, baseline = parameters["agent"], parameters["baseline"]
        saved_policy = isinstance(baseline, dict) and "kind" in baseline
        if not split.keys() <= ({"agent", "baseline"} if saved_policy else {"agent"}):
            raise model_files.mismatch_error()
        agent = model_files.restore(inside["kind"], inside["parameters"], split.get("agent", {}))
        if saved_policy:
            baseline = model_files.restore(baseline["kind"], baseline["parameters"], split.get("baseline", {}))
        elif isinstance(baseline, dict):
            baseline = baseline["action"]
        learns = parameters.get("learns", True)
        rollout = cls(agent, baseline=baseline, seed=parameters["seed"], learns=learns, **parameters["plan"])
        progress = rollout.progress
        rollout.progress = rollout_files.restore(rollout.plan, progress.losses, parameters["progress"], progress.guards)
        rollout.decisions = parameters["decisions"]
        in_flight = dict(parameters["in_flight"])
        times = in_flight.pop("times", [])
        rollout._in_flight = rollout_files.restore_in_flight(rollout.progress, rollout.decisions, **in_flight)
        rollout._times = rollout_files.restore_times(rollout._in_flight, rollout.plan, times)
        return rollout

    def _repr_html_(self) -> str:
        rows: list[tuple[str, object]] = [("agent", type(self.agent).__name__), ("baseline", self.baseline)]
        rows += [("traffic of the agent", f"{100 * self.traffic:.3g} %"), ("decisions", f"{self.decisions:,}")]
        return card("Rollout", [*rows, *self.evidence.rows()], notes=[self.evidence])

    def __repr__(self) -> str:
        return f"Rollout({self.agent!r}, baseline={self.baseline!r}, {self.plan!r})"


def _check_agent(agent: SaveableAgent) -> None:
    if not isinstance(agent, Agent) or isinstance(agent, Rollout):
        raise ParameterError(f"agent must be an agent such as manul.Auto(), got {agent!r}.", "agent")
    if "spend_at_most" in limits_in_expectation(agent):
        rule = "agent must have no budget in a rollout, because the baseline spends money that the agent does not count"
        raise ParameterError(f"{rule}. Leave out spend_at_most.", "agent")


def _rows(contexts: Any) -> Any:
    fields = conversion.to_dicts(contexts)
    return conversion.matrix(contexts) if fields is None else fields
