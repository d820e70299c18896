"""Exact-mass intervals are those of the literal computation, and hold on worlds with a known answer."""

import numpy as np
import pytest

from manul.actions.pieces import KnobPieces
from manul.offpolicy.evaluation import piece_masses
from manul.offpolicy.evaluation.exact_mass import BOUNDS, ExactMass, PolicyTerms
from manul.offpolicy.evaluation.piece_masses import combine, overlay
from tests.twins import exact_mass as twin

ROWS = 60


def random_pieces(rng, most, *, discrete=False):
    """Distributions of up to `most` pieces on [0, 1], or on ten options."""
    rows = []
    for _ in range(ROWS):
        count = int(rng.integers(1, most + 1))
        if discrete:
            cuts = np.sort(rng.choice(np.arange(1, 10), count - 1, replace=False))
            lows, highs = np.append(0, cuts), np.append(cuts, 10) - 1.0
            lengths = highs - lows + 1
        else:
            edges = np.concatenate([[0.0], np.sort(rng.random(count - 1)), [1.0]])
            lows, highs, lengths = edges[:-1], edges[1:], np.diff(edges)
        shares = rng.dirichlet(np.full(count, 0.5)) + 1e-3
        rows.append([*zip(lows, highs, shares / shares.sum() / lengths, strict=True)])
    return KnobPieces.of_rows(rows)


def drawn(logged, rng):
    """An action of each row."""
    actions = []
    for row in range(len(logged)):
        lows, highs, densities = np.array(logged.row(row)).T
        masses = densities * (highs - lows)
        piece = rng.choice(len(masses), p=masses / masses.sum())
        actions.append(rng.uniform(lows[piece], highs[piece]))
    return np.array(actions)


def density(pieces, actions):
    rows = (pieces.row(row) for row in range(len(pieces)))
    return np.array([sum(d for low, high, d in row if low <= a < high) for row, a in zip(rows, actions, strict=True)])


@pytest.fixture(scope="module", params=range(4))
def case(request):
    """The pieces of a policy and of a log, with actions and losses."""
    rng = np.random.default_rng(request.param)
    target, logged = random_pieces(rng, 4), random_pieces(rng, 4)
    actions = drawn(logged, rng)
    losses = (rng.random(ROWS) < actions).astype(float) if request.param % 2 else actions**2
    weights = density(target, actions) / density(logged, actions)
    rows = [twin.cells(target.row(row), logged.row(row)) for row in range(ROWS)]
    return target, logged, weights, losses, rows


@pytest.mark.parametrize("discrete", [False, True])
def test_the_cells_of_one_knob_are_those_of_all_pairs_of_pieces(discrete):
    rng = np.random.default_rng(5)
    target, logged = (random_pieces(rng, 5, discrete=discrete) for _ in range(2))
    masses = overlay(target, logged, discrete=discrete)
    literal = [twin.cells(target.row(row), logged.row(row), discrete=discrete) for row in range(ROWS)]
    assert np.column_stack([masses.weights, masses.masses]) == pytest.approx(
        np.array([cell[:2] for row in literal for cell in row])
    )
    assert masses.covered(np.inf) == pytest.approx(np.ones(ROWS))


def test_the_cells_of_several_knobs_are_all_combinations():
    rng = np.random.default_rng(6)
    pairs = [(random_pieces(rng, 3), random_pieces(rng, 3)) for _ in range(3)]
    joint = combine([overlay(*pair) for pair in pairs], first=0)
    for row in range(ROWS):
        literal = twin.product([twin.cells(target.row(row), logged.row(row)) for target, logged in pairs])
        for bound in (0.5, 2.0, 20.0):
            assert joint.covered(bound)[row] == pytest.approx(twin.covered(literal, bound))


def test_drawn_cells_cover_the_right_mass_on_average(monkeypatch):
    rng = np.random.default_rng(7)
    pairs = [(random_pieces(rng, 4), random_pieces(rng, 4)) for _ in range(3)]
    knobs = [overlay(*pair) for pair in pairs]
    exact = combine(knobs, first=0).covered(2.0)
    monkeypatch.setattr(piece_masses, "MOST_CELLS", 1)
    drawn = np.array([combine(knobs, first=first).covered(2.0) for first in range(100)])
    assert drawn.mean(axis=0) == pytest.approx(exact, abs=0.03)
    assert np.mean(drawn.mean(axis=0) - exact) == pytest.approx(0, abs=0.003)


def test_the_bound_is_the_cheapest(case):
    target, logged, weights, losses, rows = case
    exact = ExactMass()
    exact.add(losses, PolicyTerms(weights, overlay(target, logged)))
    chosen = twin.choose_bound(rows, BOUNDS, ROWS)
    largest = max(cell[0] for row in rows for cell in row if cell[0] <= chosen)
    assert exact.bound == pytest.approx(largest)
    assert exact.uncovered == pytest.approx(np.mean([1 - twin.covered(row, chosen) for row in rows]))


@pytest.mark.parametrize("against", ["nothing", "logged"])
def test_the_interval_is_the_literal_one(case, against):
    target, logged, weights, losses, rows = case
    exact = ExactMass(against)
    exact.add(losses, PolicyTerms(weights, overlay(target, logged)))
    versus = against == "logged"
    table = twin.moments(rows, weights, losses, twin.choose_bound(rows, BOUNDS, ROWS), logged=versus)
    assert exact.ends(0.9) == pytest.approx(
        twin.interval(table, exact.bound, losses, logged=versus, level=0.9), abs=2e-3
    )


def test_the_interval_with_predictions_is_the_literal_one(case):
    target, logged, weights, losses, rows = case
    rng = np.random.default_rng(8)
    curves, predicted = rng.random(len(target.lows)), rng.random(ROWS)
    exact = ExactMass("logged")
    exact.add(losses, PolicyTerms(weights, overlay(target, logged), predicted, curves))
    each = [curves[target.starts[row] : target.starts[row + 1]] for row in range(ROWS)]
    bound = twin.choose_bound(rows, BOUNDS, ROWS)
    table = twin.moments(rows, weights, losses, bound, logged=True, predictions=predicted, curves=each)
    assert exact.ends(0.9) == pytest.approx(twin.interval(table, exact.bound, losses, logged=True, level=0.9), abs=2e-3)
