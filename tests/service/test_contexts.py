"""Contexts of every kind in any order: a missing one is an empty one of the loop's kind, and nobody else pays for it."""

import asyncio

import pytest

import manul
from manul.service.configuration import Limits
from tests.service.conftest import Service, run
from tests.service.test_modes import HEAT
from tests.service.test_recovery import replayed


async def report(service, made, loss=0.5):
    return await service.post(f"/heat/decisions/{made['id']}/loss", loss=loss)


@run
async def test_a_loop_of_named_contexts_learns_from_missing_ones_and_starts_again(service):
    async with service.running():
        await service.post("", 201, **HEAT)
        await service.post("/heat/decisions", context={"x": 1})
        await report(service, await service.post("/heat/decisions"))
        await report(service, await service.post("/heat/decisions", context={"x": 2}))
        await service.learned("heat", 2)
    async with service.running():
        await report(service, await service.post("/heat/decisions"))
        await service.learned("heat", 3)
        assert replayed(service.engine, "heat")[0] == manul.dumps(service.engine.loop("heat").agent)


@run
async def test_contexts_of_several_kinds_that_arrive_together_are_all_answered(service):
    async with service.running():
        await service.post("", 201, **HEAT)
        await service.post("/heat/decisions", context={"x": 1})
        asked = [{"context": {"x": 2}}, {}, {"context": []}, {"context": {}}, {"context": None}]
        made = await asyncio.gather(*(service.post("/heat/decisions", **each) for each in 5 * asked))
        await service.post("/heat/decisions/batch", decisions=asked)
        await asyncio.gather(*(report(service, each) for each in made))
        await service.learned("heat", 25)
        assert (await service.get("/heat"))["refused"] == 0


@pytest.mark.parametrize("first", [{"context": {"x": 1}}, {"context": [1, 2]}, {}], ids=["named", "row", "none"])
@run
async def test_a_context_of_another_kind_is_refused_alone(service, first):
    async with service.running():
        await service.post("", 201, **HEAT)
        await service.post("/heat/decisions", **first)
        for other in ([1, 2, 3], {"x": 1}, ["a"], [[1]], 7, "x"):
            if other != first.get("context"):
                await service.refused(422, "/v1/loops/heat/decisions", {"context": other})
        await report(service, await service.post("/heat/decisions", **first))
        await service.learned("heat", 1)


@pytest.mark.parametrize(
    "context", [[0.0] * 101, {f"x{i}": 1 for i in range(101)}, {"a": [{"b": 1}] * 101}], ids=["row", "named", "nested"]
)
@run
async def test_a_context_of_too_many_features_is_refused(store, context):
    service = Service(store, limits=Limits(features=100))
    async with service.running():
        await service.post("", 201, **HEAT)
        sentence = await service.refused(422, "/v1/loops/heat/decisions", {"context": context}, field="context")
        assert sentence == "context has more than 100 features. Send fewer, or raise --max-features."
        batch = {"decisions": [{"context": context}]}
        await service.refused(422, "/v1/loops/heat/decisions/batch", batch, field="decisions[0].context")
        await service.refused(422, "/v1/loops/heat/observations", {"context": context, "action": 30}, field="context")
        assert service.engine.loop("heat").agent.width is None


@run
async def test_a_first_context_that_would_take_too_much_memory_is_refused(store):
    service = Service(store, limits=Limits(loop_bytes=10 * 2**20))
    async with service.running():
        large = {"kind": "cats", "leaves": 2**16, "bandwidth": 2.0}
        await service.post("", 201, name="heat", actions=[20, 70], agent=large)
        asked = {"context": [0.0] * 4000}
        sentence = await service.refused(422, "/v1/loops/heat/decisions", asked, field="context")
        assert "--max-loop-bytes" in sentence
        assert service.engine.loop("heat").agent.width is None
        await service.post("/heat/decisions", context=[0.5])


@run
async def test_a_field_that_changes_its_kind_is_decided_on_but_set_aside_when_learned(service):
    async with service.running():
        await service.post("", 201, **HEAT)
        made = [await service.post("/heat/decisions", context={"x": value}) for value in (1, "text", 2)]
        for each in made:
            await report(service, each)
        await service.learned("heat", 2)
        assert (await service.get("/heat"))["refused"] == 1


@run
async def test_a_first_context_whose_field_was_learned_as_another_kind_stops_nothing(service):
    async with service.running():
        await service.post("", 201, **HEAT)
        await service.post("/heat/decisions", context={"x": True})
        await report(service, await service.post("/heat/decisions", context={"x": "text"}))
        await service.learned("heat", 1)
        await service.refused(422, "/v1/loops/heat/decisions", {"context": [1, 2]}, field="context")
        await service.refused(422, "/v1/loops/heat/decisions", {"context": {"x": 1}}, field="context")
        await service.get("/heat/summary")
    async with service.running():
        await service.post("/heat/decisions", context={"x": "other"})


@run
async def test_a_loop_without_contexts_that_gets_a_model_of_named_ones_shows_both(service):
    async with service.running():
        for name in ("heat", "named"):
            await service.post("", 201, **HEAT | {"name": name})
        await report(service, await service.post("/heat/decisions"))
        await service.post("/named/decisions", context={"x": 1})
        model = (await service.client.get("/v1/loops/named/model")).content
        assert (await service.client.put("/v1/loops/heat/model", content=model)).status_code == 200
        await report(service, await service.post("/heat/decisions", context={"x": 2}))
        await service.learned("heat", 2)
        for view in ("summary", "policy", "report"):
            await service.get(f"/heat/{view}")
        assert (await service.client.get("/v1/loops/heat/log")).status_code == 200
