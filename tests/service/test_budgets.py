"""Loops with a budget or a rate to keep: the account is a function of the events, and never spends more than it has."""

import asyncio

import numpy as np
import pytest

import manul
from manul.service.engine.model import Model
from manul.service.http.openapi import document
from manul.service.store.backup import backup, restore
from manul.utils import model_files
from tests.service.conftest import Service, run, until

ADS = {
    "actions": [0, 40],
    "rewards": "auto",
    "formula": "(value - action) * won",
    "parts": {"won": "yes/no", "value": "amount"},
    "hints": {"won": "rises"},
}
BUDGET = {"spend_at_most": ["won * action", 60.0, 50]}
WIDE = {"spend_at_most": ["won * action", 400.0, 50]}  # so that no decision declines
DAY = 86400.0


def auction(number):
    rng = np.random.default_rng([number, 7])
    return rng.standard_normal(2).tolist(), float(rng.gamma(4, 1.5)), float(rng.gamma(4, 2.5))


def parts_of(number, bid):
    _, other, value = auction(number)
    return {"won": True, "value": value} if bid >= other else {"won": False}


def bytes_of(agent):
    return {name: array.tobytes() for name, array in model_files.contents(agent)[2].items()}


def model(service, name="ads"):
    return service.engine.loop(name).model


async def caught_up(service, name="ads"):
    loop = service.engine.loop(name)
    await until(lambda: loop.model.event == service.engine.store.counts(loop.number).events)


async def bid(service, number, name="ads", **body):
    return await service.post(f"/{name}/decisions", context=auction(number)[0], **body)


async def settle(service, number, decision, name="ads"):
    parts = parts_of(number, decision["action"])
    await service.post(f"/{name}/decisions/{decision['id']}/loss", parts=parts)
    return decision["action"] * parts["won"]


async def play(service, rounds, first=0, name="ads"):
    return [
        await settle(service, number, await bid(service, number, name), name) for number in range(first, first + rounds)
    ]


@run
async def test_no_period_spends_more_than_the_budget(service):
    async with service.running():
        await service.post("", 201, name="ads", **ADS, **BUDGET)
        spent = np.array(await play(service, 150)).reshape(-1, 50).sum(axis=1)
        assert (spent <= 60.0 + 1e-9).all()
        await caught_up(service)
        budget = (await service.get("/ads"))["budget"]
        assert [each["spent"] for each in budget["latest"]] == pytest.approx(spent)


@run
async def test_decisions_at_once_spend_no_more_than_the_budget(service):
    async with service.running():
        await service.post("", 201, name="ads", **ADS, **BUDGET)
        await play(service, 50)
        decisions = await asyncio.gather(*[bid(service, number) for number in range(50, 100)])
        assert sum(each["action"] for each in decisions) <= 60.0 + 1e-9
        assert any("within" in each for each in decisions)


@run
async def test_what_is_left_cuts_the_range_before_the_draw(service):
    async with service.running():
        await service.post("", 201, name="ads", **ADS, spend_at_most=["won * action", 30.0, 50])
        decision = await bid(service, 0)
        assert decision["within"] == [0.0, 30.0]
        assert decision["density"] == pytest.approx(1 / 30)


@run
async def test_a_repeated_request_gets_its_decision_and_holds_nothing_back_again(service):
    async with service.running():
        await service.post("", 201, name="ads", **ADS, spend_at_most=["won * action", 30.0, 50])
        first = await bid(service, 0, id="one")
        held = (await service.get("/ads"))["budget"]["held"]
        assert held == pytest.approx(first["action"])
        assert await bid(service, 0, id="one") == first
        assert (await service.get("/ads"))["budget"]["held"] == held
        await service.refused(
            409, "/v1/loops/ads/decisions", {"id": "one", "context": auction(0)[0], "within": [0, 5]}, field="id"
        )
        assert (await service.get("/ads"))["budget"]["held"] == held


