"""Inspects a saved agent or policy: its settings, the weights of its features, and its policy in given contexts."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import date, time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from manul import _core
from manul.actions.distribution import Atoms, Distribution
from manul.actions.space import several_knobs
from manul.agents import Auto, Mapped, Rollout
from manul.agents.auto_knobs import AutoKnobs
from manul.agents.base import BaseAgent
from manul.agents.critic_report import Report
from manul.agents.player_host import host_of, seen_by
from manul.agents.policy_player import PolicyPlayer
from manul.contexts.maps import Columns, NamesColumns
from manul.contexts.schema import Context
from manul.errors import ParameterError
from manul.inspection.data_files import read_contexts
from manul.inspection.feature_effects import Effects, effects
from manul.inspection.knobs_in_context import KnobsInContext, knobs_figure, knobs_in_context
from manul.inspection.text import FEATURES_SHOWN, text
from manul.outcomes import LOSSES, Outcome, outcome_of
from manul.policies.policy import Policy
from manul.utils import model_files
from manul.utils.html_cards import text_block

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

EFFECTS_DRAWN = 6  # per knob
_NOT_SETTINGS = ("names", "width", "mapped_width")  # parameters of a file that the user does not set


@dataclass(frozen=True)
class Feature:
    """The weight of a feature: in a tree, the weight that all nodes share plus the root's own.

    Weights of numeric features are per standard deviation, those of other features for presence. A weight does not tell the
    direction of the effect on the action, because other nodes and features have weights too: see `manul.inspection.effects`.
    """

    name: str
    shared: float
    root: float

    @property
    def weight(self) -> float:
        return self.shared + self.root


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
    """The policy in one context; `curve` is the loss that Auto predicts for each action. Texts and plots show the `outcome`."""

    context: Context
    distribution: Distribution | Atoms
    route: Route | None
    curve: tuple[tuple[float, float], ...] | None
    outcome: Outcome = LOSSES

    @property
    def outcomes(self) -> tuple[tuple[float, float], ...] | None:
        """The curve as it is shown: the predicted loss, or reward, of each action."""
        if self.curve is None:
            return None
        return tuple((action, self.outcome.from_loss(loss)) for action, loss in self.curve)

    @property
    def window(self) -> tuple[float, float]:
        """The interval with the highest density."""
        return self.distribution.densest()

    @property
    def density(self) -> float:
        """The density inside the window."""
        return self.distribution.density(self.window[0])

    @property
    def panels(self) -> int:
        """The number of axes that `plot` needs."""
        return 1 + (self.curve is not None) + (self.route is not None)

    def plot_curve(self, axes: Axes) -> Axes:
        """Draw the predicted loss, or reward, of each action, and the middle of the window."""
        from manul.plotting import knob_plots

        assert self.outcomes is not None
        actions, outcomes = zip(*self.outcomes, strict=True)
        middle = sum(self.window) / 2
        best = middle, float(np.interp(middle, actions, outcomes))
        drawn = knob_plots.loss_plot(actions, outcomes, best, axes, outcome=self.outcome)
        drawn.set_xlabel("action")
        # The policy plays it, whether or not it is the best action.
        drawn.lines[-1].set_label("_middle of the window")
        return drawn

    def plot(self, panels: Iterator[Axes]) -> None:
        """Draw the predicted loss or reward of Auto, the density and the margins along the path of a tree on the next axes."""
        from manul import plotting

        title = plotting.shorten(json.dumps(self.context, ensure_ascii=False, default=str))
        if self.curve is not None:
            self.plot_curve(next(panels)).set_title(title)
        self.distribution.plot(next(panels)).set_title(title)
        if self.route is not None:
            steps = self.route.steps
            names = [f"node {step.node}, {step.side}{' (forced)' if step.forced else ''}" for step in steps]
            bars = plotting.feature_bars(names, [step.margin for step in steps], next(panels))
            bars.set_xlabel("margin (left if negative, right if positive)")
            bars.set_ylabel("level")
            bars.set_title(f"path to leaf {self.route.leaf} of {self.route.leaves:,}")

    def as_dict(self) -> dict[str, Any]:
        """Return all fields as plain values."""
        return {
            "context": self.context,
            "window": self.window,
            "density": self.density,
            "expected_action": self.distribution.mean(),
            "distribution": asdict(self.distribution),
            "route": None if self.route is None else asdict(self.route),
            "curve": self.curve,
            **({"reward_curve": self.outcomes} if self.outcome.higher else {}),
        }


@dataclass(frozen=True)
class Inspection:
    """The contents of a file; `rounds` and `decisions` are None if the file does not record them.

    `memory` is the size of the learned state in bytes, `features` are weights, `report` is the state of `Auto`, `played` the
    policy in each of the given contexts, and `effects` those of the features, one for each knob with numbers.
    Texts and plots show the `outcome` that the agent learns from.
    """

    kind: str
    parameters: dict[str, Any]
    decisions: int | None
    rounds: int | None
    memory: int
    features: tuple[Feature, ...]
    report: Report | None
    played: tuple[PolicyInContext | KnobsInContext, ...]
    effects: tuple[Effects, ...] = ()
    outcome: Outcome = LOSSES

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
                "features": [{**asdict(each), "weight": each.weight} for each in self.features],
                "report": None if self.report is None else asdict(self.report),
                "played": [policy.as_dict() for policy in self.played],
                "effects": [asdict(each) for each in self.effects],
            }
        )
        return plain

    def plot(self) -> Figure:
        """Plot the strongest features, the effects of features, and for each context the predicted loss or reward and the
        density.

        Trees have the margins along the path of a context. Several knobs have their distributions and the prediction along
        each.
        """
        if not (self.features or self.effects or self.played):
            raise ParameterError(
                f"nothing to plot: {self.kind} has no feature weights and no context was given. Pass one, or use --context.",
                "plot",
            )
        several = [policy for policy in self.played if isinstance(policy, KnobsInContext)]
        return knobs_figure(several) if several else self._plot_one_knob()

    def _plot_one_knob(self) -> Figure:
        from manul import plotting

        played = [policy for policy in self.played if isinstance(policy, PolicyInContext)]
        drawn = sum(min(len(effects), EFFECTS_DRAWN) for effects in self.effects)
        count = bool(self.features) + drawn + sum(policy.panels for policy in played)
        panels = plotting.new_grid(count, 3)
        axes = iter(panels)
        if self.features:
            strongest = self.features[:FEATURES_SHOWN]
            weights = [feature.weight for feature in strongest]
            plotting.feature_bars([feature.name for feature in strongest], weights, next(axes))
        for each in self.effects:
            each.plot(EFFECTS_DRAWN, axes)
        for policy in played:
            policy.plot(axes)
        return panels[0].figure.canvas.figure

    def _repr_html_(self) -> str:
        return text_block(self)

    def __str__(self) -> str:
        return text(self)


def inspect(
    path: str | Path, *contexts: Context, data: str | Path | None = None, data_format: str | None = None
) -> Inspection:
    """Inspect the agent or policy in a file, its policy in the given contexts, and the effects of its features over a table.

    `data` is a file with contexts, a table or a log, whose other columns are ignored; its format is that of its
    suffix, or `data_format`, such as "vw".

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
    report = inside.report() if isinstance(inside, Auto) and seen_by(inside).width is not None else None
    return Inspection(
        kind=kind,
        parameters=settings,
        decisions=_decisions(agent),
        rounds=_rounds(inside) if report is None else report.rounds,
        memory=getattr(agent, "nbytes", None) or sum(array.nbytes for array in arrays.values()),
        features=_features(inside, _column_names(agent)),
        report=report,
        played=tuple(policy_in_context(agent, context) for context in contexts),
        effects=() if data is None else _effects(agent, data, data_format),
        outcome=outcome_of(inside),
    )


