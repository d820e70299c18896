"""From the service to a log, to a better policy, and back; and old decisions out of the store."""

import asyncio

import numpy as np

import manul
from manul.service.insights import archive
from tests.service.conftest import run
from tests.service.test_recovery import named, play

HEAT = {"name": "heat", "actions": [20, 70], "agent": {"kind": "cats", "leaves": 16, "bandwidth": 5.0, "epsilon": 0.2}}


async def exported(service, tmp_path):
    answer = await service.client.get("/v1/loops/heat/log")
    assert answer.status_code == 200
    path = tmp_path / "log.parquet"
    path.write_bytes(answer.content)
    return manul.Log.read(path)


async def played(service, rounds):
    """As `play`, in batches."""
    made = await service.post("/heat/decisions/batch", decisions=[{"context": [i % 7, 1]} for i in range(rounds)])
    losses = [
        {"id": each["id"], "loss": abs(each["action"] - 30 - 5 * (place % 7)) / 50}
        for place, each in enumerate(made["decisions"])
    ]
    await service.post("/heat/losses", losses=losses)


@run
async def test_an_exported_log_passes_the_doctor_and_gives_a_policy_that_serves(service, tmp_path):
    async with service.running():
        await service.post("", 201, **HEAT)
        for _ in range(8):
            await played(service, 250)
        await service.post("/heat/decisions", context=[1, 1])
        log = await exported(service, tmp_path)
        assert len(log) == 2000
        assert manul.offpolicy.doctor(log) == []
        settings = {"actions": (20.0, 70.0), "epsilon": 0.1}
        best = manul.optimize(log, grid=manul.offpolicy.Grid(bandwidths=[1 / 8, 1 / 16], leaves=[8, 32]), **settings)
        best.policy.save(tmp_path / "best.manul")
        answer = await service.client.put("/v1/loops/heat/model", content=(tmp_path / "best.manul").read_bytes())
        assert answer.status_code == 200, answer.text
        made = await service.post("/heat/decisions", context=[3, 1], id="after")
        assert made["density"] == best.policy.distribution([3, 1]).density(made["action"])
        await service.post("/heat/decisions/after/loss", loss=0.5)
        await service.learned("heat", 2001)


@run
async def test_an_exported_log_has_the_floors_of_decisions_and_those_that_observations_report(service, tmp_path):
    async with service.running():
        await service.post("", 201, **HEAT)
        await service.post("/heat/pause")
        await played(service, 3)
        for asked in ({"id": "one"}, {}):
            made = await service.post("/heat/decisions", context=[1, 1], **asked)
            await service.post(f"/heat/decisions/{made['id']}/loss", loss=0.5)
        observed = {"context": [1, 1], "action": 30, "density": 0.02, "loss": 0.5}
        await service.post("/heat/observations", **observed)
        await service.post("/heat/observations", **observed, floor=0.01)
        await service.post("/heat/observations", 422, **observed, floor=0.03)
        floors = (await exported(service, tmp_path)).floors
        assert floors[:5].tolist() == [0.2 / 50] * 5
        assert np.isnan(floors[5])
        assert floors[6] == 0.01


@run
async def test_contexts_with_names_are_exported_as_columns(service, tmp_path):
    async with service.running():
        await service.post("", 201, **HEAT)
        await play(service, 20, named)
        log = await exported(service, tmp_path)
        row = next(log.context_rows())
        assert set(row) == {"outdoor", "sky", "open"}
        assert row["sky"] in ("clear", "grey")
        assert log.action_range == (20, 70)


@run
async def test_a_decision_without_a_context_has_no_values_in_the_columns(service, tmp_path):
    async with service.running():
        await service.post("", 201, **HEAT)
        await service.post("/heat/pause")
        for asked in ({"context": {"x": 1}}, {}, {"context": {"x": 2}}):
            made = await service.post("/heat/decisions", **asked)
            await service.post(f"/heat/decisions/{made['id']}/loss", loss=0.5)
        log = await exported(service, tmp_path)
        assert [row["x"] for row in log.context_rows()] == [1, None, 2]


@run
async def test_a_report_says_what_the_agent_believes_and_what_others_would_have_lost(service):
    async with service.running():
        await service.post("", 201, name="heat", actions=[20, 70])
        empty = await service.get("/heat/report")
        assert (empty["rows"], empty["candidates"]) == (0, [])
        for rounds in (150, 300):
            await played(service, 150)
            await service.learned("heat", rounds)
        report = await service.get("/heat/report")
        assert report["rows"] == 300
        assert report["beliefs"]["rounds"] == 300
        assert [each["name"].split()[0] for each in report["candidates"]][:2] == ["played", "greedy"]
        assert all(each["low"] <= each["loss"] <= each["high"] for each in report["candidates"][:2])


@run
async def test_an_apprentice_is_judged_before_it_learns_and_keeps_the_verdict_over_a_restart(service):
    rng = np.random.default_rng(0)
    async with service.running():
        await service.post("", 201, name="heat", actions=[20, 70], apprentice=True)
        for _ in range(400):
            action = float(rng.uniform(20, 70))
            outcome = {"action": action, "density": 1 / 50, "loss": abs(action - 40) / 50}
            await service.post("/heat/observations", context=[1.0], **outcome)
        await service.learned("heat", 400)
        before = (await service.get("/heat/report"))["candidates"]
    async with service.running():
        after = (await service.get("/heat/report"))["candidates"]
    caller, model, constant = after
    assert (caller["name"], model["name"], constant["name"].split()[0]) == ("played", "model", "constant")
    assert model["high"] > model["loss"] > 0.005  # its first decisions were random
    assert model["loss"] < caller["low"]
    assert after == before


@run
async def test_a_report_shows_no_number_that_few_decisions_support(service):
    async with service.running():
        await service.post("", 201, name="heat", actions=[20, 70])
        await played(service, 12)
        await service.learned("heat", 12)
        (only,) = (await service.get("/heat/report"))["candidates"]
        assert (only["loss"], only["note"]) == (None, "12 decisions: not enough to say.")


@run
async def test_a_log_without_rows_is_a_conflict(service):
    async with service.running():
        await service.post("", 201, **HEAT)
        await service.refused(409, "/v1/loops/heat/log", b"", method="GET")


@run
async def test_old_decisions_move_to_parquet_and_everything_goes_on(service, tmp_path):
    async with service.running():
        await service.post("", 201, **HEAT)
        await played(service, 50)
        await service.learned("heat", 50)
    service.clock.time += 1000
    async with service.running():
        await played(service, 30)
        await service.learned("heat", 80)
        before = await service.get("/heat")
        engine, loop = service.engine, service.engine.loop("heat")
        place = (engine.store, engine.writer, loop, tmp_path / "old", service.clock.time - 500)
        (written,) = await asyncio.to_thread(archive.archive, *place)
        assert len(manul.Log.read(written)) == 50
        assert await asyncio.to_thread(archive.archive, *place) == []
        assert await service.get("/heat") == before
        await service.refused(404, "/v1/loops/heat/decisions/~1/loss", {"loss": 0.5}, field="id")
    async with service.running():
        await service.learned("heat", 80)
        again = await service.get("/heat")
        assert {**again, "model": 0, "learned": 0} == {**before, "model": 0, "learned": 0}
        await played(service, 5)
        assert (await service.get("/heat"))["decisions"] == 85
