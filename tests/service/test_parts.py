"""Loops with a formula: parts are reported, stored, learned, combined after a wait, logged, replayed and restored."""

import numpy as np
import pytest

import manul
from manul.service.store.backup import backup, restore
from manul.utils import model_files
from tests.service.conftest import Service, run

SHOP = {
    "actions": [10, 50],
    "rewards": "auto",
    "formula": "(action - cost) * bought",
    "parts": {"bought": "yes/no"},
    "hints": {"bought": "falls"},
}
AUCTION = {
    "actions": [0, 40],
    "rewards": "auto",
    "formula": "(value - action) * won",
    "parts": {"won": "yes/no", "value": "amount"},
}
CONTEXT = {"cost": 9.0, "age": 3}


def bytes_of(agent):
    return {name: array.tobytes() for name, array in model_files.contents(agent)[2].items()}


async def sell(service, count=12, name="shop", **settings):
    """The decisions of a shop; every third visitor buys, and every fifth reward is reported, too."""
    await service.post("", 201, name=name, **SHOP, **settings)
    decisions = []
    for number in range(count):
        decision = await service.post(f"/{name}/decisions", context={**CONTEXT, "age": number})
        told = {"parts": {"bought": number % 3 == 0}} | ({"reward": 4.5} if number % 5 == 0 else {})
        assert (await service.post(f"/{name}/decisions/{decision['id']}/loss", **told))["status"] == "recorded"
        decisions.append(decision)
    return decisions


def profit(number, action):
    return 4.5 if number % 5 == 0 else (action - 9.0) * (number % 3 == 0)


@run
async def test_a_loop_learns_what_the_agent_learns_from_the_same_parts(service):
    async with service.running():
        decisions = await sell(service)
        await service.learned("shop", 12)
        outcome = service.engine.loop("shop").settings.learned
        agent = manul.Auto(actions=(10, 50), outcome=outcome)
        for number, each in enumerate(decisions):
            context, told = {**CONTEXT, "age": number}, {"reward": 4.5} if number % 5 == 0 else {}
            decision = manul.Decision(each["action"], each["density"])
            agent.learn(context, decision, parts={"bought": number % 3 == 0}, **told)
        served = bytes_of(service.engine.loop("shop").model.agent)
        assert {name: value for name, value in served.items() if name != "decisions"} == {
            name: value for name, value in bytes_of(agent).items() if name != "decisions"
        }
        status = await service.get("/shop")
        assert (status["formula"], status["parts"], status["hints"]) == tuple(
            SHOP[name] for name in ("formula", "parts", "hints")
        )
        expected = np.mean([-profit(number, each["action"]) for number, each in enumerate(decisions)])
        assert status["mean_loss"] == pytest.approx(expected)


@run
async def test_a_restart_a_replay_and_a_backup_have_the_same_model(service, tmp_path):
    async with service.running():
        await sell(service)
        await service.learned("shop", 12)
        before = bytes_of(service.engine.loop("shop").model.agent)
    async with service.running():
        assert bytes_of(service.engine.loop("shop").model.agent) == before
        loop = service.engine.loop("shop")
        facts = service.engine.store.events(loop.number, 0, 100)
        replayed = type(loop.model)(loop.settings)
        replayed.set_first(facts[0][1].context)
        replayed.learn(facts, lambda _: b"")
        assert bytes_of(replayed.agent) == before
    backup(service.store, tmp_path / "monday.zip")
    restore(tmp_path / "monday.zip", str(tmp_path / "other.db"))
    other = Service(tmp_path / "other.db")
    async with other.running():
        assert bytes_of(other.engine.loop("shop").model.agent) == before
        assert [event.parts for event, _ in other.engine.store.events(1, 0, 100)] == [event.parts for event, _ in facts]


@run
async def test_the_log_has_the_parts_and_can_be_priced_again(service, tmp_path):
    async with service.running():
        decisions = await sell(service)
        await service.learned("shop", 12)
        (tmp_path / "shop.parquet").write_bytes((await service.client.get("/v1/loops/shop/log")).content)
    log = manul.Log.read(tmp_path / "shop.parquet")
    assert log.outcome.formula == SHOP["formula"]
    assert log.parts["bought"].tolist() == [float(number % 3 == 0) for number in range(12)]
    assert log.rewards.tolist() == [profit(number, each["action"]) for number, each in enumerate(decisions)]
    again = log.with_outcome(manul.Sale(cost=5.0))
    assert again.rewards.tolist() == [(each["action"] - 5) * (number % 3 == 0) for number, each in enumerate(decisions)]


