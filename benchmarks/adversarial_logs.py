"""Logs that try to prove gains that do not exist: worlds whose truth is known, loggers and policies, and what is claimed of them.

Unless a world says otherwise, contexts are uniform on [0, 1], the best action is 1/4 + context / 2, and the expected loss is the
distance to it. If the policies that log and that are judged are both fixed, the true gain is their difference on contexts that the
log does not have. If the logger learns, or one of the policies is trained, it is the difference on the contexts of the log, given
what the logger had learned by then.
"""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import manul
from manul.actions.distributions import Windows
from manul.policies import Constant, Finite
from manul.utils.validation import Floats

ROWS, BLOCK = 1500, 25  # of a log; a learner learns after every block
POPULATION, POINTS, DRAWS = 200_000, 8, 4  # contexts, and actions per piece or per row, from which a truth is computed
ROUNDING = 1e-9  # a lower end this far above the truth is not wrong

Mean = Callable[[Floats, Any, Floats], Floats]
Draw = Callable[[np.random.Generator, Floats], Floats]


class Contexts(NamedTuple):
    """What agents see, and what losses depend on: a row of numbers each."""

    shown: Any
    hidden: Floats


class Claim(NamedTuple):
    """What is claimed of a log, by which function; NaN if it is not about a gain, and `low` is -inf if nothing is claimed."""

    by: str
    wrong: bool
    low: float
    gain: float


class Rows(NamedTuple):
    """Contexts as agents see them, what losses depend on, times from 0 to 1, and the range of actions, if it is narrower."""

    shown: Any
    hidden: Floats
    times: Floats
    ranges: Any

    def part(self, which: slice) -> Rows:
        ranges = None if self.ranges is None else self.ranges[which]
        return Rows(self.shown[which], self.hidden[which], self.times[which], ranges)


class Judged(NamedTuple):
    """A log, a policy, its true gain over the logged one, and its true loss, in units of the loss.

    `rows` are those of the log, and `logged` is what its logger loses on them.
    """

    log: manul.Log
    policy: Any
    gain: float
    loss: float
    rows: Rows
    logged: float


class Outcomes(NamedTuple):
    """The losses of some rows, what the agent is told of them, and what else the log is told."""

    losses: Floats
    reported: dict[str, Any]
    parts: dict[str, Any]


# Policies


@dataclass(frozen=True, eq=False)
class Fixed:
    """A window of a `bandwidth` around a function of the first number of a context, and uniform with the probability `epsilon`."""

    centre: Callable[[Floats], Floats]
    bandwidth: float = 0.1
    epsilon: Any = 0.0
    actions: tuple[float, float] = (0.0, 1.0)

    def agent(self, seed: int, **settings: Any) -> Any:
        """An agent that decides like this and cannot learn anything else."""
        return manul.agents.SmoothedGreedy(
            policies=Finite([self.function]),
            bandwidth=self.bandwidth,
            epsilon=self.epsilon,
            actions=self.actions,
            seed=seed,
            **settings,
        )

    def centres(self, rows: Floats) -> Floats:
        # Single precision, because contexts in logs have it too.
        return np.clip(self.centre(rows[:, 0].astype(np.float32).astype(np.float64)), *self.actions)

    def function(self, context: Any) -> float:
        """The centre of the window; `compare` and `evaluate` smooth it, if they are given a bandwidth."""
        return float(self.centres(np.array(context, np.float64, ndmin=2))[0])

    def pieces(self, hidden: Floats, ranges: Floats | None) -> Iterator[tuple[Floats, Floats, float]]:
        """Low and high ends of the windows, and of the whole range, with their probabilities."""
        low, high = np.tile(self.actions, (len(hidden), 1)).T if ranges is None else ranges.T
        centres = np.clip(self.centres(hidden), low, high)
        yield np.maximum(centres - self.bandwidth, low), np.minimum(centres + self.bandwidth, high), 1 - self.epsilon
        if self.epsilon:
            yield low, high, self.epsilon

    def distribution(self, context: Any, within: Any = None) -> manul.Distribution:
        """The distribution of one context."""
        ends = None if within is None else np.array([within], np.float64)
        return self.distributions(np.array(context, np.float32, ndmin=2), ends)[0]

    def distributions(self, contexts: Any, within: Any = None) -> Windows:
        """The distributions of rows of numbers."""
        rows = np.asarray(contexts, np.float64)
        ends = np.tile(self.actions, (len(rows), 1)) if within is None else np.asarray(within, np.float64)
        return Windows.around(np.clip(self.centres(rows), *ends.T), self.bandwidth, ends, self.epsilon)


def best(x: Floats) -> Floats:
    return 0.25 + x / 2


def beside(shift: float) -> Callable[[Floats], Floats]:
    """The best action and a shift."""
    return lambda x: best(x) + shift


def constant(action: float) -> Callable[[Floats], Floats]:
    return lambda x: np.full(len(x), action)


SHIFTED = Fixed(beside(0.15), 0.1, 0.05)  # what logs, unless a world says otherwise
GOOD = Fixed(best)
NEARER = Fixed(beside(0.08))  # most of its window was logged often


def fixed(policy: Fixed, **settings: Any) -> Callable[[int], Any]:
    return lambda seed: policy.agent(seed, **settings)


def cats(seed: int, **settings: Any) -> Any:
    return manul.Cats(**{"leaves": 16, "bandwidth": 1 / 8, "epsilon": 0.05, "seed": seed} | settings)


