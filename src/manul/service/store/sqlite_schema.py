"""The tables of a store in SQLite, as numbered migrations: a store of version n has had the first n of them."""

from __future__ import annotations

import sqlite3

# "manu" in ASCII, in the header of the file: this database is ours.
APPLICATION = 0x6D616E75

VERSION_1 = """
CREATE TABLE IF NOT EXISTS loops (
  number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, settings BLOB NOT NULL, created REAL NOT NULL,
  paused INTEGER NOT NULL DEFAULT 0, apprentice INTEGER NOT NULL DEFAULT 0, ended INTEGER NOT NULL DEFAULT 0,
  archived BLOB);
CREATE TABLE IF NOT EXISTS blocks (
  loop INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, count INTEGER NOT NULL, time REAL NOT NULL,
  body BLOB NOT NULL, PRIMARY KEY (loop, first));
CREATE TABLE IF NOT EXISTS ids (
  loop INTEGER NOT NULL, id TEXT NOT NULL, decision INTEGER NOT NULL, PRIMARY KEY (loop, id)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS events (
  loop INTEGER NOT NULL, number INTEGER NOT NULL, decision INTEGER NOT NULL, kind TEXT NOT NULL, loss REAL NOT NULL,
  time REAL NOT NULL, key TEXT, PRIMARY KEY (loop, number)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS events_of ON events (loop, decision);
CREATE TABLE IF NOT EXISTS models (
  loop INTEGER NOT NULL, event INTEGER NOT NULL, body BLOB NOT NULL, PRIMARY KEY (loop, event));
CREATE TABLE IF NOT EXISTS snapshots (
  loop INTEGER NOT NULL, event INTEGER NOT NULL, body BLOB NOT NULL, learned INTEGER NOT NULL,
  refused INTEGER NOT NULL, history BLOB NOT NULL, PRIMARY KEY (loop, event));
"""

# `counts` holds totals, which version 1 summed over all events at each start. `waiting` are the blocks that `take_expired` has
# not returned yet; version 1 kept only the last number returned, and missed blocks that became durable late. The columns
# `ended` and `archived` of loops are no longer used. AUTOINCREMENT does not reuse the number of a deleted loop.
VERSION_2 = """
CREATE TABLE counts (
  loop INTEGER PRIMARY KEY AUTOINCREMENT, decisions INTEGER NOT NULL DEFAULT 0, outcomes INTEGER NOT NULL DEFAULT 0,
  loss_sum REAL NOT NULL DEFAULT 0, late INTEGER NOT NULL DEFAULT 0, defaulted INTEGER NOT NULL DEFAULT 0,
  events INTEGER NOT NULL DEFAULT 0, numbers INTEGER NOT NULL DEFAULT 0, latest REAL NOT NULL DEFAULT 0);
INSERT INTO counts
  SELECT number, coalesce(json_extract(a, '$.decisions'), 0) + d, coalesce(json_extract(a, '$.outcomes'), 0) + o,
    coalesce(json_extract(a, '$.loss_sum'), 0) + s, coalesce(json_extract(a, '$.late'), 0) + late,
    coalesce(json_extract(a, '$.defaulted'), 0) + defaulted, max(coalesce(json_extract(a, '$.events'), 0), e),
    max(coalesce(json_extract(a, '$.numbers'), 0), n), max(coalesce(json_extract(a, '$.latest'), 0), t)
  FROM (SELECT number, CAST(archived AS TEXT) AS a FROM loops)
  JOIN (SELECT number AS l, coalesce(sum(count), 0) AS d, coalesce(max(last), 0) AS n, coalesce(max(time), 0) AS t
    FROM loops LEFT JOIN blocks ON loop = number GROUP BY number) ON l = number
  JOIN (SELECT l.number AS m, coalesce(max(e.number), 0) AS e,
      coalesce(sum(kind IN ('loss', 'default', 'combined')), 0) AS o,
      coalesce(sum(CASE WHEN kind IN ('loss', 'default', 'combined') THEN loss END), 0) AS s,
      coalesce(sum(kind = 'late'), 0) AS late, coalesce(sum(kind = 'default'), 0) AS defaulted
    FROM loops l LEFT JOIN events e ON e.loop = l.number GROUP BY l.number) ON m = number;
CREATE TABLE waiting (
  loop INTEGER NOT NULL, time REAL NOT NULL, first INTEGER NOT NULL, PRIMARY KEY (loop, time, first)) WITHOUT ROWID;
INSERT INTO waiting SELECT b.loop, b.time, b.first FROM blocks b JOIN loops l ON l.number = b.loop
  WHERE b.first > l.ended OR b.count > (SELECT count(*) FROM events e INDEXED BY events_of
    WHERE e.loop = b.loop AND e.decision BETWEEN b.first AND b.last AND e.kind IN ('loss', 'default', 'combined'));
CREATE TABLE firsts (loop INTEGER PRIMARY KEY, body BLOB NOT NULL);
INSERT INTO firsts SELECT b.loop, b.body FROM (SELECT loop, min(first) AS first FROM blocks GROUP BY loop) f
  JOIN blocks b ON b.loop = f.loop AND b.first = f.first;
CREATE TABLE deleted (loop INTEGER PRIMARY KEY);
"""

