"""Decisions that were made elsewhere with a downloaded model are checked against it, and learned once."""

import asyncio
import hashlib

import pytest

import manul
from manul.service.configuration import Limits
from tests.c_library import CAgent, Failed
from tests.service.conftest import Service, run, until

KNOBS = {"price": [10, 50], "template": {"options": ["a", "b"]}, "days": {"low": 0, "high": 4, "step": 1}}
KINDS = {
    "a number": {"actions": [20, 70]},
    "steps": {"actions": {"low": 0, "high": 8, "step": 2}},
    "options": {"actions": {"options": ["plain", "bold"]}},
    "several knobs": {"actions": KNOBS},
    "limits": {"actions": {"x": [0, 1], "y": [0, 1]}, "agent": {"kind": "auto", "limits": ["y <= 1.2 - x"]}},
    "cats": {"actions": [20, 70], "agent": {"kind": "cats", "leaves": 16, "bandwidth": 0.125}},
}
CONTEXTS = [{"city": "Oslo", "age": float(age)} for age in range(8)]


async def download(service, loop="heat"):
    """The model of a loop, and its signature."""
    answer = await service.client.get(f"/v1/loops/{loop}/model")
    assert answer.headers["X-Manul-Model"] == hashlib.sha256(answer.content).hexdigest()
    return manul.loads(answer.content), answer.headers["X-Manul-Model"]


def decided(model, signature, number=0, **more):
    """A decision as the edge reports it."""
    context = CONTEXTS[number % len(CONTEXTS)]
    decision = model.decide_again(number, context, more.pop("narrowed", None))
    told = {"action": decision.action, "density": decision.density, "loss": 0.25}
    return {"model": signature, "number": number, "context": context, **told, **more}


@pytest.fixture
def service(store):
    return Service(store)


async def learned_some(service, loop="heat", rounds=12):
    """A loop that has learned something, so that its model is not uniform."""
    for number in range(rounds):
        decision = await service.post(f"/{loop}/decisions", context=CONTEXTS[number % 8])
        await service.post(f"/{loop}/decisions/{decision['id']}/loss", loss=0.1 + 0.05 * (number % 3))
    await service.learned(loop, rounds)


@pytest.mark.parametrize("kind", KINDS)
@run
async def test_decisions_of_a_downloaded_model_are_accepted_for_every_kind_of_action(tmp_path, kind):
    service = Service(tmp_path / "decisions.db")
    async with service.running():
        await service.post("", 201, name="heat", **KINDS[kind])
        await learned_some(service)
        model, signature = await download(service)
        rows = [decided(model, signature, number) for number in range(20)]
        await service.post("/heat/observations/batch", observations=rows)
        await service.learned("heat", 32)
        for row in rows[:3]:
            changed = row | {"number": 99, "density": row["density"] * (1 + 1e-6)}
            said = await service.refused(422, "/v1/loops/heat/observations", changed, field="density")
            assert said.startswith("density must be ")


@run
async def test_the_model_may_have_learned_since(service):
    async with service.running():
        await service.post("", 201, name="heat", actions=[20, 70])
        model, signature = await download(service)
        await learned_some(service)
        await service.post("/heat/observations", **decided(model, signature))
        await service.learned("heat", 13)
        now, latest = await download(service)
        assert latest != signature
        row = decided(now, latest)
        other = row | {"model": signature}
        assert "density must be 0.02," in await service.refused(422, "/v1/loops/heat/observations", other)


@run
async def test_a_repeated_report_is_learned_once_and_copies_are_told_apart(service):
    async with service.running():
        await service.post("", 201, name="heat", actions=[20, 70])
        model, signature = await download(service)
        row = decided(model, signature, copy="phone-1")
        first = await service.post("/heat/observations", **row)
        assert await service.post("/heat/observations", **row) == first
        batch = await service.post("/heat/observations/batch", observations=[row, row | {"copy": "phone-2"}])
        assert batch["observations"][0] == first
        await service.learned("heat", 2)
        assert (await service.get("/heat"))["events"] == 2
        changed = row | {"loss": 0.5}
        assert "already reported" in await service.refused(409, "/v1/loops/heat/observations", changed)
        other = decided(model, signature, 1) | {"number": 0, "copy": "phone-1"}
        said = await service.refused(409, "/v1/loops/heat/observations", other, field="number")
        assert "of another decision. Give each copy of the model a text of its own" in said


