"""Scikit-learn's classifiers as the base class of a tree: which of them will do, and how they are kept in files.

They are stored with skops, which describes objects instead of pickling them, so that loading runs no code. What it does
not trust is neither saved nor loaded: that is a user's own classes, and decision trees, whose compiled code follows
whatever a file says, out of bounds too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt

from manul.errors import FileError, MissingDependency, ParameterError

_INSTALL = "Try pip install 'manul[sklearn]'."


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
        raise MissingDependency(f"scikit-learn must be installed to train trees on a log. {_INSTALL}") from None
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
        f"classifier must be a scikit-learn classifier whose fit takes sample_weight; got {classifier!r}. Try LogisticRegression()."
    )


def stored(classifiers: list[Classifier]) -> npt.NDArray[np.uint8]:
    """Fitted classifiers as bytes for a file.

    >>> restored(stored([checked_classifier(None)]))
    [LogisticRegression(max_iter=1000, random_state=0)]
    """
    data: bytes = _skops().dumps(classifiers)
    _refuse_foreign(data, "classifier to save", "Train with another, such as LogisticRegression().")
    return np.frombuffer(data, dtype=np.uint8)


def restored(data: npt.NDArray[np.uint8]) -> list[Classifier]:
    """The classifiers that were stored; see `stored` for an example."""
    from zipfile import BadZipFile

    raw = data.tobytes()
    try:
        _refuse_foreign(raw, "file", "Ask for one that was saved with another classifier.")
        loaded = _skops().loads(raw)
    except (BadZipFile, KeyError, AttributeError, TypeError) as error:
        raise FileError(
            f"file must hold classifiers that the installed scikit-learn can read; got {error}. Install the version it was saved with."
        ) from error
    if not (isinstance(loaded, list) and all(hasattr(each, "predict") for each in loaded)):
        raise FileError(f"file must hold a list of classifiers; got {type(loaded).__name__}. Save it again.")
    return loaded


def _refuse_foreign(data: bytes, name: str, remedy: str) -> None:
    foreign = _skops().get_untrusted_types(data=data)
    if foreign:
        raise FileError(
            f"{name} must consist of types that skops trusts to be harmless; got {', '.join(sorted(foreign))}. {remedy}"
        )


def _skops() -> Any:
    try:
        from skops import io
    except ImportError:
        raise MissingDependency(f"skops must be installed to save and load classifiers. {_INSTALL}") from None
    return io
