"""An agent behind a feature map."""

import re

import numpy as np
import pandas
import pytest
from sklearn.preprocessing import StandardScaler

import manul
from manul import checks
from manul.agents.player_host import host_of, seen_by
from manul.errors import FileError, InputError, ParameterError

FIELDS = [{"size": 2.0, "age": 3.0, "city": "Oslo", "device": "phone"}, {"size": 1.0, "city": "Rome", "device": "tv"}]


def cats(seed=0):
    return manul.Cats(leaves=16, bandwidth=1 / 8, seed=seed)


def mapped(features, agent=None):
    return manul.Mapped(agent=agent or cats(), features=features)


def taught(agent, contexts):
    for context in contexts:
        agent.learn(context, agent.decide(context), 0.5)
    return agent


def products(rounds=20_000):
    contexts = np.random.default_rng(0).uniform(-1, 1, (rounds, 3))
    return manul.worlds.Regression(contexts, 0.5 + 0.5 * contexts[:, 0] * contexts[:, 1])


def lately(agent, world):
    return manul.simulate(agent, world).log.losses[-5000:].mean()


@pytest.mark.whole
def test_crosses_find_a_product_that_plain_cats_cannot_see():
    agents = [manul.Cats(leaves=64, bandwidth=1 / 32, seed=1) for _ in range(2)]
    plain, crossed = lately(agents[0], products()), lately(mapped(manul.maps.Crosses(), agents[1]), products())
    assert crossed < 0.6 * plain


@pytest.mark.whole
def test_waves_find_a_bend_that_plain_cats_cannot_see():
    contexts = np.random.default_rng(0).uniform(-1, 1, (20_000, 1))
    world = manul.worlds.Regression(contexts, np.abs(contexts[:, 0]))
    agents = [manul.Cats(leaves=64, bandwidth=1 / 32, seed=1) for _ in range(2)]
    waves = manul.maps.Fourier(count=16, scale=3.0)
    assert lately(mapped(waves, agents[1]), world) < 0.6 * lately(agents[0], world)


def test_a_transformer_passes_every_check(rng):
    fitted = StandardScaler().fit(rng.normal(size=(50, checks.agent_checks.WIDTH)))
    checks.check_agent(lambda seed: mapped(manul.maps.Transformer(fitted), cats(seed)))


def test_it_plays_as_its_agent_plays_the_mapped_contexts(rng):
    contexts = rng.normal(size=(50, 3)).astype(np.float32)
    crosses = np.array([manul.maps.Crosses()(row) for row in contexts])
    behind, plain = mapped(manul.maps.Crosses()), cats()
    assert behind.decide_many(contexts).actions.tolist() == plain.decide_many(crosses).actions.tolist()
    assert host_of(behind.agent).state().keys() == host_of(behind).state().keys()


def test_contexts_with_names_are_mapped_alone_and_in_batches():
    single, batch, frame = (mapped(manul.maps.Crosses()) for _ in range(3))
    decided = [single.decide(each).action for each in FIELDS]
    assert decided == batch.decide_many(FIELDS).actions.tolist()
    assert decided[1:] != []
    taught(single, FIELDS)
    assert {"age*size", "city*device=Oslo*phone"} <= set(host_of(single.agent).native.names.values())
    assert len(frame.decide_many(pandas.DataFrame(FIELDS)).actions) == 2


@pytest.mark.parametrize("contexts", [FIELDS * 10, [[1.0, 2.0], [2.0, -1.0]] * 10])
def test_what_is_loaded_goes_on_identically(contexts, tmp_path):
    agent = taught(mapped(manul.maps.Crosses()), contexts)
    agent.save(tmp_path / "agent.manul")
    loaded = manul.load(tmp_path / "agent.manul")
    assert repr(loaded) == repr(agent)
    assert (loaded.schema, loaded.nbytes) == (agent.schema, agent.nbytes)
    assert host_of(loaded).decisions == host_of(agent).decisions
    for each in (agent, loaded):
        taught(each, contexts)
    assert all(
        host_of(agent).state()[name].tobytes() == array.tobytes() for name, array in host_of(loaded).state().items()
    )


