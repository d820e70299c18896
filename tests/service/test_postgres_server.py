"""The tests' own PostgreSQL runs wherever it is installed, also where only its owner may enter."""

import shutil

import psycopg
import pytest

from tests.service.postgres import Server, package

pytestmark = pytest.mark.whole


def test_a_server_starts_from_a_folder_that_only_its_owner_may_enter(tmp_path):
    closed = tmp_path / "a b"
    closed.mkdir(0o700)
    for part in (package(), package().with_name(package().name + ".libs")):
        shutil.copytree(part, closed / part.name, symlinks=True, ignore=shutil.ignore_patterns("include", "*.a"))
    server = Server(closed / package().name)
    try:
        with psycopg.connect(server.database()) as connection:
            assert connection.execute("SELECT 6 * 7").fetchone() == (42,)
    finally:
        server.remove()