def _effects(policy: Any, data: str | Path, data_format: str | None) -> tuple[Effects, ...]:
    table, knobs = read_contexts(data, policy, data_format), several_knobs(policy)
    if knobs is None:
        return (effects(policy, table),)
    return tuple(effects(policy, table, knob=name) for name, knob in knobs.knobs if not knob.is_option)


def parse_context(given: str) -> Context:
    """Parse a context from the command line."""
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


def _decisions(agent: object) -> int | None:
    if isinstance(agent, Mapped):
        return _decisions(agent.agent)
    if isinstance(agent, Rollout):
        return agent.decisions
    return host_of(agent).decisions if isinstance(agent, BaseAgent) else None


def _rounds(agent: object) -> int | None:
    """The number of rounds that the agent has learned from, or None for the trees of the paper, which do not count them."""
    player = host_of(agent).player if isinstance(agent, BaseAgent) else None
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
    known = agent.schema.width is not None or isinstance(agent.features, Columns)
    return agent.features.names(agent.schema.width or 0) if known else None


def _features(agent: object, names: Sequence[str] | None) -> tuple[Feature, ...]:
    player = host_of(agent).player if isinstance(agent, BaseAgent) else None
    if not isinstance(player, _core.CatsPlayer | _core.LinearPlayer):
        return ()
    width, named = seen_by(agent)
    known = dict(player.names) if named else dict(enumerate(names or map("column {}".format, range(width or 0))))
    shared, root = _weights(player, list(known))
    features = map(Feature, known.values(), shared, root)
    return tuple(sorted(features, key=lambda feature: (-abs(feature.weight), feature.name)))


