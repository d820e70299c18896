"""Auto in named contexts: the sparse first layer against its twin, and what it promises."""

import numpy as np
import pytest

import manul
from manul.agents import auto
from manul.agents.player_host import expected_nbytes, host_of
from manul.utils import model_files
from tests.twins import critic, early, forest

CORNERS = {"deep": critic.BLUNT, "shallow": critic.BLUNT, "sharp": critic.SHARP, "scout": critic.BLUNT}
LEVELS = [f"level {i}" for i in range(40)]


def contexts(rounds, seed=0):
    """Numbers, texts, flags, lists, missing values and absent fields."""
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        context = {"age": rng.normal(40.0, 9.0), "city": LEVELS[rng.integers(40)], "new": bool(rng.random() < 0.3)}
        if rng.random() < 0.5:
            context |= {"tags": [LEVELS[i] for i in rng.integers(5, size=2)], "score": rng.choice([None, 1.5, 2.0])}
        yield context


def learned(rounds, *, seed=2, **settings):
    agent = manul.Auto(seed=seed, **settings)
    for context in contexts(rounds):
        play(agent, context)
    return agent


def play(agent, context):
    decision = agent.decide(context)
    agent.learn(context, decision, abs(decision.action - (len(context["city"]) % 2 + context["age"] / 100) / 2))


def numbered(agent, context):
    """The features of a context as the core numbers them, from the names in the agent's file: feature -> raw value."""
    names = model_files.contents(agent)[1]["names"]
    rows = {names["features"][feature]: row for feature, row in names["columns"].items()}
    found = {}
    for field, value in context.items():
        for each in value if isinstance(value, list) else [value]:
            name = f"{field}=?" if each is None else f"{field}={each}" if isinstance(each, str) else field
            row, raw = rows[name], 1.0 if each is None or isinstance(each, str) else float(each)
            found[row] = found.get(row, 0.0) + raw
    return found


def is_number(agent):
    names = model_files.contents(agent)[1]["names"]
    numbers = {field for field, kind in names["fields"].items() if kind != "text"}
    return {row: names["features"][feature] in numbers for feature, row in names["columns"].items()}


def twin_rows(state, contexts, numbers):
    """Standardised contexts as dense rows over all features, with a 1 at the end."""
    features, rounds = state["features"].reshape(-1, 4), state["units"][0]
    rows = np.zeros((len(contexts), len(features) + 1))
    rows[:, -1] = 1.0
    for row, context in zip(rows, contexts, strict=True):
        for feature, raw in context.items():
            count, mean, _, scale = features[feature]
            z = np.clip((raw - mean) * scale, -5, 5) if numbers[feature] else raw * min(5, np.sqrt(rounds / count))
            row[feature] = z
    return rows


def test_native_predictions_are_the_twins():
    agent = early.retire(learned(600))
    state, context = (
        host_of(agent).state(),
        {"age": 31.0, "city": "level 3", "tags": ["level 1", "level 2"], "score": None},
    )
    row = twin_rows(state, [numbered(agent, context)], is_number(agent))
    actions = (np.arange(64) + 0.5) / 64
    networks = sum(
        member.weight * critic.predict(critic.named_weights(state, member.name), np.tile(row, (64, 1)), actions, corner)
        for member, corner in zip(agent.report().members, CORNERS.values(), strict=True)
    )
    columns = np.zeros((64, 128), dtype=np.float32)
    for feature, value in numbered(agent, context).items():
        columns[:, feature] = value
    trees = sum(forest.values(tree, columns, np.arange(2, 256, 4)) for tree in forest.trees(state)) * forest.UNIT
    share, trusted = forest.weight(state["mixing"]), forest.trust(state["mixing"])
    predicted = (1 - share * (1 - trusted)) * networks + share * trees
    _, _, centre, _, gain = state["units"]
    assert np.allclose(agent.report(context).losses, predicted / gain + centre, atol=1e-5)


def uniforms(seed, step):
    """The two uniform numbers of a step of training."""
    raw = np.random.Philox(key=seed, counter=[step, 8, 0, 0]).random_raw(2)
    return (raw >> np.uint64(11)) * 2.0**-53


def remembered(state, age):
    """The context of a round some rounds ago: feature -> raw value."""
    start, lengths = state["spans"].reshape(-1, 2)[int(state["units"][0]) - 1 - age]
    entries = state["entries"][int(start) : int(start) + int(lengths & np.uint64(2**32 - 1))]
    values = (entries >> np.uint64(32)).astype(np.uint32).view(np.float32)
    found = {}
    for feature, value in zip(entries & np.uint64(2**32 - 1), values, strict=True):
        found[int(feature)] = found.get(int(feature), 0.0) + float(value)
    return found


def rates(member, age):
    """Rate, before the bias correction, and weight decay."""
    half, age_of_rate = {"deep": (2000, age), "scout": (500, min(age, 2000))}.get(member, (200, age))
    rate = 0.005 / np.sqrt(1 + age_of_rate / half)
    return rate, 1 - 0.1 * rate / (1 + age / 2000) if member == "deep" else 1.0


def packed(state, member):
    return np.concatenate([critic.named_weights(state, member, part).packed() for part in range(3)])


