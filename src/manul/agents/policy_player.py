"""A player for policy classes in Python: the loops of Algorithms 6 and 7, with one learner per bandwidth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import numpy as np

from manul import _core
from manul.actions.decision import Decision, Within
from manul.actions.schedules import Epsilon, as_schedule
from manul.actions.smoothing import densities_of_many, explore, smooth
from manul.agents.player import Draw
from manul.contexts.conversion import Row
from manul.policies.finite import check_action
from manul.policies.policy_class import Estimating, Learner
from manul.utils import model_files
from manul.utils.validation import Floats

Penalty = Callable[[float, int, float], float]


class PolicyPlayer:
    """Uses the learner with the lowest estimated loss plus penalty, a function of (estimate, rounds, bandwidth)."""

    def __init__(
        self,
        learners: Sequence[Learner],
        bandwidths: Sequence[float],
        penalty: Penalty,
        *,
        actions: Within,
        losses: Within,
        epsilon: Epsilon,
        seed: int,
    ) -> None:
        self._learners, self._bandwidths, self._penalty = learners, bandwidths, penalty
        self._actions, self._losses, self._schedule, self._seed = actions, losses, as_schedule(epsilon), seed
        exact = [learner for learner in learners if isinstance(learner, Estimating)]
        self._exact = exact if len(exact) == len(learners) else []
        self._best = int(np.argmax(bandwidths))
        self.rounds = 0
        self._sums = np.zeros(len(learners))
        self.decisions = 0

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.state().values())

    @property
    def epsilon(self) -> float:
        return self._schedule.at(self.rounds)

    @property
    def chosen(self) -> float:
        return self._bandwidths[self._best]

    def window(self, context: Row, low: float, high: float) -> tuple[float, float]:
        """The centre and the bandwidth of the greedy window."""
        return self._centre(self._best, context, (low, high)), self.chosen

    def decide(self, context: Row, low: float, high: float) -> Draw:
        """Draw an action; returns it with its density and the smallest density of the range."""
        draw = self._draw(context, (low, high), self.decisions)
        self.decisions += 1
        return draw

    def decide_many(
        self,
        contexts: Row,
        lows: Floats,
        highs: Floats,
        actions: Floats,
        densities: Floats,
        floors: Floats,
    ) -> None:
        """Fill the arrays with a draw per row."""
        for number, (context, within) in enumerate(zip(contexts, self._ends(contexts, lows, highs), strict=True)):
            draw = self._draw(context, within, self.decisions + number)
            actions[number], densities[number], floors[number] = draw
        self.decisions += len(contexts)

    def learn(self, context: Row, action: float, density: float, loss: float, low: float, high: float) -> None:
        decision = Decision(action, density, (low, high))
        lowest, highest = self._losses
        share = (loss - lowest) / (highest - lowest)
        weighted = self._weighted_losses(context, decision, share)
        for learner in self._learners:
            learner.learn(context, decision, share)
        self._sums += weighted
        self.rounds += 1
        self._best = self._choose()

    def learn_many(
        self, contexts: Row, actions: Floats, densities: Floats, losses: Floats, lows: Floats, highs: Floats
    ) -> None:
        """Learn from the losses of many decisions; if a policy fails, from none."""
        before = self.state()
        try:
            for row, within in enumerate(self._ends(contexts, lows, highs)):
                self.learn(contexts[row], float(actions[row]), float(densities[row]), float(losses[row]), *within)
        except Exception:
            self.restore(before)
            raise

    def state(self) -> model_files.Arrays:
        """A copy of the state of each learner and of the choice between them."""
        arrays = {
            f"{index}.{name}": array
            for index, learner in enumerate(self._learners)
            for name, array in learner.state().items()
        }
        counts = np.array([self._best, self.rounds], dtype=np.uint64)
        return {**arrays, "estimates": self._sums.copy(), "counts": counts}

    def restore(self, saved: model_files.Arrays) -> None:
        split, count = model_files.split_by_prefix(saved), len(self._learners)
        estimates, counts = model_files.vectors(split.pop("", {}), estimates=("f8", count), counts=("u8", 2))
        best, rounds = map(int, counts)
        if len(split) != count or best >= count or rounds > model_files.MOST_ROUNDS:
            raise model_files.mismatch_error()
        for index, learner in enumerate(self._learners):
            learner.restore(split[str(index)])
        self._sums, self._best, self.rounds = estimates.copy(), best, rounds

    def _draw(self, context: Row, within: Within, number: int) -> Draw:
        epsilon = self.epsilon
        centre, bandwidth = self.window(context, *within)
        greedy = smooth(centre, bandwidth, within)
        coin, position = _core.draw(self._seed, number)
        low, high = within if coin < epsilon else (float(greedy.edges[0]), float(greedy.edges[1]))
        action = low + position * (high - low)
        distribution = explore(greedy, epsilon, within)
        return action, distribution.density(action), float(distribution.densities.min())

    def _centre(self, index: int, context: Row, within: Within) -> float:
        action = check_action(self._learners[index].action(context, within), self._actions)
        return min(max(action, within[0]), within[1])

    # Progressive validation: each learner is evaluated on an example before it learns from it. The paper estimates every
    # policy on all past examples, whose cost grows with each round; learners that can do so (`Estimating`) are asked.
    def _weighted_losses(self, context: Row, decision: Decision, loss: float) -> Floats:
        if self._exact or len(self._learners) == 1:
            return np.zeros(len(self._learners))
        action, density, ends, *_ = decision
        within = cast(Within, ends)
        centres = np.array([self._centre(index, context, within) for index in range(len(self._learners))])
        return densities_of_many(centres, np.asarray(self._bandwidths), within, action) / density * loss

    def _choose(self) -> int:
        if len(self._learners) == 1:
            return 0
        estimates = [learner.estimate() for learner in self._exact] or (self._sums / self.rounds).tolist()
        risks = [
            estimate + self._penalty(estimate, self.rounds, bandwidth)
            for estimate, bandwidth in zip(estimates, self._bandwidths, strict=True)
        ]
        return risks.index(min(risks))

    def _ends(self, contexts: Row, lows: Floats, highs: Floats) -> list[Within]:
        if not len(lows):
            return [self._actions] * len(contexts)
        return list(zip(lows.tolist(), highs.tolist(), strict=True))
