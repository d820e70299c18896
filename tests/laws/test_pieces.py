"""Laws of what actions were drawn from, for every space of actions: pieces have the mass 1 and the densities that were logged."""

import functools
import itertools
import pickle

import numpy as np
import pytest

import manul
from manul.actions.levels import KnobLevels
from manul.actions.pieces import is_product, pieces_of
from tests.laws.piece_masses import NUMBERS, densities, distribution_function, masses
from tests.laws.spaces import CONTEXTS, SPACES, baseline_of, loss_of, narrower, trained

ALL = {**SPACES, "numbers": NUMBERS}
KNOWN = [name for name in ALL if is_product(manul.ActionSpace(ALL[name]))]
FILES = (".parquet", ".parquet.gz", ".jsonl", ".csv", ".csv.gz")
VOWPAL = (".json", ".dsjson")


@functools.cache
def decided(name, nearby=0.25):
    """An agent that has learned, and its next decisions with what they are drawn from, of which every other is narrowed."""
    agent = trained(ALL[name], nearby=nearby)
    within = [None, narrower(agent.space)] * (len(CONTEXTS) // 2)
    return agent, within, agent.decide_many(CONTEXTS, within, levels=True)


@functools.cache
def logged(name):
    agent, within, made = decided(name)
    losses = [loss_of(agent.space, each.action) for each in made]
    ranges = {"lows": made.lows, "highs": made.highs} if agent.space.is_number else {"within": within}
    return manul.Log(CONTEXTS, made.actions, made.densities, losses, knobs=agent.space, levels=made.levels, **ranges)


def same(one, other):
    assert one.keys() == other.keys()
    for name in one:
        assert one[name].starts.tolist() == other[name].starts.tolist()
        for column, values in one[name].columns().items():
            assert values.tolist() == other[name].columns()[column].tolist()


@pytest.mark.parametrize("nearby", [0.0, 0.25])
@pytest.mark.parametrize("name", KNOWN)
def test_pieces_have_the_mass_one_and_the_densities_that_were_drawn(name, nearby):
    agent, _, made = decided(name, nearby)
    np.testing.assert_allclose(masses(agent.space, made.pieces), 1.0, rtol=1e-12)
    np.testing.assert_allclose(densities(agent.space, made.pieces, made.actions), made.densities, rtol=1e-9)


@pytest.mark.parametrize("nearby", [0.0, 0.25])
@pytest.mark.parametrize("name", KNOWN)
def test_pieces_are_those_of_the_distribution_row_by_row(name, nearby):
    agent, within, made = decided(name, nearby)
    literal = pieces_of(agent.distributions(CONTEXTS, within))
    for each, levels in made.levels.items():
        for row in range(len(made)):
            pieces, others = levels.pieces.row(row), literal[each].row(row)
            points = [
                end + wide
                for piece in (*pieces, *others)
                for end, wide in zip(piece[:2], (0, levels.is_discrete), strict=True)
            ]
            functions = [
                distribution_function(rows, points, is_discrete=levels.is_discrete) for rows in (pieces, others)
            ]
            np.testing.assert_allclose(*functions, atol=1e-12)


@pytest.mark.parametrize("name", KNOWN)
def test_pieces_ascend_and_do_not_overlap(name):
    for levels in decided(name)[2].levels.values():
        for row in range(len(levels)):
            pieces = levels.pieces.row(row)
            assert all(one[1] + levels.is_discrete <= two[0] for one, two in itertools.pairwise(pieces))


@pytest.mark.parametrize("name", KNOWN)
def test_single_decisions_say_what_batches_say(name):
    agent, within, many = decided(name)
    alike = manul.loads(manul.dumps(agent))
    first = alike.decide(CONTEXTS[0], within[0], levels=True)
    again = alike.decide_many(CONTEXTS[1:], within[1:], levels=True)
    numbers = np.arange(len(CONTEXTS)) + 100
    batch = agent.decide_many_again(numbers, CONTEXTS, within, levels=True)
    single = [agent.decide_again(100 + row, CONTEXTS[row], within[row], levels=True) for row in range(len(numbers))]
    joined = {each: KnobLevels.join([one.levels[each] for one in single]) for each in batch.levels}
    same(joined, batch.levels)
    assert [first.action, *(each.action for each in again)] == [
        each.action for each in manul.loads(manul.dumps(agent)).decide_many(CONTEXTS, within)
    ]
    same(many[3].levels, {each: levels.select(slice(3, 4)) for each, levels in many.levels.items()})


@pytest.mark.parametrize("way", [*FILES, "arrow", "pandas", "polars", "appended", "batches"])
@pytest.mark.parametrize("name", KNOWN)
def test_every_format_keeps_what_actions_were_drawn_from(name, way, tmp_path):
    agent, log = decided(name)[0], logged(name)
    path = tmp_path / f"log{way if way in FILES else '.jsonl'}"
    if way in ("arrow", "pandas", "polars"):
        frame = getattr(log, f"to_{way}")()
        back = getattr(manul.Log, f"from_{way}")(frame, like=agent)
    elif way == "appended":
        log.rows(slice(10)).write(path)
        with manul.LogWriter(path, append=True, like=agent) as writer:
            writer.write(log.rows(slice(10, None)))
        back = manul.Log.read(path, like=agent)
    else:
        log.write(path)
        batches = manul.Log.batches(path, 7, like=agent)
        back = manul.Log.concat([*batches]) if way == "batches" else manul.Log.read(path, like=agent)
    same(back.levels, log.levels)
    same(back.pieces, log.pieces)


@pytest.mark.parametrize("suffix", VOWPAL)
def test_the_json_of_vowpal_wabbit_keeps_what_numbers_were_drawn_from(suffix, tmp_path):
    logged("span").write(tmp_path / f"log{suffix}")
    same(manul.Log.read(tmp_path / f"log{suffix}").levels, logged("span").levels)


def test_the_text_of_vowpal_wabbit_says_that_it_omits_it(tmp_path):
    with pytest.warns(UserWarning, match="omits low, high, density_levels"):
        logged("span").write(tmp_path / "log.vw")


@pytest.mark.parametrize("name", [name for name in ALL if name not in KNOWN])
def test_knobs_that_depend_on_each_other_have_no_pieces(name):
    _, _, made = decided(name)
    assert made.levels is made.pieces is made[0].levels is None


def test_rows_of_a_log_without_pieces_are_unknown_beside_others():
    log = logged("span")
    bare = manul.Log(CONTEXTS, log.actions, log.densities, log.losses, log.lows, log.highs, knobs=log.space)
    both = manul.Log.concat([bare, log])
    assert bare.pieces is None
    assert both.pieces[""].starts[: len(bare) + 1].tolist() == [0] * (len(bare) + 1)
    same(both.rows(slice(len(bare), None)).levels, log.levels)


def test_a_file_without_pieces_stays_without_when_more_is_appended(tmp_path):
    log, path = logged("span"), tmp_path / "log.parquet"
    manul.Log(CONTEXTS, log.actions, log.densities, log.losses, log.lows, log.highs, knobs=log.space).write(path)
    with manul.LogWriter(path, append=True) as writer:
        writer.write(log)
    assert len(manul.Log.read(path)) == 2 * len(log)


@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.parametrize("baseline", ["action", "policy"])
def test_the_pieces_of_a_rollout_are_those_of_its_mixture(name, baseline):
    agent = trained(ALL[name], nearby=0.25, epsilon=0.9)
    given = baseline_of(agent.space) if baseline == "action" else manul.Auto(actions=ALL[name], seed=9)
    rollout = manul.Rollout(agent, baseline=given, steps=(0.6,), budget=1e9)
    made = rollout.decide_many(CONTEXTS, levels=True)
    if len(agent.space.knobs) > 1:
        assert made.pieces is None
        return
    np.testing.assert_allclose(masses(agent.space, made.pieces), 1.0, rtol=1e-12)
    np.testing.assert_allclose(densities(agent.space, made.pieces, made.actions), made.densities, rtol=1e-9)


@pytest.mark.parametrize("name", KNOWN)
def test_decisions_can_be_copied_with_what_they_were_drawn_from(name):
    made = decided(name)[2]
    same(pickle.loads(pickle.dumps(made)).levels, made.levels)
    same(pickle.loads(pickle.dumps(made[0])).pieces, made[0].pieces)


@pytest.mark.parametrize("levels", ["[[0, 1, 0.5, 0]]", "[[1, 0, 1, 0]]", "[[0, 1, 1]]", "7", "[[0, 1, true, 0]]", "{"])
def test_levels_that_are_no_distribution_are_bad_rows(levels, tmp_path):
    (tmp_path / "log.csv").write_text(f'action,density,loss,density_levels\n0.5,1,0,"{levels}"\n')
    with pytest.raises(manul.errors.FileError, match="density_levels must be lists of low, high, share and nearby"):
        manul.Log.read(tmp_path / "log.csv")
