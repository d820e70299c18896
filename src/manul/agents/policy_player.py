"""Plays and learns with a policy class in Python: the loops of Algorithms 6 and 7, one learner per bandwidth."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from manul import _core
from manul.actions.smoothing import densities_of_many, explore, smooth
from manul.contexts.conversion import Row
from manul.policies.finite import checked_action
from manul.policies.policy_class import Estimating, Learner
from manul.types import Decision, Floats, Within
from manul.utils import model_files

Penalty = Callable[[float, int, float], float]


class PolicyPlayer:
    """Plays the learner whose estimated loss, with the penalty of (estimate, rounds, bandwidth), is lowest."""

    def __init__(
        self,
        learners: Sequence[Learner],
        bandwidths: Sequence[float],
        penalty: Penalty,
        *,
        actions: Within,
        losses: Within,
        epsilon: float,
        seed: int,
    ) -> None:
        self._learners, self._bandwidths, self._penalty = learners, bandwidths, penalty
        self._actions, self._losses, self._epsilon, self._seed = actions, losses, epsilon, seed
        exact = [learner for learner in learners if isinstance(learner, Estimating)]
        self._exact = exact if len(exact) == len(learners) else []
        self._playing = int(np.argmax(bandwidths))
        self.rounds = 0
        self._sums = np.zeros(len(learners))
        self.decisions = 0

    @property
    def nbytes(self) -> int:
        """The memory that holds what was learned."""
        return sum(array.nbytes for array in self.state().values())

    @property
    def chosen(self) -> float:
        """The bandwidth that plays."""
        return self._bandwidths[self._playing]

    def window(self, context: Row, low: float, high: float) -> tuple[float, float]:
        """The centre and the bandwidth that are played where nothing is explored."""
        return self._centre(self._playing, context, (low, high)), self.chosen

    def decide(self, context: Row, low: float, high: float) -> tuple[float, float]:
        """Draw an action; it comes with its density."""
        drawn = self._draw(context, (low, high), self.decisions)
        self.decisions += 1
        return drawn

    def decide_many(self, contexts: Row, lows: Floats, highs: Floats, actions: Floats, densities: Floats) -> None:
        """Draw an action for each row into the last two arrays."""
        for number, (context, within) in enumerate(zip(contexts, self._ends(contexts, lows, highs), strict=True)):
            actions[number], densities[number] = self._draw(context, within, self.decisions + number)
        self.decisions += len(contexts)

    def learn(self, context: Row, action: float, density: float, loss: float, low: float, high: float) -> None:
        """Take in what a decision led to."""
        decision = Decision(action, density, (low, high))
        least, worst = self._losses
        scaled = (loss - least) / (worst - least)
        paid = self._paid(context, decision, scaled)
        for learner in self._learners:
            learner.learn(context, decision, scaled)
        self._sums += paid
        self.rounds += 1
        self._playing = self._best()

    def learn_many(
        self, contexts: Row, actions: Floats, densities: Floats, losses: Floats, lows: Floats, highs: Floats
    ) -> None:
        """Take in what many decisions led to: all of them or, where a policy fails, none."""
        before = self.state()
        try:
            for row, within in enumerate(self._ends(contexts, lows, highs)):
                self.learn(contexts[row], float(actions[row]), float(densities[row]), float(losses[row]), *within)
        except Exception:
            self.restore(before)
            raise

    def state(self) -> model_files.Arrays:
        """The arrays of each learner and of the choice between them."""
        arrays = {
            f"{index}.{name}": array
            for index, learner in enumerate(self._learners)
            for name, array in learner.state().items()
        }
        counts = np.array([self._playing, self.rounds], dtype=np.uint64)
        return {**arrays, "estimates": self._sums.copy(), "counts": counts}

    def restore(self, saved: model_files.Arrays) -> None:
        """Go back to a state."""
        split, count = model_files.split_by_prefix(saved), len(self._learners)
        estimates, counts = model_files.vectors(split.pop("", {}), estimates=("f8", count), counts=("u8", 2))
        playing, rounds = (int(each) for each in counts)
        if len(split) != count or playing >= count or rounds > model_files.MOST_ROUNDS:
            raise model_files.mismatch_error()
        for index, learner in enumerate(self._learners):
            learner.restore(split[str(index)])
        self._sums, self._playing, self.rounds = estimates.copy(), playing, rounds

    def _draw(self, context: Row, within: Within, number: int) -> tuple[float, float]:
        centre, bandwidth = self.window(context, *within)
        played = smooth(centre, bandwidth, within)
        explored, position = _core.draw(self._seed, number)
        low, high = within if explored < self._epsilon else (float(played.edges[0]), float(played.edges[1]))
        action = low + position * (high - low)
        return action, explore(played, self._epsilon, within).density(action)

    def _centre(self, index: int, context: Row, within: Within) -> float:
        action = checked_action(self._learners[index].action(context, within), self._actions)
        return min(max(action, within[0]), within[1])

    # Progressive validation: each example is paid for before it is learned from. Estimating every policy on the whole
    # past, as in the paper, would cost as much as the whole past in each round; learners that can do it are asked.
    def _paid(self, context: Row, decision: Decision, loss: float) -> Floats:
        if self._exact or len(self._learners) == 1:
            return np.zeros(len(self._learners))
        action, density, within = decision
        assert within is not None
        centres = np.array([self._centre(index, context, within) for index in range(len(self._learners))])
        return densities_of_many(centres, np.asarray(self._bandwidths), within, action) / density * loss

    def _best(self) -> int:
        if len(self._learners) == 1:
            return 0
        estimates = [each.estimate() for each in self._exact] or (self._sums / self.rounds).tolist()
        penalised = [
            estimate + self._penalty(estimate, self.rounds, bandwidth)
            for estimate, bandwidth in zip(estimates, self._bandwidths, strict=True)
        ]
        return penalised.index(min(penalised))

    def _ends(self, contexts: Row, lows: Floats, highs: Floats) -> list[Within]:
        if not len(lows):
            return [self._actions] * len(contexts)
        return list(zip(lows.tolist(), highs.tolist(), strict=True))
