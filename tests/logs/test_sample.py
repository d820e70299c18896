"""A sample says what the batches of a log have in common, however the log is given."""

import numpy as np
import pytest

import manul
from manul.errors import InputError, ParameterError
from manul.logs.rows import Rows
from manul.logs.sample import SIZE, Sample, observed_range

KNOBS = {"price": (10.0, 50.0), "days": manul.Stepped(1, 4, 1), "template": manul.Choice(["a", "b"])}


def number_log(rows=300, **declared):
    rng = np.random.default_rng(rows)
    return manul.Log(rng.random((rows, 2), np.float32), rng.random(rows), np.ones(rows), rng.random(rows), **declared)


def knobs_log(rows=300, **declared):
    rng = np.random.default_rng(rows)
    actions = {"price": rng.uniform(10, 50, rows), "days": rng.integers(1, 5, rows).astype(float)}
    actions["template"] = rng.choice(["a", "b"], rows).astype(object)
    by_knob = {"price": np.full(rows, 1 / 40), "days": np.full(rows, 1 / 4), "template": np.full(rows, 1 / 2)}
    contexts = rng.random((rows, 2), np.float32)
    options = {"knobs": KNOBS, "densities_by_knob": by_knob, **declared}
    return manul.Log(contexts, actions, np.full(rows, 1 / 320), rng.random(rows), **options)


LOGS = {"number": number_log, "knobs": knobs_log}


def cut(log, *places):
    return [log.rows(slice(first, last)) for first, last in zip((0, *places), (*places, len(log)), strict=True)]


@pytest.mark.parametrize("make", LOGS.values(), ids=LOGS)
@pytest.mark.parametrize("size", [1, 7, 128, SIZE])
def test_pieces_are_those_of_the_whole_log_however_it_is_cut(make, size):
    log = make()
    whole = list(Sample.of(log).pieces(size))
    for batches in (cut(log, 1, 2, 3, 250), iter(cut(log, 128, 200)), [log.rows(slice(0)), log]):
        for one, other in zip(whole, Sample.of(batches).pieces(size), strict=True):
            assert (one.first, len(one)) == (other.first, len(other))
            for name in ("positions", "densities", "losses", "shares", "contexts"):
                assert np.array_equal(getattr(one, name), getattr(other, name)), name


def literal_prologue(first, actions, losses, rewards):
    """What each function did on its own: given ranges, then those of the log, then (0, 1)."""
    span = actions or first.action_range or (0.0, 1.0)
    given = losses or (rewards and (-rewards[1], -rewards[0]))
    return span, given or first.loss_range or (0.0, 1.0)


@pytest.mark.parametrize("declared", [{}, {"action_range": (0, 2)}, {"action_range": (0, 2), "reward_range": (-1, 3)}])
@pytest.mark.parametrize(
    "given", [{}, {"actions": (0, 4)}, {"rewards": (-2, 0)}, {"actions": (0, 4), "losses": (0, 2)}]
)
@pytest.mark.parametrize(
    "wrap", [lambda log: log, lambda log: [log], lambda log: iter([log])], ids=["log", "list", "iter"]
)
def test_ranges_are_the_given_ones_or_those_of_the_log(declared, given, wrap):
    log = number_log(**declared, rewards=True)
    sample = Sample.of(wrap(log), **given)
    assert (sample.span, sample.scale) == literal_prologue(
        log, *(given.get(name) for name in ("actions", "losses", "rewards"))
    )


def test_what_a_log_does_not_declare_is_as_in_the_agent_that_decided():
    agent, declared = manul.Auto(actions=(0, 4), losses=(0, 2)), number_log(action_range=(0, 1), loss_range=(0, 1))
    for like in (agent, number_log(action_range=(0, 4), loss_range=(0, 2))):
        assert (Sample.of(number_log(), like=like).span, Sample.of(number_log(), like=like).scale) == ((0, 4), (0, 2))
        assert (Sample.of(declared, like=like).span, Sample.of(declared, like=like).scale) == ((0, 1), (0, 1))
        assert Sample.of(number_log(), actions=(0, 8), like=like).span == (0, 8)
    assert Sample.of(number_log(), like=manul.Auto(losses="auto")).scale == observed_range(number_log())


