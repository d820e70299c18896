"""Contexts of every kind in any order: a missing one is an empty one of the loop's kind, and nobody else pays for it."""

import asyncio
import datetime
import io

import pytest
from pyarrow import parquet

import manul
from manul.agents.player_host import seen_by
from manul.logs.sample import Sample
from manul.offpolicy.evaluation.policy_densities import PolicyOnLog
from manul.service.configuration import Limits
from manul.service.engine.loop_agent import make_agent
from tests.service.conftest import Service, run
from tests.service.test_modes import HEAT
from tests.service.test_recovery import replayed

OSLO = datetime.timezone(datetime.timedelta(hours=1))


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
        assert replayed(service.engine, "heat")[0] == manul.dumps(service.engine.loop("heat").model.agent)


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
        assert seen_by(service.engine.loop("heat").model.agent).width is None


@run
async def test_a_first_context_that_would_take_too_much_memory_is_refused(store):
    service = Service(store, limits=Limits(loop_bytes=10 * 2**20))
    async with service.running():
        large = {"kind": "cats", "leaves": 2**16, "bandwidth": 2.0}
        await service.post("", 201, name="heat", actions=[20, 70], agent=large)
        asked = {"context": [0.0] * 4000}
        sentence = await service.refused(422, "/v1/loops/heat/decisions", asked, field="context")
        assert "--max-loop-bytes" in sentence
        assert seen_by(service.engine.loop("heat").model.agent).width is None
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


MOMENTS = [datetime.datetime(2024, 2, 28, 6, 30, tzinfo=OSLO) + datetime.timedelta(hours=9 * n) for n in range(12)]


def stays(moment):
    """A context with dates of Python, and the same in JSON."""
    night = moment.date()
    in_json = {"at": {"$date": moment.isoformat()}, "stay": {"nights": [{"$date": night.isoformat()}]}}
    return {"at": moment, "stay": {"nights": [night]}}, in_json


@pytest.mark.parametrize("agent", ["auto", HEAT["agent"]], ids=["auto", "cats"])
@run
async def test_a_loop_learns_from_dates_what_the_library_learns(service, agent):
    async with service.running():
        await service.post("", 201, **HEAT | {"agent": agent})
        library = make_agent(service.engine.loop("heat").settings)
        for number, (context, in_json) in enumerate(map(stays, MOMENTS)):
            made = await service.post("/heat/decisions", context=in_json)
            await report(service, made, loss=number / 12)
            library.learn(context, manul.Decision(made["action"], made["density"]), loss=number / 12)
        await service.learned("heat", 12)
        learned = manul.dumps(service.engine.loop("heat").model.agent)
        assert learned == manul.dumps(library) == replayed(service.engine, "heat")[0]


@run
async def test_a_bad_date_is_refused_by_every_route_and_nothing_is_stored(service):
    async with service.running():
        await service.post("", 201, **HEAT)
        bad = {"at": {"$date": "2023-02-29"}}
        for _ in range(2):  # before and after the first context
            for route, body in (
                ("decisions", {"context": bad}),
                ("decisions/batch", {"decisions": [{"context": {"x": 1}}, {"context": bad}]}),
                ("observations", {"context": bad, "action": 30, "loss": 0.5}),
            ):
                sentence = await service.refused(422, f"/v1/loops/heat/{route}", body)
                assert sentence.endswith("'2024-02-29T12:30:00+01:00', got '2023-02-29'.")
                assert "field 'at' must have a $date such as '2024-02-29' or " in sentence
            await service.post("/heat/decisions", context={"at": {"$date": "2024-02-29"}})


@run
async def test_views_and_logs_of_a_loop_show_its_dates(service):
    async with service.running():
        await service.post("", 201, **HEAT)
        for moment in MOMENTS:
            await report(service, await service.post("/heat/decisions", context=stays(moment)[1]))
        await service.learned("heat", 12)
        assert (await service.get("/heat/summary"))["features"] == ["at", "stay.nights[0]"]
        at, nights = [await service.get(f"/heat/policy?feature={name}") for name in ("at", "stay.nights[0]")]
        assert (at["typical"], at["values"][8]) == ("2024-03-01 12:30+01:00", "2024-03-01 08:00+01:00")
        assert (nights["typical"], nights["values"][0]) == ("2024-03-01", "2024-02-28")
        assert len(at["density"]) == len(at["values"]) == 17
        content = (await service.client.get("/v1/loops/heat/log")).content
        fields = manul.Log.from_table(parquet.read_table(io.BytesIO(content))).fields
        assert fields["at"].tolist() == [*MOMENTS]
        assert fields["stay"][0] == {"nights": [datetime.date(2024, 2, 28)]}
        await service.get("/heat/report")


@pytest.mark.parametrize(
    "texts",
    [
        ["0001-01-01T00:00:00+23:59"],
        ["9999-12-31T23:59:59-23:59"],
        ["2024-02-29", "2024-02-29T12:30", "2024-02-29T12:30Z"],
    ],
    ids=["first", "last", "mixed"],
)
@run
async def test_dates_at_the_ends_of_the_calendar_and_of_several_kinds_stop_no_view(service, texts):
    async with service.running():
        await service.post("", 201, **HEAT)
        for text in texts:
            await report(service, await service.post("/heat/decisions", context={"at": {"$date": text}}))
        await service.learned("heat", len(texts))
        for view in ("summary", "policy", "report"):
            await service.get(f"/heat/{view}")
        assert (await service.client.get("/v1/loops/heat/log")).status_code == 200


@run
async def test_the_log_of_a_loop_has_the_types_of_its_contexts(service):
    async with service.running():
        await service.post("", 201, **HEAT)
        context = {"at": {"$date": "2024-02-29"}, "vip": True, "tags": ["new"], "house": {"a=b": 1.0, "rooms": [1, 2]}}
        for each in (context | {"loss": 3, "open": {"$time": "12:30"}}, {"vip": False, "tags": []}):
            await report(service, await service.post("/heat/decisions", context=each))
        content = (await service.client.get("/v1/loops/heat/log")).content
        rows = [*manul.Log.from_table(parquet.read_table(io.BytesIO(content))).context_rows()]
        assert rows[0] == context | {"at": datetime.date(2024, 2, 29), "loss": 3.0, "open": datetime.time(12, 30)}
        assert {name: value for name, value in rows[1].items() if value is not None} == {"vip": False, "tags": []}


@run
async def test_a_model_on_the_log_of_its_loop_states_the_densities_that_were_logged(service):
    async with service.running():
        await service.post("", 201, **HEAT)
        contexts = [{"x": n % 7, "age": None if n % 3 else n, "vip": n % 2 == 0} for n in range(80)]
        for context in contexts[:40]:
            await report(
                service, await service.post("/heat/decisions", context=context), loss=float(context["age"] is None)
            )
        await service.learned("heat", 40)
        model = manul.loads((await service.client.get("/v1/loops/heat/model")).content)
        made = [await service.post("/heat/decisions", context=context) for context in contexts[40:]]
        for each in made:
            await report(service, each)
        content = (await service.client.get("/v1/loops/heat/log")).content
        log = manul.Log.from_table(parquet.read_table(io.BytesIO(content))).rows(slice(40, None))
        own = PolicyOnLog(model).densities(next(Sample.of(log).pieces()))
        assert own.tolist() == pytest.approx([each["density"] for each in made], rel=1e-12)
