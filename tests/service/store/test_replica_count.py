"""How many replicas a replica counts with: never fewer than may be making decisions."""

import pytest

from manul.service.store.replica_count import COUNT_SECONDS, SETTLE_SECONDS, ReplicaCount


@pytest.fixture
def alone():
    replicas = ReplicaCount()
    replicas.read(1, 0.0)
    return replicas


def test_one_that_starts_alone_counts_at_once(alone):
    assert alone.membership(0.1) == (1, 0)


def test_one_that_starts_beside_others_waits_until_these_have_seen_it_and_reads_their_decisions():
    replicas = ReplicaCount()
    for time in range(int(SETTLE_SECONDS) + 1):
        replicas.read(2, float(time))
        assert replicas.membership(time) == ((0, 0) if time < SETTLE_SECONDS else (2, 1))


def test_an_old_count_is_not_used(alone):
    assert alone.membership(COUNT_SECONDS + 0.1).replicas == 0
    alone.read(1, 5.0)
    assert alone.membership(5.1) == (1, 0)


def test_one_that_has_left_is_counted_until_it_has_stopped_and_then_its_decisions_are_read(alone):
    alone.read(3, 1.0)
    alone.read(2, 2.0)
    for time in (3.0, 4.0):
        alone.read(2, time)
        assert alone.membership(time) == (3, 0)
    alone.read(2, 2.0 + SETTLE_SECONDS)
    assert alone.membership(2.0 + SETTLE_SECONDS) == (2, 1)


def test_one_whose_session_was_lost_waits_even_if_it_is_alone(alone):
    alone.lose()
    assert alone.membership(0.1).replicas == 0
    alone.read(1, 1.0)
    assert alone.membership(1.1).replicas == 0
    alone.read(1, 1.0 + SETTLE_SECONDS)
    assert alone.membership(1.0 + SETTLE_SECONDS) == (1, 1)
