"""A full disk: 503 and a clear line in the log; once there is room, everything goes on with nothing lost."""

import logging

import pytest

from manul.service.store.sqlite_transaction import SqliteTransaction
from tests.service.conftest import run, until
from tests.service.test_modes import HEAT
from tests.service.test_recovery import play, replayed

pytestmark = pytest.mark.parametrize("store", ["sqlite"], indirect=True)


def set_room(service, pages):
    """SQLite's own limit makes it answer as if the disk were full."""
    connection = service.engine.store._writer
    size = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {size + pages}")


@run
async def test_a_full_store_refuses_and_goes_on_when_there_is_room(service, caplog):
    caplog.set_level(logging.INFO)
    async with service.running():
        await service.post("", 201, **HEAT)
        await play(service, 5)
        set_room(service, 0)
        big = {"decisions": [{"context": [1, 2, 3]}] * 500}
        await service.refused(503, "/v1/loops/heat/decisions/batch", big)
        assert (await service.client.get("/readyz")).status_code == 503
        assert "the store is not writable" in caplog.text
        await service.refused(503, "/v1/loops/heat/decisions/batch", big)
        assert caplog.text.count("the store is not writable (") == 1
        set_room(service, 1000)
        await service.post("/heat/decisions/batch", **big)
        assert "is writable again" in caplog.text
        await play(service, 5)
        await service.learned("heat", 10)
        assert (await service.client.get("/readyz")).status_code == 200
        assert (await service.get("/heat"))["decisions"] == 510
    async with service.running():
        assert (await service.get("/heat"))["decisions"] == 510
        assert replayed(service.engine, "heat")[1] == 10


@run
async def test_a_first_decision_that_could_not_be_kept_does_not_fix_the_shape(service):
    async with service.running():
        await service.post("", 201, **HEAT)
        set_room(service, 0)
        await service.refused(503, "/v1/loops/heat/decisions/batch", {"decisions": [{"context": [1, 2, 3]}] * 500})
        set_room(service, 1000)
        assert "action" in await service.post("/heat/decisions", context=[1, 2])


@run
async def test_a_snapshot_that_could_not_be_kept_is_tried_again_without_new_events(service, caplog):
    async with service.running(snapshot_seconds=0.1):
        await service.post("", 201, **HEAT)
        await service.post("/heat/pause")
        await play(service, 5)
        set_room(service, 0)
        await service.post("/heat/resume")
        await until(lambda: "could not save a snapshot" in caplog.text)
        assert not service.engine.store.snapshots(1)
        set_room(service, 1000)
        await until(lambda: service.engine.store.snapshots(1))
        assert service.engine.store.snapshot(1).learned == 5


@run
async def test_a_loop_whose_snapshots_fail_keeps_no_other_from_its_own(service, monkeypatch):
    add = SqliteTransaction.add_snapshot

    def refusing(transaction, loop, snapshot, *, keep):
        assert loop != 1, "this one is too large"
        add(transaction, loop, snapshot, keep=keep)

    monkeypatch.setattr(SqliteTransaction, "add_snapshot", refusing)
    async with service.running(snapshot_seconds=0.1):
        for name in ("heat", "light"):
            await service.post("", 201, **HEAT | {"name": name})
            await play(service, 5, loop=name)
        await until(lambda: service.engine.store.snapshots(2))
        assert not service.engine.store.snapshots(1)
