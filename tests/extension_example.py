"""An agent, an estimator, an interval, a log format and a store in one file outside the package; importing it registers them."""

import json
import math

import numpy as np
import pyarrow as pa

import manul
from manul import _core
from manul.actions.ranges import Actions
from manul.actions.smoothing import explore, smooth
from manul.agents.base import BaseAgent
from manul.logs.formats import text_lines
from manul.logs.formats.arrow_tables import SchemaAdapter
from manul.offpolicy.evaluation.intervals import Terms
from manul.service.store.sqlite import SqliteStore
from manul.utils import model_files
from manul.utils.validation import check_bandwidth

POINTS = 33


class GridPlayer:
    """Chooses near the point with the lowest mean loss, for any context."""

    def __init__(self, *, actions, losses, bandwidth, epsilon, seed):
        self._actions, self._losses, self._bandwidth = actions, losses, bandwidth
        self.epsilon, self._seed = epsilon, seed
        self._points = np.linspace(*actions, POINTS)
        self._sums, self._counts, self.decisions = np.zeros(POINTS), np.full(POINTS, 1e-9), 0

    @property
    def nbytes(self):
        return self._sums.nbytes + self._counts.nbytes

    def window(self, context, low, high):
        best = self._points[np.argmin(self._sums / self._counts)]
        return float(np.clip(best, low, high)), self._bandwidth

    def decide(self, context, low, high):
        greedy = smooth(*self.window(context, low, high), (low, high))
        coin, position = _core.draw(self._seed, self.decisions)
        self.decisions += 1
        first, last = (low, high) if coin < self.epsilon else (greedy.edges[0], greedy.edges[1])
        action = float(first + position * (last - first))
        distribution = explore(greedy, self.epsilon, (low, high))
        return action, distribution.density(action), distribution.densities.min()

    def learn(self, context, action, density, loss, low, high):
        nearest = np.argmin(np.abs(self._points - action))
        self._sums[nearest] += (loss - self._losses[0]) / (self._losses[1] - self._losses[0])
        self._counts[nearest] += 1

    def decide_many(self, contexts, lows, highs, actions, densities, floors):
        for row, (low, high) in enumerate(self._ends(contexts, lows, highs)):
            actions[row], densities[row], floors[row] = self.decide(contexts[row], low, high)

    def learn_many(self, contexts, actions, densities, losses, lows, highs):
        for row, ends in enumerate(self._ends(contexts, lows, highs)):
            self.learn(contexts[row], actions[row], densities[row], losses[row], *ends)

    def state(self):
        return {"sums": self._sums.copy(), "counts": self._counts.copy()}

    def restore(self, saved):
        sums, counts = model_files.vectors(saved, sums=("f8", POINTS), counts=("f8", POINTS))
        self._sums, self._counts = sums.copy(), counts.copy()

    def _ends(self, contexts, lows, highs):
        return zip(lows, highs, strict=True) if len(lows) else [self._actions] * len(contexts)


@manul.register.agent("best-point", settings=("bandwidth",))
class BestPoint(BaseAgent):
    """The best of a fixed set of actions."""

    def __init__(
        self, *, actions=(0.0, 1.0), losses=(0.0, 1.0), bandwidth: float = 0.05, epsilon: float = 0.1, seed: int = 0
    ):
        super().__init__(actions=actions, losses=losses, epsilon=epsilon, seed=seed)
        self.bandwidth = check_bandwidth(bandwidth, Actions(*self.actions))

    @property
    def _narrowest_bandwidth(self):
        return self.bandwidth

    def _make_player(self, width):
        return GridPlayer(**self.parameters)


@manul.register.estimator("clipped")
def clipped(rows, weights, losses):
    """The mean of the losses times clipped weights."""
    return Terms(np.minimum(weights, 2.0) * losses, np.ones(len(rows.actions)), weights, losses)


@manul.register.interval("hoeffding", bounded=True)
class Hoeffding:
    """Hoeffding's interval of the mean of weights times losses, which are between 0 and the largest weight."""

    def __init__(self, seed, largest_weight):
        self.count, self.total = 0, 0.0

    def add(self, terms):
        self.count, self.total = self.count + len(terms.weights), self.total + (terms.weights * terms.losses).sum()

    def ends(self, level, largest_weight):
        reach = largest_weight * math.sqrt(math.log(2 / (1 - level)) / (2 * self.count))
        return self.total / self.count - reach, self.total / self.count + reach


def read(problems, size):
    """Read one JSON array per line: the action, its density, the loss, and the context."""
    rows = [json.loads(line) for _, line in text_lines.lines(problems)]
    columns = dict(zip(("action", "density", "loss", "context"), zip(*rows, strict=True), strict=True))
    table = pa.table({name: list(values) for name, values in columns.items()})
    adoption = SchemaAdapter(table.schema, problems)
    for first in range(0, len(table), size):
        yield adoption.piece(table.slice(first, size), first + 1)


class Writer:
    def __init__(self, path, schema):
        self._output = text_lines.Output(path)

    def write(self, table):
        columns = (table[name].to_pylist() for name in ("action", "density", "loss", "context"))
        for row in zip(*columns, strict=True):
            self._output.write(json.dumps(row) + "\n")

    def close(self):
        self._output.close()


manul.register.format(".rows", read=read, writer=Writer)
manul.register.store("folder", lambda address: SqliteStore(address.removeprefix("folder://") + "/decisions.db"))