@pytest.fixture(scope="module")
def one_step():
    """The state of an agent before and after a round in which it trains once."""
    agent = learned(5300)
    before = host_of(agent).state()
    play(agent, next(contexts(1, seed=9)))
    return agent, before, host_of(agent).state()


def sampled(agent, before, after, member):
    """The standardised contexts, actions and losses of the step."""
    age, both = before["change"][0], uniforms(2, int(before["ensemble"][0]))
    ages = critic.sampled_ages(*((both[1], 2000.0) if member == "scout" else (both[0], age + 1)))
    ages[0] = 0
    slots, (_, _, centre, _, gain) = int(after["units"][0]) - 1 - ages, after["units"]
    rows = twin_rows(after, [remembered(after, age) for age in ages], is_number(agent))
    return rows, after["actions"][slots].astype(np.float64), (after["losses"][slots] - centre) * gain


@pytest.mark.parametrize("member", CORNERS)
def test_a_step_of_training_is_the_twins(one_step, member):
    agent, before, after = one_step
    rows, actions, losses = sampled(agent, before, after, member)
    slopes = critic.gradient(critic.named_weights(before, member), rows, actions, losses, CORNERS[member])
    _, first_power, second_power, *_ = after["ensemble"]
    rate, keep = rates(member, before["change"][0])
    rate *= np.sqrt(1 - second_power) / (1 - first_power)
    present = (rows[:, :-1] != 0).any(axis=0)
    twin = critic.named_adam(packed(before, member), slopes, present, rate=rate, keep=keep)
    assert not present.all()
    assert np.allclose(packed(after, member), twin, rtol=1e-4, atol=1e-6)
    assert not np.allclose(packed(before, member), twin, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("rounds", [0, 1, 19, 20, 90])
def test_an_agent_that_is_saved_in_between_learns_the_same(rounds):
    kept = manul.Auto(seed=3)
    for index, context in enumerate(contexts(120)):
        if index == rounds:
            again = manul.loads(manul.dumps(kept))
        play(kept, context)
        if index >= rounds:
            play(again, context)
    assert manul.dumps(again) == manul.dumps(kept)


def test_deciding_in_an_unknown_context_changes_nothing():
    agent = learned(60)
    before = manul.dumps(agent)
    agent.distribution({"city": "elsewhere", "other": 3.0, "more": {"deep": [1.0, "x"]}})
    assert manul.dumps(agent) == before


def test_a_new_agent_with_names_saves_small():
    assert len(manul.dumps(learned(1))) < 2**20


def test_many_levels_are_learned_apart():
    rng = np.random.default_rng(1)
    targets, agent = rng.random(200), manul.Auto(seed=1)
    losses = []
    for level in rng.integers(200, size=8000):
        context = {"city": f"level {level}"}
        decision = agent.decide(context)
        losses.append(abs(decision.action - targets[level]))
        agent.learn(context, decision, losses[-1])
    assert np.mean(losses[-2000:]) < 0.05  # 64 columns: 0.2


def test_rounds_are_forgotten_when_their_entries_are_overwritten(monkeypatch):
    monkeypatch.setattr(auto, "FEATURES", 64)  # which leaves room for 4,096 entries, or 40 contexts of 100
    agent = manul.Auto(seed=1)
    for index in range(60):
        context = {f"field {i}": float(i % 7 + index) for i in range(100)}
        agent.learn(context, agent.decide(context), 0.5)
    assert agent.report().memory == 40
    assert host_of(agent).state()["features"].size == 4 * 64
    assert manul.dumps(manul.loads(manul.dumps(agent))) == manul.dumps(agent)


def test_the_memory_is_bounded_and_known_before():
    largest = expected_nbytes(manul.Auto(), None)
    assert 140 * 2**20 < largest < 170 * 2**20
    assert learned(300).nbytes < 2**20


def test_a_feature_takes_less_than_2_kb():
    few, many = manul.Auto(), manul.Auto()
    for agent, levels in ((few, 1000), (many, 3000)):
        for first in range(0, levels, 250):
            context = {"tags": [f"level {i}" for i in range(first, first + 250)]}
            agent.learn(context, agent.decide(context), 0.5)
    assert 1700 < (many.nbytes - few.nbytes) / 2000 < 2000


@pytest.mark.parametrize(("array", "index", "value"), [("entries", 4, 2**32 - 1), ("spans", 5, 5000)])
def test_a_file_whose_contexts_point_outside_is_refused(array, index, value):
    kind, parameters, arrays = model_files.contents(learned(30))
    damaged = {**arrays, array: arrays[array].copy()}
    damaged[array][index] = value
    with pytest.raises(manul.ManulError, match="the arrays do not match the settings"):
        manul.loads(model_files.encode(kind, parameters, damaged))


def test_a_ring_that_remembers_too_many_rounds_is_refused(tmp_path):
    agent = learned(100)
    kind, parameters, arrays = model_files.contents(agent)
    arrays["units"][0], arrays["spans"] = 3e7, np.tile(arrays["spans"][:2], 32768)
    model_files.write(tmp_path / "x.manul", kind, parameters, arrays)
    with pytest.raises(manul.errors.FileError):
        manul.load(tmp_path / "x.manul")
