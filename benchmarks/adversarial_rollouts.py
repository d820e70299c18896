"""Rollouts that try to promote worse learners, to send better ones back, and to spend more than the budget.

The loss of a decision depends on its arm, on the context and on the time, and on nothing else, so that what the learner costs is
known exactly. Critics can tell the arms apart by their actions, rightly or wrongly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from heapq import heappop, heappush
from math import inf
from typing import Any, Literal, NamedTuple

import numpy as np

import manul

BASELINE, LEARNER = 0.2, 0.8  # the actions of the arms
LEARNS = "learner"
DECISIONS = 3000
# A first step with half of the traffic: the evidence comes fast, so that wrong steps would too.
PLAN: dict[str, Any] = {"tolerance": 0.05, "confidence": 0.95, "steps": (0.5, 1.0), "budget": 100.0, "patience": 400}
STRICT = {"tolerance": 0.0, "budget": 10.0}  # nothing but the budget may be spent
LOOKED_AT = 25  # decisions
GUARD = {"returned": ("<=", 1.02)}
RETURNED = 0.3  # of the baseline's decisions


class Moment(NamedTuple):
    """A decision: the first number of its context, the time from 0 to 1, and the learner's share of the traffic."""

    x: float
    time: float
    share: float


Mean = Callable[[Moment, str], float]
Draw = Callable[[np.random.Generator, float, str], float]


def of(arm: str, factor: float) -> float:
    """By how much the learner's numbers differ from the baseline's."""
    return factor if arm == LEARNS else 1.0


class Outcome(NamedTuple):
    """What happened in a rollout: whether it moved up and down, when it reached its last step, and by how much it cost too much."""

    up: bool
    down: bool
    full: float
    excess: float


# Learners


class Stubborn(manul.Auto):
    """Auto that does not learn any more."""

    stopped = False

    def learn(self, *arguments: Any, **outcomes: Any) -> None:
        if not self.stopped:
            super().learn(*arguments, **outcomes)

    def learn_many(self, *arguments: Any, **outcomes: Any) -> None:
        if not self.stopped:
            super().learn_many(*arguments, **outcomes)


class Liar(Stubborn):
    """Auto whose predictions are 0 for its own actions and 1 for those of the baseline, or the other way round."""

    favours_learner = True

    def predict_losses(self, contexts: Any, actions: Any) -> Any:  # noqa: ARG002
        of_baseline = np.asarray(actions, np.float64) < 0.5
        return np.where(of_baseline == self.favours_learner, 1.0, 0.0)


def misled(seed: int, kind: type[Stubborn] = Stubborn) -> Any:
    """An agent whose critic is sure that actions near `LEARNER` cost nothing, and others the more, the farther they are."""
    agent, rng = kind(epsilon=0.0, seed=seed), np.random.default_rng([seed, 31])
    for _ in range(20):
        x = rng.random((25, 1)).astype(np.float32)
        decisions = agent.decide_many(x)
        agent.learn_many(x, decisions, np.minimum(np.abs(decisions.actions - LEARNER) * 1.6, 1.0))
    agent.stopped = True
    return agent


def liar(seed: int, *, favours_learner: bool) -> Any:
    agent = misled(seed, Liar)
    agent.favours_learner = favours_learner
    return agent


def learning(seed: int, **settings: Any) -> Any:
    """Auto, which goes on learning."""
    return manul.Auto(seed=seed, **settings)


def cats(seed: int, **settings: Any) -> Any:
    if "outcome" in settings:  # it says the range too
        settings.pop("rewards", None)
    return manul.Cats(leaves=8, bandwidth=1 / 8, epsilon=0.05, seed=seed, **settings)


# Expected losses of an arm


def ratio(learner: float, baseline: float = 0.2) -> Mean:
    """The learner's loss is a multiple of the baseline's."""
    return lambda _moment, arm: baseline * of(arm, learner)


def by_context(learner: float, spread: float = 0.8) -> Mean:
    """The context explains most of the losses of both arms."""
    return lambda moment, arm: (0.45 + spread * (moment.x - 0.5)) * of(arm, learner)


def seasonal(learner: float) -> Mean:
    return lambda moment, arm: (0.3 + 0.25 * np.sin(8 * np.pi * moment.time)) * of(arm, learner)


