"""What a transaction has prefetched is what it would have read, with what it has added since."""

import pytest

from manul.service.store import Event, Lookup, LoopGone


def loss(decision, value=0.25):
    return Event(0, decision, "loss", value, 2.0)


def test_numbers_decisions_and_events_are_those_of_reads_without_it(kept):
    kept.decide(1, count=3, ids=["a", "b", None])
    kept.decide(4, count=2)
    kept.lose(1, 4, 1)
    kept.reopen()
    found = []
    for lookups in ([], [Lookup(kept.loop, ["a", "none"], [3, 4, 3, 99]), Lookup(kept.loop, ["b"], [])]):
        with kept.store.transaction() as transaction:
            transaction.prefetch(lookups)
            names = transaction.numbers(kept.loop, ["a", "b", "none"])
            decisions = transaction.decisions(kept.loop, [1, 2, 3, 4, 99])
            found.append((names, decisions, transaction.events_of(kept.loop, [1, 2, 4, 4, 99])))
    assert found[0] == found[1]
    assert found[0][0] == [1, 2, None]


def test_events_that_were_added_are_in_later_reads_and_in_the_store(kept):
    kept.decide(1, count=3)
    kept.lose(1)
    with kept.store.transaction() as transaction:
        transaction.prefetch([Lookup(kept.loop, [], [1, 2])])
        added = transaction.add_events(kept.loop, [loss(2), loss(3)])
        transaction.events_of(kept.loop, [2])[2].append("of the caller")
        first = transaction.events_of(kept.loop, [1, 2])
        assert transaction.events_of(kept.loop, [2, 3]) == {2: added[:1], 3: added[1:]}
        last = transaction.add_events(kept.loop, [loss(1)])
        assert transaction.events_of(kept.loop, [1, 2]) == {1: first[1] + last, 2: added[:1]}
    assert kept.store.events_of(kept.loop, [1, 2, 3]) == {1: first[1] + last, 2: added[:1], 3: added[1:]}
    assert kept.store.counts(kept.loop).events == 4


def test_a_loop_that_was_deleted_fails_alone(kept):
    kept.decide(1)
    other = kept.add_loop("light")
    with kept.store.transaction() as transaction:
        transaction.delete_loop(other)
    with kept.store.transaction() as transaction:
        transaction.prefetch([Lookup(other, ["a"], [1]), Lookup(kept.loop, [], [1])])
        with pytest.raises(LoopGone):
            transaction.add_events(other, [loss(1)])
        transaction.add_events(kept.loop, [loss(1)])
    assert len(kept.store.events_of(kept.loop, [1])[1]) == 1


def test_decisions_that_were_forgotten_are_gone_for_the_rest_of_the_transaction(kept):
    block = kept.decide(1, count=2, ids=["a", "b"])
    kept.decide(3)
    with kept.store.transaction() as transaction:
        transaction.prefetch([Lookup(kept.loop, ["a"], [2, 3])])
        transaction.add_events(kept.loop, [loss(2), loss(3)])
        transaction.forget(kept.loop, [block])
        assert transaction.numbers(kept.loop, ["a"]) == [None]
        assert list(transaction.events_of(kept.loop, [1, 2, 3])) == [3]
