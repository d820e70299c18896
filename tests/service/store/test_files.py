"""The file of a store: another program's is refused as it is, and no name leads into one that is open."""

import os
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from manul.errors import FileError
from manul.service.store.store_registry import open_store


@pytest.fixture
def place(tmp_path):
    return tmp_path / "decisions.db"


def make_database(path, *statements):
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


OTHERS = {
    "tables": ["CREATE TABLE notes (text)", "INSERT INTO notes VALUES ('mine')"],
    "version 1": ["CREATE TABLE loops (number, name)", "PRAGMA user_version = 1"],
    "version 2": ["CREATE TABLE notes (text)", "PRAGMA user_version = 2"],
    "application": ["PRAGMA application_id = 7"],
    "write-ahead log": ["PRAGMA journal_mode = WAL", "CREATE TABLE notes (text)"],
}


@pytest.mark.parametrize("statements", OTHERS.values(), ids=OTHERS)
def test_the_database_of_another_program_is_refused_as_it_is(place, statements):
    make_database(place, *statements)
    before = place.read_bytes()
    with pytest.raises(FileError, match="is a database of another program"):
        open_store(str(place))
    assert place.read_bytes() == before
    assert os.listdir(place.parent) == ["decisions.db"]  # noqa: PTH208 - the names are the claim


@pytest.mark.whole
def test_the_open_database_of_another_program_is_refused_as_it_is(place):
    with closing(sqlite3.connect(place, isolation_level=None)) as other:
        other.execute("PRAGMA journal_mode = WAL")
        other.execute("CREATE TABLE notes (text)")
        with pytest.raises(FileError, match="a database of another program"):
            open_store(str(place))
        assert other.execute("SELECT name FROM sqlite_master").fetchall() == [("notes",)]


@pytest.mark.parametrize("content", [b"x", b"some text", b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_file_that_is_no_database_is_refused_as_it_is(place, content):
    place.write_bytes(content)
    with pytest.raises(FileError, match="store of manul"):
        open_store(str(place))
    assert place.read_bytes() == content


@pytest.mark.whole
@pytest.mark.parametrize("link", ["symlink_to", "hardlink_to"])
def test_no_link_leads_into_a_store_that_is_open(place, link):
    store = open_store(str(place))
    other = place.with_name("other.db")
    getattr(other, link)(place)
    assert _refusal_elsewhere(other) == _refusal_here(other)
    with store.transaction() as transaction:
        transaction.add_loop("heat", b"{}", 1.0, apprentice=False)
    store.close()
    open_store(str(other)).close()


def _refusal_here(path):
    with pytest.raises(FileError, match="is in use by another process") as refusal:
        open_store(str(path))
    return str(refusal.value)


def _elsewhere(script, path):
    """What a script says about a path in a process of its own."""
    command = [sys.executable, "-c", script, str(path)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout.strip()


def _refusal_elsewhere(path):
    return _elsewhere(OPEN, path)


OPEN = """
import sys
from manul.errors import FileError
from manul.service.store.store_registry import open_store
try:
    open_store(sys.argv[1])
except FileError as refusal:
    print(refusal)
"""
# A connection that could close a database for good must find that another is on it.
CLOSE = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=0)
connection.execute("PRAGMA locking_mode = EXCLUSIVE")
try:
    connection.execute("BEGIN EXCLUSIVE")
except sqlite3.OperationalError as error:
    print(error)
"""


@pytest.mark.whole
def test_a_second_try_in_the_same_process_leaves_the_locks_of_the_first(place):
    store = open_store(str(place))
    _refusal_here(place)
    assert _elsewhere(CLOSE, place) == "database is locked"
    store.close()


def test_a_store_whose_creation_was_cut_short_is_made_anew(place):
    make_database(place, "PRAGMA journal_mode = WAL")
    store = open_store(str(place))
    assert store.loops() == []
    store.close()
