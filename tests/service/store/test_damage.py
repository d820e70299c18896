"""One damaged row is set aside, with a line in the log; everything around it can still be read."""

import pytest

from manul.service.store import Snapshot, StoreFailure

GARBAGE = b"\xc1\x00garbage"


def add_snapshots(kept, *events):
    with kept.store.transaction() as transaction:
        for event in events:
            transaction.add_snapshot(kept.loop, Snapshot(event, b"m%d" % event, event, 0, b"h"), keep=3)


def test_older_snapshots_can_be_asked_for(kept):
    assert kept.store.snapshot(kept.loop) is None
    add_snapshots(kept, 5, 9, 12)
    found = [kept.store.snapshot(kept.loop, before=before) for before in (None, 12, 10, 9, 5)]
    assert [each and each.event for each in found] == [12, 9, 9, 5, None]
    assert found[1] == Snapshot(9, b"m9", 9, 0, b"h")


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
def test_a_snapshot_whose_row_has_other_types_is_passed_over(kept, caplog):
    add_snapshots(kept, 5, 9)
    kept.damage("UPDATE snapshots SET body = 'text', history = 7 WHERE event = 9")
    assert kept.store.snapshot(kept.loop).event == 5
    assert "snapshot" in caplog.text


def add_pieces(kept, event, *pieces, complete=True):
    for place, piece in enumerate(pieces):
        with kept.store.transaction() as transaction:
            transaction.add_piece(kept.loop, event, place, piece)
    if complete:
        with kept.store.transaction() as transaction:
            transaction.add_snapshot(kept.loop, Snapshot(event, b"", 1, 0), keep=2, pieces=len(pieces))


def pieces_of(kept):
    """The events of all pieces in the store."""
    with kept.connected() as connection:
        return [event for (event,) in connection.execute("SELECT event FROM pieces ORDER BY event, place").fetchall()]


def test_a_snapshot_is_seen_once_all_its_pieces_are_there(kept):
    add_snapshots(kept, 5)
    add_pieces(kept, 9, b"one", b"two", complete=False)
    kept.reopen()
    assert kept.store.snapshots(kept.loop) == [5]
    add_pieces(kept, 9, b"one", b"two", b"three") if "://" not in kept.place else add_pieces(kept, 10, b"onetwothree")
    assert kept.store.snapshot(kept.loop).model == b"onetwothree"


def test_a_snapshot_without_one_of_its_pieces_is_passed_over(kept, caplog):
    add_pieces(kept, 5, b"a", b"b")
    add_pieces(kept, 9, b"c", b"d")
    assert kept.store.snapshot(kept.loop).model == b"cd"
    kept.damage("DELETE FROM pieces WHERE event = 9 AND place = 0")
    assert kept.store.snapshot(kept.loop).model == b"ab"
    assert "snapshot 9 of loop 1 is damaged" in caplog.text


def test_pieces_of_older_snapshots_and_of_those_that_were_not_completed_go(kept):
    add_pieces(kept, 1, b"a", b"b", complete=False)
    for event in (5, 6, 7, 8, 9):
        add_pieces(kept, event, b"a", b"b")
    assert {8, 9} <= {*pieces_of(kept)} <= {7, 8, 9}


def test_a_damaged_block_leaves_its_decisions_unknown_and_the_others_alone(kept, caplog):
    for number in (1, 2, 3):
        kept.decide(number)
    kept.lose(1, 2, 3)
    kept.damage("UPDATE blocks SET body = ? WHERE first = 2", GARBAGE)
    kept.reopen()
    facts = kept.store.events(kept.loop, 0, 10)
    assert [(event.number, decided and decided.number) for event, decided in facts] == [(1, 1), (2, None), (3, 3)]
    assert [block.first for block in kept.store.blocks(kept.loop, 0, 1)] == [1]
    assert [block.first for block in kept.store.blocks(kept.loop, 1, 1)] == [3]
    assert "decisions from number 2 of loop 1 cannot be read" in caplog.text
    with kept.store.transaction() as transaction:
        assert transaction.decisions(kept.loop, [2, 3])[0] is None


def test_a_damaged_first_decision_gives_way_to_the_next(kept):
    for number in (1, 2):
        kept.decide(number)
    kept.damage("UPDATE blocks SET body = ? WHERE first = 1", GARBAGE)
    kept.damage("UPDATE firsts SET body = ?", GARBAGE)
    kept.reopen()
    assert kept.store.first_decision(kept.loop).number == 2


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
@pytest.mark.parametrize("column", ["decision = 'x'", "kind = 'other'", "loss = 'x'", "time = x'00'"])
def test_a_damaged_event_keeps_its_number_and_says_nothing_else(kept, column, caplog):
    for number in (1, 2, 3):
        kept.decide(number)
    kept.lose(1, 2, 3)
    kept.damage(f"UPDATE events SET {column} WHERE number = 2")
    events = [event for event, _ in kept.store.events(kept.loop, 0, 10)]
    assert [(event.number, event.kind) for event in events] == [(1, "loss"), (2, "damaged"), (3, "loss")]
    assert "event 2 of loop 1 is damaged" in caplog.text


def test_a_text_that_is_no_utf8_stops_nobody(kept):
    kept.decide(1)
    kept.lose(1)
    bad = "CAST(x'61ff' AS TEXT)" if "://" not in kept.place else "'\\xff'::bytea"
    kept.damage(f"UPDATE events SET key = {bad}")
    assert len(kept.store.events(kept.loop, 0, 10)) == 1


def test_a_model_that_is_missing_is_empty(kept):
    assert kept.store.model(kept.loop, 7) == b""


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
def test_a_read_that_fails_is_a_store_failure(kept):
    kept.damage("DROP TABLE events")
    with pytest.raises(StoreFailure):
        kept.store.events(kept.loop, 0, 10)
