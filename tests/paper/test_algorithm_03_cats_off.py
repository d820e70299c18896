"""Algorithm 3: progressive estimates, penalties and the chosen cell are those of the literal algorithm."""

import numpy as np
import pytest

import manul
from manul.agents.player_host import host_of
from manul.offpolicy.optimization.replay import draws
from manul.paper import algorithms, off_policy

CELLS = [(1 / 2, 4), (1 / 4, 4), (1 / 4, 16), (1 / 8, 8), (1 / 16, 64)]


@pytest.fixture(scope="module")
def log():
    agent = manul.Cats.paper(leaves=4, bandwidth=1 / 4, epsilon=0.2)
    return manul.simulate(agent, manul.worlds.ds(rounds=400)).log


@pytest.fixture(scope="module")
def examples(log):
    return list(zip(log.contexts, log.actions.tolist(), log.densities.tolist(), log.losses.tolist(), strict=True))


@pytest.fixture(scope="module")
def found(log):
    return manul.optimize(log, grid=manul.offpolicy.Grid(cells=CELLS), rule="paper", penalty=1)


@pytest.mark.parametrize("number", range(len(CELLS)))
def test_progressive_estimates_are_the_papers(found, examples, number):
    h, K = CELLS[number]
    literal = off_policy.progressive_validation(h, K, examples, algorithms.CoinCosts)
    assert found.table.rows[number].estimate == pytest.approx(literal, abs=1e-6)


def test_the_penalty_is_the_papers(found, log):
    for (h, _), row in zip(CELLS, found.table, strict=True):
        assert row.penalty == pytest.approx(off_policy.Pen(row.estimate, 400, log.densities.min(), h, 1.0))
        assert row.objective == row.estimate + row.penalty


@pytest.mark.parametrize("constant", [0.0, 1.0, 10.0])
def test_the_chosen_cell_is_the_papers(log, examples, constant):
    best = manul.optimize(log, grid=manul.offpolicy.Grid(cells=CELLS), rule="paper", penalty=constant)
    literal = off_policy.CATS_Off(examples, log.densities.min(), CELLS, algorithms.CoinCosts, constant)
    assert (best.bandwidth, best.leaves) == literal


def test_the_papers_constant_covers_all_cells(log, found):
    best = manul.optimize(log, grid=manul.offpolicy.Grid(cells=CELLS), rule="paper", penalty="paper", failure=0.1)
    constant = 64 * np.log(4 * 400 * len(CELLS) / 0.1)
    row, practical = best.table.rows[0], found.table.rows[0]
    assert row.estimate == practical.estimate
    assert row.penalty == pytest.approx(off_policy.Pen(row.estimate, 400, log.densities.min(), 1 / 2, constant))


def test_the_drawn_policy_has_learned_the_rounds_before_the_draw(log):
    grid = manul.offpolicy.Grid(cells=[(1 / 4, 16)])
    drawn = manul.optimize(log, grid=grid, rule="paper", draw=True, seed=3, penalty=1).policy
    before = max(each for each in _first(draws(3), 30) if each < 400)
    earlier = manul.optimize(log.rows(slice(before)), grid=grid, rule="paper", penalty=1).policy
    assert 0 < before < 400
    assert {name: array.tobytes() for name, array in host_of(drawn).state().items()} == {
        name: array.tobytes() for name, array in host_of(earlier).state().items()
    }


def test_draws_are_uniform_over_the_rounds():
    last = [max(each for each in _first(draws(seed), 200) if each < 10) for seed in range(4000)]
    counts = np.bincount(last, minlength=10)
    assert (np.abs(counts - 400) < 5 * np.sqrt(400)).all()


def _first(numbers, count):
    return [next(numbers) for _ in range(count)]