def fading(first: float = 0.3, last: float = 0.01, rounds: int = 75) -> Any:
    return manul.schedules.Fading(first=first, last=last, rounds=rounds)


# Contexts


def uniform(rng: np.random.Generator, rows: int) -> Contexts:
    x = rng.random((rows, 1))
    return Contexts(x.astype(np.float32), x)


def wide(rng: np.random.Generator, rows: int) -> Contexts:
    """Nine of ten columns do not matter."""
    x = rng.random((rows, 10))
    return Contexts(x.astype(np.float32), x)


def drifting(rng: np.random.Generator, rows: int) -> Contexts:
    """Contexts move from 0 to 1 over the log."""
    x = np.clip(np.linspace(0, 1, rows) + 0.1 * rng.standard_normal(rows), 0, 1)[:, np.newaxis]
    return Contexts(x.astype(np.float32), x)


def waves(rng: np.random.Generator, rows: int) -> Contexts:
    """A hidden level of losses that wanders for hundreds of rows."""
    level = np.empty(rows)
    state, steps = rng.standard_normal(), 0.1 * rng.standard_normal(rows)
    for row in range(rows):
        level[row] = state = 0.995 * state + steps[row]
    x = rng.random(rows)
    return Contexts(x[:, np.newaxis].astype(np.float32), np.stack([x, 1 / (1 + np.exp(-2 * level))], 1))


def users(rng: np.random.Generator, rows: int) -> Contexts:
    """Five rows per user, who has a level of losses of his own, and is the second column of the contexts."""
    count = rows // 5
    who = np.repeat(np.arange(count), 5)
    x, level = rng.random(count)[who], rng.beta(0.3, 0.3, count)[who]
    return Contexts(np.stack([x, who], 1).astype(np.float32), np.stack([x, level], 1))


def named(rng: np.random.Generator, rows: int) -> Contexts:
    """Fields with text, dates and missing values."""
    x, days, cities = rng.random(rows), rng.integers(0, 700, rows), rng.integers(0, 30, rows)
    known = rng.random((rows, 3)) < 0.7
    at = np.datetime64("2024-01-01T09:30") + days.astype("timedelta64[D]")
    shown = [
        {"x": value if some[0] else None, "city": f"city {city}" if some[1] else None}
        | ({"at": when.item()} if some[2] else {})
        for value, city, when, some in zip(x.tolist(), cities, at, known, strict=True)
    ]
    return Contexts(shown, np.stack([x, days % 7 / 7, cities / 30], 1))


# Expected losses of hidden contexts, actions and times from 0 to 1


def distance(hidden: Floats, actions: Floats, _times: Floats) -> Floats:
    return np.abs(actions - best(hidden[:, 0]))


def without_actions(hidden: Floats, _actions: Any, _times: Floats) -> Floats:
    return 0.3 + 0.4 * hidden[:, 0]


def without_contexts(_hidden: Floats, actions: Floats, _times: Floats) -> Floats:
    return np.abs(actions - 0.5)


def trend(rise: float) -> Mean:
    """A trend and less and less to gain, or more and more."""

    def mean(hidden: Floats, actions: Floats, times: Floats) -> Floats:
        level = times if rise > 0 else 1 - times
        return 0.6 * level + 0.4 * np.abs(actions - best(hidden[:, 0])) * (2 - level)

    return mean


def null_trend(rise: float) -> Mean:
    return lambda _hidden, _actions, times: 0.2 + 0.6 * (times if rise > 0 else 1 - times)


def seasonal(hidden: Floats, actions: Floats, times: Floats) -> Floats:
    """Three seasons, which turn the best action around."""
    wave = np.sin(6 * np.pi * times)
    return 0.3 + 0.3 * wave + 0.4 * np.abs(actions - 0.5 - 0.3 * wave * (hidden[:, 0] - 0.5))


def rare(hidden: Floats, actions: Floats, _times: Floats) -> Floats:
    """About one loss in 1,000."""
    return 0.005 * distance(hidden, actions, _times)


def trap(hidden: Floats, actions: Floats, _times: Floats) -> Floats:
    """Near the best action, 5 % are catastrophes; elsewhere, 1 %."""
    return np.where(distance(hidden, actions, _times) < 0.05, 0.05, 0.01)


def upper_end(_hidden: Floats, actions: Floats, _times: Floats) -> Floats:
    """Only large actions cost anything."""
    return np.where(actions > 0.7, 0.4, 0.02)


def hidden_abyss(hidden: Floats, actions: Floats, _times: Floats) -> Floats:
    """Small losses everywhere, except where hardly any log goes."""
    return np.where((actions > 0.9) & (hidden[:, 0] > 0.7), 1.0, 0.1 * distance(hidden, actions, _times))


def cliff_at(end: float) -> Mean:
    """Free up to a distance from the best action, and the worst beyond."""
    return lambda hidden, actions, _times: np.where(actions > best(hidden[:, 0]) + end, 1.0, 0.1)


def lower_edge(_hidden: Floats, actions: Floats, _times: Floats) -> Floats:
    return np.minimum(0.1 + 2 * actions, 1.0)


def level_alone(hidden: Floats, _actions: Floats, _times: Floats) -> Floats:
    return hidden[:, 1]


def constant_rate(hidden: Floats, _actions: Floats, _times: Floats) -> Floats:
    """One loss in 1,000, whatever one does."""
    return np.full(len(hidden), 0.001)


