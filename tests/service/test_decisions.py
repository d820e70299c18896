"""Deciding: ids that seed, answers that repeat, batches, and what is stored."""

import asyncio

from manul.service.engine.requests import seed_of
from tests.service.conftest import run

HEAT = {"name": "heat", "actions": [20, 70], "agent": {"kind": "cats", "leaves": 32, "bandwidth": 2.0}}


@run
async def test_the_same_id_gets_the_same_answer_also_after_learning_and_restarting(service):
    async with service.running():
        await service.post("", 201, **HEAT)
        first = await service.post("/heat/decisions", context=[1, 2], id="order-1")
        await service.post("/heat/decisions/order-1/loss", loss=0.25)
        await service.learned("heat", 1)
        assert await service.post("/heat/decisions", context=[1.0, 2.0], id="order-1") == first
    async with service.running():
        assert await service.post("/heat/decisions", context=[1, 2], id="order-1") == first
        assert (await service.get("/heat"))["decisions"] == 1


@run
async def test_an_id_seeds_the_randomness(service):
    async with service.running():
        for name in ("heat", "cool"):
            await service.post("", 201, **{**HEAT, "name": name})
        made = [await service.post("/heat/decisions", context=[1], id=f"order-{i}") for i in range(3)]
        other = await service.post("/cool/decisions", context=[1], id="order-0")
        assert len({each["action"] for each in [*made, other]}) == 4
        drawn = service.engine.loop("heat").model.draw([1], [seed_of("heat", "order-1")], [[1.0]], [None], [None])
        assert drawn.decisions[0].action == made[1]["action"]


@run
async def test_the_same_id_with_something_else_is_a_conflict(service):
    async with service.running():
        await service.post("", 201, **HEAT)
        await service.post("/heat/decisions", context=[1, 2], id="order-1")
        for other in ({"context": [1, 3]}, {"context": [1, 2], "within": [30, 40]}):
            await service.refused(409, "/v1/loops/heat/decisions", {**other, "id": "order-1"}, field="id")
        batch = {"decisions": [{"context": [5, 5], "id": "order-2"}, {"context": [1, 3], "id": "order-1"}]}
        await service.refused(409, "/v1/loops/heat/decisions/batch", batch, field="decisions[1].id")
        await service.post("/heat/decisions", context=[6, 6], id="order-2")


@run
async def test_a_batch_decides_what_single_requests_decide(service):
    async with service.running():
        await service.post("", 201, **HEAT)
        asked = [{"context": [i, 1], "id": f"order-{i}", "within": [30, 40] if i % 2 else None} for i in range(6)]
        singles = [await service.post("/heat/decisions", **each) for each in asked]
        batch = (await service.post("/heat/decisions/batch", decisions=asked))["decisions"]
        assert batch == singles
        assert all(30 <= each["action"] <= 40 for each in batch[1::2])
        assert (await service.get("/heat"))["decisions"] == 6


@run
async def test_many_at_once_are_each_there_exactly_once(service):
    async with service.running():
        await service.post("", 201, **HEAT)
        made = await asyncio.gather(*[service.post("/heat/decisions", context=[i], id=f"n{i % 50}") for i in range(50)])
        again = await asyncio.gather(*[service.post("/heat/decisions", context=[i], id=f"n{i}") for i in range(50)])
        assert made == again
        plain = await asyncio.gather(*[service.post("/heat/decisions", context=[i]) for i in range(50)])
        assert len({each["id"] for each in plain}) == 50
        assert (await service.get("/heat"))["decisions"] == 100


@run
async def test_two_requests_with_one_new_id_in_the_same_moment_get_one_answer(service):
    async with service.running():
        await service.post("", 201, **HEAT)
        made = await asyncio.gather(*[service.post("/heat/decisions", context=[1], id="one") for _ in range(20)])
        assert all(each == made[0] for each in made)
        assert (await service.get("/heat"))["decisions"] == 1


@run
async def test_a_loop_is_created_once(service):
    async with service.running():
        await service.post("", 201, **HEAT)
        await service.post("", 200, **HEAT)
        await service.refused(409, "/v1/loops", {**HEAT, "actions": [0, 50]}, field="name")
        assert [each["name"] for each in (await service.get(""))["loops"]] == ["heat"]


@run
async def test_decisions_around_a_batch_are_found_again(service):
    async with service.running():
        await service.post("", 201, **HEAT)
        one, batch = {"context": [1, 2]}, {"decisions": [{"context": [1, 2]}] * 3}
        made = await asyncio.gather(
            service.post("/heat/decisions", **one),
            service.post("/heat/decisions/batch", **batch),
            service.post("/heat/decisions", **one),
        )
        ids = [made[0]["id"], *(each["id"] for each in made[1]["decisions"]), made[2]["id"]]
        for each in ids:
            await service.post(f"/heat/decisions/{each}/loss", loss=0.5)
        await service.learned("heat", 5)
