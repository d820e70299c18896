"""Losses: idempotent, combined, late, and by default, each exactly once."""

import pytest

from manul.service.store import Event
from tests.service.conftest import run, until

WAITING = {"name": "heat", "actions": [20, 70], "wait": 60, "default_loss": 1.0}


async def decided(service, count):
    return [(await service.post("/heat/decisions", context=[1, 2]))["id"] for _ in range(count)]


async def waits_end(service):
    service.engine.end_waits()
    await service.engine.write(lambda transaction: transaction.numbers(1, []))


@run
async def test_a_loss_is_taken_once_and_another_one_is_a_conflict(service):
    async with service.running():
        await service.post("", 201, name="heat", actions=[20, 70])
        (given,) = await decided(service, 1)
        said = [await service.post(f"/heat/decisions/{given}/loss", loss=0.25) for _ in range(2)]
        assert [each["status"] for each in said] == ["recorded", "repeated"]
        await service.refused(409, f"/v1/loops/heat/decisions/{given}/loss", {"loss": 0.5}, field="loss")
        status = await service.get("/heat")
        assert (status["waiting"], status["mean_loss"], status["events"]) == (0, 0.25, 1)


@run
async def test_a_batch_of_losses_is_taken_whole_or_not_at_all(service):
    async with service.running():
        await service.post("", 201, name="heat", actions=[20, 70])
        ids = await decided(service, 3)
        losses = [{"id": each, "loss": 0.5} for each in ids]
        path = "/v1/loops/heat/losses"
        await service.refused(404, path, {"losses": [*losses, {"id": "~99", "loss": 0.5}]}, field="losses[3].id")
        await service.refused(422, path, {"losses": [*losses, {"id": ids[0], "loss": 7}]}, field="losses[3].loss")
        await service.refused(409, path, {"losses": [*losses, {"id": ids[0], "loss": 0.1}]}, field="losses[3].loss")
        said = await service.post("/heat/losses", losses=[*losses, losses[0]])
        assert [each["status"] for each in said["losses"]] == ["recorded"] * 3 + ["repeated"]


@run
async def test_a_missing_loss_becomes_the_default_exactly_once_also_across_a_restart(service):
    async with service.running():
        await service.post("", 201, **WAITING)
        ids = await decided(service, 3)
        await service.post(f"/heat/decisions/{ids[0]}/loss", loss=0.25)
        service.clock.time += 59
        await waits_end(service)
        assert (await service.get("/heat"))["defaulted"] == 0
    service.clock.time += 2
    for _ in range(2):
        async with service.running():
            for _ in range(3):
                await waits_end(service)
            await service.learned("heat", 3)
            status = await service.get("/heat")
            assert (status["defaulted"], status["learned"], status["waiting"], status["mean_loss"]) == (2, 3, 0, 0.75)


@run
async def test_a_reported_loss_is_learned_when_its_wait_ends_and_not_before(service):
    async with service.running():
        await service.post("", 201, **WAITING)
        ids = await decided(service, 2)
        assert (await service.post(f"/heat/decisions/{ids[1]}/loss", loss=0.25))["status"] == "waiting"
        service.clock.time += 59
        await waits_end(service)
        assert (await service.get("/heat"))["mean_loss"] is None
        service.clock.time += 2
        await waits_end(service)
        await service.learned("heat", 2)
        events = [event for event, _ in service.engine.store.events(1, 0, 9)]
        assert [(event.decision, event.kind) for event in events] == [(2, "part"), (1, "default"), (2, "combined")]


@run
async def test_a_repeated_loss_is_no_other_loss_before_and_after_the_end_of_the_wait(service):
    async with service.running():
        await service.post("", 201, **WAITING)
        (given,) = await decided(service, 1)
        path, said = f"/heat/decisions/{given}/loss", []
        for passed in (0, 1, 60):
            service.clock.time += passed
            await waits_end(service)
            said += [(await service.post(path, loss=0.25, key=f"after {passed}"))["status"]]
            await service.refused(409, f"/v1/loops{path}", {"loss": 0.5}, field="loss")
        assert said == ["waiting", "repeated", "repeated"]


