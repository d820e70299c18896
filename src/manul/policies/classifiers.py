"""Scikit-learn's classifiers as the base class of a tree: which of them will do; `sklearn_files.py` keeps them in files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt

from manul.errors import MissingDependency, ParameterError
from manul.utils import sklearn_files


class Classifier(Protocol):
    """A scikit-learn classifier whose fit takes sample weights, or a pipeline that ends in one."""

    @property
    def fit(self) -> Callable[..., object]:
        """fit(contexts, sides, sample_weight=weights)."""

    def predict(self, contexts: npt.NDArray[np.float64], /) -> npt.NDArray[np.int64]:
        """The side of each row."""

    def set_params(self, **settings: object) -> Self:
        """Changes settings by name."""


def checked_classifier(classifier: Classifier | None) -> Classifier:
    """A copy that takes sample weights and draws the same numbers each time; None is logistic regression.

    >>> checked_classifier(None)
    LogisticRegression(max_iter=1000, random_state=0)
    """
    try:
        from sklearn.base import clone
        from sklearn.linear_model import LogisticRegression
    except ImportError:
        raise MissingDependency(
            f"scikit-learn must be installed to train trees on a log. {sklearn_files.INSTALL}"
        ) from None
    if classifier is None:
        classifier = LogisticRegression(max_iter=1000)
    weights_name(classifier)
    copy: Any = clone(classifier)
    unseeded = [name for name, value in copy.get_params().items() if name.endswith("random_state") and value is None]
    seeded: Classifier = copy.set_params(**dict.fromkeys(unseeded, 0))
    return seeded


def weights_name(classifier: Classifier) -> str:
    """What fit calls the sample weights; in a pipeline they go to its last step.

    >>> weights_name(checked_classifier(None))
    'sample_weight'
    """
    from sklearn.utils.validation import has_fit_parameter

    whole = ("", classifier)
    for prefix, part in (whole, *((f"{name}__", step) for name, step in getattr(classifier, "steps", [])[-1:])):
        if hasattr(part, "predict") and hasattr(part, "get_params") and has_fit_parameter(part, "sample_weight"):
            return f"{prefix}sample_weight"
    raise ParameterError(
        f"classifier must be of scikit-learn, with sample_weight; got {classifier!r}. Try LogisticRegression().",
        "classifier",
    )


def stored(classifiers: list[Classifier]) -> npt.NDArray[np.uint8]:
    """Fitted classifiers as bytes for a file.

    >>> restored(stored([checked_classifier(None)]))
    [LogisticRegression(max_iter=1000, random_state=0)]
    """
    return sklearn_files.dump_objects(classifiers, "classifier", "Train with another, such as LogisticRegression().")


def restored(data: npt.NDArray[np.uint8]) -> list[Classifier]:
    """The classifiers that were stored; see `stored` for an example."""
    return sklearn_files.load_objects(data, "classifier", method="predict")