def level_and_distance(hidden: Floats, actions: Floats, _times: Floats) -> Floats:
    from_best: Floats = np.minimum(2 * np.abs(actions - best(hidden[:, 0])), 1.0)
    return 0.8 * hidden[:, 1] + 0.2 * from_best


def days_and_cities(hidden: Floats, actions: Floats, _times: Floats) -> Floats:
    return np.abs(actions - 0.2 - 0.3 * hidden[:, 0] - 0.2 * hidden[:, 1] - 0.1 * hidden[:, 2])


# Losses with these expected values, from 0 to 1


def binary(rng: np.random.Generator, means: Floats) -> Floats:
    return (rng.random(len(means)) < means).astype(np.float64)


def exact(_rng: np.random.Generator, means: Floats) -> Floats:
    return means


def beta(rng: np.random.Generator, means: Floats) -> Floats:
    return rng.beta(8 * means + 1e-6, 8 * (1 - means) + 1e-6)


def heavy(rng: np.random.Generator, means: Floats) -> Floats:
    """Most are near 0, and some near 1."""
    return rng.beta(0.2 * means + 1e-9, 0.2 * (1 - means) + 1e-9)


def zero_inflated(rng: np.random.Generator, means: Floats) -> Floats:
    """Zero with a probability of 0.8 if the mean is small."""
    some = np.maximum(0.2, np.minimum(1.0, 2 * means))
    return np.where(rng.random(len(means)) < some, beta(rng, np.minimum(means / some, 1.0)), 0.0)


# Logs


def log_of(contexts: Any, decisions: Any, losses: Floats, agent: Any, **declared: Any) -> manul.Log:
    """A log of the decisions of an agent, with all that they know."""
    space = agent.space
    declared |= {"outcome": agent.outcome, **({"action_range": space.ends} if space.is_number else {"knobs": space})}
    names = ("lows", "highs", "floors", "densities_by_knob", "within", "arms", "levels")
    given = {name: getattr(decisions, name) for name in names if getattr(decisions, name) is not None}
    return manul.Log(contexts, decisions.actions, decisions.densities, losses, **given, **declared)


def columns() -> dict[str, list[str]]:
    """The columns of logs of some agents, other than those of the contexts: what the evidence can rest on."""
    agents = {
        "SmoothedGreedy": SHIFTED.agent(0),
        "Cats": cats(0),
        "Auto": manul.Auto(nearby=0.2),
        "three knobs": manul.Auto(actions=THREE),
        "knobs with a choice": manul.Auto(actions=MIXED),
    }
    context = np.zeros((1, 1), np.float32)
    logs = {
        name: log_of(context, each.decide_many(context, levels=True), np.zeros(1), each)
        for name, each in agents.items()
    }
    return {name: log.to_arrow().column_names for name, log in logs.items()}


def unchanged(log: manul.Log) -> manul.Log:
    return log


def through(*suffixes: str) -> Callable[[manul.Log], manul.Log]:
    """What writes a log to files, and reads it from them."""

    def store(log: manul.Log) -> manul.Log:
        with tempfile.TemporaryDirectory() as folder:
            for suffix in suffixes:
                path = Path(folder, f"log{suffix}")
                log.write(path)
                log = manul.Log.read(path, action_range=log.action_range, loss_range=log.loss_range)
            len(log.losses)
        return log

    return store


def shuffled(log: manul.Log) -> manul.Log:
    """Rows in another order, in pieces that are put together again."""
    order = np.random.default_rng(len(log)).permutation(len(log))
    log = log.rows(order)
    parts = [log.rows(slice(first, first + 400)) for first in range(0, len(log), 400)]
    return manul.Log.concat(parts[::-1])


def half_without(log: manul.Log) -> manul.Log:
    """A log of which every second row says nothing but its action, density, floor and loss."""
    rows = log.rows(np.arange(0, len(log), 2))
    ranges: Any = {"action_range": log.action_range, "loss_range": log.loss_range}
    bare = manul.Log(rows.contexts, rows.actions, rows.densities, rows.losses, floors=rows.floors, **ranges)
    return manul.Log.concat([bare, log.rows(np.arange(1, len(log), 2))])


# Worlds


