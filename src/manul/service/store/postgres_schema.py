"""The tables of a store in PostgreSQL."""

VERSION = 1
# Keys of advisory locks: one is held while the tables are made, the other by the replica that leads.
STARTING, LEADING = 0x6D616E756C00, 0x6D616E756C01

# What one replica changes all the time has a row of its own: `heads` are locked for numbering events, `reserved` for a
# moment, and `tallies` have several rows per loop so that replicas seldom meet in one. Texts of callers are bytes, as
# PostgreSQL's own texts cannot hold every character.
SCHEMA = """
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
  PRIMARY KEY (loop, event))
"""
