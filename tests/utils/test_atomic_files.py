"""Files are there in whole or not at all."""

import os
from contextlib import suppress
from pathlib import Path

import pytest

from manul.errors import FileError
from manul.utils.atomic_files import atomic_path, table_beside, write_csv, write_whole


def test_on_an_error_the_old_file_stays_and_nothing_else(tmp_path):
    write_whole(tmp_path / "a.txt", "old")
    with suppress(RuntimeError), atomic_path(tmp_path / "a.txt") as partial:
        partial.write_text("half")
        raise RuntimeError
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a.txt", "old")]


def test_file_and_folder_are_on_disk_before_it_returns(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(Path(f"/proc/self/fd/{descriptor}").readlink()))
    write_csv(tmp_path / "t.csv", ["a"], [[1]])
    assert synced == [tmp_path / "t.csv.partial", tmp_path]


def test_a_folder_that_does_not_exist_is_one_sentence(tmp_path):
    with pytest.raises(FileError, match=r"Cannot write .*t\.csv: No such file or directory\. Choose another folder\."):
        write_whole(tmp_path / "missing" / "t.csv", "")


def test_the_table_of_a_file_replaces_no_table_of_somebody_else(tmp_path):
    (tmp_path / "sales.csv").write_text("date,price\n2025-01-01,7\n")
    assert table_beside(tmp_path / "sales.manul", "candidate") == tmp_path / "sales.manul.csv"
    write_csv(tmp_path / "est.csv", ["series", "value"], [])
    assert table_beside(tmp_path / "est.png", "series") == tmp_path / "est.csv"