@run
async def test_parts_of_a_batch_and_of_rows_of_numbers(service):
    async with service.running():
        await service.post("", 201, name="auction", **AUCTION)
        made = await service.post("/auction/decisions/batch", decisions=[{"context": [1.0, n]} for n in range(6)])
        parts = [{"won": False} if n % 2 else {"won": True, "value": 3.5} for n in range(6)]
        losses = [{"id": each["id"], "parts": told} for each, told in zip(made["decisions"], parts, strict=True)]
        answer = await service.post("/auction/losses", losses=losses)
        assert {each["status"] for each in answer["losses"]} == {"recorded"}
        assert {each["status"] for each in (await service.post("/auction/losses", losses=losses))["losses"]} == {
            "repeated"
        }
        await service.learned("auction", 6)
        agent = manul.Auto(actions=(0, 40), outcome=service.engine.loop("auction").settings.learned)
        for number, (each, told) in enumerate(zip(made["decisions"], parts, strict=True)):
            agent.learn([1.0, number], manul.Decision(each["action"], each["density"]), parts=told)
        served = service.engine.loop("auction").model
        assert (served.refused, bytes_of(served.agent)["decisions"]) == (0, bytes_of(agent)["decisions"])
        assert bytes_of(served.agent) == bytes_of(agent)


@run
async def test_parts_without_a_formula_are_logged_beside_the_loss(service, tmp_path):
    async with service.running():
        await service.post("", 201, name="shop", actions=[0, 1], parts={"returned": "yes/no", "latency": "amount"})
        for number in range(8):
            decision = await service.post("/shop/decisions", context=[1.0])
            path, told = f"/shop/decisions/{decision['id']}/loss", {"parts": {"returned": number % 2 == 0}}
            assert await service.refused(422, f"/v1/loops{path}", told) == "loss is missing; the loop has losses."
            for status in ("recorded", "repeated"):
                assert (await service.post(path, loss=0.5, **told))["status"] == status
        await service.learned("shop", 8)
        assert service.engine.loop("shop").model.refused == 0
        (tmp_path / "shop.parquet").write_bytes((await service.client.get("/v1/loops/shop/log")).content)
    log = manul.Log.read(tmp_path / "shop.parquet")
    assert (log.outcome.formula, log.outcome.parts) == (None, {"returned": "yes/no", "latency": "amount"})
    assert log.parts["returned"].tolist() == [1.0, 0.0] * 4
    assert np.isnan(log.parts["latency"]).all()


@run
async def test_parts_without_a_formula_may_come_before_the_wait_ends(service):
    async with service.running():
        await service.post("", 201, name="shop", actions=[0, 1], parts={"returned": "yes/no"}, wait=60, default_loss=1)
        decision = await service.post("/shop/decisions")
        path = f"/shop/decisions/{decision['id']}/loss"
        assert (await service.post(path, loss=0.25))["status"] == "waiting"
        assert (await service.post(path, parts={"returned": True}))["status"] == "waiting"
        service.clock.time += 61
        service.engine.end_waits()
        await service.learned("shop", 1)
        event = [event for event, _ in service.engine.store.events(1, 0, 9)][-1]
        assert (event.kind, event.loss, event.parts) == ("combined", 0.25, '{"parts":{"returned":1.0},"judged":true}')


REPORTS = {
    "no formula": (
        {"bought": True},
        "parts must not be reported to a loop that was created without parts; report its loss.",
    ),
    "unknown": ({"bougt": True}, "parts has an unknown part 'bougt'. Did you mean bought?"),
    "no truth value": ({"bought": 0.5}, "the part 'bought' must be True or False, got 0.5."),
    "nothing": ({}, "parts must say 'bought', as in {'bought': True}."),
    "text": ({"bought": "yes"}, "parts[...] must be true or false or a number or null, got text. See /openapi.json."),
    "no cost": ({"bought": True}, "The formula needs the number 'cost' in the context, which has none."),
    "a leak": (
        {"bought": True},
        "the context has a field 'bought', which is a part of the outcome. Rename one of them.",
    ),
}


@pytest.mark.parametrize("case", REPORTS)
@run
async def test_a_report_that_cannot_be_used_is_refused(service, case):
    settings = {"actions": [0, 1]} if case == "no formula" else SHOP
    context = {"no cost": {"age": 3.0}, "a leak": {**CONTEXT, "bought": 0.0}}.get(case, CONTEXT)
    parts, message = REPORTS[case]
    async with service.running():
        await service.post("", 201, name="shop", **settings)
        decision = await service.post("/shop/decisions", context=context)
        path = f"/v1/loops/shop/decisions/{decision['id']}/loss"
        assert await service.refused(422, path, {"parts": parts}) == message


SETTINGS = {
    "a word": ({"formula": "(action - cost * bought"}, "formula", "is incomplete at character"),
    "no parts": ({"parts": None, "hints": None}, "parts", "must use a part"),
    "a kind": ({"parts": {"bought": "maybe"}}, "parts[...]", "is invalid"),
    "a knob": ({"actions": {"bought": [0, 1]}, "formula": "bought * 2"}, "formula", "has the name of a knob"),
    "a hint": ({"hints": {"sold": "falls"}}, "hints", "hints has an unknown part 'sold'"),
    "a default": ({"wait": 60, "default_parts": {"sold": True}}, "default_parts", "default has an unknown part 'sold'"),
    "no default": ({"wait": 60}, "default_reward", "wait is set, but default_reward is not"),
    "two defaults": (
        {"wait": 60, "default_parts": {"bought": False}, "default_reward": 0},
        "default_parts",
        "default_parts and default_reward exclude each other",
    ),
}


