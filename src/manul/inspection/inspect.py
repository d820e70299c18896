"""Inspects a saved agent or policy: its settings, the weights of its features, and its policy in given contexts."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from manul import _core
from manul.actions.distribution import Atoms, Distribution
from manul.agents import Auto, Mapped
from manul.agents.auto_knobs import AutoKnobs
from manul.agents.base import BaseAgent
from manul.agents.critic_report import Report
from manul.agents.policy_player import PolicyPlayer
from manul.contexts.maps import Columns, NamesColumns
from manul.errors import ParameterError
from manul.inspection.knobs_in_context import KnobsInContext, knobs_figure, knobs_in_context
from manul.inspection.text import FEATURES_SHOWN, text
from manul.types import Context, Policy
from manul.utils import model_files

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NOT_SETTINGS = ("names", "width", "mapped_width")  # parameters of a file that the user does not set


@dataclass(frozen=True)
class Feature:
    """The effect of a feature on the action: in a tree, the weight that all nodes share plus the root's own.

    Weights of numeric features are per standard deviation, those of other features for presence.
    """

    name: str
    shared: float
    root: float

    @property
    def weight(self) -> float:
        """The sum of both parts."""
        return self.shared + self.root

    @property
    def meaning(self) -> str:
        """The direction of the effect.

        >>> Feature("age", 0.5, -0.75).meaning
        'lowers the action'
        """
        if self.weight == 0:
            return "no effect"
        return "raises the action" if self.weight > 0 else "lowers the action"


@dataclass(frozen=True)
class Step:
    """One node on the path to a leaf; a forced node has only one reachable side."""

    node: int
    margin: float
    side: str
    forced: bool


@dataclass(frozen=True)
class Route:
    """The path of a context to its leaf, and the centre of the window at that leaf."""

    steps: tuple[Step, ...]
    leaf: int
    leaves: int
    action: float


@dataclass(frozen=True)
class PolicyInContext:
    """The policy in one context; `curve` is the loss that Auto predicts for each action."""

    context: Context
    distribution: Distribution | Atoms
    route: Route | None
    curve: tuple[tuple[float, float], ...] | None

    @property
    def window(self) -> tuple[float, float]:
        """The interval with the highest density."""
        return self.distribution.densest()

    @property
    def density(self) -> float:
        """The density inside the window."""
        return self.distribution.density(self.window[0])

    def as_dict(self) -> dict[str, Any]:
        """Return all fields as plain values.

        >>> PolicyInContext([1.0], Distribution.uniform(0.0, 2.0), None, None).as_dict()["expected_action"]
        1.0
        """
        return {
            "context": self.context,
            "window": self.window,
            "density": self.density,
            "expected_action": self.distribution.mean(),
            "distribution": asdict(self.distribution),
            "route": None if self.route is None else asdict(self.route),
            "curve": self.curve,
        }


@dataclass(frozen=True)
class Inspection:
    """The contents of a file; `rounds` and `decisions` are None if the file does not record them."""

    kind: str
    parameters: dict[str, Any]
    decisions: int | None
    rounds: int | None
    memory: int
    features: tuple[Feature, ...]
    report: Report | None
    played: tuple[PolicyInContext | KnobsInContext, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return all fields as plain values, ready for JSON.

        >>> Inspection("Cats", {}, 0, 0, 64, (Feature("age", 0.5, 0.0),), None, ()).as_dict()["features"][0]["weight"]
        0.5
        """
        plain: dict[str, Any] = _plain(
            {
                "kind": self.kind,
                "parameters": self.parameters,
                "decisions": self.decisions,
                "rounds": self.rounds,
                "memory": self.memory,
                "features": [
                    {**asdict(each), "weight": each.weight, "meaning": each.meaning} for each in self.features
                ],
                "report": None if self.report is None else asdict(self.report),
                "played": [policy.as_dict() for policy in self.played],
            }
        )
        return plain

    def plot(self) -> Figure:
        """Plot the strongest features, and for each context the density and the margins along its path.

        With several knobs, plot for each context their distributions and the predicted loss along each knob.
        """
        if not (self.features or self.played):
            raise ParameterError(
                f"nothing to plot: {self.kind} has no feature weights and no context was given. Pass one, or use --context.",
                "plot",
            )
        several = [policy for policy in self.played if isinstance(policy, KnobsInContext)]
        return knobs_figure(several) if several else self._plot_one_knob()

    def _plot_one_knob(self) -> Figure:
        from manul.utils import plotting

        played = [policy for policy in self.played if isinstance(policy, PolicyInContext)]
        parts = bool(self.features) + sum(1 + (policy.route is not None) for policy in played)
        axes = iter(row := plotting.new_row(parts))
        if self.features:
            strongest = self.features[:FEATURES_SHOWN]
            weights = [feature.weight for feature in strongest]
            plotting.feature_bars([feature.name for feature in strongest], weights, next(axes))
        for policy in played:
            title = plotting.shorten(json.dumps(policy.context, ensure_ascii=False))
            policy.distribution.plot(next(axes)).set_title(title)
            if policy.route is not None:
                steps = policy.route.steps
                names = [f"node {step.node}, {step.side}{' (forced)' if step.forced else ''}" for step in steps]
                bars = plotting.feature_bars(names, [step.margin for step in steps], next(axes))
                bars.set_xlabel("margin (left if negative, right if positive)")
                bars.set_ylabel("level")
                bars.set_title(f"path to leaf {policy.route.leaf} of {policy.route.leaves:,}")
        return row[0].figure.canvas.figure

    def __str__(self) -> str:
        return text(self)