@run
async def test_a_restart_a_replay_and_a_backup_have_the_same_account_and_the_same_model(service, tmp_path):
    async with service.running():
        await service.post("", 201, name="ads", **ADS, **WIDE, keep=["won", ">=", 0.2])
        await play(service, 70)
        opened = await bid(service, 70)
        await caught_up(service)
        before, status = bytes_of(model(service).agent), await service.get("/ads")
        assert status["budget"]["waiting"] == 1
    async with service.running():
        assert bytes_of(model(service).agent) == before
        assert await service.get("/ads") == status
        loop = service.engine.loop("ads")
        replayed = Model(loop.settings)
        replayed.set_first(model(service).first)
        for fact in service.engine.store.events(loop.number, 0, 1000):  # one by one, not in the batches of before
            replayed.learn([fact], lambda _: b"")
        assert bytes_of(replayed.agent) == before
    backup(service.store, tmp_path / "backup.manul")
    restore(tmp_path / "backup.manul", f"{tmp_path}/restored.db")
    restored = Service(tmp_path / "restored.db")
    async with restored.running():
        assert (await restored.get("/ads"))["budget"] == status["budget"]
        await settle(restored, 70, opened)
        await caught_up(restored)
        assert (await restored.get("/ads"))["budget"]["waiting"] == 0


@run
async def test_a_killed_process_forgets_only_what_it_has_not_answered(service):
    async with service.running():
        await service.post("", 201, name="ads", **ADS, **BUDGET)
        await play(service, 30)
        await caught_up(service)
        limits = model(service).limits
        drawn = model(service).draw([10_001], [10_001], [auction(0)[0]], [None], [None], None, [clock_time(service)])
        assert len(limits._drawn) == 1
        assert drawn.decisions[0].action > 0
        budget = model(service).agent.report().budget
    async with service.running():
        after = (await service.get("/ads"))["budget"]
        assert (after["spent"], after["held"], after["waiting"]) == (budget.spent, budget.held, budget.waiting)


def clock_time(service):
    from datetime import UTC, datetime

    return datetime.fromtimestamp(service.clock.time, UTC)


@run
async def test_a_paused_loop_spends_no_more_than_the_budget_not_even_after_a_restart(service):
    async with service.running():
        await service.post("", 201, name="ads", **ADS, **BUDGET)
        await play(service, 50)
        await caught_up(service)
        await service.post("/ads/pause")
        spent = sum(await play(service, 20, first=50))
        held = (await service.get("/ads"))["budget"]["held"]
        assert held >= spent
    async with service.running():
        assert (await service.get("/ads"))["budget"]["held"] == held
        spent += sum(await play(service, 30, first=70))
        assert spent <= 60.0 + 1e-9
        await service.post("/ads/resume")
        await caught_up(service)
        assert (await service.get("/ads"))["budget"]["latest"][-1]["spent"] == pytest.approx(spent)


@run
async def test_the_amount_can_be_changed_and_stays_changed(service):
    async with service.running():
        await service.post("", 201, name="ads", **ADS, **BUDGET)
        await play(service, 60)
        await caught_up(service)
        learned = (await service.get("/ads"))["learned"]
        answer = await service.client.put("/v1/loops/ads/budget", json={"amount": 5000.0})
        assert answer.status_code == 200, answer.text
        budget = answer.json()["budget"]
        assert (budget["amount"], budget["available"], answer.json()["learned"]) == (5000.0, 5000.0, learned)
    async with service.running():
        assert (await service.get("/ads"))["budget"]["amount"] == 5000.0


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
@run
async def test_a_reset_begins_to_count_decisions_anew(service):
    async with service.running():
        await service.post("", 201, name="ads", **ADS, spend_at_most=["won * action", 40.0, 20])
        await play(service, 70)
        await caught_up(service)
        spent = (await service.get("/ads"))["budget"]["spent"]
        await service.post("/ads/reset")
        assert sum(await play(service, 20)) <= 40.0 - spent + 1e-9
        assert 0 < sum(await play(service, 20)) <= 40.0 + 1e-9


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
@run
async def test_a_decision_that_cannot_be_stored_holds_nothing_back(service, monkeypatch):
    async with service.running():
        await service.post("", 201, name="ads", **ADS, **BUDGET)
        await play(service, 5)
        await caught_up(service)
        held = (await service.get("/ads"))["budget"]["held"]
        loop = service.engine.loop("ads")
        with monkeypatch.context() as patch:
            patch.setattr(loop.model.limits, "event", lambda _: 1 / 0)
            await service.post("/ads/decisions", 500, context=auction(5)[0])
        assert (await service.get("/ads"))["budget"]["held"] == held
        assert (await service.post("/ads/decisions", 422, context=auction(5)[0], at="today"))["error"]["field"] == "at"
        await bid(service, 5)


