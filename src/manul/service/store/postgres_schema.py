"""The tables of a store in PostgreSQL, as numbered migrations: a store of version n has had the first n of them."""

from __future__ import annotations

from typing import Any

import psycopg

from manul.errors import FileError

# Keys of advisory locks: one is held while the tables are created or migrated, one by the leader, one by every replica
# together with the others, and from LEARNING on one by the replica that learns a share of the loops.
MIGRATING, LEADING, LIVING, LEARNING = 0x6D616E756C00, 0x6D616E756C01, 0x6D616E756C02, 0x6D616E756D00
# The first version with idle_session_timeout, which ends the session of a replica that hangs.
MIN_SERVER_VERSION = 140_000

# Frequently changed values have separate tables to avoid lock conflicts: `heads` are locked while events are numbered, `numbering`
# (`reserved` before version 7) only briefly, and `tallies` have several rows per loop so that replicas seldom update the same one. Texts of
# callers are stored as bytes, because PostgreSQL's text type cannot hold every character.
VERSION_1 = """
CREATE TABLE manul (version integer NOT NULL);
INSERT INTO manul VALUES (0);
CREATE TABLE loops (
  number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL UNIQUE, settings bytea NOT NULL,
  created double precision NOT NULL, paused boolean NOT NULL DEFAULT false, apprentice boolean NOT NULL);
CREATE TABLE heads (
  loop bigint PRIMARY KEY, events bigint NOT NULL DEFAULT 0, outcomes bigint NOT NULL DEFAULT 0,
  loss_sum double precision NOT NULL DEFAULT 0, late bigint NOT NULL DEFAULT 0, defaulted bigint NOT NULL DEFAULT 0,
  forgets bigint NOT NULL DEFAULT 0) WITH (fillfactor = 50);
CREATE TABLE reserved (loop bigint PRIMARY KEY, numbers bigint NOT NULL DEFAULT 0) WITH (fillfactor = 50);
CREATE TABLE tallies (
  loop bigint, slot integer, decisions bigint NOT NULL, latest double precision NOT NULL, PRIMARY KEY (loop, slot))
  WITH (fillfactor = 50);
CREATE TABLE firsts (loop bigint PRIMARY KEY, body bytea NOT NULL);
CREATE TABLE blocks (
  loop bigint, first bigint, last bigint NOT NULL, time double precision NOT NULL, ended boolean NOT NULL DEFAULT false,
  body bytea NOT NULL, PRIMARY KEY (loop, first));
CREATE INDEX blocks_not_ended ON blocks (loop, time, first) WHERE NOT ended;
CREATE TABLE ids (loop bigint, id bytea, decision bigint NOT NULL, PRIMARY KEY (loop, id));
CREATE INDEX ids_of ON ids (loop, decision);
CREATE TABLE events (
  loop bigint, number bigint, decision bigint NOT NULL, kind text NOT NULL, loss double precision NOT NULL,
  time double precision NOT NULL, key bytea, PRIMARY KEY (loop, number));
CREATE INDEX events_of ON events (loop, decision);
CREATE TABLE models (loop bigint, event bigint, body bytea NOT NULL, PRIMARY KEY (loop, event));
CREATE TABLE snapshots (
  loop bigint, event bigint, body bytea NOT NULL, learned bigint NOT NULL, refused bigint NOT NULL, history bytea NOT NULL,
  PRIMARY KEY (loop, event))
"""

VERSION_2 = """
CREATE TABLE deleted (loop bigint PRIMARY KEY)
"""

VERSION_3 = """
ALTER TABLE snapshots ADD COLUMN rollout bytea NOT NULL DEFAULT ''
"""

VERSION_4 = """
ALTER TABLE loops ADD COLUMN stopped bigint NOT NULL DEFAULT 0
"""

# The model of a snapshot is in its row, or in so many pieces. Weights hardly get smaller, so PostgreSQL should not try.
VERSION_5 = """
ALTER TABLE snapshots ADD COLUMN pieces bigint NOT NULL DEFAULT 0;
CREATE TABLE pieces (loop bigint, event bigint, place bigint, body bytea NOT NULL, PRIMARY KEY (loop, event, place));
ALTER TABLE pieces ALTER COLUMN body SET STORAGE EXTERNAL
"""

VERSION_6 = """
ALTER TABLE events ADD COLUMN parts bytea
"""

# Models that were downloaded, under the SHA-256 of their bytes, each in so many pieces. Earlier versions do not know the decisions of other
# replicas in a rollout, and must not make any beside those that do: they reserve numbers in a table of the old name.
VERSION_7 = """
CREATE TABLE downloads (
  loop bigint, signature text, place bigint, pieces bigint NOT NULL, time double precision NOT NULL, body bytea NOT NULL,
  PRIMARY KEY (loop, signature, place));
ALTER TABLE downloads ALTER COLUMN body SET STORAGE EXTERNAL;
ALTER TABLE reserved RENAME TO numbering
"""

MIGRATIONS = (VERSION_1, VERSION_2, VERSION_3, VERSION_4, VERSION_5, VERSION_6, VERSION_7)
VERSION = len(MIGRATIONS)


def is_current(connection: psycopg.Connection[Any]) -> bool:
    """Whether a store has the current version; refuses a server or store that cannot be used."""
    if connection.info.server_version < MIN_SERVER_VERSION:
        raise FileError(f"the store needs PostgreSQL {MIN_SERVER_VERSION // 10_000} or newer", "store")
    return version_of(connection) == VERSION


def migrate(connection: psycopg.Connection[Any]) -> None:
    """Migrate a store to the current version in one transaction; replicas that start together take turns."""
    with connection.transaction():
        connection.execute("SET LOCAL lock_timeout = '60s'")
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (MIGRATING,))
        for migration in MIGRATIONS[version_of(connection) :]:
            connection.execute(migration.encode())
        connection.execute("UPDATE manul SET version = %s", (VERSION,))


def version_of(connection: psycopg.Connection[Any]) -> int:
    """The version of a store, 0 of a database without its tables; refuses a newer one."""
    # Not to_regclass: after a wait for the lock it may not yet see a table that was created in the meantime.
    exists = "SELECT 1 FROM pg_tables WHERE tablename = 'manul' AND schemaname = ANY(current_schemas(false))"
    if not connection.execute(exists).fetchall():
        return 0
    rows = connection.execute("SELECT version FROM manul").fetchall()
    version = int(rows[0][0]) if rows else 0
    if version > VERSION:
        raise FileError(f"the store has version {version}, newer than {VERSION}. Upgrade manul: pip install -U manul.")
    return version
