"""A store that does not answer: the service stays reachable, says 503, and ends when it is told to."""

import signal
import sqlite3
import threading
from contextlib import contextmanager, suppress
from http.client import HTTPException

import pytest

from tests.service.postgres import Server
from tests.service.processes import Process
from tests.service.test_modes import HEAT

pytestmark = pytest.mark.whole


@contextmanager
def locked_sqlite(path):
    """As another program would that keeps a transaction open."""
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN EXCLUSIVE")
    try:
        yield
    finally:
        other.execute("ROLLBACK")
        other.close()


@pytest.fixture(params=["sqlite", "postgres"])
def freezing(request, tmp_path):
    """A store, and how to freeze it."""
    if request.param == "sqlite":
        path = tmp_path / "decisions.db"
        yield str(path), lambda: locked_sqlite(path)
        return
    server = Server()
    yield server.database(), server.frozen
    server.remove()


def health_checks(service, until):
    """How often /healthz was answered before an event."""
    count, connection = 0, service.connection()
    while not until.is_set():
        assert service.ask("GET", "/healthz", None, connection)[0] == 200
        count += 1
        until.wait(0.02)
    connection.close()
    return count


def callers(service, count, answers):
    def call():
        with suppress(OSError, HTTPException):
            answers.append(service.ask("POST", "/v1/loops/heat/decisions", {"context": [1, 2]})[0])

    made = [threading.Thread(target=call) for _ in range(count)]
    for each in made:
        each.start()
    return made


def test_healthz_answers_at_once_while_the_store_is_frozen_and_requests_get_503(tmp_path, freezing):
    store, freeze = freezing
    service = Process(tmp_path, store)
    service.ask("POST", "/v1/loops", HEAT)
    assert service.ask("POST", "/v1/loops/heat/decisions", {"context": [1, 2]})[0] == 200
    answers, done = [], threading.Event()
    with freeze():
        under_way = [*callers(service, 40, answers), threading.Thread(target=service.ask, args=("GET", "/v1/loops"))]
        under_way[-1].start()
        watching = threading.Thread(target=lambda: [each.join() for each in under_way] and done.set())
        watching.start()
        checks = health_checks(service, done)
        assert set(answers) == {503}
        assert service.ask("GET", "/readyz")[0] == 503
    assert checks > 10  # one that waited for the store would take seconds
    service.ask("POST", "/v1/loops/heat/decisions", {"context": [1, 2]})
    assert service.stop() == 0


def test_a_frozen_store_keeps_no_service_from_stopping(tmp_path, freezing):
    store, freeze = freezing
    service = Process(tmp_path, store)
    service.ask("POST", "/v1/loops", HEAT)
    answers = []
    with freeze():
        under_way = callers(service, 10, answers)
        service.process.send_signal(signal.SIGTERM)
        service.process.wait(60)
        for each in under_way:
            each.join()
