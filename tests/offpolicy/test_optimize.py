"""`optimize` chooses a better policy, and nothing but the log and the settings decides which."""

import numpy as np
import pytest

import manul
from manul.agents.player_host import host_of
from manul.errors import InputError, ParameterError
from manul.offpolicy.optimization import replay


def csv(best, folder):
    best.table.to_csv(folder / "table.csv")
    return (folder / "table.csv").read_bytes()


def state(policy):
    return {name: array.tobytes() for name, array in host_of(policy).state().items()}


def line(**settings):
    return manul.agents.SmoothedGreedy(policies=manul.policies.Linear(), bandwidth=1 / 16, **settings)


def constant(**settings):
    return manul.agents.SmoothedGreedy(policies=manul.policies.Constant(choices=33), bandwidth=1 / 16, **settings)


def test_the_chosen_row_has_the_lowest_objective(log, grid):
    best = manul.optimize(log, grid=grid, penalty=1)
    assert best.chosen.objective == min(row.objective for row in best.table)
    assert (best.policy.bandwidth, best.policy.leaves) == (best.bandwidth, best.leaves)


@pytest.mark.parametrize("rule", ["path", "paper"])
def test_the_estimate_is_what_asking_before_learning_gives(log, rule):
    best = manul.optimize(log, grid=manul.offpolicy.Grid(cells=[(1 / 8, 16)]), rule=rule, penalty=1)
    agent = (manul.Cats if rule == "path" else manul.Cats.paper)(leaves=16, bandwidth=1 / 8, epsilon=0)
    total = 0.0
    for context, action, density, loss in zip(log.contexts, log.actions, log.densities, log.losses, strict=True):
        total += agent.distribution(context).density(action) / density * loss
        agent.learn(context, manul.Decision(action, density), loss)
    assert best.chosen.estimate == pytest.approx(total / len(log), rel=1e-12)
    assert state(best.policy) == state(agent)


@pytest.mark.parametrize(("leaves", "bandwidth"), [(8, 1 / 10), (64, 1 / 40), (1024, 1 / 300), (4, 1 / 4)])
def test_a_route_that_is_not_followed_to_its_end_costs_nothing(log, leaves, bandwidth):
    rng = np.random.default_rng(leaves)
    few = log.rows(slice(600))
    lows, highs = few.actions * rng.uniform(0, 0.5, 600), 1 - (1 - few.actions) * rng.uniform(0, 0.5, 600)
    few = manul.Log(few.contexts, few.actions, few.densities, few.losses, lows, highs)
    best = manul.optimize(few, grid=manul.offpolicy.Grid(cells=[(bandwidth, leaves)]), rule="margin", penalty=1)
    agent = manul.Cats.paper(
        leaves=leaves, bandwidth=bandwidth, epsilon=0, learner=manul.learners.CoinBetting(target="margin")
    )
    total = 0.0
    for row in range(600):
        context, within = few.contexts[row], (lows[row], highs[row])
        action, density, loss = few.actions[row], few.densities[row], few.losses[row]
        total += agent.distribution(context, within).density(action) / density * loss
        agent.learn(context, manul.Decision(action, density, within), loss)
    assert best.chosen.estimate == pytest.approx(total / 600, rel=1e-12)
    assert state(best.policy) == state(agent)


@pytest.mark.parametrize("draw", [False, True])
def test_threads_and_batches_change_nothing(log, grid, tmp_path, monkeypatch, draw):
    whole = manul.optimize(log, grid=grid, threads=1, draw=draw, penalty=1)
    monkeypatch.setattr(replay, "PIECE", 100)
    batches = (log.rows(slice(first, first + 77)) for first in range(0, len(log), 77))
    streamed = manul.optimize(batches, grid=grid, threads=3, draw=draw, penalty=1)
    assert csv(whole, tmp_path) == csv(streamed, tmp_path)
    assert state(whole.policy) == state(streamed.policy)


def test_ranges_scale_with_the_actions_and_losses(log):
    grid = manul.offpolicy.Grid(cells=[(1 / 8, 16)])
    wide = manul.Log(log.contexts, log.actions * 32 - 8, log.densities / 32, log.losses * 4 - 1)
    ours, theirs = (
        manul.optimize(log, grid=grid, penalty=1),
        manul.optimize(wide, grid=grid, actions=(-8, 24), losses=(-1, 3), penalty=1),
    )
    assert theirs.bandwidth == 32 * ours.bandwidth
    assert theirs.chosen.estimate == pytest.approx(4 * ours.chosen.estimate - 1)
    assert theirs.chosen.penalty == pytest.approx(4 * ours.chosen.penalty)


def test_other_candidates_compete_with_trees(log):
    grid = manul.offpolicy.Grid(cells=[(1 / 16, 4)], others={"line": line, "constant": constant})
    best = manul.optimize(log, grid=grid, penalty=1)
    assert [row.candidate for row in best.table] == ["Cats", "line", "constant"]
    assert [row.leaves for row in best.table] == [4, None, None]
    assert type(best.policy).__name__ in ("Cats", "SmoothedGreedy")


