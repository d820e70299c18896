"""The tables as version 1 made them, so that stores of that time can be opened for ever."""

SQLITE = """
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
PRAGMA user_version = 1;
"""

POSTGRES = """
CREATE TABLE IF NOT EXISTS manul (version integer NOT NULL);
CREATE TABLE IF NOT EXISTS loops (
  number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL UNIQUE, settings bytea NOT NULL,
  created double precision NOT NULL, paused boolean NOT NULL DEFAULT false, apprentice boolean NOT NULL);
CREATE TABLE IF NOT EXISTS heads (
  loop bigint PRIMARY KEY, events bigint NOT NULL DEFAULT 0, outcomes bigint NOT NULL DEFAULT 0,
  loss_sum double precision NOT NULL DEFAULT 0, late bigint NOT NULL DEFAULT 0, defaulted bigint NOT NULL DEFAULT 0,
  forgets bigint NOT NULL DEFAULT 0) WITH (fillfactor = 50);
CREATE TABLE IF NOT EXISTS reserved (loop bigint PRIMARY KEY, numbers bigint NOT NULL DEFAULT 0) WITH (fillfactor = 50);
CREATE TABLE IF NOT EXISTS tallies (
  loop bigint, slot integer, decisions bigint NOT NULL, latest double precision NOT NULL, PRIMARY KEY (loop, slot))
  WITH (fillfactor = 50);
CREATE TABLE IF NOT EXISTS firsts (loop bigint PRIMARY KEY, body bytea NOT NULL);
CREATE TABLE IF NOT EXISTS blocks (
  loop bigint, first bigint, last bigint NOT NULL, time double precision NOT NULL, ended boolean NOT NULL DEFAULT false,
  body bytea NOT NULL, PRIMARY KEY (loop, first));
CREATE INDEX IF NOT EXISTS blocks_not_ended ON blocks (loop, time, first) WHERE NOT ended;
CREATE TABLE IF NOT EXISTS ids (loop bigint, id bytea, decision bigint NOT NULL, PRIMARY KEY (loop, id));
CREATE INDEX IF NOT EXISTS ids_of ON ids (loop, decision);
CREATE TABLE IF NOT EXISTS events (
  loop bigint, number bigint, decision bigint NOT NULL, kind text NOT NULL, loss double precision NOT NULL,
  time double precision NOT NULL, key bytea, PRIMARY KEY (loop, number));
CREATE INDEX IF NOT EXISTS events_of ON events (loop, decision);
CREATE TABLE IF NOT EXISTS models (loop bigint, event bigint, body bytea NOT NULL, PRIMARY KEY (loop, event));
CREATE TABLE IF NOT EXISTS snapshots (
  loop bigint, event bigint, body bytea NOT NULL, learned bigint NOT NULL, refused bigint NOT NULL, history bytea NOT NULL,
  PRIMARY KEY (loop, event));
INSERT INTO manul VALUES (1);
"""