def _weights(player: _core.CatsPlayer | _core.LinearPlayer, features: list[int]) -> tuple[list[float], list[float]]:
    if isinstance(player, _core.CatsPlayer):
        return player.weights(0, features), player.weights(1, features)
    weights, columns = player.state()["weights"], player.columns
    return [float(weights[columns.get(feature, feature % len(weights))]) for feature in features], [0.0] * len(features)


def policy_in_context(policy: Any, context: Context) -> PolicyInContext | KnobsInContext:
    """What a policy plays in a context, and why."""
    inside, seen = (policy.agent, policy.map(context)) if isinstance(policy, Mapped) else (policy, context)
    if isinstance(inside, AutoKnobs):
        return knobs_in_context(inside, seen, shown=context)
    distribution = policy.distribution(context)  # first, because it rejects contexts that do not fit
    return PolicyInContext(context, distribution, _route(inside, seen), _curve(inside, seen), outcome_of(inside))


def plot_context(policy: Policy | AutoKnobs | Mapped, context: Context) -> Figure:
    """Draw the loss, or reward, that the policy predicts for each action in a context, if it is an `Auto`, and the density.

    With several knobs, each knob has its panels, and the prediction along a knob is that with the others at their best.

    >>> import manul
    >>> agent = manul.Auto(actions=(10, 50))
    >>> decision = agent.decide([0.5])
    >>> [axes.get_ylabel() for axes in plot_context(agent, [0.5]).axes]
    ['predicted loss', 'density']
    """
    from manul import plotting

    played = policy_in_context(policy, context)
    if isinstance(played, KnobsInContext):
        return knobs_figure([played])
    if played.curve is None:
        return played.distribution.plot().figure.canvas.figure
    upper, lower = plotting.new_column(2)
    title = plotting.shorten(json.dumps(played.context, ensure_ascii=False, default=str))
    played.plot_curve(upper).set_title(f"{title}; the dot is the middle of the window", loc="left")
    upper.set_xlabel("")
    played.distribution.plot(lower)
    return upper.figure.canvas.figure


def _route(agent: object, context: Context) -> Route | None:
    if not (isinstance(agent, BaseAgent) and isinstance(host_of(agent).player, _core.CatsPlayer)):
        return None
    player, seen = host_of(agent).player_and_context(agent, context)
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
    return value.isoformat() if isinstance(value, date | time) else value
