"""Old decisions that are settled move to files; nothing is lost or doubled between these and the store, whatever happens."""

import asyncio

import pytest

import manul
from manul.service.engine.write_operations import own_number
from manul.service.insights import archive
from manul.service.store.sqlite_transaction import SqliteTransaction
from tests.service.conftest import run
from tests.service.test_modes import HEAT
from tests.service.test_recovery import play


async def archived(service, folder, *, age=500):
    """Moves what is old; returns the files that were written."""
    engine = service.engine
    before = service.clock.time - age
    return await asyncio.to_thread(archive.archive, engine.store, engine.writer, engine.loop("heat"), folder, before)


def in_files(folder):
    return sorted(own_number(given) for path in folder.glob("*.parquet") for given in manul.Log.read(path).ids)


def in_store(service):
    return [each.number for block in service.engine.store.blocks(1, 0, 10**6) for each in block.decisions()]


async def grow_old(service):
    """Each stop keeps a snapshot; all but the newest decision is in the oldest that is kept."""
    for _ in range(2):
        async with service.running():
            await play(service, 1)
            await service.learned("heat", service.engine.store.counts(1).outcomes)
    service.clock.time += 1000


@run
async def test_a_decision_without_a_loss_stays_and_the_others_go(service, tmp_path):
    async with service.running():
        await service.post("", 201, **HEAT)
        await play(service, 3)
        waiting = await service.post("/heat/decisions", context=[1, 2, 3])
        await play(service, 3)
    await grow_old(service)
    async with service.running():
        *old, newest = in_store(service)
        await archived(service, tmp_path)
        assert in_store(service) == [4, newest]
        assert in_files(tmp_path) == [number for number in old if number != 4]
        await service.post(f"/heat/decisions/{waiting['id']}/loss", loss=0.5)


@run
async def test_an_action_of_unknown_density_stays_and_the_others_go(service, tmp_path):
    async with service.running():
        await service.post("", 201, **HEAT)
        await service.post("/heat/observations", context=[1, 2, 3], action=30, loss=0.5)
        await play(service, 3)
    await grow_old(service)
    async with service.running():
        *_, newest = in_store(service)
        await archived(service, tmp_path)
        assert in_store(service) == [1, newest]


@run
async def test_what_the_oldest_snapshot_does_not_contain_stays(service, tmp_path):
    async with service.running():
        await service.post("", 201, **HEAT)
        await play(service, 3)
    async with service.running():
        await play(service, 2)
        await service.learned("heat", 5)
        service.clock.time += 1000
        assert service.engine.store.snapshots(1) == [3]
        await archived(service, tmp_path)
        assert len(in_store(service)) == 2
        assert service.engine.store.snapshot(1, before=10).event == 3


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
@pytest.mark.parametrize("when", ["before", "after"])
@run
async def test_a_kill_around_the_removal_loses_and_doubles_nothing(service, tmp_path, monkeypatch, when):
    async with service.running():
        await service.post("", 201, **HEAT)
        await play(service, 3)
    await grow_old(service)
    async with service.running():
        *old, newest = in_store(service)
        with monkeypatch.context() as patched:
            if when == "before":
                patched.setattr(SqliteTransaction, "forget", killed)
            else:
                patched.setattr(archive, "finish", killed)
            with pytest.raises(Exception, match=r"killed|server log"):
                await archived(service, tmp_path)
        assert in_files(tmp_path) == []
        await service.post("/heat/decisions", context=[1, 2, 3])
    async with service.running():
        await archived(service, tmp_path)
        assert in_files(tmp_path) == old
        assert in_store(service)[0] == newest
        assert [path.suffix for path in tmp_path.glob("heat*")] == [".parquet"]


def killed(*_):
    raise InterruptedError("killed")


@run
async def test_a_loop_of_the_same_name_gets_files_of_its_own(service, tmp_path):
    async with service.running():
        await service.post("", 201, **HEAT)
        await play(service, 3)
    await grow_old(service)
    async with service.running():
        (written,) = await archived(service, tmp_path)
        assert written.name.startswith("heat-1-000000000001-")


@run
async def test_many_old_decisions_go_into_files_of_bounded_size(service, tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "ROWS", 2)
    async with service.running():
        await service.post("", 201, **HEAT)
        await play(service, 5)
    await grow_old(service)
    async with service.running():
        *old, newest = in_store(service)
        written = await archived(service, tmp_path)
        assert len(written) == 3
        assert in_files(tmp_path) == old
        assert in_store(service) == [newest]