def test_a_candidate_in_python_pays_as_a_native_one(log):
    class Python:
        def start(self, width, actions, bandwidth):
            return manul.policies.Linear().start(width, actions, bandwidth)

    def slow(**settings):
        return manul.agents.SmoothedGreedy(policies=Python(), bandwidth=1 / 16, **settings)

    native, python = manul.optimize(
        log.rows(slice(500)), grid=manul.offpolicy.Grid(others={"native": line, "python": slow}), penalty=1
    ).table
    assert python.estimate == pytest.approx(native.estimate, rel=1e-12)


def test_ranges_of_the_rounds_are_kept():
    world = manul.worlds.ranges(rounds=300)
    run = manul.simulate(manul.Cats(leaves=8, bandwidth=1 / 32, epsilon=0.2), world)
    best = manul.optimize(run.log, grid=manul.offpolicy.Grid(cells=[(1 / 32, 64)]), penalty=1)
    within = float(run.log.lows[0]), float(run.log.highs[0])
    assert best.policy.distribution(run.log.contexts[0], within).edges[0] >= within[0]


def test_the_policy_is_read_again_as_it_was_saved(log, grid, tmp_path):
    best = manul.optimize(log, grid=grid, penalty=1)
    best.save(tmp_path / "best.manul")
    loaded = manul.load(tmp_path / "best.manul")
    assert state(loaded) == state(best.policy)
    assert (tmp_path / "best.csv").read_bytes() == csv(best, tmp_path)


def test_a_plot_has_its_table(log, grid, tmp_path):
    best = manul.optimize(log, grid=grid, penalty=1)
    manul_plots = pytest.importorskip("manul.plotting")
    manul_plots.save(best.plot(), tmp_path / "map.png")
    written = (tmp_path / "map.csv").read_text()
    assert all(f"{row.objective!r}" in written for row in best.table)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"penalty": -1}, "penalty must be at least 0 and finite, got -1"),
        ({"penalty": "small"}, "penalty must be at least 0"),
        ({"engine": "spark"}, "engine must be 'local' or 'ray', got 'spark'"),
        ({"threads": 0}, "threads must be a whole number of at least 1, got 0"),
        (
            {
                "grid": manul.offpolicy.Grid(
                    others={"discrete": lambda **each: manul.agents.DiscreteTree(leaves=4, **each)}
                )
            },
            "candidates must have a bandwidth above 0",
        ),
    ],
)
def test_settings_that_cannot_work_are_refused(log, settings, sentence):
    with pytest.raises(ParameterError, match=sentence):
        manul.optimize(log, **settings)


def test_an_empty_log_is_refused(log, grid):
    for empty in (log.rows(slice(0)), iter(())):
        with pytest.raises(InputError, match="log has no rows"):
            manul.optimize(empty, grid=grid, penalty=1)


@pytest.mark.parametrize(("column", "value"), [("densities", 0.0), ("losses", 1.5), ("actions", -0.1)])
def test_a_row_that_cannot_be_used_is_named(log, grid, column, value):
    columns = {name: getattr(log, name).copy() for name in ("contexts", "actions", "densities", "losses")}
    columns[column][20] = value
    with pytest.raises(InputError, match=rf"got {value:g} in row 20"):
        manul.optimize(manul.Log(**columns), grid=grid, penalty=1)


def test_a_bandwidth_too_wide_for_a_round_is_refused(log):
    narrow = manul.Log(log.contexts, log.actions, log.densities, log.losses, log.actions - 0.1, log.actions + 0.1)
    inside = narrow.rows(np.flatnonzero((log.actions > 0.1) & (log.actions < 0.9)))
    with pytest.raises(InputError, match=r"within must be at least two bandwidths \(.*\) wide"):
        manul.optimize(inside, grid=manul.offpolicy.Grid(cells=[(1 / 4, 8)]), penalty=1)


def test_decisions_that_a_budget_has_cut_can_be_left_out():
    outcome = manul.Outcome(better="high", range=(-40, 60), formula="(value - action) * won", parts=manul.Bid().parts)
    rng, agent = (
        np.random.default_rng(0),
        manul.Auto(actions=(0, 40), outcome=outcome, spend_at_most=("won * action", 300.0, 40)),
    )
    contexts, decisions, parts = rng.random((400, 2)), [], []
    for context in contexts:
        decisions.append(agent.decide(context))
        won = bool(decisions[-1].action > 20 * context[0])
        parts.append({"won": won, "value": 30.0 if won else np.nan})
        agent.learn(context, decisions[-1], parts={name: value for name, value in parts[-1].items() if value == value})
    told = {name: [each[name] for each in parts] for name in ("won", "value")}
    log = manul.Log(contexts, decisions, parts=told, outcome=outcome, action_range=(0, 40))
    with pytest.raises(
        InputError, match=r"in the log. Leave such decisions out: log.rows\(log.highs - log.lows >= 10\)"
    ):
        manul.optimize(log)
    assert manul.optimize(log.rows(log.highs - log.lows >= 10)).policy is not None
