"""Scikit-learn classifiers as the nodes of a tree; `utils/sklearn_files.py` writes them to files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
import numpy.typing as npt

from manul.errors import MissingDependency, ParameterError
from manul.utils import sklearn_files


@runtime_checkable
class Classifier(Protocol):
    """A scikit-learn classifier whose `fit` accepts sample weights, or a pipeline that ends with one."""

    @property
    def fit(self) -> Callable[..., object]:
        """Fit with `fit(contexts, sides, sample_weight=weights)`."""

    def predict(self, contexts: npt.NDArray[np.float64], /) -> npt.NDArray[np.int64]:
        """Predict the side of each row."""

    def get_params(self) -> dict[str, Any]:
        """The parameters by name."""

    def set_params(self, **settings: object) -> Self:
        """Set parameters by name."""


def prepare_classifier(classifier: Classifier | None) -> Classifier:
    """Check that a classifier accepts sample weights, and return a copy with fixed seeds; None is logistic regression."""
    try:
        from sklearn.base import clone
        from sklearn.linear_model import LogisticRegression
    except ImportError:
        raise MissingDependency(f"training a tree on a log requires scikit-learn. {sklearn_files.INSTALL}") from None
    if classifier is None:
        classifier = LogisticRegression(max_iter=1000)
    weight_parameter(classifier)
    copy: Any = clone(classifier)
    unseeded = [name for name, value in copy.get_params().items() if name.endswith("random_state") and value is None]
    seeded: Classifier = copy.set_params(**dict.fromkeys(unseeded, 0))
    return seeded


def weight_parameter(classifier: Classifier) -> str:
    """The name of the sample weights among the parameters of `fit`; a pipeline passes them to its last step."""
    from sklearn.pipeline import Pipeline
    from sklearn.utils.validation import has_fit_parameter

    last = classifier.steps[-1:] if isinstance(classifier, Pipeline) else []
    for prefix, part in (("", classifier), *((f"{name}__", step) for name, step in last)):
        if isinstance(part, Classifier) and has_fit_parameter(part, "sample_weight"):
            return f"{prefix}sample_weight"
    raise ParameterError(
        f"classifier must be a scikit-learn classifier whose fit accepts sample_weight, got {classifier!r}.",
        "classifier",
    )
