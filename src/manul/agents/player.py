"""The protocol of players, the part of an agent that decides and learns, in the core or in Python."""

from __future__ import annotations

from typing import Protocol

from manul.contexts import conversion
from manul.utils import model_files
from manul.utils.validation import Floats

Draw = tuple[float, float, float]  # action, density, floor


class Player(Protocol):
    """Decides and learns inside an agent with one knob; all rows and numbers are already validated."""

    decisions: int

    @property
    def epsilon(self) -> float:
        """The epsilon of the next decision."""

    @property
    def nbytes(self) -> int:
        """The memory of the learned state, in bytes."""

    def state(self) -> model_files.Arrays:
        """A copy of the learned state."""

    def restore(self, saved: model_files.Arrays) -> None:
        """Restore a state; raises KeyError or ValueError if the arrays do not fit."""

    def window(self, context: conversion.Row, low: float, high: float) -> tuple[float, float]:
        """The centre and the bandwidth of the greedy window."""

    def decide(self, context: conversion.Row, low: float, high: float) -> Draw:
        """Draw an action; returns it with its density and the smallest density of any action of the range."""

    def learn(
        self, context: conversion.Row, action: float, density: float, loss: float, low: float, high: float
    ) -> bool | None:
        """Learn from the loss of a decision; returns whether the context has late fields."""

    def decide_many(
        self,
        contexts: conversion.Row,
        lows: Floats,
        highs: Floats,
        actions: Floats,
        densities: Floats,
        floors: Floats,
    ) -> None:
        """Fill the arrays after the ends with a draw per row; empty ends mean the whole range."""

    def learn_many(
        self, contexts: conversion.Row, actions: Floats, densities: Floats, losses: Floats, lows: Floats, highs: Floats
    ) -> None:
        """Learn from the losses of many decisions; on an error, from none."""
