"""Scikit-learn classifiers as the nodes of a tree; `utils/sklearn_files.py` writes them to files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt

from manul.errors import MissingDependency, ParameterError
from manul.utils import sklearn_files


class Classifier(Protocol):
    """A scikit-learn classifier whose `fit` accepts sample weights, or a pipeline that ends with one."""

    @property
    def fit(self) -> Callable[..., object]:
        """Fit with `fit(contexts, sides, sample_weight=weights)`."""

    def predict(self, contexts: npt.NDArray[np.float64], /) -> npt.NDArray[np.int64]:
        """Predict the side of each row."""

    def set_params(self, **settings: object) -> Self:
        """Set parameters by name."""


def prepare_classifier(classifier: Classifier | None) -> Classifier:
    """Check that a classifier accepts sample weights, and return a copy with fixed seeds; None is logistic regression.

    >>> prepare_classifier(None)
    LogisticRegression(max_iter=1000, random_state=0)
    """
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
    """The name of the sample weights among the parameters of `fit`; a pipeline passes them to its last step.

    >>> weight_parameter(prepare_classifier(None))
    'sample_weight'
    """
    from sklearn.utils.validation import has_fit_parameter

    whole = ("", classifier)
    for prefix, part in (whole, *((f"{name}__", step) for name, step in getattr(classifier, "steps", [])[-1:])):
        if hasattr(part, "predict") and hasattr(part, "get_params") and has_fit_parameter(part, "sample_weight"):
            return f"{prefix}sample_weight"
    raise ParameterError(
        f"classifier must be a scikit-learn classifier whose fit accepts sample_weight, got {classifier!r}.",
        "classifier",
    )


def encode(classifiers: list[Classifier]) -> npt.NDArray[np.uint8]:
    """Encode fitted classifiers as bytes for a file.

    >>> decode(encode([prepare_classifier(None)]))
    [LogisticRegression(max_iter=1000, random_state=0)]
    """
    return sklearn_files.dump_objects(classifiers, "classifier", "Train with another, such as LogisticRegression().")


def decode(data: npt.NDArray[np.uint8]) -> list[Classifier]:
    """Decode the classifiers that `encode` encoded."""
    return sklearn_files.load_objects(data, "classifier", method="predict")