def then(before: float, after: float, at: float = 0.5) -> Mean:
    return lambda moment, arm: 0.2 * of(arm, before if moment.time < at else after)


def worse_with_traffic(moment: Moment, arm: str) -> float:
    """A learner that is better while it has little traffic, and twice as bad when it has much."""
    return 0.2 * of(arm, 0.7 if moment.share < 0.6 else 2.0)


def crossed(moment: Moment, arm: str) -> float:
    """A learner that is much better in some contexts, and worse on average."""
    return (0.1 if moment.x < 0.5 else 0.5) if arm == LEARNS else (0.3 if moment.x < 0.5 else 0.2)


# Losses with these expected values


def beta(rng: np.random.Generator, mean: float, _arm: str) -> float:
    return float(rng.beta(8 * mean, 8 * (1 - mean)))


def binary(rng: np.random.Generator, mean: float, _arm: str) -> float:
    return float(rng.random() < mean)


def heavy(rng: np.random.Generator, mean: float, _arm: str) -> float:
    return float(rng.beta(0.2 * mean, 0.2 * (1 - mean)))


def constant(_rng: np.random.Generator, mean: float, _arm: str) -> float:
    return mean


def catastrophes(rng: np.random.Generator, mean: float, arm: str) -> float:
    """The learner's losses are small and steady, except for one in fifty, which is the worst possible."""
    rest = (mean - 0.02) / 0.98
    return (1.0 if rng.random() < 0.02 else rest) if arm == LEARNS else mean


# When losses are reported: after so many further decisions, or never

Delay = Callable[[np.random.Generator, float, str], float]


def at_once(_rng: np.random.Generator, _loss: float, _arm: str) -> float:
    return 0.0


def late(rng: np.random.Generator, loss: float, _arm: str) -> float:
    """Large losses come later."""
    return float(rng.geometric(1 / 100)) * (0.5 + loss)


def large_too_late(_rng: np.random.Generator, loss: float, arm: str) -> float:
    """The learner's large losses come after the patience."""
    return 900.0 if arm == LEARNS and loss > 0.25 else 0.0


def large_never(rng: np.random.Generator, loss: float, arm: str) -> float:
    """Half of the learner's large losses never come."""
    return inf if arm == LEARNS and loss > 0.25 and rng.random() < 0.5 else 0.0


def learner_late(rng: np.random.Generator, _loss: float, arm: str) -> float:
    """All losses of the learner come late."""
    return float(rng.geometric(1 / 150)) if arm == LEARNS else 0.0


def some_never(rng: np.random.Generator, _loss: float, _arm: str) -> float:
    """One loss in 100 never comes, in either arm."""
    return inf if rng.random() < 0.01 else 0.0


# Guards: whether a decision was returned, or None if nobody knows

Guard = Callable[[np.random.Generator, float, float, str], bool | None]


def returned(factor: float, rate: float = RETURNED) -> Guard:
    """Returned independently of the loss, the learner's by a factor more often."""
    return lambda rng, _time, _loss, arm: bool(rng.random() < rate * of(arm, factor))


def returned_if_cheap(factor: float) -> Guard:
    """Decisions with small losses are returned more often."""
    return lambda rng, _time, loss, arm: bool(rng.random() < RETURNED * of(arm, factor) * (1.5 if loss < 0.2 else 0.5))


def unknown_if_returned(rng: np.random.Generator, _time: float, _loss: float, arm: str) -> bool | None:
    """The learner's are returned twice as often, but half of them are not reported."""
    back = bool(rng.random() < RETURNED * of(arm, 2.0))
    return None if arm == LEARNS and back and rng.random() < 0.5 else back


def only_learner(rng: np.random.Generator, _time: float, _loss: float, arm: str) -> bool | None:
    """Nothing of the baseline is ever returned."""
    return bool(arm == LEARNS and rng.random() < 0.02)


def returned_later(rng: np.random.Generator, time: float, _loss: float, arm: str) -> bool | None:
    """The learner's are returned more often from half time on."""
    return bool(rng.random() < RETURNED * of(arm, 2.0 if time > 0.5 else 1.0))


@cache
def guards_refused() -> str:
    """Why the installed version refuses guards; empty if it does not."""
    try:
        watched = manul.Outcome(parts={"returned": "yes/no"})
        manul.Rollout(cats(0, outcome=watched), baseline=BASELINE, guard=GUARD)
    except (TypeError, manul.ManulError) as error:
        return str(error)
    return ""


