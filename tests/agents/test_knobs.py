"""Auto with several knobs: exact densities, the native search against its twin, replay, limits and bad input."""

import functools
import hashlib
import itertools
import os
import subprocess
import sys

import numpy as np
import pytest

import manul
from manul import _core
from manul.actions.decision import Decision
from manul.agents.player_host import host_of
from manul.errors import InputError, ParameterError
from manul.utils import model_files
from manul.worlds import several
from tests.twins import early
from tests.twins import knobs as twin

SPACES = {
    "one": {"a": (0, 1)},
    "two": {"price": (10, 50), "discount": (0, 0.3)},
    "three": {"a": (-1, 1), "b": (0, 5), "c": (2, 3)},
    "steps": {"days": manul.Stepped(1, 14, 1), "share": manul.Stepped(0, 0.3, 0.1)},
    "hybrid": {
        "price": (10, 50),
        "template": manul.Choice(["a", "b", 3]),
        "days": manul.Stepped(1, 14, 1),
        "gift": manul.Choice([True, False]),
    },
}
CONTEXTS = np.random.default_rng(0).standard_normal((6000, 3)).astype(np.float32)


def loss_of(agent, action):
    """A loss that depends on all knobs."""
    positions = agent.space.positions(action)
    shares = [
        p / (k.core[1] - 1) if isinstance(k, manul.Choice) else p
        for (_, k), p in zip(agent.space.knobs, positions, strict=True)
    ]
    return float(np.mean(np.abs(np.array(shares) - 0.3)))


def play(agent, rounds, first=0):
    for context in CONTEXTS[first : first + rounds]:
        decision = agent.decide(context)
        agent.learn(context, decision, loss_of(agent, decision.action))
    return agent


@pytest.fixture(params=SPACES)
def actions(request):
    return SPACES[request.param]


def assert_mean_is(values, expected):
    assert abs(values.mean() - expected) <= 4 * values.std() / np.sqrt(len(values)) + 1e-12


def test_the_twins_slopes_are_those_of_finite_differences(rng):
    agent = play(manul.Auto(actions=SPACES["three"]), 300)
    surface, h = twin.Surface.of(agent, CONTEXTS[0].astype(np.float64)), np.array([0.05, 0.01, 0.03])
    actions, step = rng.uniform(0.05, 0.95, (50, 3)), 1e-6
    nudged = [surface.values(actions + step * e, h) - surface.values(actions - step * e, h) for e in np.eye(3)]
    assert np.allclose(surface.slopes(actions, h), np.transpose(nudged) / (2 * step), atol=1e-5)


def test_the_smoothed_surface_is_the_mean_over_the_window(rng):
    agent = play(manul.Auto(actions=SPACES["two"]), 300)
    surface, h = twin.Surface.of(agent, CONTEXTS[0].astype(np.float64)), np.array([0.05, 0.05])
    actions = rng.uniform(0.05, 0.95, (20, 2))
    exact = surface.averages(actions, h)
    # The second moment alone, so not exactly.
    assert np.std(surface.values(actions, h) - exact) < 0.4 * np.std(surface.values(actions, 0 * h) - exact)


@pytest.mark.parametrize("space", ["one", "two", "three"])
def test_native_predictions_are_the_twins(space, rng):
    agent = early.retire(play(manul.Auto(actions=SPACES[space]), 300))
    positions = rng.random((50, len(SPACES[space])))
    columns = {
        name: low + p * (high - low) for (name, (low, high)), p in zip(SPACES[space].items(), positions.T, strict=True)
    }
    _, _, centre, _, gain = host_of(agent).state()["units"]
    surface = twin.Surface.of(agent, CONTEXTS[0].astype(np.float64))
    expected = surface.values(positions, np.zeros(positions.shape[1])) / gain + centre
    assert np.allclose(agent.predict_losses(np.tile(CONTEXTS[0], (50, 1)), columns), expected, atol=1e-5)


@pytest.mark.parametrize("box", [[(0, 1), (0, 1), (0, 1)], [(0.2, 0.5), (0, 1), (0.9, 1)]])
@pytest.mark.parametrize("make", [several.separable, several.cliff, several.valleys])
def test_native_windows_are_the_twins(make, box):
    world = make(rounds=500, knobs=3, width=3)
    agent, box = manul.Auto(actions=world.actions, epsilon=0.2, seed=2), np.array(box, dtype=np.float64).T
    manul.simulate(agent, world)
    early.retire(agent)
    agree = []
    for context in world.contexts[:40]:
        native = np.transpose(host_of(agent).player.windows(context, *map(np.ascontiguousarray, box)))
        centres, widths = twin.windows(agent, context.astype(np.float64), box)
        agree.append(np.allclose(native[0], centres, atol=1e-3) and np.allclose(native[1], widths, rtol=1e-2))
    assert np.mean(agree) >= 0.95  # two minima may be equally good up to rounding


