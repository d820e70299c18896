"""Every world with a known optimum: nobody beats it, one seed gives one world, nonsense is refused."""

import re

import numpy as np
import pytest
from scipy.stats import norm

import manul
from manul import worlds
from manul.errors import ParameterError
from manul.worlds.optimum import Expected

MAKERS = {
    "linear": worlds.linear,
    "valleys": worlds.valleys,
    "crossed": lambda **settings: worlds.valleys(dependency="crossed", **settings),
    "cliff": worlds.cliff,
    "steep cliff": lambda **settings: worlds.cliff(steep=True, **settings),
    "smooth": worlds.smooth,
    "ranges": worlds.ranges,
    "drift": worlds.drift,
    "opposite": lambda **settings: worlds.drift(jump="opposite", **settings),
    "turning": worlds.turning,
    "season": worlds.season,
    "far valley": worlds.far_valley,
    "noise": worlds.noise,
    "realizable": worlds.realizable,
}
CURVES = [name for name in MAKERS if name != "linear"]
every_world = pytest.mark.parametrize("name", MAKERS)


def played(world, centres, bandwidth, rng):
    """The losses of windows around the centres, moved into each round's range, and their standard error."""
    table = world.table((0.0, 1.0))
    lows, highs = (0.0, 1.0) if table.lows is None else (table.lows, table.highs)
    inside = np.clip(centres, lows + bandwidth, highs - bandwidth)
    losses = world.losses(inside + rng.uniform(-bandwidth, bandwidth, len(world)), (0.0, 1.0))
    return losses.mean(), losses.std() / np.sqrt(len(world))


@every_world
def test_one_seed_gives_one_world(name):
    one, two, other = (MAKERS[name](rounds=50, seed=seed) for seed in (3, 3, 4))
    actions = np.linspace(0, 1, 50)
    assert np.array_equal(one.contexts, two.contexts)
    assert np.array_equal(one.losses(actions, (0, 1)), two.losses(actions, (0, 1)))
    assert not np.array_equal(one.contexts, other.contexts)


@every_world
@pytest.mark.parametrize("bandwidth", [1 / 64, 1 / 8])
def test_no_simple_policy_beats_the_optimum(name, bandwidth, rng):
    world = MAKERS[name](rounds=4000)
    best = world.optimum(bandwidth=bandwidth, epsilon=0.0)
    for centres in (rng.random(4000), np.full(4000, 0.3), np.full(4000, 0.5), 0.5 + 0.2 * world.contexts[:, 0]):
        mean, error = played(world, centres, bandwidth, rng)
        assert mean > best - 3 * error


@every_world
def test_the_best_constant_lies_between_the_optimum_and_exploring(name):
    world = MAKERS[name](rounds=500)
    constant = world.best_constant(bandwidth=1 / 16, epsilon=0.1)
    assert world.optimum(bandwidth=1 / 16, epsilon=0.1) <= constant + 1e-9
    assert constant < world.best_constant(bandwidth=1 / 16, epsilon=1.0)


@pytest.mark.parametrize("name", CURVES)
def test_the_clairvoyant_loses_the_optimum(name, rng):
    world = MAKERS[name](rounds=2000)
    expected, shares = world._expected, np.linspace(0, 1, 801)
    centres = np.outer(expected.highs - expected.lows - 1 / 16, shares) + expected.lows[:, None] + 1 / 32
    best = centres[np.arange(2000), expected.windows(centres, 1 / 32).argmin(axis=1)]
    mean, error = played(world, best, 1 / 32, rng)
    assert mean == pytest.approx(world.optimum(bandwidth=1 / 32, epsilon=0.0), abs=4 * error)


@pytest.mark.parametrize("name", CURVES)
def test_losses_lie_in_the_unit_interval_and_average_to_what_is_expected(name):
    world = MAKERS[name](rounds=4000)
    assert world.values.min() >= 0
    assert world.values.max() <= 1
    assert np.abs((world.values - world.expected).mean()) < 4 * (world.values - world.expected).std() / np.sqrt(4000)


def test_the_best_bandwidth_of_smooth_is_eight_times_that_of_cliff():
    losses = {}
    for name in ("smooth", "cliff"):
        agents = [manul.Cats(leaves=256, bandwidth=h, seed=s) for h in (1 / 8, 1 / 64) for s in range(4)]
        runs = manul.worlds.simulate_many(agents, MAKERS[name](rounds=30_000))
        losses[name] = np.reshape([run.mean_loss for run in runs], (2, 4)).mean(axis=1)
    assert losses["smooth"][0] < losses["smooth"][1]
    assert losses["cliff"][0] > losses["cliff"][1]


def test_at_every_node_of_the_realizable_world_a_threshold_tells_the_better_side():
    world = worlds.realizable(rounds=2000)
    rounds = np.unique(world.contexts[:, 0], return_index=True)[1]
    expected = Expected(world.positions[rounds], world.expected[rounds], np.zeros(64), np.ones(64))
    for leaves, bandwidth in ((8, 1 / 8), (64, 1 / 8), (64, 1 / 32)):
        centres = (np.arange(leaves) + 0.5) / leaves
        reachable = centres[(centres >= bandwidth) & (centres <= 1 - bandwidth)]
        smoothed = expected.windows(np.tile(reachable, (64, 1)), bandwidth)
        for cut in range(1, smoothed.shape[1]):
            left, right = smoothed[:, :cut].min(axis=1), smoothed[:, cut:].min(axis=1)
            better = np.sign(np.round(left - right, 12))
            assert (np.diff(better[better != 0]) >= 0).all()