@dataclass(frozen=True, eq=False)
class World:
    """A logger, a policy that is judged, and what losses depend on.

    `logger` and `policy` make agents or policies from a seed; `policy` may be `Fixed`. `learns` says whether the logger learns.
    `ranges` draws a narrower range for each row, or a mapping of them for several knobs. `store` is what the log goes through.
    Losses have the range `losses`; with `rewards`, the upper end minus the loss is the reward. `settings` are for `compare` and
    `evaluate`; with a bandwidth, the policy is judged as a function. `optimized` says that `optimize` judges the log too.
    `trained` makes the policy from the log itself. `gain` is the true gain, if it is known without draws.
    """

    name: str
    logger: Callable[[int], Any] | Fixed = SHIFTED
    policy: Callable[[int], Any] | Fixed = GOOD
    mean: Mean = distance
    draw: Draw = binary
    rows: int = ROWS
    contexts: Callable[[np.random.Generator, int], Contexts] = uniform
    learns: bool = False
    ranges: Callable[[np.random.Generator, int], Any] | None = None
    store: Callable[[manul.Log], manul.Log] = unchanged
    losses: tuple[float, float] = (0.0, 1.0)
    rewards: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)
    optimized: bool = False
    trained: Callable[[manul.Log, Any], Any] | None = None
    gain: float | None = None

    @property
    def outcome(self) -> dict[str, Any]:
        low, high = self.losses
        return {"rewards": (0.0, high - low)} if self.rewards else {"losses": self.losses}

    def units(self, shares: Any) -> Any:
        """Losses from 0 to 1 in units; as negative rewards, if there are rewards."""
        low, high = self.losses
        return (high - low) * (shares - 1) if self.rewards else low + (high - low) * shares

    def draw_rows(self, rng: np.random.Generator, count: int) -> Rows:
        shown, hidden = self.contexts(rng, count)
        times = (np.arange(count) + 0.5) / count
        return Rows(shown, hidden, times, None if self.ranges is None else self.ranges(rng, count))

    def judged(self, seed: int) -> Judged:
        """A log with its truth."""
        rng = np.random.default_rng([seed, 17])
        rows = self.draw_rows(rng, self.rows)
        logger = self.logger.agent(seed, **self.outcome) if isinstance(self.logger, Fixed) else self.logger(seed)
        logs, logged, size = [], [], BLOCK if self.learns else self.rows
        for start in range(0, self.rows, size):
            block = rows.part(slice(start, start + size))
            decisions = logger.decide_many(block.shown, block.ranges, levels=True)
            logged.append(self.expected(logger, block, seed))
            losses, reported, parts = self.outcomes(rng, block, decisions)
            if self.learns:
                logger.learn_many(block.shown, decisions, **reported)
            logs.append(log_of(block.shown, decisions, losses, logger, **parts))
        log = self.store(logs[0] if len(logs) == 1 else manul.Log.concat(logs))
        mean = float(np.concatenate(logged).mean())
        if isinstance(self.logger, Fixed) and isinstance(self.policy, Fixed) and not (self.learns or self.trained):
            policy = self.policy.function if "bandwidth" in self.settings else self.policy
            return Judged(log, policy, *population(self), rows, self.units(mean))
        policy = self.judged_policy(seed, log, logger)
        loss = float(self.expected(policy, rows, seed).mean())
        gain = (self.losses[1] - self.losses[0]) * (mean - loss) if self.gain is None else self.gain
        return Judged(log, policy, gain, self.units(loss), rows, self.units(mean))

    def outcomes(self, rng: np.random.Generator, rows: Rows, decisions: manul.Decisions) -> Outcomes:
        """What the decisions lead to."""
        losses = self.units(self.draw(rng, self.mean(rows.hidden, decisions.actions, rows.times)))
        return Outcomes(losses, {"rewards": -losses} if self.rewards else {"losses": losses}, {})

    def judged_policy(self, seed: int, log: manul.Log, logger: Any) -> Any:
        """The policy that is judged."""
        if self.trained is not None:
            return self.trained(log, logger)
        return self.policy if isinstance(self.policy, Fixed) else self.policy(seed)

    def expected(self, policy: Any, rows: Rows, seed: int) -> Floats:
        """The expected loss of a policy in each row, from 0 to 1."""
        shown, hidden, times, ranges = rows
        if not policy_space(policy).is_number:
            places = np.tile(np.arange(len(hidden)), DRAWS)
            tiled = [shown[place] for place in places] if isinstance(shown, list) else shown[places]
            within = None if ranges is None else [ranges[place] for place in places]
            actions = copy.deepcopy(policy).decide_many(tiled, within).actions  # a copy, because decisions are counted
            means: Floats = self.mean(hidden[places], actions, times[places]).reshape(DRAWS, -1).mean(0)
            return means
        withins = [None] * len(hidden) if ranges is None else [tuple(each) for each in ranges.tolist()]
        played = [policy.distribution(context, within) for context, within in zip(shown, withins, strict=True)]
        place = np.repeat(np.arange(len(played)), [len(each.densities) for each in played])
        lows, highs = (np.concatenate([each.edges[cut] for each in played]) for cut in (slice(0, -1), slice(1, None)))
        widths = highs - lows
        masses = widths * np.concatenate([each.densities for each in played])
        values: Floats = np.zeros(len(place))
        shares = np.random.default_rng([seed, 18]).random(len(hidden))[place]
        for point in range(POINTS):
            values += self.mean(hidden[place], lows + widths * (point + shares) / POINTS, times[place]) / POINTS
        return np.bincount(place, masses * values, len(hidden)).astype(np.float64)


def policy_space(policy: Any) -> Any:
    """The space of actions; a policy without one has numbers."""
    return getattr(policy, "space", None) or manul.ActionSpace((0.0, 1.0))


@cache
def population(world: World) -> tuple[float, float]:
    """The gain of a fixed policy over a fixed logger, and its loss, on contexts that no log has."""
    rng = np.random.default_rng(19)
    _, hidden, times, ranges = world.draw_rows(rng, POPULATION)
    shares = rng.random(POPULATION)
    means = []
    for policy in (world.logger, world.policy):
        assert isinstance(policy, Fixed)
        total = np.zeros(POPULATION)
        for lows, highs, mass in policy.pieces(hidden, ranges):
            for point in range(POINTS):
                actions = lows + (highs - lows) * (point + shares) / POINTS
                total += mass * world.mean(hidden, actions, times) / POINTS
        means.append(float(total.mean()))
    low, high = world.losses
    return (high - low) * (means[0] - means[1]), world.units(means[1])


def claims(world: World, seed: int) -> list[Claim]:
    """What `compare`, `evaluate` and, if the world asks for it, `optimize` claim of a log."""
    judged = world.judged(seed)
    every = [compared(judged, world.settings)]
    if "clusters" not in world.settings:  # `evaluate` takes rows for independent
        every.append(evaluated(judged, world.settings))
    return [*every, optimized(world, judged, seed)] if world.optimized else every


