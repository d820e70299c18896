"""Contexts: what is known when a decision is made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy.typing as npt

Context = npt.ArrayLike | Mapping[str, object] | tuple[object, ...] | None
Contexts = npt.ArrayLike | Mapping[str, object] | Iterable[object]
