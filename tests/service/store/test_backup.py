"""A backup contains everything a store has, restores to either kind of store, and is refused if anything is wrong."""

import shutil
import sqlite3
import tracemalloc
import zipfile
from contextlib import closing, suppress
from pathlib import Path

import msgspec
import pytest

from manul.errors import FileError, ParameterError
from manul.service.store import DownloadPiece, Event, Snapshot, backup_file
from manul.service.store.backup import backup, restore
from manul.service.store.store_registry import open_store
from tests.service.conftest import STORES, empty_store


@pytest.fixture(params=STORES)
def target(request, tmp_path):
    """The place of an empty store of every kind."""
    return empty_store(request, tmp_path / "restored.db")


@pytest.fixture
def filled(kept):
    """A store with something in every table, and with a deleted loop whose rows are not purged yet."""
    kept.decide(1, 3, ids=["a\0b", None, "\N{SNOWMAN}"])
    kept.decide(9, 2, time=5.0)
    kept.lose(1, 9)
    first, kept.loop = kept.loop, kept.add_loop("light")
    kept.decide(1, 2, ids=["gone", None])
    kept.lose(2)
    with kept.store.transaction() as transaction:
        assert [each.number for each in transaction.take_expired(first, 2.0, 100)] == [1, 2, 3]
        (event,) = transaction.add_events(first, [Event(0, 0, "import", 0.0, 7.0, "k\0\N{SNOWMAN}")])
        transaction.add_model(first, event.number, b"\x00model")
        transaction.add_snapshot(first, Snapshot(2, b"\xffsnapshot", 2, 0, b"history"), keep=2)
        transaction.add_piece(first, 3, 0, b"\xffsnap")
        transaction.add_piece(first, 3, 1, b"shot")
        transaction.add_snapshot(first, Snapshot(3, b"", 2, 0, b"history"), keep=2, pieces=2)
        transaction.add_download(first, DownloadPiece("5167", 0, 1, 7.0, b"\xffmodel"))
        transaction.change_loop(first, paused=True)
        transaction.delete_loop(kept.loop)
    kept.loop = first
    return kept


@pytest.fixture
def saved(filled, tmp_path):
    """A backup of the filled store."""
    backup(filled.place, tmp_path / "monday.zip")
    return tmp_path / "monday.zip"


def contents(file):
    """The rows of a backup by table and column, with texts and booleans as one kind of store has them."""
    with backup_file.open_backup(Path(file)) as reader:
        tables = {name: (table.columns, list(reader.rows(name))) for name, table in reader.manifest.tables.items()}
        last = reader.manifest.last_loop
    return last, {
        name: [{column: plain(value) for column, value in zip(columns, row, strict=True)} for row in rows]
        for name, (columns, rows) in tables.items()
    }


def plain(value):
    return value.encode() if isinstance(value, str) else int(value) if isinstance(value, bool) else value


def test_a_restored_store_has_every_row_of_the_original(saved, target, tmp_path):
    assert restore(saved, target).loops == 1
    backup(target, tmp_path / "again.zip")
    last, tables = contents(saved)
    assert (last, tables) == contents(tmp_path / "again.zip")
    assert last == 2
    assert {name: len(rows) for name, rows in tables.items()} == {
        "loops": 1, "counts": 1, "firsts": 1, "events": 3, "ids": 2, "blocks": 2, "models": 1, "snapshots": 2,
        "pieces": 2, "downloads": 1,
    }  # fmt: skip


def test_a_restored_store_says_what_the_original_says_and_goes_on(filled, saved, target):
    restore(saved, target)
    original, restored = filled.store, open_store(target)
    assert restored.loops() == original.loops()
    assert restored.counts(1) == original.counts(1)
    assert restored.events(1, 0, 9) == original.events(1, 0, 9)
    assert restored.blocks(1, 0, 9) == original.blocks(1, 0, 9)
    assert restored.snapshot(1) == original.snapshot(1)
    assert restored.model(1, 3) == b"\x00model"
    with restored.transaction() as transaction:
        assert transaction.numbers(1, ["a\0b", "\N{SNOWMAN}", "gone"]) == [1, 3, None]
        assert [each.number for each in transaction.take_expired(1, 9.0, 100)] == [9, 10]
        assert transaction.add_loop("light", b"{}", 1.0, apprentice=False) == 3
        assert transaction.purge(100) is False
    restored.close()