@pytest.mark.parametrize("case", SETTINGS)
@run
async def test_a_loop_that_contradicts_itself_is_refused(service, case):
    changed, field, message = SETTINGS[case]
    settings = {name: value for name, value in (SHOP | changed).items() if value is not None}
    async with service.running():
        answer = await service.client.post("/v1/loops", json={"name": "shop", **settings})
        error = answer.json()["error"]
        assert (answer.status_code, error["field"]) == (422, field), error
        assert message in error["message"]


@run
async def test_no_report_by_the_end_of_the_wait_means_the_default_parts(service):
    async with service.running():
        await service.post("", 201, name="shop", **SHOP, wait=60, default_parts={"bought": False})
        ids = [(await service.post("/shop/decisions", context=CONTEXT))["id"] for _ in range(3)]
        told = await service.post(f"/shop/decisions/{ids[0]}/loss", parts={"bought": True})
        assert told["status"] == "waiting"
        again = await service.post(f"/shop/decisions/{ids[0]}/loss", parts={"bought": True})
        assert again["status"] == "repeated"
        path = f"/v1/loops/shop/decisions/{ids[0]}/loss"
        message = await service.refused(409, path, {"parts": {"bought": False}}, field="parts")
        assert message == "The part 'bought' was already reported as 1 for this decision, got 0."
        service.clock.time += 61
        service.engine.end_waits()
        await service.learned("shop", 3)
        events = [event for event, _ in service.engine.store.events(1, 0, 9)]
        assert [(event.kind, event.parts) for event in events[1:]] == [
            ("combined", '{"parts":{"bought":1.0}}'),
            ("default", '{"parts":{"bought":0.0}}'),
            ("default", '{"parts":{"bought":0.0}}'),
        ]
        late = await service.post(f"/shop/decisions/{ids[1]}/loss", parts={"bought": True})
        assert late["status"] == "late"
        assert (await service.get("/shop"))["defaulted"] == 2


@run
async def test_parts_that_come_one_by_one_are_combined(service):
    async with service.running():
        await service.post("", 201, name="auction", **AUCTION, wait=60, default_parts={"won": False})
        made = [await service.post("/auction/decisions") for _ in range(3)]
        for each, reports in zip(
            made, [[{"won": True}, {"value": 7.5}], [{"won": True}], [{"value": 7.5}]], strict=True
        ):
            for parts in reports:
                await service.post(f"/auction/decisions/{each['id']}/loss", parts=parts)
        service.clock.time += 61
        service.engine.end_waits()
        await service.learned("auction", 2)
        events = [event for event, _ in service.engine.store.events(1, 0, 9) if event.kind == "combined"]
        # The value of the second one, which was won, never came: it has no outcome.
        assert [(event.decision, event.loss) for event in events] == [(1, made[0]["action"] - 7.5), (3, 0.0)]


@run
async def test_an_observation_has_parts_and_a_model_fits_only_its_formula(service):
    async with service.running():
        await service.post("", 201, name="shop", **SHOP, apprentice=True)
        seen = {"action": 20.0, "density": 0.1, "context": CONTEXT}
        await service.post("/shop/observations", **seen, parts={"bought": True})
        await service.learned("shop", 1)
        assert (await service.get("/shop"))["mean_loss"] == -11.0
        for agent in (manul.Auto(actions=(10, 50), rewards="auto"), manul.Auto(actions=(10, 50), outcome=manul.Sale())):
            content = manul.dumps(agent)
            message = await service.refused(422, "/v1/loops/shop/model", content, method="PUT", field="model")
            assert message.startswith("The loop has the formula (action - cost) * bought, but the model has ")


@run
async def test_a_loop_without_limits_in_expectation_refuses_a_model_with_some(service):
    async with service.running():
        await service.post("", 201, name="auction", **AUCTION)
        for limit in ({"spend_at_most": ("won * action", 20.0, "day")}, {"keep": ("won", ">=", 0.2)}):
            content = manul.dumps(manul.Auto(actions=(0, 40), outcome=manul.Bid(), **limit))
            said = await service.refused(422, "/v1/loops/auction/model", content, method="PUT", field="model")
            assert said.startswith(f"The loop has {next(iter(limit))} none, but the model has (")


@run
async def test_a_rollout_is_judged_by_the_formula(service):
    async with service.running():
        await service.post("", 201, name="shop", **SHOP)
        plan = {"baseline": 20.0, "steps": [0.5], "outcome_range": [-50, 50], "budget": 1000}
        assert (await service.client.put("/v1/loops/shop/rollout", json=plan)).status_code == 200
        made = [await service.post("/shop/decisions", context=CONTEXT) for _ in range(30)]
        for each in made:
            await service.post(f"/shop/decisions/{each['id']}/loss", parts={"bought": True})
        await service.learned("shop", 30)
        rollout = service.engine.loop("shop").model.rollout
        assert rollout.progress.judged == 30
        assert sum(rollout.counts) == 30
