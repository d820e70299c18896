"""Decision numbers that a replica reserves ahead, or not if a rollout needs them in order."""

from itertools import count

from manul.service.store.numbers import Numbers


def counter():
    """Reserves the next numbers, as the store does."""
    last = 0

    def fetch(_loop, size):
        nonlocal last
        first, last = last + 1, last + size
        return first

    return fetch


def test_numbers_at_hand_when_reserving_ahead_ends_are_returned_once():
    numbers = Numbers(counter())
    numbers.refill(1, 1)
    assert numbers.take(1, 3) == 1
    assert numbers.keep(1, ahead=False) == [range(4, 17)]
    assert numbers.keep(1, ahead=False) == []
    assert numbers.take(1, 1) is None


def test_numbers_that_were_on_their_way_when_reserving_ahead_ended_are_returned_too():
    firsts = count(1, 100)

    def fetch(loop, _size):
        numbers.keep(loop, ahead=False)
        return next(firsts)

    numbers = Numbers(fetch)
    numbers.refill(1, 2)
    assert numbers.keep(1, ahead=False) == [range(3, 17)]
    assert [numbers.take(1, 1) for _ in range(3)] == [1, 2, None]


def test_chunks_are_fetched_again_once_a_rollout_has_ended():
    numbers = Numbers(counter())
    numbers.keep(1, ahead=False)
    numbers.refill(1, 1)
    assert [numbers.take(1, 1), numbers.take(1, 1)] == [1, None]
    numbers.keep(1, ahead=True)
    numbers.refill(1, 1)
    assert numbers.take(1, 16) == 2


def test_numbers_that_were_ordered_ahead_are_not_kept_once_reserving_ahead_has_ended():
    numbers = Numbers(counter())
    numbers.keep(1, ahead=False)
    numbers._refill(1, 8, needed=0)
    assert numbers.take(1, 1) is None
    assert numbers.keep(1, ahead=False) == [range(1, 9)]


def test_numbers_that_are_left_can_be_given_up():
    numbers = Numbers(counter())
    numbers.keep(1, ahead=False)
    numbers.refill(1, 8)
    numbers.take(1, 3)
    assert numbers.keep(1, ahead=False) == []
    assert numbers.keep(1, ahead=False, left=False) == [range(4, 9)]
    assert numbers.take(1, 1) is None
