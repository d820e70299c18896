"""Outcome models: they predict the loss of a context and an action, for the doubly robust estimator.

Models are cross-fitted: each row is predicted by the model that was trained on the other folds. The default is the
critic, which learns from logs of any size; a regressor in the manner of scikit-learn gets all its rows at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from functools import partial
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from manul.errors import InputError
from manul.logs.rows import Rows
from manul.logs.sample import Sample
from manul.offpolicy import cross_fitting
from manul.offpolicy.cross_fitting import FOLDS, IN_ORDER, CriticSettings
from manul.utils.registry import Registry
from manul.utils.validation import Floats, check_workers

Predict = Callable[[Rows, Floats], Floats]
"""Predicts the losses of several actions per row, scaled to [0, 1]."""
CrossFit = Callable[[Sample, CriticSettings], Sequence[Predict]]
_Function = TypeVar("_Function", bound=Callable[[], Any])


@runtime_checkable
class Regressor(Protocol):
    def fit(self, rows: Any, targets: Any, /) -> Any:
        """Learn to predict targets from rows."""

    def predict(self, rows: Any, /) -> Any:
        """The predicted targets."""


OUTCOME_MODELS = Registry[CrossFit]("outcome_model", "manul.offpolicy.evaluation", suggestion="critic")


def register_outcome_model(name: str) -> Callable[[_Function], _Function]:
    """Register an outcome model under a `name`, for `evaluate(..., "dr", outcome_model=NAME)`.

    Decorate a function that returns a new regressor: `fit(rows, losses)` and `predict(rows)` as in scikit-learn, where a
    row is the context followed by the action, or by the positions of several knobs.

    >>> import manul
    >>> from sklearn.linear_model import Ridge
    >>> @manul.register.outcome_model("ridge")
    ... def ridge():
    ...     return Ridge()
    >>> log = manul.simulate(manul.Cats(leaves=16, bandwidth=1/8), manul.worlds.linear(rounds=500)).log
    >>> manul.evaluate(lambda context: 0.5, log, "dr", "normal", bandwidth=1/4, outcome_model="ridge").estimator
    'dr'
    >>> OUTCOME_MODELS.remove("ridge")
    """
    return OUTCOME_MODELS.decorator(name, lambda function: partial(cross_fit_regressors, function))


def cross_fit(model: str | Regressor, sample: Sample, settings: CriticSettings) -> CrossFitted:
    """Train a model, given by its name or as an untrained regressor, on the other folds of each fold."""
    if isinstance(model, str):
        return CrossFitted(OUTCOME_MODELS[model](sample, settings), settings.total)
    if not isinstance(model, Regressor):
        rule = "the name of an outcome model or a regressor with the methods fit and predict"
        raise InputError(f"outcome_model must be {rule}, got {model!r}.", "outcome_model")
    return CrossFitted(cross_fit_regressors(partial(deepcopy, model), sample, settings), settings.total)


class CrossFitted:
    """Predictions of the models of all folds, clipped to the range of losses."""

    def __init__(self, models: Sequence[Predict], total: int) -> None:
        self._models, self._total = models, total

    def predict(self, rows: Rows, actions: Floats) -> Floats:
        """The losses of several actions per row, predicted by the model that was not trained on the row."""
        predicted = np.empty(actions.shape[:2])  # with several knobs, an action has several positions
        for fold, places, part in cross_fitting.fold_rows(rows, self._total):
            predicted[places] = self._models[fold](part, actions[places])
        return np.clip(predicted, 0.0, 1.0)


def cross_fit_critics(sample: Sample, settings: CriticSettings) -> Sequence[Predict]:
    """One critic per fold, in one pass over the log."""
    critics = [settings.critic() for _ in range(FOLDS)]
    with ThreadPoolExecutor(min(FOLDS, check_workers("threads", None))) as executor:
        cross_fitting.train(sample, critics, range(FOLDS), IN_ORDER, settings, executor=executor)
    return [partial(cross_fitting.predict, critic) for critic in critics]


def cross_fit_regressors(make: Callable[[], Regressor], sample: Sample, settings: CriticSettings) -> Sequence[Predict]:
    """One regressor per fold, which gets the rows of the other folds at once."""
    folds, tables, targets = [], [], []
    for rows in sample.pieces():
        folds.append(cross_fitting.fold_numbers(rows, settings.total))
        tables.append(_table(rows, rows.positions[:, np.newaxis]))
        targets.append(rows.shares)
    fold, table, target = np.concatenate(folds), np.concatenate(tables), np.concatenate(targets)
    models = [make() for _ in range(FOLDS)]
    for number, model in enumerate(models):
        model.fit(table[fold != number], target[fold != number])
    return [partial(_predict, model) for model in models]


def _table(rows: Rows, actions: Floats) -> Any:
    """Contexts with one action each, row by row."""
    contexts = np.repeat(rows.contexts, actions.shape[1], axis=0)
    return np.column_stack([contexts, actions.reshape(len(contexts), -1)])


def _predict(model: Regressor, rows: Rows, actions: Floats) -> Floats:
    return np.asarray(model.predict(_table(rows, actions)), dtype=np.float64).reshape(actions.shape[:2])


OUTCOME_MODELS.add("critic", cross_fit_critics, module=__name__)