def compared(judged: Judged, settings: Mapping[str, Any]) -> Claim:
    """The lower end of the gain over the logged policy; nothing is claimed if an objection is an error."""
    (row,) = manul.compare({"policy": judged.policy}, judged.log, against="logged", **settings)
    low = -row.high if row.usable else -np.inf
    return Claim("compare", low > judged.gain + ROUNDING, low, judged.gain)


def evaluated(judged: Judged, settings: Mapping[str, Any]) -> Claim:
    """Whether the interval of the loss misses the truth, without an objection."""
    try:
        estimate = manul.evaluate(judged.policy, judged.log, **settings)
    except manul.ManulError:  # nothing to estimate from
        return Claim("evaluate", wrong=False, low=np.nan, gain=np.nan)
    held = estimate.low - ROUNDING <= judged.loss <= estimate.high + ROUNDING
    return Claim("evaluate", not held and not estimate.objections, np.nan, np.nan)


def optimized(world: World, judged: Judged, seed: int) -> Claim:
    """The lower end of the verdict of `optimize`; the true gain is that on the contexts of the log."""
    result = manul.optimize(judged.log)
    assert result.verdict is not None
    low = result.verdict.low if result.verdict.status == "proven" else -np.inf
    gain = judged.logged - world.units(float(world.expected(result.policy, judged.rows, seed).mean()))
    return Claim("optimize", low > gain + ROUNDING, low, gain)


# Worlds that are played in another way


class Relay:
    """Loggers of which the next one takes over when a rule of the rows and the losses of the present one says so."""

    def __init__(self, agents: list[Any], over: Callable[[int, float], bool]) -> None:
        self.agents, self.over, self.rows, self.total = agents, over, 0, 0.0
        self.space, self.outcome = agents[0].space, agents[0].outcome

    def decide_many(self, contexts: Any, within: Any = None, **settings: Any) -> Any:
        return self.agents[0].decide_many(contexts, within, **settings)

    def distribution(self, context: Any, within: Any = None) -> Any:
        return self.agents[0].distribution(context, within)

    def learn_many(self, contexts: Any, decisions: manul.Decisions, losses: Floats) -> None:
        self.agents[0].learn_many(contexts, decisions, losses)
        self.rows, self.total = self.rows + len(losses), self.total + float(losses.sum())
        if len(self.agents) > 1 and self.over(self.rows, self.total / self.rows):
            self.agents, self.rows, self.total = self.agents[1:], 0, 0.0


def relay(over: Callable[[int, float], bool], *policies: Fixed) -> Callable[[int], Any]:
    return lambda seed: Relay([each.agent(1000 * seed + place) for place, each in enumerate(policies)], over)


class Simulated(World):
    """A learner that `manul.simulate` plays; what it loses in the log is that of its actions, not of its distributions."""

    def judged(self, seed: int) -> Judged:
        rng = np.random.default_rng([seed, 17])
        rows = self.draw_rows(rng, self.rows)
        assert not isinstance(self.logger, Fixed)
        log = manul.simulate(self.logger(seed), _Rounds(self, rows, rng)).log
        logged = float(self.mean(rows.hidden, log.actions, rows.times).mean())
        policy = self.judged_policy(seed, log, None)
        loss = float(self.expected(policy, rows, seed).mean())
        return Judged(log, policy, logged - loss, loss, rows, logged)


class _Rounds:
    """A world for `manul.simulate`."""

    def __init__(self, world: World, rows: Rows, rng: np.random.Generator) -> None:
        self.contexts, self._world, self._rows, self._rng = rows.shown, world, rows, rng

    def __len__(self) -> int:
        return len(self.contexts)

    def loss(self, number: int, action: float) -> float:
        row = self._rows.part(slice(number, number + 1))
        return float(self._world.draw(self._rng, self._world.mean(row.hidden, np.array([action]), row.times))[0])


COST, MOST = 9.0, 41.0  # of a product, and what a sale earns at most


class Sales(World):
    """A price is earned, less the cost, if the visitor buys; the log has the parts of the outcome."""

    def outcomes(self, rng: np.random.Generator, rows: Rows, decisions: manul.Decisions) -> Outcomes:
        prices = decisions.actions["price"]
        bought = rng.random(len(prices)) < chance_of_sale(rows.hidden, prices)
        parts = {"parts": {"bought": bought.astype(np.float64)}}
        return Outcomes(-(prices - COST) * bought, parts, parts)


def chance_of_sale(hidden: Floats, prices: Floats) -> Floats:
    return 1 / (1 + np.exp((prices - 18 - 14 * hidden[:, 0]) / 3))


def missed_profit(hidden: Floats, actions: Mapping[str, Floats], _times: Floats) -> Floats:
    return 1 - (actions["price"] - COST) * chance_of_sale(hidden, actions["price"]) / MOST


def seller(seed: int, *, shift: float = 0.0, **settings: Any) -> Any:
    """An agent that sets prices, and has seen visitors who pay more by a `shift`."""
    profit = manul.Outcome(
        "profit", better="high", range=(0.0, MOST), formula="(price - 9) * bought", parts={"bought": "yes/no"}
    )
    agent = manul.Auto(actions={"price": (10.0, 50.0)}, outcome=profit, seed=seed, **settings)
    rng = np.random.default_rng([seed, 21])
    for _ in range(16):
        x = rng.random((BLOCK, 1))
        decisions = agent.decide_many(x.astype(np.float32))
        bought = rng.random(BLOCK) < chance_of_sale(x, decisions.actions["price"] - shift)
        agent.learn_many(x.astype(np.float32), decisions, parts={"bought": bought.astype(np.float64)})
    return agent


