"""What one node of a tree learns with; the native twins live in src/core/learners."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

from manul import _core
from manul.errors import ParameterError
from manul.utils.validation import check_choice


@dataclass(frozen=True)
class CoinBetting:
    """Least squares without a learning rate, as in the paper.

    `target="costs"` is the paper's: one regressor per side. `target="margin"` is one regressor of the better side,
    weighted by the difference of the costs.

    >>> CoinBetting(target="margin")
    CoinBetting(target='margin')
    """

    target: Literal["costs", "margin"] = "costs"

    def __post_init__(self) -> None:
        check_choice("target", self.target, ("costs", "margin"))


@dataclass(frozen=True)
class AdaGrad:
    """Steps that large importance weights cannot overshoot, sized per feature.

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
    """The core's name of a learner.

    >>> native(CoinBetting()).name
    'coin_costs'
    """
    if learner not in _NATIVE:
        known = " or ".join(sorted({type(each).__name__ for each in _NATIVE}))
        raise ParameterError(
            f"learner must be a {known} of manul.learners; got {learner!r}. Try CoinBetting().", "learner"
        )
    return _NATIVE[learner]


def described(learner: NodeLearner) -> dict[str, str]:
    """A learner as it is written into a file.

    >>> described(AdaGrad())
    {'name': 'AdaGrad', 'loss': 'logistic'}
    """
    return {"name": type(learner).__name__, **asdict(learner)}


def from_description(description: dict[str, str]) -> NodeLearner:
    """The learner that was written into a file.

    >>> from_description({"name": "AdaGrad", "loss": "logistic"})
    AdaGrad(loss='logistic')
    """
    for learner in _NATIVE:
        if described(learner) == description:
            return learner
    raise ParameterError(
        f"learner must be one of manul.learners; got {description!r}. Was the file written by a newer manul?", "learner"
    )