@run
async def test_a_loss_is_late_from_the_end_of_its_wait_on_also_if_nobody_has_ended_it(service):
    async with service.running():
        await service.post("", 201, **WAITING)
        (given,) = await decided(service, 1)
        service.engine._background[0].cancel()
        service.clock.time += 61
        assert (await service.post(f"/heat/decisions/{given}/loss", loss=0.25))["status"] == "late"
        await waits_end(service)
        await service.learned("heat", 1)
        assert (await service.get("/heat"))["mean_loss"] == 1.0


@run
async def test_losses_that_an_earlier_version_learned_at_once_stay_outcomes(service):
    async with service.running():
        await service.post("", 201, **WAITING)
        ids = await decided(service, 2)
        await service.engine.write(lambda tx: tx.add_events(1, [Event(0, 1, "loss", 0.25, 1e6)]))
        assert (await service.post(f"/heat/decisions/{ids[0]}/loss", loss=0.25))["status"] == "repeated"
        await service.post(f"/heat/decisions/{ids[1]}/loss", loss=0.75)
        service.clock.time += 61
        await waits_end(service)
        await until(lambda: service.engine.store.counts(1).outcomes == 2)
        assert (await service.get("/heat"))["mean_loss"] == 0.5


@run
async def test_a_loss_after_the_default_is_late_recorded_and_not_learned(service):
    async with service.running():
        await service.post("", 201, **WAITING)
        (given,) = await decided(service, 1)
        service.clock.time += 61
        await waits_end(service)
        await service.learned("heat", 1)
        said = [await service.post(f"/heat/decisions/{given}/loss", loss=0.25) for _ in range(2)]
        assert [each["status"] for each in said] == ["late", "late"]
        status = await service.get("/heat")
        assert (status["late"], status["learned"], status["mean_loss"], status["events"]) == (1, 1, 1.0, 2)


@pytest.mark.parametrize(("combine", "expected"), [("last", 0.25), ("sum", 0.75), ("mean", 0.375)])
@run
async def test_several_losses_combine_at_the_end_of_the_wait(service, combine, expected):
    async with service.running():
        await service.post("", 201, **WAITING, combine=combine)
        (given,) = await decided(service, 1)
        for loss, key in ((0.5, "a"), (0.5, "a"), (0.25, "b")):
            await service.post(f"/heat/decisions/{given}/loss", loss=loss, key=key)
        await service.refused(409, f"/v1/loops/heat/decisions/{given}/loss", {"loss": 0.1, "key": "a"}, field="loss")
        assert (await service.get("/heat"))["mean_loss"] is None
        service.clock.time += 61
        await waits_end(service)
        await service.learned("heat", 1)
        assert (await service.get("/heat"))["mean_loss"] == expected


@run
async def test_a_key_may_hold_any_character(service):
    async with service.running():
        await service.post("", 201, **WAITING, combine="sum")
        (given,) = await decided(service, 1)
        path, keys = f"/heat/decisions/{given}/loss", ("\0", "\u732b", "\0", "'")
        said = [await service.post(path, loss=0.25, key=key) for key in keys]
        assert [each["status"] for each in said] == ["waiting", "waiting", "repeated", "waiting"]
        await service.refused(
            404, "/v1/loops/heat/losses", {"losses": [{"id": "\0", "loss": 0.5}]}, field="losses[0].id"
        )


@run
async def test_settings_that_cannot_work_together_are_refused(service):
    async with service.running():
        await service.post("", 201, **WAITING)
        loop = {"name": "other", "actions": [0, 1]}
        for wrong, field in (
            ({"wait": 60}, "default_loss"),
            ({"default_loss": 0.5}, "wait"),
            ({"combine": "sum"}, "wait"),
            ({"wait": 60, "default_loss": 2}, "default_loss"),
            ({"actions": [1, 0]}, "actions"),
            ({"losses": [0, 0]}, "losses"),
            ({"agent": {"kind": "cats", "leaves": 3, "bandwidth": 0.1}}, "agent"),
            ({"agent": {"kind": "cats", "leaves": 4, "bandwidth": 7}}, "agent"),
        ):
            await service.refused(422, "/v1/loops", {**loop, **wrong}, field=field)