# Actions with several knobs, steps or options

STEPS = manul.Stepped(1, 14, 1)
THREE = {"first": (0.0, 1.0), "second": (0.0, 1.0), "third": (0.0, 1.0)}
MIXED: dict[str, Any] = {"price": (0.0, 1.0), "days": STEPS, "template": manul.Choice(["plain", "bold", "bright"])}
LIMITS = ["discount <= 1 - 9 / price"]
LIMITED: dict[str, Any] = {"price": (10.0, 50.0), "discount": (0.0, 0.3)}
OPTIONS = manul.Choice([f"option {number}" for number in range(30)])


def two_of_three(hidden: Floats, actions: Mapping[str, Floats], _times: Floats) -> Floats:
    """The third knob does not matter."""
    return (np.abs(actions["first"] - best(hidden[:, 0])) + np.abs(actions["second"] - 0.5)) / 1.5


def mixed_knobs(hidden: Floats, actions: Mapping[str, Any], _times: Floats) -> Floats:
    template = np.where(np.asarray(actions["template"]) == "bold", 0.0, 0.3)
    numbers: Floats = 0.5 * np.abs(actions["price"] - best(hidden[:, 0])) + 0.2 * np.abs(actions["days"] - 7) / 7
    return template + numbers


def discounts(hidden: Floats, actions: Mapping[str, Floats], _times: Floats) -> Floats:
    paid = actions["price"] * (1 - actions["discount"])
    return np.abs(paid / 50 - 0.3 - 0.4 * hidden[:, 0])


def thirty_options(hidden: Floats, actions: Any, _times: Floats) -> Floats:
    number = np.array([int(option.split()[1]) for option in np.asarray(actions).tolist()])
    places: Floats = (number * 7 + (3 * hidden[:, 0]).astype(int)) % 30 / 30
    return 0.2 + 0.6 * places


def thirty_alike(hidden: Floats, _actions: Any, _times: Floats) -> Floats:
    return 0.1 + 0.2 * hidden[:, 0]


def fourteen_steps(hidden: Floats, actions: Floats, _times: Floats) -> Floats:
    return np.abs(np.asarray(actions) / 14 - best(hidden[:, 0]))