@pytest.mark.parametrize("within", [None, {"a": (-0.5, 0.75)}])
def test_native_draws_and_densities_are_those_of_the_twins_ladder(within):
    agent = play(manul.Auto(actions=SPACES["three"], epsilon=0.2, nearby=0.4, seed=5), 200)
    lows, highs = agent.space.ranges(within)
    for number, context in enumerate(CONTEXTS[:200], host_of(agent).decisions):
        windows = host_of(agent).player.windows(context, lows, highs)
        positions, densities, _ = host_of(agent).player.decide(context, lows, highs, number)
        for k, (centre, h) in enumerate(windows):
            ladder = twin.Ladder.around(centre, h, lows[k], highs[k], nearby=0.4, anywhere=0.2, knobs=3)
            assert positions[k] == pytest.approx(ladder.at(*twin.draw(5, number, twin.DRAW_STREAM + k)), abs=1e-9)
            assert densities[k] == pytest.approx(ladder.density(positions[k]), rel=1e-9)


def test_the_probability_of_a_step_is_the_ladders_mass_of_its_cell():
    agent = play(manul.Auto(actions=SPACES["steps"], epsilon=0.2, nearby=0.4), 200)
    lows, highs = agent.space.ranges(None)
    for context in CONTEXTS[:50]:
        decision = agent.decide(context)
        for (name, knob), (centre, h) in zip(
            agent.space.knobs, host_of(agent).player.windows(context, lows, highs), strict=True
        ):
            ladder = twin.Ladder.around(centre, h, 0, 1, nearby=0.4, anywhere=0.2, knobs=2)
            step = int(knob.position(decision.action[name], name) * knob.count)
            expected = ladder.mass(step / knob.count, (step + 1) / knob.count)
            assert decision.densities[name] == pytest.approx(expected, rel=1e-9)


def test_every_knob_has_a_density_that_integrates_to_one(actions):
    agent = play(manul.Auto(actions=actions), 300)
    for context in CONTEXTS[:20]:
        distribution = agent.distribution(context)
        assert sum(branch.probability for branch in distribution.branches) == pytest.approx(1, abs=1e-12)
        parts = [part for branch in distribution.branches for part in branch.others.values()]
        assert all(part.integral() == pytest.approx(1, abs=1e-12) for part in parts)
        assert all(distribution.marginal(name).integral() == pytest.approx(1, abs=1e-12) for name in actions)


def test_the_probabilities_of_all_steps_sum_to_one():
    agent = play(manul.Auto(actions=SPACES["steps"]), 300)
    values = [[knob.value((n + 0.5) / knob.count) for n in range(knob.count)] for _, knob in agent.space.knobs]
    every = [dict(zip(SPACES["steps"], pair, strict=True)) for pair in itertools.product(*values)]
    for context in CONTEXTS[:10]:
        assert agent.distributions(np.tile(context, (len(every), 1))).density(every).sum() == pytest.approx(
            1, abs=1e-12
        )


def test_a_decision_has_the_density_of_the_distribution_and_of_distributions(actions):
    agent = play(manul.Auto(actions=actions, epsilon=0.3), 300)
    for context in CONTEXTS[:100]:
        distribution, decision = agent.distribution(context), agent.decide(context)
        assert decision.density == pytest.approx(distribution.density(decision.action), rel=1e-9)
        assert decision.density == pytest.approx(
            agent.distributions([context]).density([decision.action])[0], rel=1e-12
        )
        assert decision.density == pytest.approx(np.prod(list(decision.densities.values())), rel=1e-12)
        assert decision.density >= decision.floor * (1 - 1e-12)


@pytest.mark.whole
def test_inverse_densities_average_to_the_volume(actions):
    agent = play(manul.Auto(actions=actions, epsilon=0.3, nearby=0.5, seed=3), 300)
    assert_mean_is(1 / (agent.decide_many(CONTEXTS).densities * agent.space.volume), 1.0)


def test_inverse_densities_average_to_the_volume_of_narrowed_ranges():
    agent = play(manul.Auto(actions=SPACES["hybrid"], epsilon=0.3, nearby=0.5, seed=3), 300)
    within = {"price": (20, 30), "template": ["a", 3], "days": (3, 7)}
    decisions = agent.decide_many(CONTEXTS, [within] * len(CONTEXTS))
    assert_mean_is(1 / decisions.densities, 10 * 2 * 5 * 2)