def test_a_store_with_loops_is_not_restored_to(saved, target):
    restore(saved, target)
    before = contents(saved)
    with pytest.raises(FileError, match="already contains loops"):
        restore(saved, target)
    backup(target, saved)
    assert contents(saved) == before


def test_one_loop_is_restored_beside_others_under_a_number_of_its_own(saved, target, filled):
    (row,) = filled.store.loops()
    store = open_store(target)
    with store.transaction() as transaction:
        other = transaction.add_loop("other", b"{}", 1.0, apprentice=False)
    store.close()
    assert str(restore(saved, target, loop=row.name)).startswith(f"{saved}: 1 loop, 3 events")
    for loop, sentence in (row.name, f"already contains the loop '{row.name}'"), ("light", "has no loop 'light'"):
        with pytest.raises(FileError, match=sentence):
            restore(saved, target, loop=loop)
    store = open_store(target)
    assert [each.name for each in store.loops()] == ["other", row.name]
    number = store.loops()[1].number
    assert number != other
    assert store.counts(number) == filled.store.counts(1)
    assert store.events(number, 0, 9) == filled.store.events(1, 0, 9)
    assert store.snapshot(number) == filled.store.snapshot(1)
    with store.transaction() as transaction:
        assert transaction.add_loop("later", b"{}", 1.0, apprentice=False) > number
    store.close()


def test_what_deleted_loops_have_left_does_not_mix_with_what_is_restored(saved, filled, tmp_path):
    with filled.store.transaction() as transaction:
        transaction.delete_loop(1)
    filled.store.close()
    restore(saved, filled.place)
    filled.store = open_store(filled.place)
    with filled.store.transaction() as transaction:
        assert transaction.purge(100) is False
    backup(filled.place, tmp_path / "again.zip")
    assert contents(tmp_path / "again.zip") == contents(saved)


def test_a_store_in_use_is_not_restored_to(saved, target):
    used = open_store(target)
    with pytest.raises(FileError, match=r"in use by another process|a service uses"):
        restore(saved, target)
    assert used.loops() == []
    used.close()


def test_a_failure_in_the_middle_leaves_the_store_as_it_was(saved, target, monkeypatch):
    monkeypatch.setattr(backup_file.BackupReader, "rows", fail_in_second_pass(backup_file.BackupReader.rows))
    with pytest.raises(KeyboardInterrupt):
        restore(saved, target)
    assert "://" in target or not list(Path(target).parent.glob("restored*"))
    store = open_store(target)
    assert store.loops() == []
    store.close()


def fail_in_second_pass(rows):
    read = []

    def interrupted(reader, name):
        yield from rows(reader, name)
        read.append(name)
        if read.count("events") == 2:
            raise KeyboardInterrupt

    return interrupted


def test_an_interrupted_backup_leaves_the_one_before(filled, saved, monkeypatch):
    before = saved.read_bytes()

    def interrupted(*given):
        assert next(given[-1])
        raise KeyboardInterrupt

    monkeypatch.setattr(backup_file.BackupWriter, "add", interrupted)
    with pytest.raises(KeyboardInterrupt):
        backup(filled.place, saved)
    assert saved.read_bytes() == before
    assert list(saved.parent.glob("monday*")) == [saved]


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
def test_a_damaged_file_restores_everything_or_nothing(saved, tmp_path):
    whole, expected, damaged = saved.read_bytes(), contents(saved), tmp_path / "damaged.zip"
    cuts = [whole[:length] for length in range(0, len(whole), 29)]
    flips = [whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :] for place in range(0, len(whole), 13)]
    restored = 0
    for content in (*cuts, *flips):
        damaged.write_bytes(content)
        with suppress(FileError):
            restore(damaged, str(tmp_path / "restored.db"))
        if (tmp_path / "restored.db").exists():
            backup(str(tmp_path / "restored.db"), tmp_path / "again.zip")
            assert contents(tmp_path / "again.zip") == expected
            (tmp_path / "restored.db").unlink()
            restored += 1
        assert not list(tmp_path.glob("restored*"))
    # Zip archives say some things twice; a change of what nobody reads is no damage.
    assert restored < len(flips) / 2


