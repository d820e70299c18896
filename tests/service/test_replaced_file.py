"""The file of a store is deleted or replaced under the service: nothing more is acknowledged, and everybody can see why."""

import pytest

from tests.service.conftest import Service, run, until


def delete(path):
    path.unlink()


def replace(path):
    copy = path.with_name("copy.db")
    copy.write_bytes(path.read_bytes())
    copy.replace(path)


def delete_log(path):
    path.with_name(path.name + "-wal").unlink()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "decisions.db"


async def asked(service):
    return await service.client.post("/v1/loops/heat/decisions", json={"context": [1.0]})


@pytest.mark.parametrize("act", [delete, replace, delete_log])
@run
async def test_a_write_after_it_is_refused(path, act):
    service = Service(path)
    async with service.running():
        await service.post("", 201, name="heat", actions=[20, 70])
        act(path)
        answer = await asked(service)
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "unavailable")


@pytest.mark.parametrize("act", [delete, replace, delete_log])
@run
async def test_the_service_is_not_ready_after_it_even_if_nothing_is_written(path, act):
    service = Service(path)
    async with service.running():
        act(path)
        await until(lambda: service.engine.trouble() is not None)
        answer = await service.client.get("/readyz")
        assert answer.status_code == 503
        assert "deleted or replaced" in answer.json()["error"]["message"]
        assert str(path) not in answer.text
        assert "\nmanul_store_lost 1\n" in (await service.client.get("/metrics")).text


async def moved_away_and_back(service, path):
    away = path.with_name("away.db")
    await service.post("", 201, name="heat", actions=[20, 70])
    path.rename(away)
    assert (await asked(service)).status_code == 503
    away.rename(path)


@run
async def test_a_file_that_is_put_back_is_written_again(path):
    service = Service(path)
    async with service.running():
        await moved_away_and_back(service, path)
        assert (await asked(service)).status_code == 200
    async with service.running():
        assert (await service.get("/heat"))["decisions"] == 1


@run
async def test_the_service_is_ready_again_without_a_request_once_the_file_is_back(path):
    service = Service(path)
    async with service.running():
        await moved_away_and_back(service, path)
        await until(lambda: service.engine.trouble() is None)