def test_after_another_option_the_other_knobs_are_best_for_all_options_drawn():
    actions = {"one": manul.Choice(["a", "b"]), "two": manul.Choice(["a", "b"]), "price": (0, 1)}
    agent = manul.Auto(actions=actions, epsilon=0.3, seed=1)
    for context in CONTEXTS[:3000]:
        decision = agent.decide(context)
        target = 0.2 if decision.action["one"] == decision.action["two"] else 0.8
        pair = decision.action["one"] + decision.action["two"]
        worse = {"aa": 0.0, "bb": 0.2, "ab": 0.4, "ba": 0.4}[pair]
        agent.learn(context, decision, 0.5 * abs(decision.action["price"] - target) + worse)
    prices = {
        tuple(branch.options.values()): branch.others["price"].densest()
        for branch in agent.distribution(CONTEXTS[0]).branches
    }
    assert all(
        np.mean(price) == pytest.approx(0.2 if one == two else 0.8, abs=0.1) for (one, two), price in prices.items()
    )


def test_batches_equal_single_calls(actions):
    single, batch = (manul.Auto(actions=actions, seed=5) for _ in range(2))
    for size in (1, 7, 64):
        decisions, many = [single.decide(context) for context in CONTEXTS[:size]], batch.decide_many(CONTEXTS[:size])
        for number, decision in enumerate(decisions):
            assert decision.action == {name: column[number] for name, column in many.actions.items()}
            assert decision.density == many.densities[number]
            assert decision.densities == {name: column[number] for name, column in many.densities_by_knob.items()}
        losses = [loss_of(single, decision.action) for decision in decisions]
        for context, decision, loss in zip(CONTEXTS[:size], decisions, losses, strict=True):
            single.learn(context, decision, loss)
        batch.learn_many(CONTEXTS[:size], many, losses)
        assert manul.dumps(single) == manul.dumps(batch)


def test_a_saved_agent_continues_with_the_same_bytes(actions, tmp_path):
    agent = play(manul.Auto(actions=actions, seed=7, epsilon=0.1, nearby=0.2), 300)
    agent.save(tmp_path / "agent.manul")
    loaded = manul.load(tmp_path / "agent.manul")
    assert manul.dumps(loaded) == manul.dumps(agent)
    assert manul.dumps(play(loaded, 100, first=300)) == manul.dumps(play(agent, 100, first=300))


def test_a_new_agent_can_be_saved(actions):
    assert manul.loads(manul.dumps(manul.Auto(actions=actions, seed=3))).parameters["seed"] == 3


def test_decisions_can_be_drawn_again(actions):
    agent = play(manul.Auto(actions=actions), 100)
    decision = agent.decide(CONTEXTS[0])
    assert agent.decide_again(100, CONTEXTS[0]) == decision
    assert host_of(agent).decisions == 101


def test_another_seed_draws_other_actions(actions):
    assert manul.Auto(actions=actions, seed=1).decide([1.0]) != manul.Auto(actions=actions, seed=2).decide([1.0])


@functools.cache
def fingerprint():
    agents = [play(manul.Auto(actions=actions, seed=1), 60) for actions in SPACES.values()]
    agents.append(play(manul.Auto(actions={f"knob{n}": (0, 1) for n in range(16)}, losses="auto"), 40))
    return hashlib.sha256(b"".join(map(manul.dumps, agents))).hexdigest()


INSTRUCTION_SETS = ["baseline", "avx2", "avx512"]


@pytest.mark.whole
@pytest.mark.parametrize("name", INSTRUCTION_SETS[: INSTRUCTION_SETS.index(_core.instruction_set()) + 1])
def test_every_instruction_set_gives_the_same_bytes(name):
    code = "import sys; sys.path.insert(0, '.'); from tests.agents.test_knobs import fingerprint; print(fingerprint())"
    environment = {**os.environ, "MANUL_SIMD": name}
    ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert ran.stdout.strip() == fingerprint(), ran.stderr


def test_named_contexts_single_and_in_batches(actions):
    contexts = [{"city": city, "age": age} for city, age in itertools.product(["Oslo", "Rome"], range(30))]
    single, batch = (manul.Auto(actions=actions) for _ in range(2))
    decisions, many = [single.decide(context) for context in contexts], batch.decide_many(contexts)
    for context, decision in zip(contexts, decisions, strict=True):
        single.learn(context, decision, loss_of(single, decision.action))
    batch.learn_many(contexts, many, [loss_of(single, decision.action) for decision in decisions])
    assert manul.dumps(single) == manul.dumps(batch) == manul.dumps(manul.loads(manul.dumps(single)))
    assert single.best(contexts[3]) == batch.best(contexts[3])


