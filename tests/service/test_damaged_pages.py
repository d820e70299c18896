"""Pages of the file that hold one loop are overwritten: that loop is out of service, and the others do not notice."""

import asyncio
import random
import re
import sqlite3
import threading
from contextlib import closing

import pytest

from manul.service.engine import engine
from manul.service.store.backup import backup, restore
from tests.service.conftest import Service, run, until

LOOPS = ("heat", "price", "bids")
PAGE = 4096
TABLES = ("events", "ids", "blocks", "models", "snapshots", "pieces", "waiting")
TRIALS = range(8)


async def play(service, loop, count, start=0):
    for number in range(start, start + count):
        decision = await service.post(f"/{loop}/decisions", context=[float(number)] * 40, id=f"order-{number:04}")
        await service.post(f"/{loop}/decisions/{decision['id']}/loss", loss=0.5)


@pytest.fixture(scope="module")
def intact(tmp_path_factory):
    """The bytes of a store with three loops that have learned everything."""
    return filled(tmp_path_factory.mktemp("intact") / "decisions.db", learning=True)


@pytest.fixture(scope="module")
def unlearned(tmp_path_factory):
    """Those of a store with three loops that were paused before they had learned anything."""
    return filled(tmp_path_factory.mktemp("unlearned") / "decisions.db", learning=False)


def filled(path, *, learning):
    @run
    async def fill():
        service = Service(path)
        async with service.running(snapshot_events=50):
            for loop in LOOPS:
                await service.post(
                    "", 201, name=loop, actions=[20, 70], agent={"kind": "cats", "leaves": 4, "bandwidth": 0.25}
                )
                if not learning:
                    await service.post(f"/{loop}/pause")
            for start in range(0, 120, 20):
                for loop in LOOPS:
                    await play(service, loop, 20, start)
            for loop in LOOPS if learning else ():
                await service.learned(loop, 120)

    fill()
    return path.read_bytes()


