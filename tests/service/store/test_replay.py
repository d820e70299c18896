"""Random operations with restarts: what a store says is what a plain list of the same operations says."""

import random

import pytest

from manul.service.store import OUTCOMES, LoopGone


def play_round(kept, rng, expected):
    """One operation on the store and on the plain lists."""
    what = rng.choice(["decide", "decide", "lose", "end", "reopen", "reset"])
    if what == "decide":
        first = max(expected["decided"], default=0) + rng.choice([1, 1, 5])
        block = kept.decide(first, rng.choice([1, 3]), time=rng.uniform(0, 10))
        expected["decided"] |= {each.number: block.time for each in block.decisions()}
    elif what == "lose" and set(expected["decided"]) - set(expected["settled"]):
        number = rng.choice(sorted(set(expected["decided"]) - set(expected["settled"])))
        kept.lose(number, kind=rng.choice(OUTCOMES))
        expected["settled"].append(number)
    elif what == "end":
        before = rng.uniform(0, 10)
        with kept.store.transaction() as transaction:
            ended = transaction.take_expired(kept.loop, before, 10**6)
        due = {number for number, time in expected["decided"].items() if time < before} - expected["ended"]
        assert {each.number for each in ended} == due
        expected["ended"] |= due
    elif what == "reopen":
        kept.reopen()
    elif what == "reset" and rng.random() < 0.3:
        reset(kept, expected)


def reset(kept, expected):
    old = kept.loop
    with kept.store.transaction() as transaction:
        transaction.delete_loop(old)
        kept.loop = transaction.add_loop("heat", b"{}", 1.0, apprentice=False)
        transaction.purge(5)
    assert kept.loop > old
    with pytest.raises(LoopGone):
        kept.store.counts(old)
    expected.update(decided={}, settled=[], ended=set())


@pytest.mark.parametrize("seed", range(2))
def test_random_operations_and_restarts_keep_everything(kept, seed):
    rng, expected = random.Random(seed), {"decided": {}, "settled": [], "ended": set()}
    for _ in range(40):
        play_round(kept, rng, expected)
        counts = kept.store.counts(kept.loop)
        assert (counts.decisions, counts.outcomes) == (len(expected["decided"]), len(expected["settled"]))
        stored = [each.number for block in kept.store.blocks(kept.loop, 0, 10**6) for each in block.decisions()]
        assert stored == sorted(expected["decided"])
        assert [event.decision for event, _ in kept.store.events(kept.loop, 0, 10**6)] == expected["settled"]
