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