def inspect(path: str | Path, *contexts: Context) -> Inspection:
    """Inspect the agent or policy in a file, and its policy in the given contexts.

    >>> import tempfile, manul
    >>> agent = manul.Cats(leaves=8, bandwidth=1/8)
    >>> agent.learn([1.0, 2.0], agent.decide([1.0, 2.0]), loss=0.5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     agent.save(Path(folder, "agent.manul"))
    ...     inspection = inspect(Path(folder, "agent.manul"), [1.0, 2.0])
    >>> inspection.kind, inspection.rounds, len(inspection.features), len(inspection.played[0].route.steps)
    ('Cats', 1, 2, 3)
    """
    kind, parameters, arrays = model_files.read(path)
    settings = _settings(parameters)
    agent = model_files.restore(kind, parameters, arrays, name=str(path))
    inside = agent.agent if isinstance(agent, Mapped) else agent
    report = inside.report() if isinstance(inside, Auto | AutoKnobs) and inside.width is not None else None
    return Inspection(
        kind=kind,
        parameters=settings,
        decisions=getattr(agent, "decisions", None),
        rounds=_rounds(inside) if report is None else report.rounds,
        memory=getattr(agent, "nbytes", None) or sum(array.nbytes for array in arrays.values()),
        features=_features(inside, _column_names(agent)),
        report=report,
        played=tuple(_policy_in(agent, context) for context in contexts),
    )


def parse_context(given: str) -> Context:
    """Parse a context from the command line.

    >>> parse_context('{"city": "Oslo"}')
    {'city': 'Oslo'}
    """
    try:
        context: Context = json.loads(given)
    except (json.JSONDecodeError, RecursionError):
        context = given
    if not (context is None or isinstance(context, list | dict)):
        raise ParameterError(
            f"""context must be a JSON array or object such as '[1, 2, 3]' or '{{"city": "Oslo"}}', got {given!r}.""",
            "context",
        )
    return context


def _settings(parameters: model_files.Parameters) -> dict[str, Any]:
    settings = {name: value for name, value in parameters.items() if name not in _NOT_SETTINGS}
    inside = settings.get("agent")
    if isinstance(inside, dict):
        settings["agent"] = {"kind": inside["kind"], **_settings(inside["parameters"])}
    return settings


def _rounds(agent: object) -> int | None:
    """The number of rounds that the agent has learned from, or None for the trees of the paper, which do not count them."""
    player = agent.player if isinstance(agent, BaseAgent) else None
    if isinstance(player, PolicyPlayer):
        return player.rounds
    if isinstance(player, _core.CatsPlayer):
        return int(player.state()["model_history"][1])
    return (
        int(player.state()["rounds"][0]) if isinstance(player, _core.LinearPlayer | _core.AdaptiveCatsPlayer) else None
    )


def _column_names(agent: object) -> list[str] | None:
    if not (isinstance(agent, Mapped) and isinstance(agent.features, NamesColumns)):
        return None
    known = agent.width is not None or isinstance(agent.features, Columns)
    return agent.features.names(agent.width or 0) if known else None


def _features(agent: object, names: Sequence[str] | None) -> tuple[Feature, ...]:
    """The features with known names, strongest first."""
    player = agent.player if isinstance(agent, BaseAgent) else None
    if not isinstance(player, _core.CatsPlayer | _core.LinearPlayer):
        return ()
    assert isinstance(agent, BaseAgent)
    assert agent.width is not None
    known = dict(player.names) if agent.named else dict(enumerate(names or map("column {}".format, range(agent.width))))
    shared, root = _weights(player, list(known))
    features = map(Feature, known.values(), shared, root)
    return tuple(sorted(features, key=lambda feature: (-abs(feature.weight), feature.name)))


def _weights(player: _core.CatsPlayer | _core.LinearPlayer, features: list[int]) -> tuple[list[float], list[float]]:
    if isinstance(player, _core.CatsPlayer):
        return player.weights(0, features), player.weights(1, features)
    weights, columns = player.state()["weights"], player.columns
    return [float(weights[columns.get(feature, feature % len(weights))]) for feature in features], [0.0] * len(features)


def _policy_in(policy: Policy, context: Context) -> PolicyInContext | KnobsInContext:
    inside, seen = (policy.agent, policy.map(context)) if isinstance(policy, Mapped) else (policy, context)
    if isinstance(inside, AutoKnobs):
        return knobs_in_context(inside, seen, shown=context)
    return PolicyInContext(context, policy.distribution(context), _route(inside, seen), _curve(inside, seen))


def _route(agent: object, context: Context) -> Route | None:
    if not (isinstance(agent, BaseAgent) and isinstance(agent.player, _core.CatsPlayer)):
        return None
    player, seen = agent.player_and_context(context)
    steps = [
        Step(node, margin, "right" if right else "left", forced)
        for node, margin, right, forced in player.route(seen, *agent.actions)
    ]
    leaves: int = 2 ** len(steps)
    leaf = 2 * steps[-1].node + (steps[-1].side == "right") - leaves
    return Route(tuple(steps), leaf, leaves, player.window(seen, *agent.actions)[0])


def _curve(agent: object, context: Context) -> tuple[tuple[float, float], ...] | None:
    if not isinstance(agent, Auto):
        return None
    report = agent.report([] if context is None else context)
    assert report.actions is not None
    assert report.losses is not None
    return tuple(zip(report.actions.tolist(), report.losses.tolist(), strict=True))


def _plain(value: Any) -> Any:
    """Convert to JSON values: arrays become lists, and numbers that are not finite become null."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(item) for item in value]
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else None
    return value
