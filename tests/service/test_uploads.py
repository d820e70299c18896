"""Models and contexts that anybody may send: what cannot be used is refused before it takes memory or a place in the store."""

import asyncio
import json

import numpy as np
import pytest

import manul
from manul.service.configuration import Limits
from manul.service.errors import TooLarge, Unavailable
from manul.service.http.bodies import BodyReader
from manul.utils import model_files
from tests.saved_agents import saved
from tests.service.conftest import Service, run

UPLOAD = "/v1/loops/heat/model"


def changed(name, **settings):
    kind, parameters, arrays = model_files.decode(saved(name))
    return model_files.encode(kind, {**parameters, **settings}, arrays)


def columns(name):
    kind, parameters, arrays = model_files.decode(saved(name))
    parameters["names"]["columns"] = {"5": 4_000_000_000}
    return model_files.encode(kind, parameters, arrays)


def flat(name):
    kind, parameters, arrays = model_files.decode(saved(name))
    return model_files.encode(kind, parameters, {key: array.reshape(1, -1) for key, array in arrays.items()})


@pytest.mark.parametrize(
    "model",
    [
        columns("auto-named"),
        flat("auto"),
        changed("auto", width=10**6),
        changed("auto", seed=None),
        changed("cats", leaves="8"),
        saved("auto")[:99],
    ],
    ids=range(6),
)
@run
async def test_models_that_contradict_themselves_are_refused(tmp_path, model):
    service = Service(tmp_path / "decisions.db")
    async with service.running():
        await service.post("", 201, name="heat", actions=[0, 1])
        await service.refused(422, UPLOAD, model, method="PUT", field="model")


def chunks(count):
    """A body in chunks of 30 kB."""
    sent = iter(
        [{"type": "http.request", "body": b"x" * 30_000, "more_body": left > 0} for left in reversed(range(count))]
    )

    async def receive():
        return next(sent)

    return receive


@run
async def test_a_model_that_can_be_downloaded_can_be_uploaded():
    limits, reader = Limits(), BodyReader(50_000)
    assert limits.model >= limits.loop_bytes
    assert len(await reader.read(chunks(9), 10**6)) == 270_000
    with pytest.raises(TooLarge, match="--max-model-bytes"):
        await reader.read(chunks(9), 200_000)


@run
async def test_bodies_beside_each_other_share_the_memory_for_all():
    reader, first, began = BodyReader(50_000), chunks(9), asyncio.Event()

    async def slow():
        message = await first()
        if not message["more_body"]:
            began.set()
            await asyncio.Event().wait()
        return message

    reading = asyncio.create_task(reader.read(slow, 10**6))
    await began.wait()
    with pytest.raises(Unavailable, match="together exceed 50000 bytes"):
        await reader.read(chunks(2), 10**6)
    reading.cancel()


@pytest.mark.parametrize("context", [{"\ud800": 1.0}, {"a": "\ud800"}, {"a": ["\udfff"]}, {"a": {"\ud800": 1}}])
@pytest.mark.parametrize("path", ["decisions", "decisions/batch", "observations"])
@run
async def test_lone_surrogates_are_refused(tmp_path, context, path):
    service = Service(tmp_path / "decisions.db")
    async with service.running():
        await service.post("", 201, name="heat", actions=[0, 1], agent={"kind": "cats", "leaves": 8, "bandwidth": 0.1})
        body = {"decisions": [{"context": context}]} if path.endswith("batch") else {"context": context}
        body |= {"action": 0.5} if path == "observations" else {}
        answer = await service.client.post(f"/v1/loops/heat/{path}", content=json.dumps(body))
        assert 400 <= answer.status_code < 500, answer.text


@run
async def test_a_model_that_was_trained_on_a_log_keeps_its_sketch_in_the_service(tmp_path):
    rng = np.random.default_rng(0)
    log = manul.Log(rng.random((200, 1)), rng.random(200), np.ones(200), rng.random(200), action_range=(0, 1))
    grid = manul.offpolicy.Grid(bandwidths=(1 / 4,), leaves=(4,))
    policy = manul.optimize(log, grid=grid, epsilon=0.1).policy
    async with Service(tmp_path / "a.db").running() as service:
        await service.post("", 201, name="heat", actions=[0, 1])
        await service.post("/heat/decisions", context=[0.5])
        assert (await service.client.put(UPLOAD, content=manul.dumps(policy))).status_code == 200
        model = manul.loads((await service.client.get(UPLOAD)).content)
        assert model_files.trained_on(model).text == model_files.trained_on(policy).text


@run
async def test_a_mapped_agent_decides_in_batches_and_is_reported(service):
    async with service.running():
        await service.post("", 201, name="heat", actions=[20, 70])
        agent = manul.Mapped(agent=manul.Auto(actions=(20, 70)), features=manul.maps.Crosses())
        agent.decide([1.0, 2.0])
        answer = await service.client.put("/v1/loops/heat/model", content=manul.dumps(agent))
        assert answer.status_code == 200, answer.text
        requests = [{"context": [1, 2]}, {"context": [3, 4]}]
        made = (await service.post("/heat/decisions/batch", decisions=requests))["decisions"]
        alone = service.engine.loop("heat").model.agent.decide_again(2, [3.0, 4.0])
        assert made[1]["action"] == alone.action
        assert (await service.get("/heat/report"))["beliefs"]