@dataclass(frozen=True, eq=False)
class RolloutWorld:
    """A learner and the losses of both arms.

    `truth` says whether the learner is "worse" than tolerated, or breaks a guard, at all times, "no worse" at all times, or "mixed".
    `after` makes another learner that replaces the first at half time. `span` is the range of losses; with `rewards`, the upper end
    minus the loss is the reward. `size` is the baseline's mean absolute loss, if it is not the absolute mean. `restarts` saves and
    loads the rollout every 500 decisions.
    """

    name: str
    mean: Mean
    truth: Literal["worse", "no worse", "mixed"]
    draw: Draw = beta
    learner: Callable[..., Any] = cats
    decisions: int = DECISIONS
    delay: Delay = at_once
    guard: Guard | None = None
    after: Callable[[int], Any] | None = None
    span: tuple[float, float] = (0.0, 1.0)
    rewards: bool = False
    size: float | None = None
    restarts: bool = False
    plan: Mapping[str, Any] = field(default_factory=dict)

    def play(self, seed: int) -> Outcome:
        """One rollout."""
        rng, (low, high) = np.random.default_rng([seed, 37]), self.span
        settings = PLAN | dict(self.plan) | ({} if self.guard is None else {"guard": GUARD})
        outcome = manul.Outcome(better="high" if self.rewards else "low", range=self.span, parts={"returned": "yes/no"})
        learner = self.learner(seed) if self.guard is None else self.learner(seed, outcome=outcome)
        rollout = manul.Rollout(learner, baseline=BASELINE, seed=seed, **settings)
        contexts = rng.random((self.decisions, 1)).astype(np.float32)
        due: list[tuple[float, int, manul.Decision, dict[str, Any]]] = []
        excess, worst, full = 0.0, 0.0, inf
        for number, context in enumerate(contexts):
            if self.after is not None and number == self.decisions // 2:
                rollout.agent = self.after(seed)
            if self.restarts and number % 500 == 499:
                rollout = manul.loads(manul.dumps(rollout))
            moment = Moment(float(context[0]), number / self.decisions, rollout.traffic)
            decision = rollout.decide(context)
            arm = str(decision.arm)
            own, baseline = (self.units(self.mean(moment, each)) for each in (LEARNS, "baseline"))
            size = abs(baseline) if self.size is None else self.size
            excess += (moment.share * (own - baseline) - settings["tolerance"] * size) / (high - low)
            worst = max(worst, excess)
            share = self.draw(rng, self.mean(moment, arm), arm)
            loss = self.units(share)
            report: dict[str, Any] = {"reward": -loss} if self.rewards else {"loss": loss}
            if self.guard is not None:
                known = self.guard(rng, moment.time, share, arm)
                report["parts"] = {} if known is None else {"returned": known}
            heappush(due, (number + self.delay(rng, share, arm), number, decision, report))
            while due and due[0][0] <= number:
                _, which, reported, report = heappop(due)
                try:
                    rollout.learn(contexts[which], reported, **report)
                except manul.ManulError:
                    if number - which <= settings["patience"]:  # only what comes after the patience may be refused
                        raise
            if number % LOOKED_AT == 0 and rollout.evidence.step == len(settings["steps"]):
                full = min(full, number)
        moves = [move for move in rollout.evidence.moves if move.reason not in ("model replaced", "aborted")]
        up, down = any(move.target > move.origin for move in moves), any(move.target < move.origin for move in moves)
        return Outcome(up, down, full, worst)

    @property
    def budget(self) -> float:
        return float({**PLAN, **self.plan}["budget"])

    def units(self, share: float) -> float:
        """A loss from 0 to 1 in units; as a negative reward, if there are rewards."""
        low, high = self.span
        return (high - low) * (share - 1) if self.rewards else low + (high - low) * share