@run
async def test_what_a_model_did_not_decide_is_refused_in_one_sentence(service):
    path = "/v1/loops/heat/observations"
    async with service.running():
        await service.post("", 201, name="heat", actions=[20, 70])
        model, signature = await download(service)
        row = decided(model, signature)
        unknown = row | {"model": "0" * 64}
        assert "Download the model again" in await service.refused(409, path, unknown, field="model")
        assert "must be in [20, 70]" in await service.refused(422, path, row | {"action": 71.0}, field="action")
        await service.refused(422, path, row | {"model": "abc"}, field="model")
        await service.refused(422, path, row | {"density": None}, field="density")
        await service.refused(422, path, row | {"number": None}, field="number")
        await service.refused(422, path, row | {"model": None}, field="number")
        await service.refused(422, path, row | {"context": {"city": 3.0, "age": "x", "$": {"$date": "x"}}})
        batch = {"observations": [row, row | {"number": 1, "density": 0.5}]}
        await service.refused(422, f"{path}/batch", batch, field="observations[1].density")
        assert (await service.get("/heat"))["decisions"] == 0


@run
async def test_a_narrower_range_is_part_of_the_decision(service):
    async with service.running():
        await service.post("", 201, name="heat", actions=[20, 70])
        await learned_some(service)
        model, signature = await download(service)
        row = decided(model, signature, narrowed=(30.0, 40.0), within=[30, 40])
        await service.post("/heat/observations", **row)
        await service.refused(422, "/v1/loops/heat/observations", row | {"within": None, "number": 1}, field="density")


@run
async def test_models_are_known_after_a_restart_until_newer_ones_replace_them(store):
    service = Service(store, limits=Limits(downloads=2))
    async with service.running():
        await service.post("", 201, name="heat", actions=[20, 70])
        rows = []
        for number in range(3):
            service.clock.time += 1
            rows.append(decided(*await download(service), number))
            await learned_some(service, rounds=1) if number == 0 else await grow(service)
    async with service.running():
        assert len(service.engine.store.downloads(1)) == 2
        for row in rows[1:]:
            await service.post("/heat/observations", **row)
        await service.refused(409, "/v1/loops/heat/observations", rows[0], field="model")


async def grow(service):
    decision = await service.post("/heat/decisions", context=CONTEXTS[0])
    await service.post(f"/heat/decisions/{decision['id']}/loss", loss=0.2)
    outcomes = service.engine.store.counts(1).outcomes
    await service.learned("heat", outcomes)


@run
async def test_a_reset_forgets_the_models_that_were_downloaded(service):
    async with service.running():
        await service.post("", 201, name="heat", actions=[20, 70])
        row = decided(*await download(service))
        await service.post("/heat/reset")
        await until(lambda: "heat" in service.engine.loops)
        answer = await service.client.post("/v1/loops/heat/observations", json=row)
        assert answer.status_code == 409


@run
async def test_observations_count_for_a_rollout_as_nothing_and_wait_as_all_do(service):
    async with service.running():
        wait = {"wait": 60, "default_loss": 1}
        await service.post("", 201, name="heat", actions=[20, 70], **wait)
        answer = await service.client.put("/v1/loops/heat/rollout", json={"baseline": 40})
        assert answer.status_code == 200
        model, signature = await download(service)
        await service.post("/heat/observations", **decided(model, signature))
        assert (await service.get("/heat"))["learned"] == 0
        service.clock.time += 61
        await service.learned("heat", 1)
        rollout = await service.get("/heat/rollout")
        assert rollout["judged"] == 0


@run
async def test_a_loss_that_is_refused_leaves_no_observation_behind(service):
    async with service.running():
        sale = {"formula": "(action - 20) * bought", "parts": {"bought": "yes/no"}, "rewards": [0, 10]}
        await service.post("", 201, name="heat", actions=[20, 70], **sale)
        model, signature = await download(service)
        row = decided(model, signature) | {"loss": None, "parts": {"bought": True}}
        number = next(n for n in range(50) if model.decide_again(n, row["context"]).action > 31)
        row |= {"number": number, "action": model.decide_again(number, row["context"]).action}
        await service.refused(422, "/v1/loops/heat/observations", row, field="parts")
        assert (await service.get("/heat"))["decisions"] == 0
        fine = row | {"number": 1000, "parts": {"bought": False}}
        batch = {"observations": [fine, row]}
        await service.refused(422, "/v1/loops/heat/observations/batch", batch, field="observations[1].parts")
        assert (await service.get("/heat"))["decisions"] == 0
        await service.post("/heat/observations", **fine)