def garbled(intact, page, seed):
    """The file with one page overwritten: by zeros, by noise, or by noise from somewhere on."""
    noise = random.Random(seed)
    start = PAGE * (page - 1) + noise.choice([0, 0, 0, noise.randrange(PAGE // 2)])
    end = PAGE * page
    return (
        intact[:start] + (bytes(end - start) if noise.random() < 0.3 else noise.randbytes(end - start)) + intact[end:]
    )


def unreadable(path):
    """The loops of which some rows cannot be read, or none added; raises if it is about what all loops share."""
    failed = set()
    with closing(sqlite3.connect(path)) as connection:
        for number, loop in enumerate((*LOOPS, "a later one"), 1):
            for table in TABLES:
                try:
                    connection.execute(f"SELECT * FROM {table} WHERE loop = ?", (number,)).fetchall()
                except sqlite3.DatabaseError:
                    failed.add(loop)
            try:
                connection.execute("INSERT INTO blocks VALUES (?, 1000, 1000, 1, 0, ?)", (number, bytes(500)))
                connection.execute("INSERT INTO ids VALUES (?, 'order-1000', 1000)", (number,))
                connection.execute(
                    "INSERT INTO snapshots VALUES (?, 1000, ?, 0, 0, '', '', 0)", (number, bytes(50_000))
                )
            except sqlite3.DatabaseError:
                failed.add(loop)
        connection.execute("SELECT * FROM loops").fetchall()
        connection.execute("SELECT * FROM counts").fetchall()
        connection.execute("SELECT * FROM firsts").fetchall()
    return failed


def pages_of_one_loop(intact, path, seed):
    """A file with a damaged page that only one loop needs, and that loop."""
    pages = list(range(2, len(intact) // PAGE + 1))
    random.Random(seed).shuffle(pages)
    for page in pages:
        path.write_bytes(garbled(intact, page, seed))
        try:
            failed = unreadable(path)
        except sqlite3.DatabaseError:
            continue
        if len(failed) == 1:
            return failed.pop()
    raise AssertionError("no such page")


async def check_healthy(service, loop):
    """It decides, and learns what it is told."""
    learned = service.engine.loop(loop).model.learned
    await play(service, loop, 5, 1000)
    await service.learned(loop, learned + 5)
    assert (await service.get(f"/{loop}"))["trouble"] is None


@pytest.mark.parametrize("seed", TRIALS)
@run
async def test_a_damaged_page_at_rest_costs_one_loop_only(intact, tmp_path, seed):
    path = tmp_path / "decisions.db"
    damaged = pages_of_one_loop(intact, path, seed)
    service = Service(path)
    async with service.running():
        assert (await service.client.get("/readyz")).status_code == 200
        for loop in LOOPS:
            if loop != damaged:
                await check_healthy(service, loop)
        listed = await service.get("")
        named = {each["name"]: each["trouble"] for each in (*listed["loops"], *listed["out_of_service"])}
        found = {loop for loop, trouble in named.items() if trouble}
        assert found <= {damaged}  # not every page is read at the start
        ready = re.findall(r'manul_loop_ready{loop="(\w+)"} (\d)', (await service.client.get("/metrics")).text)
        assert sorted(ready) == sorted((loop, str(int(loop not in found))) for loop in LOOPS)
        assert (await service.client.delete(f"/v1/loops/{damaged}")).status_code == 200
        await asyncio.to_thread(backup, str(path), tmp_path / "monday.zip")
    restored = Service(tmp_path / "restored.db")
    restore(tmp_path / "monday.zip", restored.store)
    earlier = tmp_path / "earlier.db"
    earlier.write_bytes(intact)
    backup(str(earlier), tmp_path / "sunday.zip")
    restore(tmp_path / "sunday.zip", restored.store, loop=damaged)
    async with restored.running():
        learned = {loop: restored.engine.loop(loop).model.learned for loop in LOOPS}
        assert learned == {loop: 120 if loop == damaged else 125 for loop in LOOPS}
        await play(restored, damaged, 5, 1000)
        await restored.learned(damaged, 125)


@pytest.mark.parametrize("seed", TRIALS)
@run
async def test_a_page_that_is_damaged_under_a_running_service_costs_one_loop_only(unlearned, tmp_path, seed):
    path, broken = tmp_path / "decisions.db", tmp_path / "broken.db"
    path.write_bytes(unlearned)
    damaged = pages_of_one_loop(unlearned, broken, seed)
    service = Service(path)
    async with service.running():
        with path.open("r+b") as file:
            file.write(broken.read_bytes())
        for loop in LOOPS:
            await service.post(f"/{loop}/resume")
        for loop in LOOPS:
            if loop != damaged:
                await service.learned(loop, 120)
                await check_healthy(service, loop)
        for number in range(5):
            asked = {"context": [1.0] * 40, "id": f"order-{number:04}"}
            answer = await service.client.post(f"/v1/loops/{damaged}/decisions", json=asked)
            assert answer.status_code in (200, 409, 503), answer.text
        assert (await service.client.get("/readyz")).status_code == 200
        assert (await service.client.delete(f"/v1/loops/{damaged}")).status_code == 200
        await until(lambda: not service.engine.purging)


@pytest.mark.parametrize("table", ["counts", "loops"])
@run
async def test_a_service_starts_with_a_damaged_page_that_all_loops_share_and_says_which_are_out_of_service(
    intact, tmp_path, table
):
    path = tmp_path / "decisions.db"
    path.write_bytes(intact)
    with closing(sqlite3.connect(path)) as connection:
        ((root,),) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,))
    path.write_bytes(intact[: PAGE * (root - 1)] + bytes(PAGE) + intact[PAGE * root :])
    service = Service(path)
    async with service.running():
        listed = (await service.get(""))["out_of_service"]
        assert [each["name"] for each in listed] == sorted(LOOPS)
        assert "damaged" in await refusal(service, "heat")


async def refusal(service, loop):
    answer = await service.client.post(f"/v1/loops/{loop}/decisions", json={"context": [1.0] * 40})
    assert answer.status_code == 503, answer.text
    return answer.json()["error"]["message"]


@run
async def test_an_act_of_the_owner_is_refused_at_once_if_the_loop_cannot_learn_it(tmp_path, monkeypatch):
    service = Service(tmp_path / "decisions.db")
    async with service.running():
        await service.post("", 201, name="heat", actions=[20, 70])
        monkeypatch.setattr(service.engine.loop("heat"), "learn", lambda *_: 1 / 0)
        await play(service, "heat", 1)
        await until(lambda: service.engine.loop_trouble(service.engine.loop("heat")) is not None)
        answer = await service.client.put("/v1/loops/heat/rollout", json={"baseline": 40})
        assert answer.status_code == 503
        assert answer.json()["error"]["message"].startswith("loop 'heat' does not learn: learning fails")
        assert (await service.client.get("/readyz")).status_code == 200


@run
async def test_an_act_of_the_owner_waits_for_the_learner_for_a_limited_time(tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "ACT_SECONDS", 0.1)
    service, entered, release = Service(tmp_path / "decisions.db"), threading.Event(), threading.Event()

    def hangs(*_):
        entered.set()
        release.wait()

    async with service.running():
        await service.post("", 201, name="heat", actions=[20, 70])
        monkeypatch.setattr(service.engine.loop("heat"), "learn", hangs)
        await play(service, "heat", 1)
        await asyncio.to_thread(entered.wait)
        answer = await service.client.put("/v1/loops/heat/rollout", json={"baseline": 40})
        assert answer.status_code == 503
        assert "This is stored, but loop 'heat' has not come to it in 0.1 s" in answer.json()["error"]["message"]
        release.set()
