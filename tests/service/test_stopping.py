"""SIGTERM ends the service whatever is under way."""

import asyncio
import signal
import sqlite3
import threading
from contextlib import suppress
from http.client import HTTPException

import pytest

from manul.service.engine.group_commit import Task
from tests.service.conftest import run, until
from tests.service.processes import Process
from tests.service.test_modes import HEAT, model
from tests.service.test_recovery import play


@pytest.mark.whole
@pytest.mark.parametrize("asked", [("POST", "", HEAT | {"name": "other"}), ("POST", "/heat/pause", None)])
def test_a_change_that_waits_for_the_store_keeps_no_service_from_stopping(tmp_path, asked):
    method, path, body = asked
    service = Process(tmp_path, "decisions.db")
    service.ask("POST", "/v1/loops", HEAT)
    lock = sqlite3.connect(tmp_path / "decisions.db", isolation_level=None, check_same_thread=False)
    lock.execute("BEGIN EXCLUSIVE")

    def ask():
        with suppress(OSError, HTTPException):
            service.ask(method, f"/v1/loops{path}", body)

    waiting = threading.Thread(target=ask)
    waiting.start()
    service.process.send_signal(signal.SIGTERM)
    assert service.process.wait(60) == 0
    lock.close()
    waiting.join()


@run
async def test_an_answer_that_nobody_waits_for_any_more_stops_nobody(service):
    async with service.running():
        await service.post("", 201, **HEAT)
        cancelled = Task(lambda _: None)
        cancelled.future.cancel()
        service.engine.writer.submit(cancelled)
        await play(service, 2)
        await service.learned("heat", 2)
        assert service.engine.trouble() is None


@run
async def test_an_import_into_a_loop_that_is_paused_meanwhile_is_answered(service, monkeypatch):
    async with service.running():
        await service.post("", 201, **HEAT)
        await play(service, 2)
        await service.learned("heat", 2)
        copy, loop = await model(service), service.engine.loop("heat")
        monkeypatch.setattr(loop, "learn", lambda *_: None)
        replacing = asyncio.create_task(service.client.put("/v1/loops/heat/model", content=copy))
        await until(lambda: service.engine.store.counts(1).events == 3)
        await service.post("/heat/pause")
        assert (await replacing).status_code == 200