VERSION_3 = """
ALTER TABLE snapshots ADD COLUMN rollout BLOB NOT NULL DEFAULT x''
"""

VERSION_4 = """
ALTER TABLE loops ADD COLUMN stopped INTEGER NOT NULL DEFAULT 0
"""

# The model of a snapshot is in its row, or in so many pieces; pieces without a snapshot were left by a crash, or will be deleted.
VERSION_5 = """
ALTER TABLE snapshots ADD COLUMN pieces INTEGER NOT NULL DEFAULT 0;
CREATE TABLE pieces (
  loop INTEGER NOT NULL, event INTEGER NOT NULL, place INTEGER NOT NULL, body BLOB NOT NULL,
  PRIMARY KEY (loop, event, place));
"""

VERSION_6 = """
ALTER TABLE events ADD COLUMN parts TEXT
"""

# Models that were downloaded, under the SHA-256 of their bytes, each in so many pieces.
VERSION_7 = """
CREATE TABLE downloads (
  loop INTEGER NOT NULL, signature TEXT NOT NULL, place INTEGER NOT NULL, pieces INTEGER NOT NULL, time REAL NOT NULL,
  body BLOB NOT NULL, PRIMARY KEY (loop, signature, place))
"""

MIGRATIONS = (VERSION_1, VERSION_2, VERSION_3, VERSION_4, VERSION_5, VERSION_6, VERSION_7)
VERSION = len(MIGRATIONS)
TABLES_1 = frozenset({"loops", "blocks", "ids", "events", "models", "snapshots"})
LOOPS_1 = ["number", "name", "settings", "created", "paused", "apprentice", "ended", "archived"]


def migrate(connection: sqlite3.Connection, version: int) -> None:
    """Migrate a store to the current version in one transaction."""
    if version == VERSION:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        for migration in MIGRATIONS[version:]:
            _run(connection, migration)
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    # Write the application id to the file itself, not only to its write-ahead log.
    connection.execute("PRAGMA wal_checkpoint(PASSIVE)")


def version_of(connection: sqlite3.Connection) -> int | None:
    """The version of a store, 0 of an empty database, None of another program's database."""
    application, version = (
        connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
    )
    if application == APPLICATION:
        return int(version)
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if application == 0 and version == 0 and not tables:
        return 0
    ours = columns(connection, "loops") == LOOPS_1
    if application == 0 and ours and ((version == 1 and tables >= TABLES_1) or (version == 0 and tables <= TABLES_1)):
        return int(version)
    return None


def columns(connection: sqlite3.Connection, table: str) -> list[str]:
    """The names of a table's columns; empty if there is no such table."""
    return [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]


def _run(connection: sqlite3.Connection, migration: str) -> None:
    """Run a migration. Early stores of version 1 lack the column `history` of snapshots."""
    if migration == VERSION_2 and "history" not in columns(connection, "snapshots"):
        connection.execute("ALTER TABLE snapshots ADD COLUMN history BLOB NOT NULL DEFAULT x''")
    for statement in filter(str.strip, migration.split(";")):
        connection.execute(statement)