def trained(agent: Any, seed: int, mean: Mean, rounds: int) -> Any:
    """An agent after some rounds of a world; it does not learn any more."""
    rng = np.random.default_rng([seed, 22])
    for _ in range(rounds // BLOCK):
        shown, hidden = uniform(rng, BLOCK)
        decisions = agent.decide_many(shown)
        agent.learn_many(shown, decisions, binary(rng, mean(hidden, decisions.actions, np.zeros(BLOCK))))
    return agent


def young(actions: Any, mean: Mean, **settings: Any) -> Callable[[int], Any]:
    """A logger that has learned little, and explores much."""
    return lambda seed: trained(manul.Auto(actions=actions, epsilon=0.3, seed=seed, **settings), seed, mean, 200)


def old(actions: Any, mean: Mean, **settings: Any) -> Callable[[int], Any]:
    """A policy that has learned more, elsewhere."""

    def policy(seed: int) -> Any:
        agent = manul.Auto(actions=actions, epsilon=fading(0.5, 0.02, 300), seed=seed + 10**6, **settings)
        return trained(agent, seed + 10**6, mean, 1500)

    return policy


def frozen_cats(seed: int) -> Any:
    return trained(cats(seed), seed, distance, 250)


def frozen_auto(seed: int) -> Any:
    return trained(manul.Auto(nearby=0.3, epsilon=0.05, seed=seed), seed, distance, 250)


def narrower(rng: np.random.Generator, rows: int) -> Floats:
    """A range of half the length in each row."""
    low = 0.5 * rng.random(rows)
    return np.stack([low, low + 0.5], 1)


def narrower_first(rng: np.random.Generator, rows: int) -> list[Any]:
    """The same for the first knob."""
    return [{"first": (low, high)} for low, high in narrower(rng, rows).tolist()]


def without_range(seed: int) -> Any:
    """An agent whose losses have no declared range."""
    return trained(manul.Auto(losses="auto", nearby=0.3, epsilon=0.02, seed=seed), seed, hidden_abyss, 250)


def optimized_elsewhere(seed: int) -> Any:
    """What `optimize` finds in another log of the same world."""
    return manul.optimize(World("elsewhere", logger=Fixed(beside(0.15), 0.3, 0.2)).judged(seed + 10**6).log).policy


def itself(_log: manul.Log, agent: Any) -> Any:
    """The agent that logged, after it has learned from the whole log."""
    return agent


def optimum(log: manul.Log, _agent: Any) -> Any:
    """What `optimize` finds in the log."""
    return manul.optimize(log).policy


auto = partial(manul.Auto, losses=(0.0, 1.0))
THIN = Fixed(beside(0.05), 1 / 64, 0.05)
WIDE = Fixed(beside(0.15), 0.3, 0.2)
PRICES = (10.0, 60.0)


def price(shift: float) -> Callable[[Floats], Floats]:
    return lambda x: 10 + 50 * np.clip(best(x) + shift, 0, 1)


def price_distance(hidden: Floats, actions: Floats, _times: Floats) -> Floats:
    return distance(hidden, (actions - 10) / 50, _times)


def learner(name: str, logger: Callable[..., Any] = cats, **settings: Any) -> World:
    return World(name, logger=lambda seed: logger(seed=seed), learns=True, **settings)


WORLDS: list[World] = [
    World("no gain possible", mean=without_actions),
    World("no gain possible, wide logger", logger=WIDE, mean=without_actions, optimized=True),
    World("no gain possible, rare losses", logger=WIDE, mean=constant_rate, optimized=True),
    World("no gain possible, zero-inflated", logger=WIDE, mean=without_actions, draw=zero_inflated, optimized=True),
    World("no gain possible, heavy tails", logger=WIDE, mean=without_actions, draw=heavy, optimized=True),
    learner("no gain possible, Cats learns", mean=without_actions, optimized=True),
    learner("no gain possible, Auto learns", auto, mean=without_actions, optimized=True),
    learner("no gain possible, rising, Cats learns", mean=null_trend(1), draw=beta, optimized=True),
    learner("no gain possible, falling, Auto learns", auto, mean=null_trend(-1), draw=beta),
    Simulated("no gain possible, simulated Auto", logger=lambda seed: auto(seed=seed), mean=without_actions),
    learner(
        "no gain possible, jumpy learner",
        lambda seed: manul.agents.SmoothedGreedy(policies=Constant(33), bandwidth=0.1, epsilon=0.1, seed=seed),
        mean=without_actions, policy=Fixed(constant(0.5)), rows=500,
    ),
    World("Cats, frozen", logger=frozen_cats, policy=Fixed(best, 1 / 8)),
    World("Cats, frozen, worse policy", logger=frozen_cats, policy=Fixed(beside(0.2), 1 / 8), draw=heavy),
    World("Cats, frozen, one loss in 1,000", logger=frozen_cats, policy=Fixed(best, 1 / 8), mean=rare),
    World("Cats, frozen, nothing to gain", logger=frozen_cats, mean=without_actions, optimized=True),
    World("Cats, frozen, the policy itself", logger=frozen_cats, policy=frozen_cats),
    World("Auto with nearby, frozen", logger=frozen_auto, policy=Fixed(best, 1 / 32)),
    World("Auto with nearby, frozen, worse policy", logger=frozen_auto, policy=Fixed(beside(0.1), 1 / 32)),
    World("Auto with nearby, frozen, nothing to gain", logger=frozen_auto, mean=without_actions, optimized=True),
    World("Auto with nearby, frozen, catastrophes", logger=frozen_auto, policy=Fixed(best, 1 / 32), mean=trap),
    World("context without use", mean=without_contexts, policy=Fixed(constant(0.5))),
    World("9 useless columns", logger=WIDE, contexts=wide, optimized=True),
    World("one loss in 1,000", mean=rare, policy=NEARER),
    World("one loss in 1,000, worse policy", mean=rare, policy=Fixed(beside(0.25))),
    World("catastrophes where the policy goes", mean=trap),
    World("skewed", draw=heavy, policy=NEARER),
    World("zero-inflated", draw=zero_inflated, policy=NEARER),
    World("exact losses", draw=exact, policy=NEARER),
    learner("rising, Cats learns", mean=trend(1), optimized=True),
    learner("falling, Cats learns", mean=trend(-1)),
    learner("falling, Auto learns", auto, mean=trend(-1), draw=beta),
    learner("seasons, exploration fades", partial(cats, epsilon=fading()), mean=seasonal, policy=Fixed(constant(0.5), 0.2)),
    World("rising, fixed windows, exploration fades", logger=Fixed(beside(0.15), 0.1, fading()), mean=trend(1),
        learns=True, policy=NEARER),
    World("50 rows", logger=WIDE, rows=50),
    World("100 rows", logger=WIDE, rows=100),
    World("100 rows, nothing to gain", logger=WIDE, rows=100, mean=without_actions),
    World("500 rows, thin windows", logger=THIN, policy=Fixed(best, 1 / 64), rows=500),
    World("500 rows, poor overlap", logger=SHIFTED, policy=Fixed(beside(-0.2), 0.05), rows=500),
    World("the logged policy itself", policy=SHIFTED),
    World("the logged windows without exploration", policy=replace(SHIFTED, epsilon=0.0)),
    World("shifted by a millionth", policy=replace(SHIFTED, centre=beside(0.15 - 1e-6))),
    World("shifted by a thousandth", policy=replace(SHIFTED, centre=beside(0.149), epsilon=0.0)),
    World("shifted by a thousandth, worse", policy=replace(SHIFTED, centre=beside(0.151))),
    World("narrower than the logged windows", policy=Fixed(beside(0.08), 0.02)),
    World("wider than the logged windows", policy=Fixed(beside(0.1), 0.25)),
    World("little exploration", logger=replace(SHIFTED, epsilon=0.002), policy=NEARER),
    World("avoids the losses", logger=Fixed(constant(0.72), 0.1, 0.05), policy=Fixed(constant(0.64), 0.05), mean=upper_end),
    World("seeks the losses", logger=Fixed(constant(0.64), 0.1, 0.05), policy=Fixed(constant(0.7), 0.05), mean=upper_end),
    World("windows at the edge of the range", logger=Fixed(constant(0.03), 0.1, 0.05), policy=Fixed(constant(0.0), 0.04),
        mean=lower_edge),
    World("narrower ranges", ranges=narrower, policy=NEARER),
    learner("narrower ranges, Cats learns", ranges=narrower, policy=NEARER),
    World("a function with a bandwidth", policy=NEARER, settings={"bandwidth": 0.1}),
    World("a function with a bandwidth, abyss", policy=Fixed(beside(0.22)), mean=hidden_abyss, settings={"bandwidth": 0.1}),
    World("abyss, no range is declared", logger=without_range, policy=Fixed(beside(0.3)), mean=hidden_abyss, draw=exact),
    World("cliff at the end of the logged windows", policy=Fixed(beside(0.17)), mean=cliff_at(0.25)),
    World("cliff just inside the logged windows", policy=Fixed(beside(0.17)), mean=cliff_at(0.2499)),
    World("abyss that no log shows", logger=replace(SHIFTED, epsilon=0.002), policy=Fixed(beside(0.22)), mean=hidden_abyss),
    World("abyss, losses are exact", logger=replace(SHIFTED, epsilon=0.01), policy=Fixed(beside(0.22)), mean=hidden_abyss,
        draw=exact),
    World("seasons", mean=seasonal, policy=Fixed(constant(0.5), 0.2)),
    World("contexts drift", contexts=drifting, policy=Fixed(lambda x: best(x) + 0.12 - 0.2 * (x > 0.5))),
    World("losses in long waves", contexts=waves, mean=level_and_distance, policy=NEARER),
    learner("losses in long waves, Cats learns", contexts=waves, mean=level_and_distance),
    World("users in clusters", contexts=users, mean=level_and_distance, policy=NEARER, settings={"clusters": "1"}),
    World("users in clusters, nothing to gain", contexts=users, mean=level_alone, settings={"clusters": "1"}),
    learner("missing fields and dates, Cats learns", contexts=named, mean=days_and_cities,
        policy=lambda seed: cats(seed + 10**6, bandwidth=1 / 4)),
    learner("missing fields and dates, Auto learns", auto, contexts=named, mean=days_and_cities, trained=itself),
    World("three knobs, one without use", logger=young(THREE, two_of_three), policy=old(THREE, two_of_three),
        mean=two_of_three),
    World("three knobs, the logger itself", logger=young(THREE, two_of_three), policy=young(THREE, two_of_three),
        mean=two_of_three, gain=0.0),
    World("three knobs, narrower ranges", logger=young(THREE, two_of_three), policy=old(THREE, two_of_three),
        mean=two_of_three, ranges=narrower_first),
    World("a number, steps and a choice", logger=young(MIXED, mixed_knobs), policy=old(MIXED, mixed_knobs),
        mean=mixed_knobs),
    World("a limit between knobs", logger=young(LIMITED, discounts, limits=LIMITS),
        policy=old(LIMITED, discounts, limits=LIMITS), mean=discounts, rows=500),
    World("30 options", logger=young(OPTIONS, thirty_options), policy=old(OPTIONS, thirty_options), mean=thirty_options),
    World("30 options, all alike", logger=young(OPTIONS, thirty_alike), policy=old(OPTIONS, thirty_options),
        mean=thirty_alike, optimized=True),
    World("14 steps", logger=young(STEPS, fourteen_steps), policy=old(STEPS, fourteen_steps), mean=fourteen_steps),
    World("two loggers in one log",
        logger=relay(lambda rows, _: rows >= ROWS // 2, SHIFTED, Fixed(beside(-0.2), 0.15, 0.1)), learns=True,
        policy=NEARER),
    World("a logger is replaced when it looks bad",
        logger=relay(lambda rows, mean: rows >= 100 and mean > 0.2, SHIFTED, WIDE, SHIFTED, WIDE), learns=True,
        policy=replace(SHIFTED, epsilon=0.0), rows=800),
    World("through Parquet", store=through(".parquet"), policy=NEARER),
    World("through CSV and JSON lines", store=through(".csv", ".jsonl"), policy=NEARER),
    World("shuffled, cut and put together", store=shuffled, policy=NEARER),
    World("half of the rows from arrays", store=half_without, policy=NEARER),
    learner("shuffled, Auto learns", auto, store=shuffled, policy=Fixed(best, 1 / 16)),
    learner("log of a rollout", lambda seed: manul.Rollout(cats(seed), baseline=0.5, steps=(0.5,), budget=1e9, seed=seed),
        policy=Fixed(constant(0.52), 0.1)),
    learner("Auto with nearby", partial(auto, nearby=0.3, epsilon=0.05), policy=Fixed(best, 1 / 32)),
    learner("the agent after its own log, nothing to gain", mean=without_actions, trained=itself),
    learner("the agent after its own log", auto, trained=itself),
    World("optimised on the same log", logger=WIDE, mean=without_actions, trained=optimum),
    World("optimised on another log", logger=WIDE, policy=optimized_elsewhere, optimized=True),
    World("optimised on another log, nothing to gain", logger=WIDE, mean=without_actions, policy=optimized_elsewhere),
    World("prices and rewards", logger=Fixed(price(0.15), 5.0, 0.05, PRICES), policy=Fixed(price(0.08), 5.0, 0.0, PRICES),
        mean=price_distance, losses=(0.0, 50.0), rewards=True, draw=beta),
    World("losses from -5 to 20", losses=(-5.0, 20.0), policy=NEARER),
    Sales("profit by a formula", logger=lambda seed: seller(seed, shift=8.0, epsilon=0.2),
        policy=lambda seed: seller(seed + 10**6, epsilon=0.05), mean=missed_profit, losses=(0.0, MOST), rewards=True,
        learns=True),
]  # fmt: skip
