"""A kind of knob in one file outside the package: importing it is all that agents, logs and the service need."""

import dataclasses
import math

import numpy as np

from manul.actions.kinds.knob import register_knob
from manul.actions.kinds.span import Span


@register_knob("log")
@dataclasses.dataclass(frozen=True)
class LogSpan(Span):
    """A range whose numbers are drawn on a logarithmic scale."""

    scale: str = "log"
    is_bent = True

    @property
    def _octaves(self):
        return math.log(self.high / self.low)

    @property
    def largest_unit(self):
        return self.high * self._octaves

    def share(self, values):
        return np.log(np.asarray(values, dtype=float) / self.low) / self._octaves

    def number(self, shares):
        return self.low * np.exp(np.asarray(shares) * self._octaves)

    def units(self, values):
        return np.asarray(values, dtype=float) * self._octaves

    def describe(self):
        return {"low": self.low, "high": self.high, "scale": self.scale}

    def written(self):
        return self
