"""What the checks share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from manul.errors import InputError

WIDTH = 3
ROUNDS = 400


def refuses(call: Callable[[], object]) -> None:
    """The call raises InputError with a sentence that says what must hold and what was got."""
    sentence = ""
    try:
        call()
    except InputError as error:
        sentence = str(error)
    assert "must" in sentence, "bad input must be refused with a sentence that says what must hold"
    assert "got" in sentence, f"an error must say what was got: {sentence}"


def random_contexts(count: int, seed: int = 0) -> npt.NDArray[np.float64]:
    """Contexts that are the same in single and double precision."""
    return np.random.default_rng(seed).standard_normal((count, WIDTH)).astype(np.float32).astype(np.float64)
