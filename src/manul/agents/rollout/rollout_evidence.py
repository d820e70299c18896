"""What a rollout knows, for its owner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from manul.agents.rollout.comparison import Tally
from manul.agents.rollout.in_flight import InFlight
from manul.agents.rollout.rollout_progress import COHORT, GuardProgress, Move, Progress
from manul.outcomes import LOSSES, Outcome
from manul.utils.html_cards import card

Status = Literal["waiting", "done", "rolled back"]


@dataclass(frozen=True)
class GuardEvidence:
    """What is known of a guard since the present step began, in units of its part.

    `learner` and `baseline` are the mean values of the arms, None before the first one. `excess` bounds how far the learner's mean is
    beyond the limit of the `rule`: the guard holds if both ends are below 0, and does not if both are above. `left_out` are the
    decisions of learner and baseline without a value, since the model was given, and `beyond` the values beyond the range.
    """

    name: str
    rule: str
    learner: float | None
    baseline: float | None
    excess: tuple[float, float]
    left_out: tuple[int, int]
    beyond: int

    @property
    def state(self) -> Literal["holds", "does not hold", "not proven yet"]:
        if self.excess[1] < 0:
            return "holds"
        return "does not hold" if self.excess[0] > 0 else "not proven yet"

    def __str__(self) -> str:
        means = ""
        if self.learner is not None and self.baseline is not None:
            means = f", mean {self.learner:.4g} against {self.baseline:.4g}"
        return f"Guard {self.name!r} ({self.rule}): {self.state}{means}."


@dataclass(frozen=True)
class Evidence:
    """The learner against the baseline, since the present step began.

    `excess` bounds the learner's mean loss minus what is tolerated, (1 + tolerance) times that of the baseline: the
    learner is proven not to be worse if both ends are below 0, and worse if both are above. `judged` is the number of
    decisions with losses in which both arms could decide, and the losses of the arms are their means, None before the
    first loss. `spent` is an upper bound of what the learner has cost beyond the tolerance since the rollout began; while
    it is above `budget`, the learner gets no traffic. `limited` says whether the budget, of which decisions without
    losses use a part too, leaves less traffic than the step. `needed` is about how many more decisions the next step
    takes; None if it cannot be foreseen. `held_up_by` is the number of a decision without a loss for which
    `later_losses` wait; None if there is no such decision. `left_out` are the decisions of learner and baseline whose losses
    did not come within patience, since the model was given, and `left_out_rates` their shares of all decisions of the arm. If
    the arms are proven to be left out at different rates, the evidence is `uneven`, and the learner does not move up. `beyond` is the
    number of losses that were beyond the range, since the rollout began: they count as its ends. Losses are
    those of the `outcome`, and sentences state its values. `guards` say what is known of the guards.
    """

    status: Status
    step: int
    steps: int
    traffic: float
    limited: bool
    judged: int
    excess: tuple[float, float]
    learner_loss: float | None
    baseline_loss: float | None
    spent: float
    budget: float
    needed: int | None
    held_up_by: int | None = None
    later_losses: int = 0
    left_out: tuple[int, int] = (0, 0)
    left_out_rates: tuple[float, float] = (0.0, 0.0)
    uneven: bool = False
    beyond: int = 0
    moves: tuple[Move, ...] = ()
    outcome: Outcome = LOSSES
    guards: tuple[GuardEvidence, ...] = ()

    def __str__(self) -> str:
        if self.status == "rolled back":
            judged = self.moves[-1].judged
            when = f"after {judged:,} decisions" if judged else "before the loop was reset"
            guard = self.moves[-1].guard
            return (
                f"Rolled back {when}: the learner was worse than tolerated{'' if guard is None else f' in {guard!r}'}."
            )
        arms = ""
        if self.learner_loss is not None and self.baseline_loss is not None:
            means = (self.outcome.state(each) for each in (self.learner_loss, self.baseline_loss))
            arms = f", mean {self.outcome.name} {' against '.join(means)}"
        limit = ", limited by the budget" if self.limited else ""
        text = f"Step {self.step} of {self.steps}: {100 * self.traffic:.3g} % of the traffic{limit}{arms}."
        guards = "".join(f" {guard}" for guard in self.guards)
        return f"{text} {self._next_step()}{guards}{self._missing_losses()}{self._beyond()}{self._delay()}"

    def _repr_html_(self) -> str:
        return card("Evidence", self.rows(), notes=[self])

    def rows(self) -> list[tuple[str, object]]:
        """The numbers that a notebook shows, by name."""
        means = [("learner", self.learner_loss), ("baseline", self.baseline_loss)]
        rows: list[tuple[str, object]] = [("step", f"{self.step} of {self.steps}"), ("judged", f"{self.judged:,}")]
        rows += [
            (f"mean {self.outcome.name} of the {arm}", self.outcome.state(mean))
            for arm, mean in means
            if mean is not None
        ]
        return [*rows, ("status", self.status)]

    def _next_step(self) -> str:
        if self.status == "done":
            return "This is the last step; the baseline keeps the rest."
        if self.traffic == 0:
            return (
                "The budget is used up: the learner gets traffic again when the tolerance has added enough to it. "
                "If that takes too long, start again with a smaller first step or a larger budget."
            )
        if self.step == self.steps:
            if self.limited:
                return "This is the last step; its traffic grows as the tolerance adds to the budget."
            return "This is the last step; the learner is not proven yet not to be worse."
        if self.needed is None:
            return "Not enough evidence for the next step yet."
        if self.excess[1] < 0 and all(guard.excess[1] < 0 for guard in self.guards):
            return f"Proven not to be worse; the budget has room for the next step in about {self.needed:,} decisions."
        return f"The next step needs about {self.needed:,} more decisions."

    def _missing_losses(self) -> str:
        """That one arm lacks more losses than the other, which makes the comparison unfair."""
        if not self.uneven:
            return ""
        learner, baseline = (f"{100 * rate:.3g} %" for rate in self.left_out_rates)
        return (
            f" Held: {learner} of the learner's decisions and {baseline} of the baseline's had no {self.outcome.name} when patience "
            "ended, which is no coincidence. Report them in time or be more patient, and start again."
        )

    def _beyond(self) -> str:
        several = self.outcome.plural
        return (
            f" {several[0].upper()}{several[1:]} beyond the range, which count as its ends: {self.beyond:,}."
            if self.beyond
            else ""
        )

    def _delay(self) -> str:
        """What holds up the evidence, if more than a cohort waits."""
        if self.held_up_by is None or self.later_losses < COHORT:
            return ""
        return (
            f" Held up: decision number {self.held_up_by} has no {self.outcome.name}, and {self.later_losses:,} later "
            f"{self.outcome.plural} wait for it. "
            "Report it, or wait until patience ends."
        )


def evidence_of(progress: Progress, in_flight: InFlight, outcome: Outcome = LOSSES) -> Evidence:
    """The evidence of a rollout so far; `in_flight` are the decisions that are not judged.

    >>> from manul.agents.rollout.rollout_plan import RolloutPlan
    >>> print(evidence_of(Progress(RolloutPlan(), losses=(0.0, 1.0)), InFlight()))
    Step 1 of 3: 5 % of the traffic. Not enough evidence for the next step yet.
    """
    plan, (learner, baseline) = progress.plan, progress.comparison.arms
    traffic = in_flight.share(progress)
    status: Status = "waiting"
    if progress.level < 0:
        status = "rolled back"
    elif progress.proven and traffic >= plan.shares[-1]:
        status = "done"
    return Evidence(
        status=status,
        step=progress.level + 1,
        steps=len(plan.steps),
        traffic=traffic,
        limited=progress.level >= 0 and traffic < plan.shares[progress.level],
        judged=progress.tested,
        excess=progress.bounds(),
        learner_loss=_mean(learner, progress.width),
        baseline_loss=_mean(baseline, progress.width),
        spent=progress.spent * progress.width,
        budget=plan.budget * progress.width,
        needed=progress.decisions_needed() if status == "waiting" else None,
        held_up_by=progress.next if progress.missing else None,
        later_losses=len(progress.arrived),
        left_out=(progress.left_out.left_out[0], progress.left_out.left_out[1]),
        left_out_rates=progress.left_out.rates,
        uneven=progress.uneven,
        beyond=progress.beyond,
        moves=tuple(progress.moves),
        outcome=outcome,
        guards=tuple(_guard_evidence(progress, watch) for watch in progress.watches),
    )


def _guard_evidence(progress: Progress, watch: GuardProgress) -> GuardEvidence:
    guard, means = watch.guard, (arm.mean for arm in watch.comparison.arms)
    learner, baseline = (None if mean is None else guard.value(mean) for mean in means)
    left_out = watch.left_out.left_out[0], watch.left_out.left_out[1]
    return GuardEvidence(
        guard.name, str(guard), learner, baseline, progress.guard_bounds(watch), left_out, watch.beyond
    )


def _mean(arm: Tally, width: float) -> float | None:
    return None if arm.mean is None else arm.mean * width