@run
async def test_a_reset_does_not_pay_out_the_period_again(service):
    async with service.running():
        await service.post("", 201, name="ads", **ADS, spend_at_most=["won * action", 100.0, "day"], late="carry")
        await play(service, 40)
        await caught_up(service)
        spent = (await service.get("/ads"))["budget"]["spent"]
        assert spent > 0
        status = await service.post("/ads/reset")
        assert status["learned"] == 0
        await caught_up(service)
        assert (await service.get("/ads"))["budget"]["spent"] == pytest.approx(spent)
    async with service.running():
        assert (await service.get("/ads"))["budget"]["spent"] == pytest.approx(spent)


@run
async def test_a_day_begins_at_midnight_in_the_zone_of_the_budget(service):
    service.clock.time = 1_709_161_200.0  # 2024-02-28 23:00 UTC, midnight in Oslo
    async with service.running():
        day = {"spend_at_most": ["won * action", 30.0, "day"], "zone": "Europe/Oslo"}
        await service.post("", 201, name="ads", **ADS, **day)
        await play(service, 20)
        await caught_up(service)
        budget = (await service.get("/ads"))["budget"]
        assert budget["started"] == 1_709_161_200.0
        service.clock.time += DAY
        budget = (await service.get("/ads"))["budget"]
        assert (budget["started"], budget["spent"], budget["left"]) == (1_709_161_200.0 + DAY, 0.0, 30.0)
        await bid(service, 21)
        late = await bid(service, 22, at="2024-02-28T12:00:00")  # of the day before: it counts in the current one
        await settle(service, 22, late)
        await caught_up(service)
        assert (await service.get("/ads"))["budget"]["started"] == 1_709_161_200.0 + DAY


@run
async def test_a_rate_that_is_kept_has_the_price_of_the_agent_that_learned_the_same(service):
    async with service.running():
        keep = {"keep": ["won", ">=", 0.3]}
        await service.post("", 201, name="ads", **ADS, **keep)
        agent = manul.Auto(
            actions=(0, 40), outcome=service.engine.loop("ads").settings.learned, keep=("won", ">=", 0.3)
        )
        for number in range(60):
            decision = await bid(service, number)
            own = agent.decide(auction(number)[0])
            parts = parts_of(number, decision["action"])
            await settle(service, number, decision)
            await caught_up(service)
            agent.learn(
                auction(number)[0],
                manul.Decision(decision["action"], decision["density"], None, None, id=own.id),
                parts=parts,
            )
        kept, own = (await service.get("/ads"))["kept"], agent.report().kept
        assert (kept["mean"], kept["price"], kept["outcomes"]) == (own.mean, own.price, own.outcomes)
        assert kept["price"] > 0


@run
async def test_the_log_says_what_was_spent(service, tmp_path):
    async with service.running():
        await service.post("", 201, name="ads", **ADS, **BUDGET)
        spent = await play(service, 100)
        await caught_up(service)
        answer = await service.client.get("/v1/loops/ads/log")
        (tmp_path / "log.parquet").write_bytes(answer.content)
        log = manul.Log.read(tmp_path / "log.parquet")
        agent = model(service).agent
        decided = manul.evaluate(agent, log, outcome=agent.spending)
        assert np.isfinite(decided.value)
        bids = log.actions * log.parts["won"]
        assert bids == pytest.approx(spent)


@run
async def test_a_model_that_is_sent_continues_with_the_account_of_the_loop(service):
    async with service.running():
        await service.post("", 201, name="ads", **ADS, **BUDGET)
        await play(service, 20)
        await caught_up(service)
        early = (await service.client.get("/v1/loops/ads/model")).content
        await play(service, 20, first=20)
        await caught_up(service)
        budget = (await service.get("/ads"))["budget"]
        answer = await service.client.put("/v1/loops/ads/model", content=early)
        assert answer.status_code == 200, answer.text
        assert answer.json()["budget"]["spent"] == budget["spent"]
        plain = model_files.dumps(manul.Auto(actions=(0, 40), outcome=service.engine.loop("ads").settings.learned))
        said = await service.refused(422, "/v1/loops/ads/model", plain, method="PUT", field="model")
        assert "spend_at_most" in said


