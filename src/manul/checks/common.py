"""Helpers of the checks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from manul.errors import InputError

WIDTH = 3
ROUNDS = 400


def check_rejected(call: Callable[[], object]) -> None:
    """Check that the call raises InputError with a one-line message and its field."""
    rejection: InputError | None = None
    try:
        call()
    except InputError as error:
        rejection = error
    assert rejection is not None, "invalid input must raise InputError"
    assert rejection.field is not None, f"an InputError must have a field: {rejection}"
    assert "\n" not in str(rejection), f"the message of an InputError must be one line: {rejection}"


def random_contexts(count: int, seed: int = 0) -> npt.NDArray[np.float64]:
    """Random contexts that are exact in single precision."""
    return np.random.default_rng(seed).standard_normal((count, WIDTH)).astype(np.float32).astype(np.float64)