for_learner, for_baseline = partial(liar, favours_learner=True), partial(liar, favours_learner=False)
paid: dict[str, Any] = {"rewards": True, "span": (0.0, 50.0), "learner": partial(cats, rewards=(0.0, 50.0))}
WORLDS: list[RolloutWorld] = [
    RolloutWorld("-20 %", ratio(0.8), "no worse"),
    RolloutWorld("-50 %, binary", ratio(0.5), "no worse", binary),
    RolloutWorld("-10 %, 10,000 decisions", ratio(0.9), "no worse", decisions=10_000, plan={"steps": (0.1, 0.5, 1.0)}),
    RolloutWorld("equal", ratio(1.0), "no worse"),
    RolloutWorld("at the tolerance", ratio(1.05), "no worse"),
    RolloutWorld("a hair above the tolerance", ratio(1.055), "worse"),
    RolloutWorld("+20 %", ratio(1.2), "worse"),
    RolloutWorld("+20 %, binary", ratio(1.2), "worse", binary),
    RolloutWorld("+20 %, heavy tails", ratio(1.2), "worse", heavy),
    RolloutWorld("no tolerance, equal", ratio(1.0), "no worse", plan=STRICT),
    RolloutWorld("no tolerance, +20 %", ratio(1.2), "worse", plan=STRICT),
    RolloutWorld("no tolerance, +100 %, heavy tails", ratio(2.0), "worse", heavy, plan=STRICT),
    RolloutWorld("rare catastrophes", ratio(1.2, 0.05), "worse", catastrophes),
    RolloutWorld("rare catastrophes, small losses", ratio(1.2, 0.02), "worse", catastrophes),
    RolloutWorld("rare catastrophes, no tolerance", ratio(3.0, 0.02), "worse", catastrophes, plan=STRICT),
    RolloutWorld("better, then worse", then(0.8, 2.0), "mixed"),
    RolloutWorld("better, then worse, no tolerance", then(0.8, 3.0), "mixed", plan=STRICT),
    RolloutWorld("worse, then better", then(2.0, 0.5), "mixed"),
    RolloutWorld("worse with more traffic", worse_with_traffic, "mixed", plan={"budget": 20.0}),
    RolloutWorld("worse with more traffic, no tolerance", worse_with_traffic, "mixed", binary, plan=STRICT),
    RolloutWorld("seasons of both arms, equal", seasonal(1.0), "no worse"),
    RolloutWorld("seasons of both arms, +20 %", seasonal(1.2), "worse"),
    RolloutWorld("contexts explain the losses, -10 %", by_context(0.9), "no worse", constant),
    RolloutWorld("contexts explain the losses, +10 %", by_context(1.1), "worse", constant),
    RolloutWorld("contexts explain the losses, Auto learns, +10 %", by_context(1.1), "worse", constant, learning),
    RolloutWorld("contexts explain the losses, Auto learns, -10 %", by_context(0.9), "no worse", constant, learning),
    RolloutWorld("contexts explain the losses, Auto learns, equal", by_context(1.0), "no worse", constant, learning),
    RolloutWorld("better in some contexts, worse on average", crossed, "worse"),
    RolloutWorld("better in some contexts, Auto learns", crossed, "worse", constant, learning),
    RolloutWorld("a critic that is sure, equal", ratio(1.0), "no worse", beta, misled),
    RolloutWorld("a critic that is sure, +20 %", ratio(1.2), "worse", beta, misled),
    RolloutWorld("a critic that is sure, -20 %", ratio(0.8), "no worse", beta, misled),
    RolloutWorld("a critic that is sure, no tolerance, +100 %", ratio(2.0), "worse", beta, misled, plan=STRICT),
    RolloutWorld("predictions for the learner, +20 %", ratio(1.2), "worse", beta, for_learner),
    RolloutWorld("predictions for the learner, equal", ratio(1.0), "no worse", beta, for_learner),
    RolloutWorld("predictions for the baseline, +20 %", ratio(1.2), "worse", beta, for_baseline),
    RolloutWorld("predictions for the baseline, equal", ratio(1.0), "no worse", beta, for_baseline),
    RolloutWorld("large losses late, +20 %", ratio(1.2), "worse", delay=late),
    RolloutWorld("large losses late, -20 %", ratio(0.8), "no worse", delay=late),
    RolloutWorld("large losses late, no tolerance, +100 %", ratio(2.0), "worse", delay=late, plan=STRICT),
    RolloutWorld("the learner's losses late, +100 %", ratio(2.0), "worse", delay=learner_late),
    RolloutWorld("the learner's losses late, equal", ratio(1.0), "no worse", delay=learner_late),
    RolloutWorld("the learner's large losses too late, +100 %", ratio(2.0), "worse", delay=large_too_late),
    RolloutWorld("half of the learner's large losses never, +50 %", ratio(1.5), "worse", delay=large_never),
    RolloutWorld("1 % of the losses never, equal", ratio(1.0), "no worse", delay=some_never),
    RolloutWorld("late and learned, Auto, +20 %", by_context(1.2, 0.6), "worse", constant, learning, delay=late),
    RolloutWorld("losses at the lower end, +200 %", ratio(3.0, 0.005), "worse", binary),
    RolloutWorld("losses at the upper end, equal", ratio(1.0, 0.97), "no worse", binary),
    RolloutWorld(
        "losses of -1 and 1", ratio(1.2, 0.4), "worse", binary, partial(cats, losses=(-1.0, 1.0)), span=(-1.0, 1.0), size=1.0
    ),
    RolloutWorld("rewards, 12 % less", ratio(1.5), "worse", **paid),
    RolloutWorld("rewards, equal", ratio(1.0, 0.8), "no worse", binary, **paid),
    RolloutWorld("rewards, 50 % more", ratio(0.6, 0.5), "no worse", **paid),
    RolloutWorld("a new model, worse", then(0.8, 2.0), "mixed", after=lambda seed: cats(seed + 1)),
    RolloutWorld("new models, +20 %", ratio(1.2), "worse", after=lambda seed: cats(seed + 1)),
    RolloutWorld("saved and loaded, +20 %", ratio(1.2), "worse", restarts=True),
    RolloutWorld("saved and loaded, large losses late, -20 %", ratio(0.8), "no worse", restarts=True, delay=late),
    RolloutWorld("50 decisions, +300 %", ratio(4.0), "worse", decisions=50, plan={"least_decisions": 10, "budget": 5.0}),
    RolloutWorld("50 decisions, 90 % less", ratio(0.1), "no worse", decisions=50, plan={"least_decisions": 10}),
    RolloutWorld("50,000 decisions, a hair above the tolerance", ratio(1.06), "worse", decisions=50_000),
    RolloutWorld("guard kept, -20 %", ratio(0.8), "no worse", guard=returned(1.0)),
    RolloutWorld("guard improved by 30 %, -20 %", ratio(0.8), "no worse", guard=returned(0.7)),
    RolloutWorld("guard at its limit, -20 %", ratio(0.8), "no worse", guard=returned(1.02)),
    RolloutWorld("guard broken by 10 %, -20 %", ratio(0.8), "worse", guard=returned(1.1)),
    RolloutWorld("guard broken by 10 %, -10 %, 10,000 decisions", ratio(0.9), "worse", guard=returned(1.1), decisions=10_000),
    RolloutWorld("guard broken by half, -50 %", ratio(0.5), "worse", guard=returned(1.5)),
    RolloutWorld("rare guard doubled, -20 %", ratio(0.8), "worse", guard=returned(2.0, 0.01)),
    RolloutWorld("guard never seen before, -20 %", ratio(0.8), "worse", guard=only_learner),
    RolloutWorld("guard improved by 30 %, +20 %", ratio(1.2), "worse", guard=returned(0.7)),
    RolloutWorld("guard against the loss, broken by 20 %, -20 %", ratio(0.8), "worse", guard=returned_if_cheap(1.2)),
    RolloutWorld("guard against the loss, equal", ratio(1.0), "no worse", guard=returned_if_cheap(1.0)),
    RolloutWorld("guard broken, half of it unknown, -20 %", ratio(0.8), "worse", guard=unknown_if_returned),
    RolloutWorld("guard broken from half time on, -20 %", ratio(0.8), "mixed", guard=returned_later),
    RolloutWorld("guard broken by 30 %, large losses late, -20 %", ratio(0.8), "worse", guard=returned(1.3), delay=late),
    RolloutWorld("guard broken by 30 %, Auto learns, -20 %", by_context(0.8), "worse", constant, learning, guard=returned(1.3)),
    RolloutWorld("guard broken by 30 %, saved and loaded, -20 %", ratio(0.8), "worse", guard=returned(1.3), restarts=True),
    RolloutWorld("guard broken by 30 %, rewards, 50 % more", ratio(0.6, 0.5), "worse", guard=returned(1.3), **paid),
]  # fmt: skip
