"""What plays and learns inside an agent: in the core, or in Python."""

from __future__ import annotations

from typing import Protocol, TypeVar

from manul.contexts import conversion
from manul.types import Floats
from manul.utils import model_files


class Player(Protocol):
    """What plays and learns inside an agent: it gets rows and numbers that are checked already."""

    decisions: int

    @property
    def nbytes(self) -> int:
        """The memory that holds what was learned."""

    def window(self, context: conversion.Row, low: float, high: float) -> tuple[float, float]:
        """The centre and the bandwidth that are played where nothing is explored."""

    def decide(self, context: conversion.Row, low: float, high: float) -> tuple[float, float]:
        """Draw an action; it comes with its density."""

    def learn(
        self, context: conversion.Row, action: float, density: float, loss: float, low: float, high: float
    ) -> None:
        """Take in what a decision led to."""

    def decide_many(
        self, contexts: conversion.Row, lows: Floats, highs: Floats, actions: Floats, densities: Floats
    ) -> None:
        """Draw an action for each row into the last two arrays; empty ends mean the whole range."""

    def learn_many(
        self, contexts: conversion.Row, actions: Floats, densities: Floats, losses: Floats, lows: Floats, highs: Floats
    ) -> None:
        """Take in what many decisions led to: all of them or none."""

    def state(self) -> model_files.Arrays:
        """A copy of all that was learned."""

    def restore(self, saved: model_files.Arrays) -> None:
        """Go back to a state; raises KeyError or ValueError where the arrays do not fit."""


AnyPlayer = TypeVar("AnyPlayer", bound=Player)
