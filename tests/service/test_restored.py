"""A service is backed up while it decides and learns; a service on the restored store goes on as the original does."""

import asyncio
import subprocess
import sys
import time

import numpy as np
import pytest

import manul
from manul.service.store.backup import backup, restore
from manul.service.store.store_registry import open_store
from tests.service.conftest import STORES, Service, run
from tests.service.processes import Process
from tests.service.test_crash import LOOP, Caller, Known
from tests.service.test_modes import HEAT
from tests.service.test_recovery import named, play, replayed

LIGHT = {"name": "light", "actions": [0, 1], "wait": 50.0, "default_loss": 1.0}


@pytest.fixture(params=STORES)
def restored(request, tmp_path):
    """A service on an empty store of every kind."""
    if request.param == "sqlite":
        return Service(tmp_path / "restored.db")
    return Service(request.getfixturevalue("postgres").database())


def facts(place):
    store = open_store(place)
    events, blocks = store.events(1, 0, 10**6), store.blocks(1, 0, 10**6)
    counts = store.counts(1)
    store.close()
    assert counts.decisions == sum(block.count for block in blocks)
    assert counts.events == len(events)
    return events, [decision for block in blocks for decision in block.decisions()]


@run
async def test_a_backup_under_load_is_the_store_of_one_moment(service, restored, tmp_path):
    async with service.running(snapshot_events=7):
        await service.post("", 201, **HEAT)
        await play(service, 10)
        saving = asyncio.create_task(asyncio.to_thread(backup, service.store, tmp_path / "monday.zip"))
        while not saving.done():
            await play(service, 1)
        saved = await saving
        await play(service, 1)
    restore(saved.file, restored.store)
    events, decisions = facts(restored.store)
    later_events, later_decisions = facts(service.store)
    assert 10 <= len(events) < len(later_events)
    assert events == later_events[: len(events)]
    assert decisions == later_decisions[: len(decisions)]
    async with restored.running():
        await restored.learned("heat", len(events))
        loop = restored.engine.loop("heat")
        assert replayed(restored.engine, "heat") == (manul.dumps(loop.model.agent), len(events), len(events))


async def go_on(service):
    """Decisions and losses in both loops, each learned before the next; returns all answers but their ids, and both models."""
    rng, said = np.random.default_rng(5), []
    async with service.running():
        for number in range(15):
            for loop, context in (("heat", rng.normal(size=3).tolist()), ("light", named(rng))):
                made = await service.post(f"/{loop}/decisions", context=context)
                said.append(made)
                if number % 3:
                    said.append(await service.post(f"/{loop}/decisions/{made['id']}/loss", loss=float(rng.random())))
                await service.caught_up(loop)
        statuses = [await service.get(f"/{loop}") for loop in ("heat", "light")]
        models = [(await service.client.get(f"/v1/loops/{loop}/model")).content for loop in ("heat", "light")]
    return [each | {"id": None} for each in said], statuses, models


@run
async def test_the_restored_service_decides_and_learns_to_the_bytes_of_the_original(service, restored, tmp_path):
    async with service.running(snapshot_events=7):
        await service.post("", 201, **HEAT)
        await service.post("", 201, **LIGHT)
        await play(service, 25)
        await play(service, 20, named, "light")
        model = (await service.client.get("/v1/loops/heat/model")).content
        await service.client.put("/v1/loops/heat/model", content=model)
        await play(service, 5)
        saved = await asyncio.to_thread(backup, service.store, tmp_path / "monday.zip")
    restore(saved.file, restored.store)
    assert await go_on(restored) == await go_on(service)


@run
async def test_waits_that_ran_during_the_backup_end_in_the_restored_store_too(service, restored, tmp_path):
    async with service.running():
        await service.post("", 201, **LIGHT)
        for _ in range(3):
            await service.post("/light/decisions", context=[1, 2])
        backup(service.store, tmp_path / "monday.zip")
    restore(tmp_path / "monday.zip", restored.store)
    async with restored.running():
        restored.clock.time += 60
        await restored.learned("light", 3)
        assert (await restored.get("/light"))["defaulted"] == 3


@pytest.mark.whole
@pytest.mark.parametrize("restored", ["sqlite"], indirect=True)
def test_a_service_that_many_callers_use_is_backed_up_by_another_process(store, restored, tmp_path):
    program, known = (sys.executable, "-m", "manul"), Known()
    process = Process(tmp_path, store, program=program)
    process.ask("POST", "/v1/loops", LOOP)
    callers = [Caller(process, f"c{number}", known) for number in range(4)]
    for caller in callers:
        caller.start()
    while len(known.losses) < 50:
        time.sleep(0.01)
    said = subprocess.run([*program, "backup", store, tmp_path / "monday.zip"], capture_output=True, check=False)
    assert (said.returncode, b"1 loop" in said.stdout) == (0, True), said.stderr
    backed_up = len(known.losses)
    while len(known.losses) <= backed_up:
        time.sleep(0.01)
    process.kill()
    for caller in callers:
        caller.join()
    restore(tmp_path / "monday.zip", restored.store)
    events, decisions = facts(restored.store)
    later_events, later_decisions = facts(store)
    assert 50 <= len(events) < len(later_events)
    assert events == later_events[: len(events)]
    by_number = {decision.number: decision for decision in later_decisions}
    assert decisions == [by_number[decision.number] for decision in decisions]
