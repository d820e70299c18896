"""The learners of the nodes of a tree; src/core/learners implements them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

from manul import _core
from manul.errors import FileError, ParameterError
from manul.utils.validation import check_choice


@dataclass(frozen=True)
class CoinBetting:
    """Least squares by coin betting, without a learning rate, as in the paper.

    `target="costs"` is the paper's: one regressor per child. `target="margin"` is one regressor of the better child,
    weighted by the difference of the costs.

    >>> CoinBetting(target="margin")
    CoinBetting(target='margin')
    """

    target: Literal["costs", "margin"] = "costs"

    def __post_init__(self) -> None:
        check_choice("target", self.target, ("costs", "margin"))


@dataclass(frozen=True)
class AdaGrad:
    """AdaGrad with implicit steps, so large importance weights do not overshoot.

    >>> AdaGrad()
    AdaGrad(loss='logistic')
    """

    loss: Literal["logistic", "squared"] = "logistic"

    def __post_init__(self) -> None:
        check_choice("loss", self.loss, ("logistic", "squared"))


NodeLearner = CoinBetting | AdaGrad

_NATIVE: dict[NodeLearner, _core.NodeLearner] = {
    CoinBetting("costs"): _core.NodeLearner.coin_costs,
    CoinBetting("margin"): _core.NodeLearner.coin_margin,
    AdaGrad("squared"): _core.NodeLearner.adagrad_squared,
    AdaGrad("logistic"): _core.NodeLearner.adagrad_logistic,
}


def native(learner: NodeLearner) -> _core.NodeLearner:
    if learner not in _NATIVE:
        known = " or ".join(sorted({type(each).__name__ for each in _NATIVE}))
        raise ParameterError(f"learner must be {known} from manul.learners, got {learner!r}.", "learner")
    return _NATIVE[learner]


def describe(learner: NodeLearner) -> dict[str, str]:
    """The description of a learner for a file."""
    return {"name": type(learner).__name__, **asdict(learner)}


def from_description(description: dict[str, str]) -> NodeLearner:
    """The learner of a description."""
    for learner in _NATIVE:
        if describe(learner) == description:
            return learner
    raise FileError(f"unknown learner {description!r}; a newer version of manul may know it.", "learner")