def test_a_reward_is_the_loss_with_the_opposite_sign(actions):
    by_reward, by_loss = manul.Auto(actions=actions, rewards=(0, 1)), manul.Auto(actions=actions, losses=(-1, 0))
    for context in CONTEXTS[:60]:
        decision = by_reward.decide(context)
        assert decision == by_loss.decide(context)
        by_reward.learn(context, decision, reward=loss_of(by_reward, decision.action))
        by_loss.learn(context, decision, loss=-loss_of(by_loss, decision.action))
    assert all(
        np.array_equal(array, host_of(by_loss).state()[name]) for name, array in host_of(by_reward).state().items()
    )


def test_losses_without_a_range_are_learned():
    agent = manul.Auto(actions=SPACES["two"], losses="auto", seed=1)
    for context in CONTEXTS[:1500]:
        decision = agent.decide(context)
        agent.learn(context, decision, 1000 * loss_of(agent, decision.action) - 5e6)
    best = agent.best(CONTEXTS[0])
    assert best == pytest.approx({"price": 22.0, "discount": 0.09}, rel=0.15)


def test_contexts_without_columns_are_a_plain_bandit():
    agent = manul.Auto(actions=SPACES["hybrid"])
    for context in [None, [], np.empty(0)] * 10:
        agent.learn(context, agent.decide(context), 0.5)
    assert len(agent.decide_many(np.empty((3, 0))).densities) == 3


@pytest.mark.parametrize("make", [several.separable, several.bowl])
def test_several_knobs_are_learned_together(make):
    world = make(rounds=2000, knobs=3, width=5, seed=1)
    run = manul.simulate(manul.Auto(actions=world.actions, seed=1), world)
    regrets = world.regrets(run.log.actions)
    assert regrets[-400:].mean() < 0.3 * regrets[:100].mean()


BAD_CALLS = {
    "context of another width": lambda agent, _good: agent.decide([1.0]),
    "missing numbers": lambda agent, _good: agent.decide([float("nan")] * 3),
    "unknown knob in within": lambda agent, _good: agent.decide(CONTEXTS[0], within={"prise": (10, 20)}),
    "empty range": lambda agent, _good: agent.decide(CONTEXTS[0], within={"price": (20, 10)}),
    "one within for two rows": lambda agent, _good: agent.decide_many(CONTEXTS[:2], [None]),
    "not a decision": lambda agent, _good: agent.learn(CONTEXTS[0], 0.5, 0.5),
    "knob missing": lambda agent, good: agent.learn(CONTEXTS[0], good._replace(action={"price": 20}), 0.5),
    "off its grid": lambda agent, good: agent.learn(
        CONTEXTS[0], good._replace(action={**good.action, "days": 2.5}), 0.5
    ),
    "unknown option": lambda agent, good: agent.learn(
        CONTEXTS[0], good._replace(action={**good.action, "template": "z"}), 0.5
    ),
    "no density": lambda agent, good: agent.learn(CONTEXTS[0], good._replace(density=0.0), 0.5),
    "density without a value": lambda agent, good: agent.learn(CONTEXTS[0], good._replace(density=float("nan")), 0.5),
    "loss beyond its range": lambda agent, good: agent.learn(CONTEXTS[0], good, 1.5),
    "loss without a value": lambda agent, good: agent.learn(CONTEXTS[0], good, float("nan")),
    "one bad loss of two": lambda agent, _good: agent.learn_many(
        CONTEXTS[:2], agent.decide_many_again([0, 1], CONTEXTS[:2]), [0.5, 2.0]
    ),
    "too few losses": lambda agent, _good: agent.learn_many(
        CONTEXTS[:2], agent.decide_many_again([0, 1], CONTEXTS[:2]), [0.5]
    ),
    "actions of another length": lambda agent, good: agent.distributions(CONTEXTS[:2]).density([good.action]),
    "columns of two lengths": lambda agent, good: agent.predict_losses(
        CONTEXTS[:1], {name: [value] * (1 + (name == "days")) for name, value in good.action.items()}
    ),
    "action that is no mapping": lambda agent, _good: agent.distributions(CONTEXTS[:1]).density([0.5]),
}


