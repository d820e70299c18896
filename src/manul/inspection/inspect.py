"""What a saved agent or policy has learned: its settings, the features that matter, and what it plays in a context."""

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
from manul.agents.auto import Report
from manul.agents.base import BaseAgent
from manul.contexts.maps import Columns, NamesColumns
from manul.errors import ParameterError
from manul.inspection.text import SHOWN, text
from manul.types import Context, Policy
from manul.utils import model_files

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NOT_SETTINGS = ("names", "width", "mapped_width")


@dataclass(frozen=True)
class Feature:
    """How a feature moves the action: the direction that all nodes share plus the root's own, where there is a tree.

    Numbers count per standard deviation, everything else by being there.
    """

    name: str
    shared: float
    root: float

    @property
    def weight(self) -> float:
        """Both parts."""
        return self.shared + self.root

    @property
    def meaning(self) -> str:
        """What the sign of the weight says.

        >>> Feature("age", 0.5, -0.75).meaning
        'pushes towards smaller actions'
        """
        if self.weight == 0:
            return "pushes nowhere"
        return f"pushes towards {'larger' if self.weight > 0 else 'smaller'} actions"


@dataclass(frozen=True)
class Step:
    """One node on the way down; a forced one has only one side that can be reached."""

    node: int
    margin: float
    side: str
    forced: bool


@dataclass(frozen=True)
class Route:
    """The way of a context to its leaf, and the action in the middle of what is played there."""

    steps: tuple[Step, ...]
    leaf: int
    leaves: int
    action: float


@dataclass(frozen=True)
class Played:
    """What is played in one context; the window is the densest part, the curve the loss that Auto expects."""

    context: Context
    distribution: Distribution | Atoms
    route: Route | None
    curve: tuple[tuple[float, float], ...] | None

    @property
    def window(self) -> tuple[float, float]:
        """The ends of the densest part."""
        return self.distribution.densest()

    @property
    def density(self) -> float:
        """The density at the ends of the window, which belong to it."""
        return self.distribution.density(self.window[0])

    def as_dict(self) -> dict[str, Any]:
        """Everything in plain values.

        >>> Played([1.0], Distribution.uniform(0.0, 2.0), None, None).as_dict()["expected_action"]
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
    """What is known of a file; `rounds` and `decisions` are None where the file does not keep them."""

    kind: str
    parameters: dict[str, Any]
    decisions: int | None
    rounds: int | None
    memory: int
    features: tuple[Feature, ...]
    report: Report | None
    played: tuple[Played, ...]

    def as_dict(self) -> dict[str, Any]:
        """Everything in plain values, ready for JSON.

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
                "played": [each.as_dict() for each in self.played],
            }
        )
        return plain

    def plot(self) -> Figure:
        """Draw the strongest features, and in each context the density and the margins on the way down."""
        from manul.utils import plotting

        if not (self.features or self.played):
            raise ParameterError(
                f"plot must have features or a context to draw; got neither for {self.kind}. Give a context."
            )
        parts = bool(self.features) + sum(1 + (played.route is not None) for played in self.played)
        axes = iter(made := plotting.new_row(parts))
        if self.features:
            strongest = self.features[:SHOWN]
            plotting.feature_bars([each.name for each in strongest], [each.weight for each in strongest], next(axes))
        for played in self.played:
            title = plotting.shortened(json.dumps(played.context, ensure_ascii=False))
            played.distribution.plot(next(axes)).set_title(title)
            if played.route is not None:
                steps = played.route.steps
                names = [f"node {step.node}, {step.side}{' (forced)' if step.forced else ''}" for step in steps]
                drawn = plotting.feature_bars(names, [step.margin for step in steps], next(axes))
                drawn.set_xlabel("margin: left below 0, right above")
                drawn.set_ylabel("level")
                drawn.set_title(f"the way down to leaf {played.route.leaf} of {played.route.leaves:,}")
        return made[0].figure.canvas.figure

    def __str__(self) -> str:
        return text(self)


