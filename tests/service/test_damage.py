"""One event or one snapshot that cannot be used is set aside, counted and named; everything else goes on."""

import asyncio
import logging

import manul
from manul.service.engine.model import Model
from tests.service.conftest import on_postgres, run, until
from tests.service.test_modes import HEAT
from tests.service.test_recovery import play, replayed


def damage(service, statement):
    """Change what is stored behind the service's back."""
    if "://" in service.store:
        import psycopg

        with psycopg.connect(service.store) as connection:
            connection.execute(statement)
    else:
        import sqlite3

        with sqlite3.connect(service.store) as connection:
            connection.execute(statement.replace("'\\x00'::bytea", "x'00'"))


@run
async def test_an_event_that_cannot_be_learned_is_set_aside_counted_and_named(service, monkeypatch, caplog):
    learn = Model.learn_one

    def fails_at_third(loop, event, decided):
        if event.number == 3:
            raise ZeroDivisionError("division by zero")
        learn(loop, event, decided)

    monkeypatch.setattr(Model, "learn_one", fails_at_third)
    monkeypatch.setattr(Model, "learn_many", lambda *_: False)
    async with service.running():
        await service.post("", 201, **HEAT)
        await play(service, 5)
        await service.learned("heat", 4)
        status = await service.get("/heat")
        assert (status["learned"], status["refused"]) == (4, 1)
    assert [(each.loop, each.event) for each in caplog.records if hasattr(each, "event") and each.levelno == 30] == [
        ("heat", 3)
    ]


@run
async def test_a_damaged_snapshot_is_passed_over_for_an_older_one_and_the_events(service, caplog):
    async with service.running(snapshot_events=5):
        await service.post("", 201, **HEAT)
        for learned in (5, 10):
            await play(service, 5)
            await service.learned("heat", learned)
            await until(lambda learned=learned: service.engine.store.snapshots(1)[:1] == [learned])
        before = manul.dumps(service.engine.loop("heat").model.agent)
    damage(service, "UPDATE snapshots SET body = '\\x00'::bytea WHERE event = 10")
    async with service.running():
        assert manul.dumps(service.engine.loop("heat").model.agent) == before
        assert service.engine.loop("heat").model.learned == 10
    assert any(each.levelno == logging.ERROR and each.loop == "heat" for each in caplog.records)


@run
async def test_all_snapshots_damaged_means_a_replay_of_all_events(service):
    async with service.running(snapshot_events=5):
        await service.post("", 201, **HEAT)
        await play(service, 5)
        await service.learned("heat", 5)
        before = manul.dumps(service.engine.loop("heat").model.agent)
    damage(service, "UPDATE snapshots SET body = '\\x00'::bytea, history = '\\x00'::bytea")
    async with service.running():
        assert manul.dumps(service.engine.loop("heat").model.agent) == before


@run
async def test_a_damaged_imported_model_is_refused_and_the_rest_is_learned(service):
    async with service.running(snapshot_events=10**9):
        await service.post("", 201, **HEAT)
        await play(service, 2)
        await service.learned("heat", 2)
        model = (await service.client.get("/v1/loops/heat/model")).content
        await service.client.put("/v1/loops/heat/model", content=model)
        await play(service, 2)
        await service.learned("heat", 4)
    damage(service, "DELETE FROM snapshots")
    damage(service, "UPDATE models SET body = '\\x00'::bytea")
    async with service.running():
        status = await service.get("/heat")
        assert (status["learned"], status["refused"], status["model"]) == (4, 1, 5)
        await play(service, 1)
        await service.learned("heat", 5)


@run
async def test_a_damaged_block_costs_its_own_outcomes_only(service):
    async with service.running(snapshot_events=10**9):
        await service.post("", 201, **HEAT)
        await play(service, 3)
        await service.learned("heat", 3)
    damage(service, "DELETE FROM snapshots")
    damage(service, "UPDATE blocks SET body = '\\x00'::bytea WHERE first = 2")
    async with service.running():
        status = await service.get("/heat")
        assert (status["learned"], status["refused"]) == (2, 1)


@run
async def test_events_that_are_gone_keep_no_service_from_starting(service):
    async with service.running(snapshot_events=10**9):
        await service.post("", 201, **HEAT)
        await play(service, 3)
        await service.learned("heat", 3)
    damage(service, "DELETE FROM snapshots")
    damage(service, "DELETE FROM events WHERE number = 3")
    async with service.running():
        status = await service.get("/heat")
        assert (status["learned"], status["refused"], status["model"]) == (2, 1, 3)
        await play(service, 1)
        await service.learned("heat", 3)


@run
async def test_a_loop_with_damaged_settings_is_out_of_service_alone(service):
    async with service.running():
        await service.post("", 201, **HEAT)
        await service.post("", 201, **HEAT | {"name": "other"})
    damage(service, "UPDATE loops SET settings = '\\x00'::bytea WHERE number = 1")
    async with service.running():
        answer = await service.client.post("/v1/loops/heat/decisions", json={"context": [1]})
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "unavailable")
        await service.post("/other/decisions", context=[1])


@run
async def test_a_learner_that_fails_says_so_goes_on_with_other_loops_and_tries_again(service, monkeypatch):
    async with service.running():
        await service.post("", 201, **HEAT)
        await service.post("", 201, **HEAT | {"name": "other"})
        with monkeypatch.context() as broken:
            broken.setattr(service.engine.loop("heat"), "learn", lambda *_: 1 / 0)
            await play(service, 1)
            await play(service, 1, loop="other")
            await service.learned("other", 1)
            await until(lambda: service.engine.loop_trouble(service.engine.loop("heat")) is not None)
            assert (await service.client.get("/readyz")).status_code == 200
            assert (await service.get("/heat"))["trouble"].startswith("learning fails")
        await service.learned("heat", 1)
        await until(lambda: service.engine.loop_trouble(service.engine.loop("heat")) is None)
        assert replayed(service.engine, "heat")[1] == 1


@on_postgres
@run
async def test_pages_that_postgresql_cannot_write_cost_their_loop_only(service):
    async with service.running():
        for name in ("heat", "other"):
            await service.post("", 201, **HEAT | {"name": name})
        damage(service, DAMAGED)
        for _ in range(2):
            asked = [
                service.client.post(f"/v1/loops/{name}/decisions", json={"context": [1]}) for name in ("heat", "other")
            ]
            assert [each.status_code for each in await asyncio.gather(*asked)] == [503, 200]
        assert "damaged" in (await service.get("/heat"))["trouble"]
        assert (await service.get("/other"))["trouble"] is None
        assert (await service.client.get("/readyz")).status_code == 200


DAMAGED = """
CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN RAISE EXCEPTION 'invalid page in block 7' USING ERRCODE = 'data_corrupted'; END $$;
CREATE TRIGGER failing BEFORE INSERT ON blocks FOR EACH ROW WHEN (NEW.loop = 1) EXECUTE FUNCTION fail()
"""