def test_a_function_of_ones_own_works_but_is_not_saved(tmp_path):
    agent = taught(mapped(lambda context: [*context, 1.0]), [[1.0, 2.0]])
    assert agent.agent.schema.width == 3
    with pytest.raises(
        FileError, match="Only the feature maps Columns, Crosses, Features, Fourier and Transformer can be saved"
    ):
        agent.save(tmp_path / "agent.manul")


def test_maps_nest(rng):
    agent = mapped(manul.maps.Crosses(), mapped(manul.maps.Fourier(count=2)))
    agent.decide(rng.normal(size=3))
    assert agent.agent.agent.schema.width == 3 + 3 + 2


def failing(_):
    raise KeyError("age")


@pytest.mark.parametrize(
    ("features", "sentence"),
    [
        (failing, "features failed with KeyError: 'age'"),
        (lambda _: [1.0, float("nan"), 0.0], "features must return finite numbers, got nan in column 1."),
        (lambda context: np.float64(1e300) * context, "features must return finite numbers, got inf in column 0."),
        (lambda _: [1.0], "features must return 3 numbers as for the first context, got 1."),
        (lambda _: np.ones((1, 3)), "features must return one row per context, got an array of shape (1, 3)."),
        (lambda _: "row", "features must return a row of numbers or a mapping, got row."),
        (lambda _: {"a": 1.0}, "features must return 3 numbers as for the first context, got a mapping."),
    ],
)
def test_a_map_that_fails_is_one_sentence_and_changes_nothing(features, sentence):
    agent = taught(mapped(manul.maps.Crosses()), [[1.0, 2.0]] * 5)
    before, agent.features = host_of(agent).state(), features
    decisions = manul.Decisions(np.array([0.5]), np.array([1.0]))
    for call in (
        lambda: agent.distribution([1.0, 2.0]),
        lambda: agent.decide([1.0, 2.0]),
        lambda: agent.learn([1.0, 2.0], manul.Decision(0.5, 1.0), 0.5),
        lambda: agent.learn_many([[1.0, 2.0]], decisions, [0.5]),
    ):
        with pytest.raises(InputError, match=re.escape(sentence)):
            call()
    assert all(np.array_equal(before[name], array) for name, array in host_of(agent).state().items())


def test_rows_of_several_widths_in_a_batch_change_nothing():
    agent = mapped(lambda context: context[: int(context[0])])
    with pytest.raises(InputError, match=re.escape("features must return rows of the same width, got widths [1, 2].")):
        agent.decide_many([[1.0, 2.0], [2.0, 2.0]])
    assert (seen_by(agent).width, host_of(agent).decisions, host_of(agent).state()) == (None, 0, {})


def test_a_refused_first_context_leaves_the_width_open():
    agent = mapped(manul.maps.Crosses())
    with pytest.raises(InputError, match="within must lie inside"):
        agent.decide([1.0, 2.0], within=(-1, 2))
    agent.decide([1.0, 2.0, 3.0])
    with pytest.raises(InputError, match="context must have 3 numbers, like the first one, got 2"):
        agent.decide([1.0, 2.0])


@pytest.mark.parametrize("features", [manul.maps.Crosses(), manul.maps.Fourier()])
def test_no_rows_are_no_decisions(features):
    agent = mapped(features)
    assert len(agent.decide_many(np.empty((0, 2))).actions) == 0
    agent.decide([1.0, 2.0])


@pytest.mark.parametrize(("name", "value"), [("agent", object()), ("features", 3)])
def test_settings_that_cannot_work_are_refused(name, value):
    settings = {"agent": cats(), "features": manul.maps.Crosses(), name: value}
    with pytest.raises(ParameterError, match=f"^{name} must "):
        manul.Mapped(**settings)


def test_decisions_of_numbers_are_the_same_alone_and_together():
    agent, rows = mapped(manul.maps.Crosses()), np.random.default_rng(1).normal(size=(20, 3))
    taught(agent, rows)
    together = agent.decide_many_again(np.arange(20), rows)
    alone = [agent.decide_again(number, row) for number, row in enumerate(rows)]
    assert [each.action for each in alone] == together.actions.tolist()
    assert [each.density for each in alone] == together.densities.tolist()
