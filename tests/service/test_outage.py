"""A PostgreSQL that is gone for a while: 503, and then everything goes on with nothing lost."""

import signal

import pytest

from tests.service.conftest import Service, run
from tests.service.postgres import Server
from tests.service.test_modes import HEAT
from tests.service.test_recovery import play, replayed


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
        answer = await service.client.get("/v1/loops/heat")
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "unavailable")
        assert (await service.client.get("/readyz")).status_code == 503
        server.start()
        await play(service, 5)
        await service.learned("heat", 10)
        assert (await service.client.get("/readyz")).status_code == 200
        assert replayed(service.engine, "heat")[1:] == (10, 10)