@pytest.mark.parametrize("name", BAD_CALLS)
def test_bad_input_is_one_sentence_and_changes_nothing(name):
    agent = play(manul.Auto(actions=SPACES["hybrid"]), 50)
    good = agent.decide(CONTEXTS[0])
    before = manul.dumps(agent)
    with pytest.raises(InputError) as caught:
        BAD_CALLS[name](agent, good)
    assert "\n" not in str(caught.value)
    assert caught.value.field
    assert manul.dumps(agent) == before


@pytest.mark.parametrize(
    "settings", [{"epsilon": 2}, {"nearby": 1.0}, {"nearby": -0.1}, {"limits": 3}, {"losses": (1, 0)}, {"seed": -1}]
)
def test_bad_settings_name_their_field(settings):
    with pytest.raises(ParameterError) as caught:
        manul.Auto(actions=SPACES["two"], **settings)
    assert caught.value.field == next(iter(settings))


def test_a_decision_is_a_named_tuple_with_a_density_per_knob():
    decision = manul.Auto(actions=SPACES["two"]).decide([1.0])
    assert isinstance(decision, Decision)
    assert decision.densities == pytest.approx({"price": 1 / 40, "discount": 1 / 0.3})


def test_the_settings_of_one_knob_are_still_known():
    assert list(manul.Auto(seed=3).parameters)[:3] == ["actions", "epsilon", "losses"]
    assert manul.loads(manul.dumps(manul.Auto(seed=3))).parameters == manul.Auto(seed=3).parameters


@pytest.mark.parametrize(("epsilon", "nearby"), [(1.0, 0.1), (0.5, 0.9)])
def test_densities_are_right_however_much_is_explored(epsilon, nearby):
    agent = manul.Auto(actions={"x": (0, 1)}, epsilon=epsilon, nearby=nearby)
    inverse = []
    for _ in range(2000):
        decision = agent.decide([0.5])
        inverse.append(1 / decision.density)
        agent.learn([0.5], decision, abs(decision.action["x"] - 0.3))
    assert np.mean(inverse) == pytest.approx(1, abs=1e-9 + 4 * np.std(inverse) / 2000**0.5)


def test_a_forged_file_never_leads_to_an_option_that_is_not_allowed():
    agent = manul.Auto(actions={"c": manul.Choice(["a", "b", "d"]), "x": (0, 1)})
    for _ in range(30):
        agent.learn([0.5], agent.decide([0.5]), 0.5)
    kind, parameters, arrays = model_files.contents(agent)
    for name, value in (("deep", np.nan), ("actions", 0.0)):
        forged = {**arrays, name: np.full_like(arrays[name], value)}
        loaded = manul.loads(model_files.encode(kind, parameters, forged))
        decision = loaded.decide([0.5], within={"c": ["b"]})
        assert decision.action["c"] == "b"
        assert decision.density > 0


def test_steps_far_from_zero_are_learned():
    agent = manul.Auto(actions={"x": manul.Stepped(1e9, 1e9 + 1, 0.001)})
    decision = agent.decide([0.5])
    agent.learn([0.5], decision, 0.2)
    assert agent.decide([0.5], within={"x": (1e9 + 0.5, 1e9 + 0.501)}).action["x"] >= 1e9 + 0.4999


@pytest.mark.parametrize("loss", ["much", [0.5], object()])
def test_a_loss_that_is_no_number_is_rejected(loss):
    agent = play(manul.Auto(actions=SPACES["hybrid"]), 20)
    decision, before = agent.decide(CONTEXTS[0]), host_of(agent).player.learned
    with pytest.raises(InputError, match="loss must be a number"):
        agent.learn(CONTEXTS[0], decision, loss)
    assert host_of(agent).player.learned == before


@pytest.mark.parametrize("rounds", [40, 300, 600])
def test_predictions_of_the_first_rounds_are_the_twins(rounds, rng):
    agent = play(manul.Auto(actions=SPACES["two"]), rounds)
    state, context, positions = host_of(agent).state(), CONTEXTS[0].astype(np.float64), rng.random((50, 2))
    _, _, centre, _, gain = state["units"]
    share, factor = early.shares(state)[0], early.Factor.of(state, len(context))
    rest = twin.Surface.of(agent, context).values(positions, np.zeros(2)) / gain + centre
    expected = (1 - share) * rest + share * factor.loss(factor.predict(context, positions)[0])
    columns = {
        name: low + p * (high - low) for (name, (low, high)), p in zip(SPACES["two"].items(), positions.T, strict=True)
    }
    assert agent.report().early == pytest.approx(share)
    assert np.allclose(agent.predict_losses(np.tile(CONTEXTS[0], (50, 1)), columns), expected, atol=1e-3)
