"""A policy on the rows of a log: its densities at the logged actions, and actions that represent it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np
import numpy.typing as npt

from manul.actions.decision import Within
from manul.actions.distributions import Distributions, Windows, distributions_of
from manul.actions.pieces import KnobPieces, Pieces, is_product, pieces_of
from manul.actions.ranges import Actions
from manul.actions.space import UNNAMED, ActionSpace, several_knobs
from manul.errors import InputError, ParameterError
from manul.logs.rows import Rows
from manul.logs.sample import Sample
from manul.offpolicy.evaluation import bandwidth as slope
from manul.offpolicy.evaluation.exact_mass import PolicyTerms
from manul.offpolicy.evaluation.piece_masses import Masses, combine, overlay
from manul.offpolicy.smoothed import Function, Smoothed, SmoothedKnobs, owner_of
from manul.policies.policy import HasSchema, Policy, TellsLevels
from manul.utils.validation import Floats, check_bandwidth

CHECKED = 512  # rows of each piece of a log whose levels are compared with the densities
WRONG = 1e-3  # relative difference of a density that rounding does not explain
AT_EDGES = 0.02  # share of the rows that may be so near the end of a window that rounding decides
DRAWS = 4  # actions per row, at which predicted losses are averaged if actions are no numbers


@runtime_checkable
class Redraws(Protocol):
    """An agent that draws a decision by its number."""

    def decide_many_again(
        self, numbers: npt.ArrayLike, contexts: Any, within: Any = None, *, levels: bool = False
    ) -> Any: ...


@runtime_checkable
class HasRange(Protocol):
    actions: Any


class PolicyOnLog:
    """A policy as estimators see it; densities of other actions than numbers are remembered, because they take a search.

    >>> import manul
    >>> log = manul.simulate(manul.Cats(leaves=8, bandwidth=1/8), manul.worlds.linear(rounds=2)).log
    >>> policy = PolicyOnLog(manul.Cats(leaves=8, bandwidth=1/4, epsilon=0.0))
    >>> policy.densities(Rows.of(log)), policy.largest_densities(Rows.of(log))
    (array([0., 2.]), array([2., 2.]))
    """

    def __init__(self, policy: Any) -> None:
        self.policy, self.space = policy, several_knobs(policy)
        self._known: dict[tuple[int, int], Floats] = {}
        self._latest: tuple[Rows, Pieces | None] | None = None

    @staticmethod
    def of(policy: Policy | Function, sample: Sample, bandwidth: float | Mapping[str, float] | None) -> PolicyOnLog:
        """A policy as it is, or a function of a context smoothed with a bandwidth, by default the choice of SLOPE."""
        if isinstance(policy, Policy):
            if bandwidth is not None:
                raise ParameterError(
                    f"bandwidth applies only to functions of a context, got {bandwidth!r}.", "bandwidth"
                )
            check_space(policy, sample.space)
            return PolicyOnLog(policy)
        if not callable(policy):
            raise ParameterError(
                f"policy must have a method distribution or be a function of a context, got {policy!r}.", "policy"
            )
        if not sample.space.is_number:
            return PolicyOnLog(SmoothedKnobs(policy, sample.space, cast("Mapping[str, float] | None", bandwidth)))
        chosen = "" if bandwidth is not None else " (chosen by SLOPE)"
        width = slope.choose_bandwidth(policy, sample) if bandwidth is None else cast(float, bandwidth)
        return PolicyOnLog(Smoothed(policy, check_bandwidth(width, Actions(*sample.span)), sample.span, chosen))

    @property
    def smoothing(self) -> str:
        """The window around the actions of a function, and how it was chosen; empty if it is not a smoothed function."""
        return self.policy.smoothing if isinstance(self.policy, Smoothed | SmoothedKnobs) else ""

    @property
    def bandwidth(self) -> float | None:
        return self.policy.bandwidth if isinstance(self.policy, Smoothed) else None

    def weights(self, rows: Rows) -> Floats:
        """The importance weight of each row."""
        return self.densities(rows) / rows.densities

    def densities(self, rows: Rows) -> Floats:
        """The density of each logged action."""
        if self.space is None and rows.space.is_number:
            pieces = self.pieces(rows)
            return self._densities(rows) if pieces is None else _densities_at(pieces[UNNAMED], rows.actions)
        place = rows.first, len(rows)
        if place not in self._known:
            check_space(self.policy, rows.space)
            self._known[place] = self._densities(rows)
        return self._known[place]

    def _densities(self, rows: Rows) -> Floats:
        if isinstance(self.policy, SmoothedKnobs):
            return self.policy.densities(rows, self.inputs(rows))
        return self.distributions(rows).density(rows.positions)

    def masses(self, rows: Rows) -> Masses | None:
        """The masses of the policy on the logged pieces; None if a row of the log or the policy has none."""
        pieces, logged = self.pieces(rows), rows.pieces
        if pieces is None or logged is None:
            return None
        knobs = [overlay(pieces[name], logged[name], discrete=knob.is_discrete) for name, knob in rows.space.knobs]
        return combine(knobs, rows.first)

    def exact_terms(self, rows: Rows) -> PolicyTerms | None:
        """What exact-mass intervals need; None if the masses are unknown."""
        masses = self.masses(rows)
        return None if masses is None else PolicyTerms(self.weights(rows), masses)

    def pieces(self, rows: Rows) -> Pieces | None:
        """The pieces of constant density of the policy, if every row of the log has pieces too; None if there are none."""
        if self._latest is None or self._latest[0] is not rows:
            _check_fit(rows)
            pieces = self._pieces(rows) if _all_known(rows.pieces) else None
            self._latest = rows, pieces if _all_known(pieces) else None
        return self._latest[1]

    def _pieces(self, rows: Rows) -> Pieces | None:
        check_space(self.policy, rows.space)
        if not is_product(rows.space):
            return None
        if isinstance(self.policy, SmoothedKnobs):
            levels = self.policy.levels(rows, self.inputs(rows))
        elif isinstance(self.policy, Redraws) and isinstance(self.policy, TellsLevels) and self.policy.tells_levels:
            numbers = np.zeros(len(rows), np.uint64)
            levels = self.policy.decide_many_again(numbers, self.inputs(rows), rows.within, levels=True).levels
        else:
            played = self.distributions(rows)
            return {UNNAMED: played.pieces()} if isinstance(played, Windows) else pieces_of(played)
        return None if levels is None else {name: each.pieces for name, each in levels.items()}

    def largest_densities(self, rows: Rows) -> Floats:
        """The largest density that the policy gives any action, for each row with a single knob; probabilities are at most 1."""
        if rows.space.knobs[0][1].is_discrete:
            return np.ones(len(rows))
        if isinstance(self.policy, SmoothedKnobs):
            return self.policy.largest(rows, self.inputs(rows))
        return self.distributions(rows).largest()

    def knows_largest(self, rows: Rows) -> bool:
        """Whether `largest_densities` takes no search in every row."""
        one_number = rows.space.is_number or isinstance(self.policy, SmoothedKnobs)
        return rows.one_knob and (one_number or rows.space.knobs[0][1].is_discrete)

    def distributions(self, rows: Rows) -> Distributions[Any]:
        """The distribution of each row."""
        return distributions_of(self.policy, self.inputs(rows), rows.within)

    def points(self, rows: Rows) -> tuple[Floats, Floats]:
        """Actions, or positions if they are no numbers, that represent the policy on each row, and their probabilities."""
        if rows.space.is_number:
            return self.distributions(rows).points()
        draws = self._draws(rows)
        return draws, np.full(draws.shape[:2], 1 / DRAWS)

    def _draws(self, rows: Rows) -> Floats:
        """The positions of a few actions per row, drawn from the policy; the same ones in every call."""
        check_space(self.policy, rows.space)
        space, contexts = rows.space, self.inputs(rows)
        count, rng = len(rows), np.random.default_rng(rows.first)
        if isinstance(self.policy, SmoothedKnobs):
            return self.policy.draws(rows, contexts, rng, DRAWS)
        if isinstance(self.policy, Redraws):
            numbers = DRAWS * (rows.first + np.arange(count, dtype=np.uint64))
            again = self.policy.decide_many_again
            drawn = [again(numbers + np.uint64(each), contexts, rows.within).actions for each in range(DRAWS)]
            return np.stack([space.rows(actions, count) for actions in drawn], axis=1)
        draws = [[space.positions(one.sample(rng)) for _ in range(DRAWS)] for one in self.distributions(rows)]
        return np.array(draws).reshape(count, DRAWS, -1)

    def range(self, default: Within) -> Within:
        """The range of the actions of a policy, if they are numbers."""
        number = self.space is None and isinstance(self.policy, HasRange)
        return cast(Within, self.policy.actions) if number else default

    def inputs(self, rows: Rows) -> Any:
        """The contexts for the policy: numbers if they have no names or it takes as many columns, otherwise dicts.

        A method of a policy, such as `agent.best`, gets what the policy gets; other functions get no missing values.
        """
        owner = owner_of(self.policy)
        if owner is None and isinstance(self.policy, Smoothed | SmoothedKnobs):
            return rows.function_inputs()
        return _contexts(self.policy if owner is None else owner, rows)


def _all_known(pieces: Pieces | None) -> bool:
    """Whether every row has pieces of each knob."""
    return pieces is not None and all((np.diff(knob.starts) > 0).all() for knob in pieces.values())


def _check_fit(rows: Rows) -> None:
    """Raise InputError if the pieces of a log are not those of its densities; a look at some of the rows is enough."""
    if not rows.space.is_number or not _all_known(rows.pieces):
        return
    some = rows.select(slice(0, CHECKED))
    assert some.pieces is not None
    densities = _densities_at(some.pieces[UNNAMED], some.actions)
    wrong = np.abs(densities - some.densities) > WRONG * some.densities
    if wrong.mean() > AT_EDGES:
        row = int(np.argmax(wrong))
        found = f"the density {some.densities[row]:g}, and its levels give {densities[row]:g}"
        advice = "Log the levels of each decision, or leave them out."
        raise InputError(
            f"density_levels must fit the logged densities; row {rows.first + row} has {found}. {advice}", "log"
        )


def _densities_at(pieces: KnobPieces, actions: Floats) -> Floats:
    """The density of one action in each row; at an end, that of the denser piece."""
    counts = np.diff(pieces.starts)
    points = np.repeat(actions, counts)
    inside = (pieces.lows <= points) & (points <= pieces.highs)
    densities: Floats = np.maximum.reduceat(np.where(inside, pieces.densities, 0.0), pieces.starts[:-1])
    return densities


def _contexts(policy: object, rows: Rows) -> Any:
    if rows.numbers is not None:
        return rows.numbers
    width = policy.schema.width if isinstance(policy, HasSchema) else None
    if not width:
        return rows.to_dicts()
    if rows.features is None and width == rows.contexts.shape[1]:
        return rows.contexts
    advice = "Train it on named contexts, or put it into a manul.Mapped with manul.maps.Features or Columns."
    raise InputError(
        f"The contexts of the log are named, but the policy takes rows of {width} numbers. {advice}", "policy"
    )


def check_space(policy: object, space: ActionSpace) -> None:
    """Raise ParameterError if a policy does not choose the actions of the log."""
    theirs, ours = several_knobs(policy), None if space.is_number else space
    if theirs == ours:
        return
    if ours is None or theirs is None:
        text = f"The log has the knobs {', '.join(space.titles)}, but the policy sets one number."
        if theirs is not None:
            text = f"A log with one knob takes policies with one knob, but this one sets {', '.join(theirs.titles)}."
        raise ParameterError(text, "policy")
    if theirs.names != ours.names:
        both = f"The log has the knobs {', '.join(ours.titles)}, but the policy sets {', '.join(theirs.titles)}."
        raise ParameterError(both, "policy")
    pairs = zip(ours.titles, ours.knobs, theirs.knobs, strict=True)
    name, own, other = next((name, own, other) for name, (_, own), (_, other) in pairs if own != other)
    text = f"The knob {name} of the log is {own.written()}, but that of the policy is {other.written()}."
    raise ParameterError(text, "policy")
