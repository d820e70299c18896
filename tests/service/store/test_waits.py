"""Every decision's wait ends, however late and in whatever order its block became durable."""


def ended(kept, before, limit=100):
    with kept.store.transaction() as transaction:
        return [each.number for each in transaction.take_expired(kept.loop, before, limit)]


def test_a_block_that_is_durable_late_with_a_lower_number_ends_too(kept):
    kept.decide(11, time=5.0)
    assert ended(kept, 6.0) == [11]
    kept.decide(1, count=3, time=1.0)
    kept.reopen()
    assert ended(kept, 6.0) == [1, 2, 3]
    assert ended(kept, 6.0) == []


def test_a_block_with_an_older_time_behind_a_newer_one_ends_in_its_own_time(kept):
    kept.decide(1, time=9.0)
    kept.decide(2, time=1.0)
    assert ended(kept, 5.0) == [2]
    assert ended(kept, 10.0) == [1]


def test_what_was_asked_for_in_a_transaction_that_failed_is_asked_for_again(kept):
    kept.decide(1)
    try:
        with kept.store.transaction() as transaction:
            assert [each.number for each in transaction.take_expired(kept.loop, 5.0, 10)] == [1]
            raise ZeroDivisionError
    except ZeroDivisionError:
        pass
    assert ended(kept, 5.0) == [1]


def test_a_limit_ends_the_oldest_first(kept):
    for number in (1, 2, 3):
        kept.decide(number, time=10.0 - number)
    assert [ended(kept, 20.0, limit=1) for _ in range(4)] == [[3], [2], [1], []]


def test_the_decisions_come_whole_and_leave_the_cache_to_recent_ones(kept):
    (decision,) = kept.decide(1, time=1.0).decisions()
    kept.reopen()
    with kept.store.transaction() as transaction:
        assert transaction.take_expired(kept.loop, 5.0, 10) == [decision]
    assert kept.store._recent.missing(kept.loop, [1]) == [1]