REFUSED = [
    ({"spend_at_most": ["won * action", -5, "day"]}, "spend_at_most"),
    ({"spend_at_most": ["won * action", 5.0, "month"]}, "spend_at_most"),
    ({"spend_at_most": ["won *", 5.0, "day"]}, "spend_at_most"),
    ({"spend_at_most": ["cost", 5.0, "day"]}, "spend_at_most"),
    ({"spend_at_most": ["won * action", 5.0, "day"], "zone": "Mars"}, "zone"),
    ({"spend_at_most": ["won * action", 5.0, "day"], "decline": 20.0}, "decline"),
    ({"spend_at_most": ["won * value", 5.0, "day"], "decline": 0.0}, "late"),
    ({"spend_at_most": ["won * action", 5.0, "day"], "agent": {"kind": "cats", "leaves": 8, "bandwidth": 5}}, None),
    (
        {"spend_at_most": ["won * action", 5.0, "day"], "wait": 5, "default_parts": {"won": False}},
        "late",
    ),
    (
        {"spend_at_most": ["won * action", 5.0, "day"], "late": "carry", "wait": 5, "default_reward": 0},
        "default_reward",
    ),
    ({"keep": ["won", ">", 0.5]}, "keep"),
    ({"late": "carry"}, "late"),
]


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
@run
async def test_a_bad_limit_is_refused_in_one_sentence_and_nothing_is_changed(service):
    async with service.running():
        await service.post("", 201, name="other", actions=[20, 70])
        for settings, field in REFUSED:
            said = await service.refused(422, "/v1/loops", {"name": "ads", **ADS, **settings}, field=field)
            assert "\n" not in said
        assert list(service.engine.loops) == ["other"]


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
@run
async def test_what_a_budget_cannot_do_is_refused_in_one_sentence(service):
    async with service.running():
        await service.post("", 201, name="ads", **ADS, **BUDGET)
        await service.post("", 201, name="plain", **ADS)
        decision = await bid(service, 0)
        loss = f"/v1/loops/ads/decisions/{decision['id']}/loss"
        await service.refused(422, loss, {"reward": 3.0}, field="parts")
        await service.refused(409, "/v1/loops/ads/rollout", {"baseline": 5.0}, method="PUT", field="loop")
        await service.refused(409, "/v1/loops/plain/budget", {"amount": 5.0}, method="PUT", field="loop")
        await service.refused(422, "/v1/loops/ads/budget", {"amount": -5.0}, method="PUT")
        at = {"context": auction(0)[0], "at": "2024-02-29T12:00:00Z"}
        await service.refused(422, "/v1/loops/plain/decisions", at, field="at")
        future = {"context": auction(0)[0], "at": "2099-02-28T12:00:00Z"}
        await service.refused(422, "/v1/loops/ads/decisions", future, field="at")
        budget = (await service.get("/ads"))["budget"]
        assert (budget["held"], budget["amount"]) == (pytest.approx(decision["action"]), 60.0)


@run
async def test_costs_that_come_late_are_held_back_until_the_wait_ends_and_counted_once(service):
    async with service.running():
        wait = {"wait": 5.0, "default_parts": {"won": False}, "late": "carry"}
        await service.post("", 201, name="ads", **ADS, spend_at_most=["won * action", 500.0, "day"], **wait)
        spent = await play(service, 20)
        await bid(service, 20)  # nobody reports it
        budget = (await service.get("/ads"))["budget"]
        assert (budget["spent"], budget["waiting"]) == (0.0, 21)
        service.clock.time += 6
        await service.learned("ads", 21)
        budget = (await service.get("/ads"))["budget"]
        assert budget["spent"] == pytest.approx(sum(spent))
        assert (budget["waiting"], budget["held"]) == (0, 0.0)


@run
async def test_named_contexts_with_missing_values_batches_and_narrower_ranges_spend_no_more_than_the_budget(service):
    async with service.running():
        await service.post("", 201, name="ads", **ADS, **BUDGET)
        spent = 0.0
        for first in range(0, 50, 10):
            asked = [
                {
                    "context": {"x": None if n % 3 else 0.5, "s": "a"},
                    "within": [0, 20] if n % 2 else None,
                    "id": f"n{n}",
                }
                for n in range(first, first + 10)
            ]
            decisions = (await service.post("/ads/decisions/batch", decisions=asked))["decisions"]
            assert await service.post("/ads/decisions/batch", decisions=asked) == {"decisions": decisions}
            assert all(each["action"] <= 20 for each in decisions[1::2])
            parts = [parts_of(first + place, each["action"]) for place, each in enumerate(decisions)]
            spent += sum(each["action"] * told["won"] for each, told in zip(decisions, parts, strict=True))
            told = [{"id": each["id"], "parts": part} for each, part in zip(decisions, parts, strict=True)]
            await service.post("/ads/losses", losses=told)
        assert spent <= 60.0 + 1e-9
        await caught_up(service)
        assert (await service.get("/ads"))["budget"]["latest"][-1]["spent"] == pytest.approx(spent)