def test_the_valleys_of_the_realizable_world_lie_where_they_are_put():
    middle = worlds.realizable(rounds=2000, best=(0.25, 0.75)).positions[:, 1]
    assert (middle.min(), middle.max()) == (0.25 + 1 / 256, 0.75 - 1 / 256)


@pytest.mark.parametrize("best", [(0.7, 0.3), (-0.1, 0.5), (0.5, 1.5), 0.5])
def test_valleys_outside_the_range_are_refused(best):
    with pytest.raises(ParameterError, match="best must be"):
        worlds.realizable(rounds=10, best=best)


@every_world
@pytest.mark.parametrize("rounds", [0, -1, 2.5, None])
def test_rounds_that_are_no_count_are_refused(name, rounds):
    sentence = f"rounds must be a whole number of at least 1, got {rounds!r}. Try 10000."
    with pytest.raises(ParameterError, match=re.escape(sentence)):
        MAKERS[name](rounds=rounds)


@pytest.mark.parametrize("name", [name for name in MAKERS if name != "realizable"])
def test_a_negative_width_is_refused(name):
    with pytest.raises(ParameterError, match=re.escape("width must be a whole number of at least 1, got -2. Try 5.")):
        MAKERS[name](rounds=10, width=-2)


@every_world
@pytest.mark.parametrize("setting", [{"bandwidth": 0}, {"bandwidth": 0.6}, {"epsilon": 2}])
def test_an_optimum_that_nobody_could_play_is_refused(name, setting):
    world = MAKERS[name](rounds=10)
    for question in (world.optimum, world.best_constant):
        with pytest.raises(ParameterError, match="must be in"):
            question(**{"bandwidth": 0.1, "epsilon": 0.1, **setting})


def test_a_bandwidth_wider_than_a_narrowed_round_is_refused():
    with pytest.raises(ParameterError, match="bandwidth must be at most half the narrowest range"):
        worlds.ranges(rounds=100).optimum(bandwidth=0.4, epsilon=0.0)


def test_unknown_valleys_are_refused():
    with pytest.raises(ParameterError, match="dependency must be 'linear' or 'crossed', got 'round'"):
        worlds.valleys(rounds=10, dependency="round")
    with pytest.raises(ParameterError, match="valleys must be a whole number from 2 to 64, got 1"):
        worlds.valleys(rounds=10, valleys=1)


def direction(contexts, best):
    """Of the contexts, the direction along which a valley moves; and how far it lies from a function of that alone."""
    score = norm.ppf(best)
    found, _, _, _ = np.linalg.lstsq(contexts, score, rcond=None)
    return found, np.abs(contexts @ found - score).max()


def test_the_valley_turns_at_half_time_and_is_as_simple_as_before():
    world = worlds.drift(rounds=1000, seed=1)
    halves = [direction(world.contexts[half], world.positions[half, 1]) for half in (slice(500), slice(500, None))]
    (before, rest), (after, later_rest) = halves
    assert max(rest, later_rest) < 1e-4
    assert before @ after < 0.9 * np.sqrt((before @ before) * (after @ after))


def test_the_valley_jumps_to_where_it_was_worst():
    world = worlds.drift(rounds=1000, jump="opposite", seed=1)
    before, _ = direction(world.contexts[:500], world.positions[:500, 1])
    later = norm.cdf(world.contexts[500:] @ before)
    assert world.positions[500:, 1] == pytest.approx((later + 0.5) % 1, abs=1e-4)


def test_an_unknown_jump_is_refused():
    with pytest.raises(ParameterError, match="jump must be 'turned' or 'opposite', got 'up'"):
        worlds.drift(rounds=10, jump="up")


def test_the_valley_turns_a_little_in_a_thousandth_of_the_period_and_over_in_half_of_it():
    world = worlds.turning(rounds=1100, period=1000, seed=1)
    slow = worlds.turning(rounds=1100, period=10**9, seed=1)
    scores, first_scores = norm.ppf(world.positions[:, 1]), norm.ppf(slow.positions[:, 1])
    assert scores[[500, 1000]] == pytest.approx([-first_scores[500], first_scores[1000]], abs=1e-4)
    assert np.abs(scores[:3] - first_scores[:3]).max() < 0.05


def test_the_valley_of_each_season_lies_where_it_lay_a_period_ago():
    world = worlds.season(rounds=3000, period=1000, seed=1)
    months = world.positions[:, 1].reshape(3, 10, 100).mean(axis=2)
    assert months[0] == pytest.approx(months[2], abs=0.1)
    assert months[:, 2] - months[:, 7] == pytest.approx(np.full(3, 0.5), abs=0.1)


def test_the_far_valley_opens_at_half_time_and_changes_nothing_nearby():
    world = worlds.far_valley(rounds=1000)
    assert np.array_equal(world.expected[:500, 1:4], world.expected[500:, 1:4])
    assert (world.positions[:, 3] >= 0.4).all()
    assert [world.expected[half].min(axis=1).mean() for half in (slice(500), slice(500, None))] == pytest.approx(
        [0.3, 0.1]
    )


@pytest.mark.parametrize("make", [worlds.turning, worlds.season])
def test_a_period_that_is_no_count_is_refused(make):
    with pytest.raises(ParameterError, match=r"period must be a whole number of at least 2, got 0\.5"):
        make(rounds=10, period=0.5)


def test_one_number_has_no_directions_to_turn_through():
    with pytest.raises(ParameterError, match=r"width must be a whole number of at least 2, got 1\. Try 5\."):
        worlds.turning(rounds=10, width=1)