def test_auto_reads_the_log_and_leaves_it_to_be_read_again():
    log = number_log()
    sample = Sample.of(cut(log, 100), losses="auto")
    assert sample.scale == observed_range(log) == (log.losses.min(), log.losses.max())
    assert sum(len(rows) for rows in sample.pieces()) == len(log)
    with pytest.raises(ParameterError, match="The range 'auto' reads the log twice, but log is an iterator"):
        Sample.of(iter([log]), losses="auto")


def test_an_iterator_is_refused_if_it_is_needed_twice():
    with pytest.raises(ParameterError, match="optimize reads the log twice"):
        Sample.of(iter([number_log()]), purpose="optimize", passes=2)
    with pytest.raises(ParameterError, match="SLOPE reads the log twice"):
        Sample.of(iter([number_log()])).repeatable("SLOPE")


@pytest.mark.parametrize(
    ("batches", "error"),
    [
        ([number_log(), number_log(rewards=True)], "all have losses or all have rewards"),
        ([number_log(), knobs_log()], "same knobs"),
        ([number_log(), manul.Log([{"a": 1.0}], *np.ones((3, 1)))], "rows of numbers, or all must have named contexts"),
        ([number_log(), number_log(lows=np.zeros(300), highs=np.ones(300))], "in all batches or in none"),
        ([number_log(), manul.Log(np.ones((1, 3), np.float32), *np.ones((3, 1)))], "same width"),
    ],
)
def test_batches_that_do_not_agree_are_refused(batches, error):
    with pytest.raises(InputError, match=error):
        list(Sample.of(batches).pieces())


def test_single_rows_are_joined_and_give_the_same_result():
    log = manul.simulate(manul.Cats(leaves=4, bandwidth=1 / 4), manul.worlds.linear(rounds=300, width=2)).log
    single = [log.rows(slice(row, row + 1)) for row in range(len(log))]
    assert [len(batch) for batch in Sample.of(single).batches] == [300]
    assert str(manul.optimize(single)) == str(manul.optimize(log))


def test_batches_that_differ_stay_apart():
    log, ranged = number_log(), number_log(action_range=(0, 2))
    assert [len(batch) for batch in Sample.of([log, ranged, ranged]).batches] == [300, 600]


@pytest.mark.parametrize("make", LOGS.values(), ids=LOGS)
def test_a_survey_knows_the_rows_whatever_their_batches_are(make):
    log = make()
    survey = Sample.of(log).survey(contexts=True)
    assert survey == Sample.of(cut(log, 10, 200)).survey(contexts=True)
    assert survey.rows == 300
    assert Sample.of(log.rows(np.arange(300)[::-1])).survey().checksums["actions"] != survey.checksums["actions"]


@pytest.mark.parametrize("make", LOGS.values(), ids=LOGS)
def test_the_rows_of_single_knobs_multiply_to_those_of_all(make):
    rows = Rows.of(make())
    relative = [one.densities / (1 / one.volumes[""]) for _, one in rows.knob_rows()]
    assert np.allclose(np.prod(relative, axis=0), rows.relative[1])
    assert np.allclose(rows.relative[1], 1.0)


def test_the_actions_of_a_log_with_knobs_have_their_own_ranges():
    with pytest.raises(ParameterError, match="actions applies to logs with one knob"):
        Sample.of(knobs_log(), actions=(0, 1))


def test_rewards_are_for_logs_of_rewards():
    with pytest.raises(ParameterError, match="this one has losses"):
        Sample.of(number_log(), rewards=(0, 1))
