import pytest

import manul
from manul.offpolicy.small_batches import join_small


@pytest.fixture
def log():
    return manul.simulate(manul.Cats(leaves=4, bandwidth=1 / 4), manul.worlds.linear(rounds=300, width=2)).log


def test_single_rows_are_joined_and_give_the_same_result(log):
    single = [log.rows(slice(row, row + 1)) for row in range(len(log))]
    assert [len(batch) for batch in join_small(single)] == [300]
    assert str(manul.optimize(single)) == str(manul.optimize(log))


def test_batches_that_differ_stay_apart(log):
    ranged = manul.Log(log.contexts, log.actions, log.densities, log.losses, action_range=(0, 2))
    assert [len(batch) for batch in join_small([log, ranged, ranged])] == [300, 600]


def test_an_iterator_stays_as_it_is(log):
    batches = iter([log, log])
    assert join_small(batches) is batches
