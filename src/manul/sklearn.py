"""Agents and off-policy optimization as estimators of scikit-learn, for pipelines and searches.

Both estimators learn actions from logged decisions: `fit(X, actions, sample_densities=..., losses=...)`. `X` is an array of numbers, or
a data frame whose columns may be numbers, texts, flags and times, as fields of contexts. What splits data without metadata routing,
such as `GridSearchCV`, takes all in one array: `fit(X, outcomes(actions, densities, losses))`. `score` is the negative loss that
the rows estimate for the policy, or its reward, so that higher is better.

>>> import numpy as np
>>> from sklearn.model_selection import GridSearchCV
>>> from sklearn.pipeline import make_pipeline
>>> from sklearn.preprocessing import StandardScaler
>>> rng = np.random.default_rng(0)
>>> X, actions = 100 * rng.random((600, 2)), rng.random(600)
>>> told = outcomes(actions, np.ones(600), np.abs(actions - X[:, 0] / 100))
>>> pipeline = make_pipeline(StandardScaler(), PolicyRegressor(loss_range=(0, 1)))
>>> search = GridSearchCV(pipeline, {"policyregressor__candidates": ["auto", "cats"]}, cv=2).fit(X, told)
>>> search.best_params_, bool(np.abs(search.predict([[20.0, 0.0], [80.0, 0.0]]) - [0.2, 0.8]).max() < 0.15)
({'policyregressor__candidates': 'auto'}, True)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from manul.actions.decision import Decisions, Within
from manul.actions.schedules import Epsilon
from manul.agents import Auto
from manul.contexts import data_frames
from manul.errors import InputError, MissingDependency
from manul.logs.log import Log
from manul.offpolicy import estimate_densities, evaluate, optimize
from manul.utils.validation import Floats, check_numbers, check_range

try:
    from sklearn.base import BaseEstimator
    from sklearn.utils.validation import check_array, check_is_fitted, validate_data
except ImportError:
    raise MissingDependency(
        "manul.sklearn requires scikit-learn 1.6. Install it: pip install 'manul[sklearn]'."
    ) from None

__all__ = ["AutoRegressor", "PolicyRegressor", "outcomes"]


def outcomes(actions: npt.ArrayLike, densities: npt.ArrayLike, losses: npt.ArrayLike) -> Floats:
    """The logged `actions` with their `densities` and `losses`, or rewards, as the columns of one target.

    >>> outcomes([0.5], [1.0], [0.25])
    array([[0.5 , 1.  , 0.25]])
    """
    return np.column_stack([np.asarray(column, np.float64) for column in (actions, densities, losses)])


class _Told(NamedTuple):
    """The columns of logged decisions; without densities if these are not known."""

    actions: Floats
    densities: Floats | None
    losses: Floats  # or rewards


class _PolicyEstimator(BaseEstimator):  # type: ignore[misc]
    """What both estimators share: the checks of their input, predictions and the score."""

    actions: Within
    loss_range: Within | None
    rewards: bool
    policy_: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def predict(self, X: Any) -> Floats:  # noqa: N803 - as in scikit-learn
        """The action with the lowest predicted loss, or the highest reward, for each row of `X`."""
        check_is_fitted(self)
        contexts = self._contexts(X, reset=False)
        return np.array([self.policy_.best(context) for context in _rows(contexts)], np.float64)

    def score(
        self,
        X: Any,  # noqa: N803
        actions: npt.ArrayLike,
        *,
        sample_densities: npt.ArrayLike | None = None,
        losses: npt.ArrayLike | None = None,
    ) -> float:
        """The negative mean loss, or the mean reward, that rows estimate for the policy (`snips`): the contexts `X` with their `actions`,
        `sample_densities` and `losses`, as in `fit`."""
        check_is_fitted(self)
        log = self._log(self._contexts(X, reset=False), self._told(actions, sample_densities, losses))
        value = evaluate(self.policy_, log, "snips", "none").value
        return -float(value)

    def _contexts(self, X: Any, *, reset: bool) -> Any:  # noqa: N803
        """Rows of numbers, or the named columns of a data frame, whose values may be of any kind."""
        if data_frames.is_table(X):
            validate_data(self, X, reset=reset, skip_check_array=True)
            return X
        return validate_data(self, X, reset=reset, dtype=np.float32)

    def _told(self, actions: Any, densities: Any, losses: Any) -> _Told:
        check_range("actions", self.actions)
        if actions is None:
            raise InputError(
                f"requires y to be passed, but the target y is None: {type(self).__name__} needs actions.", "actions"
            )
        target = check_array(actions, ensure_2d=False, dtype=np.float64, input_name="actions")
        if losses is None and densities is None and target.ndim == 2 and target.shape[1] == 3:
            return _Told(*np.ascontiguousarray(target.T))
        if target.ndim != 1 or losses is None:
            rule = "actions must have one number per row with losses=, or be outcomes(actions, densities, losses)"
            raise InputError(f"{rule}, got an array of shape {target.shape}.", "actions")
        count = len(target)
        known = None if densities is None else check_numbers("sample_densities", densities, count)
        return _Told(target, known, check_numbers("losses", losses, count))

    def _log(self, contexts: Any, told: _Told) -> Log:
        losses = -told.losses if self.rewards else told.losses
        known = np.ones(len(losses)) if told.densities is None else told.densities
        finite = told.losses[np.isfinite(told.losses)]  # of others, the log says in which row they are
        low, high = self.loss_range or ((float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0))
        ends = (low, high if high > low else low + 1.0)  # the same outcome in all rows
        ranges: Any = {"reward_range": ends} if self.rewards else {"loss_range": ends}
        log = Log(contexts, told.actions, known, losses, rewards=self.rewards, action_range=self.actions, **ranges)
        return log if told.densities is not None else estimate_densities(log)


def _rows(contexts: Any) -> Any:
    columns = data_frames.lists(contexts) if data_frames.is_table(contexts) else None
    if columns is None:
        return contexts
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


class PolicyRegressor(_PolicyEstimator):
    """The policy that `manul.optimize` finds in logged decisions, as an estimator.

    `actions` is the range of actions, by default (0, 1), and `loss_range` that of the losses, by default from the lowest to the
    highest in the data. With `rewards=True` the losses are rewards. `candidates`, `epsilon` and `seed` are those of `optimize`.
    After `fit`, `policy_` is the policy, which can be saved, and `optimized_` has the table of all candidates and the verdict.

    >>> rng = np.random.default_rng(0)
    >>> X, actions = rng.random((2000, 1)), rng.random(2000)
    >>> policy = PolicyRegressor(loss_range=(0, 1))
    >>> policy = policy.fit(X, actions, sample_densities=np.ones(2000), losses=np.abs(actions - X[:, 0]))
    >>> bool(np.abs(policy.predict([[0.2], [0.8]]) - [0.2, 0.8]).max() < 0.1)
    True
    """

    def __init__(
        self,
        *,
        actions: Within = (0.0, 1.0),
        loss_range: Within | None = None,
        rewards: bool = False,
        candidates: Literal["auto", "cats"] | None = None,
        epsilon: float = 0.0,
        seed: int = 0,
    ) -> None:
        self.actions, self.loss_range, self.rewards = actions, loss_range, rewards
        self.candidates, self.epsilon, self.seed = candidates, epsilon, seed

    def fit(
        self,
        X: Any,  # noqa: N803
        actions: npt.ArrayLike,
        *,
        sample_densities: npt.ArrayLike | None = None,
        losses: npt.ArrayLike | None = None,
    ) -> Self:
        """Find the best policy for contexts `X` from the logged `actions`, the densities they were drawn with, and their `losses`.

        Without `sample_densities`, they are estimated, and the policy stays where the log has actions. `actions` may be the
        `outcomes` of all three.
        """
        contexts = self._contexts(X, reset=True)
        told = self._told(actions, sample_densities, losses)
        log = self._log(contexts, told)
        self.optimized_ = optimize(log, candidates=self.candidates, epsilon=self.epsilon, seed=self.seed)
        self.policy_ = self.optimized_.policy
        return self


class AutoRegressor(_PolicyEstimator):
    """`manul.Auto` as an estimator that decides, and learns online.

    `decide` draws actions, and `partial_fit` learns from their losses; `fit` begins anew. `actions` is the range of actions, by
    default (0, 1), `loss_range` that of the losses, unknown by default, and `rewards` says that they are rewards. `epsilon`,
    `bandwidth` and `seed` are those of `Auto`. `policy_` is the agent.

    >>> rng, agent = np.random.default_rng(0), AutoRegressor(loss_range=(0, 1))
    >>> for _ in range(20):
    ...     X = rng.random((50, 1))
    ...     decisions = agent.decide(X)
    ...     agent = agent.partial_fit(X, decisions, losses=np.abs(decisions.actions - X[:, 0]))
    >>> agent.predict([[0.2], [0.8]]).round(1)
    array([0.2, 0.8])
    """

    def __init__(
        self,
        *,
        actions: Within = (0.0, 1.0),
        loss_range: Within | None = None,
        rewards: bool = False,
        epsilon: Epsilon | Literal["auto"] = "auto",
        bandwidth: float | None = None,
        seed: int = 0,
    ) -> None:
        self.actions, self.loss_range, self.rewards = actions, loss_range, rewards
        self.epsilon, self.bandwidth, self.seed = epsilon, bandwidth, seed

    @property
    def _has_learned(self) -> bool:
        return "policy_" in vars(self)

    def decide(self, X: Any) -> Decisions[float]:  # noqa: N803
        """Draw an action for each row of `X`, with its density."""
        contexts = self._contexts(X, reset=not self._has_learned)
        decisions: Decisions[float] = self._started().decide_many(contexts)
        return decisions

    def fit(
        self,
        X: Any,  # noqa: N803
        actions: Any,
        *,
        sample_densities: npt.ArrayLike | None = None,
        losses: npt.ArrayLike | None = None,
    ) -> Self:
        """Learn from the `losses` of `actions` in contexts `X`, with a new agent.

        `sample_densities` are needed unless the actions are what `decide` returned.
        """
        if self._has_learned:
            del self.policy_
        return self._learn(X, actions, sample_densities, losses, reset=True)

    def partial_fit(
        self,
        X: Any,  # noqa: N803
        actions: Any,
        *,
        sample_densities: npt.ArrayLike | None = None,
        losses: npt.ArrayLike | None = None,
    ) -> Self:
        """Learn from further rows: contexts `X` with their `actions`, `sample_densities` and `losses`, as in `fit`."""
        return self._learn(X, actions, sample_densities, losses, reset=not self._has_learned)

    def _learn(self, X: Any, actions: Any, densities: Any, losses: Any, *, reset: bool) -> Self:  # noqa: N803
        contexts = self._contexts(X, reset=reset)
        decisions = actions if isinstance(actions, Decisions) else None
        if decisions is not None:
            actions, densities = decisions.actions, decisions.densities
        told = self._told(actions, densities, losses)
        if told.densities is None:
            raise InputError("sample_densities must be given to learn online, got None.", "sample_densities")
        decisions = Decisions(told.actions, told.densities) if decisions is None else decisions
        agent = self._started()
        agent.learn_many(contexts, decisions, **{agent.outcome.keywords: told.losses})
        return self

    def _started(self) -> Any:
        """The agent, which the first context creates."""
        if not self._has_learned:
            scale: Mapping[str, Any] = {"rewards" if self.rewards else "losses": self.loss_range or "auto"}
            settings: Any = {"epsilon": self.epsilon, "bandwidth": self.bandwidth, "seed": self.seed, **scale}
            self.policy_ = Auto(actions=check_range("actions", self.actions), **settings)
        return self.policy_