def inspect(path: str | Path, *contexts: Context) -> Inspection:
    """What was learned by the agent or policy in a file, and what it plays in the contexts.

    >>> import tempfile, manul
    >>> agent = manul.Cats(leaves=8, bandwidth=1/8)
    >>> agent.learn([1.0, 2.0], agent.decide([1.0, 2.0]), loss=0.5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     agent.save(Path(folder, "agent.manul"))
    ...     found = inspect(Path(folder, "agent.manul"), [1.0, 2.0])
    >>> found.kind, found.rounds, len(found.features), len(found.played[0].route.steps)
    ('Cats', 1, 2, 3)
    """
    kind, parameters, arrays = model_files.read(path)
    settings = _settings(parameters)
    agent = model_files.restored(kind, parameters, arrays, name=str(path))
    inside = agent.agent if isinstance(agent, Mapped) else agent
    report = inside.report() if isinstance(inside, Auto) and inside.width is not None else None
    return Inspection(
        kind=kind,
        parameters=settings,
        decisions=getattr(agent, "decisions", None),
        rounds=_rounds(arrays) if report is None else report.rounds,
        memory=getattr(agent, "nbytes", None) or sum(array.nbytes for array in arrays.values()),
        features=_features(inside, _column_names(agent)),
        report=report,
        played=tuple(_played(agent, context) for context in contexts),
    )


def parsed_context(given: str) -> Context:
    """A context as it is written on the command line.

    >>> parsed_context('{"city": "Oslo"}')
    {'city': 'Oslo'}
    """
    try:
        context: Context = json.loads(given)
    except (json.JSONDecodeError, RecursionError):
        context = given
    if not (context is None or isinstance(context, list | dict)):
        raise ParameterError(
            f"""context must be a list or an object in JSON; got {given!r}. Try '[1, 2, 3]' or '{{"city": "Oslo"}}'."""
        )
    return context


def _settings(parameters: model_files.Parameters) -> dict[str, Any]:
    settings = {name: value for name, value in parameters.items() if name not in _NOT_SETTINGS}
    inside = settings.get("agent")
    if isinstance(inside, dict):
        settings["agent"] = {"kind": inside["kind"], **_settings(inside["parameters"])}
    return settings


# Each kind of agent counts its rounds in an array of its own.
def _rounds(arrays: model_files.Arrays) -> int | None:
    for array, index in (("model_history", 1), ("rounds", 0), ("counts", 1)):
        for name in sorted(arrays):
            if name.rpartition(".")[2] == array:
                return int(arrays[name][index])
    return None


def _column_names(agent: object) -> list[str] | None:
    if not (isinstance(agent, Mapped) and isinstance(agent.features, NamesColumns)):
        return None
    known = agent.width is not None or isinstance(agent.features, Columns)
    return agent.features.names(agent.width or 0) if known else None


def _features(agent: object, names: Sequence[str] | None) -> tuple[Feature, ...]:
    """The features that are known by name, strongest first."""
    player = agent.player if isinstance(agent, BaseAgent) else None
    if not isinstance(player, _core.PathPlayer | _core.LinearPlayer):
        return ()
    assert isinstance(agent, BaseAgent)
    assert agent.width is not None
    known = dict(player.names) if agent.named else dict(enumerate(names or map("column {}".format, range(agent.width))))
    shared, root = _weights(player, list(known))
    found = map(Feature, known.values(), shared, root)
    return tuple(sorted(found, key=lambda each: (-abs(each.weight), each.name)))


def _weights(player: _core.PathPlayer | _core.LinearPlayer, features: list[int]) -> tuple[list[float], list[float]]:
    if isinstance(player, _core.PathPlayer):
        return player.weights(0, features), player.weights(1, features)
    weights, columns = player.state()["weights"], player.columns
    return [float(weights[columns.get(feature, feature % len(weights))]) for feature in features], [0.0] * len(features)


def _played(policy: Policy, context: Context) -> Played:
    inside, seen = (policy.agent, policy.mapped(context)) if isinstance(policy, Mapped) else (policy, context)
    return Played(context, policy.distribution(context), _route(inside, seen), _curve(inside, seen))


def _route(agent: object, context: Context) -> Route | None:
    if not (isinstance(agent, BaseAgent) and isinstance(agent.player, _core.PathPlayer)):
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
    """Values as JSON has them: no arrays, and nothing where a number is not finite."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(each) for each in value]
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else None
    return value