FORMULA = {"rewards": "auto", "formula": "(60 - action) * won", "parts": {"won": "yes/no"}}
ONLY_IN_PYTHON = {
    "a formula": (FORMULA, "outcome", "file has an outcome with the formula '(60 - action) * won', which only Python"),
    "a budget": (
        FORMULA | {"actions": [0, 40], "spend_at_most": ["won * action", 600.0, "day"]},
        "outcome",
        "file has an outcome with",
    ),
    "a rate to keep": (FORMULA | {"keep": ["won", ">=", 0.2]}, "outcome", "file has an outcome with the formula"),
    "a prior": ({"agent": {"kind": "auto", "prior": {"loop": "other"}}}, "prior", "file has a prior, which only"),
}


@pytest.mark.parametrize("kind", ONLY_IN_PYTHON)
@run
async def test_models_that_only_python_reads_are_refused_elsewhere_in_one_sentence(tmp_path, kind):
    settings, field, sentence = ONLY_IN_PYTHON[kind]
    service = Service(tmp_path / "decisions.db")
    async with service.running():
        await service.post("", 201, name="other", actions=[20, 70])
        await learned_some(service, "other")
        await service.post("", 201, name="heat", **({"actions": [20, 70]} | settings))
        answer = await service.client.get("/v1/loops/heat/model")
        with pytest.raises(Failed) as failed:
            CAgent(answer.content)
        assert (failed.value.field, str(failed.value)[: len(sentence)]) == (field, sentence)
        row = decided(manul.loads(answer.content), answer.headers["X-Manul-Model"])
        told = {"loss": None} | ({"parts": {"won": True}} if "formula" in settings else {"loss": 0.25})
        if kind in ("a budget", "a rate to keep"):
            await service.refused(409, "/v1/loops/heat/observations", row | told, field="model")
        else:
            await service.post("/heat/observations", **(row | told))


@run
async def test_a_copy_that_has_learned_is_told_what_to_do(service):
    async with service.running():
        await service.post("", 201, name="heat", actions=[20, 70])
        model, signature = await download(service)
        row = decided(model, signature, copy="phone-1") | {"model": None}
        said = await service.refused(422, "/v1/loops/heat/observations", row, field="copy")
        assert "download the model again, or send an id of your own instead of number and copy." in said
        await service.post("/heat/observations", **(row | {"number": None, "copy": None, "id": "phone-1:0"}))


@pytest.mark.parametrize("store", [pytest.param("postgres", marks=pytest.mark.whole)], indirect=True)
@run
async def test_any_replica_accepts_a_decision_of_a_model_that_another_gave_out(store):
    one, two = Service(store), Service(store)
    async with one.running(), two.running():
        await one.post("", 201, name="heat", actions=[20, 70])
        row = decided(*await download(one))
        first = await two.post("/heat/observations", **row)
        assert await one.post("/heat/observations", **row) == first
        await until(lambda: one.engine.store.counts(1).outcomes == 1)
        assert one.engine.store.counts(1).decisions == 1


@run
async def test_a_report_that_repeats_one_that_is_just_refused_is_refused_too(service):
    """Both are written in one group."""
    async with service.running():
        sale = {"formula": "(action - 20) * bought", "parts": {"bought": "yes/no"}, "rewards": [0, 10]}
        await service.post("", 201, name="heat", actions=[20, 70], **sale)
        row = {"context": CONTEXTS[0], "action": 60.0, "id": "visit-1"}
        url = "/v1/loops/heat/observations"
        refused, repeated = await asyncio.gather(
            service.client.post(url, json=row | {"parts": {"bought": True}}), service.client.post(url, json=row)
        )
        assert (refused.status_code, repeated.status_code) == (422, 503)
        assert (await service.get("/heat"))["decisions"] == 0
        await service.post("/heat/observations", **row)


@pytest.mark.parametrize(
    ("limit", "name"), [({"spend_at_most": ["won * action", 60, 50]}, "budget"), ({"keep": ["won", ">=", 0.2]}, "rate")]
)
@run
async def test_a_model_with_a_limit_in_expectation_does_not_decide_elsewhere(service, limit, name):
    sale = {"formula": "(value - action) * won", "parts": {"won": "yes/no", "value": "amount"}}
    async with service.running():
        await service.post("", 201, name="heat", actions=[0, 40], rewards="auto", **sale, **limit)
        _, signature = await download(service)
        row = {"action": 3.0, "density": 1 / 40, "context": [0.0], "number": 0, "parts": {"won": True, "value": 5}}
        asked = row | {"model": signature}
        assert f"has a {name}" in await service.refused(409, "/v1/loops/heat/observations", asked, field="model")
        batch = {"observations": [asked]}
        await service.refused(409, "/v1/loops/heat/observations/batch", batch, field="observations[0].model")
        del row["number"]  # what callers choose themselves is not of the account
        await service.post("/heat/observations", **row)