def rewrite(file, change):
    """Replaces the manifest of a backup."""
    with zipfile.ZipFile(file) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    manifest = msgspec.json.decode(members["manifest.json"])
    change(manifest)
    members["manifest.json"] = msgspec.json.encode(manifest)
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda found: found.update(version=9), "has version 9, newer than 1. Upgrade manul"),
        (lambda found: found.update(format="tar"), "is not a backup of manul"),
        (lambda found: found["tables"]["events"].update(rows=2), "is damaged"),
        (lambda found: found["tables"]["loops"]["columns"].__setitem__(1, "owner"), "contains 'loops.owner', which"),
        (lambda found: found["tables"].pop("ids"), "has no table 'ids'"),
    ],
)
def test_a_manifest_that_does_not_fit_is_one_sentence(saved, target, change, sentence):
    rewrite(saved, change)
    with pytest.raises(FileError, match=sentence):
        restore(saved, target)


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
def test_columns_that_an_older_backup_lacks_get_their_defaults(saved, tmp_path):
    with closing(sqlite3.connect(tmp_path / "newer.db")) as connection:
        open_store(str(tmp_path / "newer.db")).close()
        connection.execute("ALTER TABLE snapshots ADD COLUMN colour BLOB NOT NULL DEFAULT x'07'")
        connection.commit()
    restore(saved, str(tmp_path / "newer.db"))
    with closing(sqlite3.connect(tmp_path / "newer.db")) as connection:
        assert connection.execute("SELECT event, colour FROM snapshots").fetchall() == [(2, b"\x07"), (3, b"\x07")]


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
def test_the_store_itself_and_files_of_others_are_not_overwritten(filled, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    for path in (filled.place, str(tmp_path / "notes.txt")):
        before = Path(path).read_bytes()
        with pytest.raises(FileError, match="exists and is not a backup"):
            backup(filled.place, path)
        assert Path(path).read_bytes() == before


@pytest.mark.parametrize(
    ("place", "sentence"),
    [
        ("absent.db", "absent.db: no such file"),
        ("notes.txt", "cannot be read as a store of manul"),
        ("empty.db", "empty.db is not a store of manul"),
        ("other.db", "other.db is not a store of manul"),
        ("redis://localhost", "store of a backup must be one of postgres, postgresql, sqlite, got 'redis'"),
        ("postgresql://nobody@/nothing?host=/nowhere", "the PostgreSQL store cannot be read"),
    ],
)
def test_what_is_no_store_is_not_backed_up(tmp_path, monkeypatch, place, sentence):
    monkeypatch.chdir(tmp_path)
    Path("notes.txt").write_text("nothing of the kind, at some length" * 99)
    Path("empty.db").write_text("")
    with closing(sqlite3.connect("other.db")) as connection:
        connection.execute("CREATE TABLE mine (value)")
    with pytest.raises((FileError, ParameterError), match=sentence):
        backup(place, "monday.zip")
    assert not list(tmp_path.glob("monday*"))


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
def test_a_copy_of_a_store_that_nobody_has_open_can_be_backed_up(filled, saved, tmp_path):
    filled.store.close()
    shutil.copy(filled.place, tmp_path / "copy.db")
    backup(str(tmp_path / "copy.db"), tmp_path / "copy.zip")
    assert contents(tmp_path / "copy.zip") == contents(saved)
    filled.store = open_store(filled.place)


def test_what_is_written_during_a_backup_is_not_in_it(filled, saved, tmp_path, monkeypatch):
    add, firsts = backup_file.BackupWriter.add, iter(range(100, 200))

    def add_and_decide(writer, name, columns, rows):
        add(writer, name, columns, rows)
        first = next(firsts)
        filled.decide(first, ids=[f"new {name}"])
        filled.lose(first)
        filled.add_loop(name)

    monkeypatch.setattr(backup_file.BackupWriter, "add", add_and_decide)
    backup(filled.place, tmp_path / "busy.zip")
    assert contents(tmp_path / "busy.zip")[1] == contents(saved)[1]


def test_memory_does_not_grow_with_the_number_of_rows(tmp_path):
    rows = ((number, bytes(100_000)) for number in range(500))
    tracemalloc.start()
    with backup_file.create(tmp_path / "large.zip") as writer:
        writer.add("blocks", ["first", "body"], rows)
        parts = {"manul": "1", "store": "sqlite", "store_version": 2, "created": "", "last_loop": 1}
        writer.finish(backup_file.Manifest(**parts, tables=writer.tables))
    with backup_file.open_backup(tmp_path / "large.zip") as reader:
        assert sum(len(body) for _, body in reader.rows("blocks")) == 50_000_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10_000_000