@run
async def test_a_rollout_keeps_a_rate_by_the_outcomes_of_the_learner_alone(service):
    async with service.running():
        await service.post("", 201, name="ads", **ADS, keep=["won", ">=", 0.3])
        plan = {"baseline": 5.0, "steps": [0.5], "outcome_range": [-50, 50], "budget": 1e6}
        assert (await service.client.put("/v1/loops/ads/rollout", json=plan)).status_code == 200
        arms = []
        for number in range(60):
            decision = await bid(service, number)
            arms.append(decision["arm"])
            await settle(service, number, decision)
        await caught_up(service)
        kept = (await service.get("/ads"))["kept"]
        assert 0 < kept["outcomes"] == arms.count("learner") < 60
        before = bytes_of(model(service).agent)
    async with service.running():
        assert bytes_of(model(service).agent) == before


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
@run
async def test_an_apprentice_has_its_budget_once_it_is_promoted_and_what_callers_do_is_not_counted(service):
    async with service.running():
        await service.post("", 201, name="ads", **ADS, **BUDGET, apprentice=True)
        for number in range(20):
            observed = {"context": auction(number)[0], "action": 8.0, "density": 0.1, "parts": parts_of(number, 8.0)}
            await service.post("/ads/observations", **observed)
        await service.learned("ads", 20)
        assert (await service.get("/ads"))["budget"]["spent"] == 0.0
        await service.post("/ads/promote")
        assert sum(await play(service, 50, first=20)) <= 60.0 + 1e-9


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
@run
async def test_a_loop_that_starts_from_another_one_has_an_account_of_its_own(service):
    async with service.running():
        await service.post("", 201, name="plain", **ADS)
        await play(service, 30, name="plain")
        await caught_up(service, "plain")
        prior = {"kind": "auto", "prior": {"loop": "plain"}}
        await service.post("", 201, name="ads", **ADS, **BUDGET, agent=prior)
        assert sum(await play(service, 50)) <= 60.0 + 1e-9
        await caught_up(service)
        before = bytes_of(model(service).agent)
        await service.post("/ads/reset")
        assert (await service.get("/ads"))["learned"] == 0
    async with service.running():
        assert before
        await play(service, 5)


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
@run
async def test_the_status_and_the_metrics_say_that_a_budget_is_gone_and_that_a_rate_cannot_be_kept(service):
    async with service.running():
        await service.post(
            "", 201, name="ads", **ADS, spend_at_most=["won * action", 1e-3, "week"], keep=["won", ">=", 0.999]
        )
        for number in range(3):
            await settle(service, number, await bid(service, number))
        await caught_up(service)
        loop = service.engine.loop("ads")
        status = await service.get("/ads")
        metrics = (await service.client.get("/metrics")).text
        assert f'manul_budget_gone{{loop="ads"}} {int(status["budget"]["trouble"] is not None)}' in metrics
        assert 'manul_kept_out_of_reach{loop="ads"} 0' in metrics
        assert loop is not None


def test_a_budget_is_described_as_texts_and_a_number():
    described = document()["components"]["schemas"]["NewLoop"]["properties"]["spend_at_most"]
    (budget,) = [each for each in described["anyOf"] if each["type"] == "array"]
    assert {"type": "number"} in budget["items"]["anyOf"]


@run
async def test_an_amount_of_another_order_can_be_taken_back(service):
    async with service.running():
        await service.post("", 201, name="ads", **ADS, **BUDGET)
        for amount in (1e20, 60.0):
            answer = await service.client.put("/v1/loops/ads/budget", json={"amount": amount})
            assert answer.json()["budget"]["left"] == amount
        await service.refused(422, "/v1/loops/ads/budget", {"amount": 1e301}, method="PUT", field="amount")


@run
async def test_a_time_at_the_end_of_the_calendar_is_refused(service):
    async with service.running():
        await service.post("", 201, name="ads", **ADS, spend_at_most=["won * action", 60, "day"], zone="Europe/Oslo")
        body = {"context": [0.0, 1.0], "at": "0001-01-01T00:00:00+14:00"}
        assert "in a year from" in await service.refused(422, "/v1/loops/ads/decisions", body, field="at")
        await service.refused(422, "/v1/loops/ads/decisions/batch", {"decisions": [body, {"context": [0.0, 1.0]}]})
