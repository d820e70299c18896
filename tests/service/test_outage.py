"""A PostgreSQL that is gone for a while: 503, and then everything goes on with nothing lost."""

import signal

import pytest

from tests.service.conftest import Service, run
from tests.service.postgres import Server
from tests.service.processes import Process
from tests.service.test_modes import HEAT
from tests.service.test_recovery import play, replayed
from tests.service.wire import exchanged, request

pytestmark = pytest.mark.whole


@pytest.fixture
def server():
    """A server that may be stopped."""
    server = Server()
    yield server
    server.remove()


@run
async def test_an_outage_is_a_503_and_nothing_is_lost(server):
    service = Service(server.database())
    async with service.running():
        await service.post("", 201, **HEAT)
        await play(service, 5)
        server.stop(signal.SIGQUIT)
        for path, body in (("decisions", {"context": [1, 2, 3]}), ("decisions/~1/loss", {"loss": 0.5})):
            answer = await service.client.post(f"/v1/loops/heat/{path}", json=body)
            assert (answer.status_code, answer.json()["error"]["code"]) == (503, "unavailable")
            assert answer.headers["retry-after"] == "1"
        answer = await service.client.get("/v1/loops/heat")
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "unavailable")
        assert (await service.client.get("/readyz")).status_code == 503
        server.start()
        await play(service, 5)
        await service.learned("heat", 10)
        assert (await service.client.get("/readyz")).status_code == 200
        assert replayed(service.engine, "heat")[1:] == (10, 10)


def test_an_outage_is_a_503_for_the_first_decision_too(server, tmp_path):
    """No number has been reserved for it yet."""
    service = Process(tmp_path, server.database())
    service.ask("POST", "/v1/loops", HEAT)
    server.stop(signal.SIGQUIT)
    (found,) = exchanged(service.port, request("POST", "/v1/loops/heat/decisions", {"context": [1, 2, 3]}), count=1)
    assert (found.status, found.error["code"]) == (503, "unavailable")
    assert found.headers["retry-after"] == "1"
    assert service.ask("GET", "/healthz")[0] == 200
    connection = service.connection()
    connection.request("GET", "/metrics")
    answer = connection.getresponse()
    assert (answer.status, b"manul_store_up 0" in answer.read()) == (200, True)
    connection.close()
    service.stop()
