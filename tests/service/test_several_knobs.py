"""A loop with several knobs: from its settings to its log."""

import math
import sqlite3

import numpy as np
import pytest

import manul
from manul.actions.decision import Decision
from tests.service.conftest import Service, refusal_of_loop, run
from tests.service.several_knobs import KNOBS, OFFERS, loss_of
from tests.service.test_recovery import replayed

FOUR = KNOBS | {"days": {"low": 1, "high": 14, "step": 1}}
SETTINGS = [
    ({}, "actions must have 1 to 16 knobs, got 0."),
    ({f"k{each}": [0, 1] for each in range(17)}, "actions must have 1 to 16 knobs, got 17."),
    (
        {"days": {"low": 1, "high": 14, "step": 2}},
        "step must divide the range from 1 to 14 evenly, got 2. Try 13 as high.",
    ),
    ({"days": {"low": 1, "high": 14}}, "days must have a step too."),
    ({"days": {}}, "days must have low, high and step, or options."),
    ({"days": {"low": 1, "high": 3, "step": 1, "options": [1, 2]}}, "days must have low, high and step, or options."),
    ({"days": {"values": [1, 2]}}, "actions[...] has an unknown field, 'values'. See /openapi.json."),
    (
        {"days": "many"},
        "days must be two numbers, [low, high], or an object with steps or options, got 'many'. See /openapi.json.",
    ),
    (
        {"days": [True, 2]},
        "days must be two numbers, [low, high], or an object with steps or options, got [True, 2]. See /openapi.json.",
    ),
    ({"price": [50, 10]}, "price must be finite with low < high, got (50.0, 10.0)."),
    ({"template": {"options": ["a"]}}, "Choice must have 2 to 32 options, got 1."),
    ({"template": {"options": ["a", "a"]}}, "options must be distinct, got ['a', 'a']."),
    (
        {f"k{each}": [0, 1e-30] for each in range(16)},
        "The product of the lengths of all ranges must be in [1e-50, 1e+50], got 0. Use other units, such as thousands.",
    ),
    ({"": [0, 1]}, "names of knobs must be text and not empty, got ''."),
]
ACTION = {"price": 20.0, "discount": 0.1, "template": "bold", "days": 3}
ACTIONS = [
    ({"price": 20.0}, "action must set the knob 'discount' too."),
    (ACTION | {"prise": 1}, "action has an unknown knob 'prise'. Did you mean price?"),
    (ACTION | {"days": 3.5}, "days must be one of 1, 2, …, 14, got 3.5."),
    (ACTION | {"price": 51}, "price must be in [10, 50], got 51."),
    (ACTION | {"price": "20"}, "price must be a number, got '20'."),
    (ACTION | {"price": True}, "price must be a number, got True."),
    (ACTION | {"template": "blue"}, "template must be one of 'plain', 'bold', 'long', got 'blue'."),
    (21.4, "action must be a mapping of price, discount, template, days to values, got 21.4."),
]
WITHINS = [
    ({"price": [60, 70]}, "within of price must be a range inside [10, 50], got (60, 70)."),
    ({"days": [3.2, 3.8]}, "within of days must contain one of its steps, got (3.2, 3.8)."),
    ({"template": []}, "within of template must have at least one option, got none."),
    ({"template": ["blue"]}, "template must be one of 'plain', 'bold', 'long', got 'blue'."),
    ({"prise": [1, 2]}, "within has an unknown knob 'prise'. Did you mean price?"),
    ({"price": ["12", 20]}, "price must be a number, got '12'."),
    ({"price": [12]}, "within of price must be (low, high), got [12]."),
    ([12, 20], "within must be a mapping of knobs to ranges, got [12, 20]."),
]


async def play(service, rounds, loop="offers", seed=0):
    """Decisions in batches that are learned one after the other; returns the decisions."""
    rng, decisions = np.random.default_rng(seed), []
    while len(decisions) < rounds:
        contexts = rng.random((min(20, rounds - len(decisions)), 2)).tolist()
        asked = [{"context": context} for context in contexts]
        made = (await service.post(f"/{loop}/decisions/batch", decisions=asked))["decisions"]
        pairs = zip(made, contexts, strict=True)
        losses = [{"id": each["id"], "loss": loss_of(each["action"], context)} for each, context in pairs]
        await service.post(f"/{loop}/losses", losses=losses)
        await service.caught_up(loop)
        decisions += made
    return decisions


@run
async def test_a_decision_sets_all_knobs_with_the_product_of_their_densities(service):
    async with service.running():
        status = await service.post("", 201, name="offers", actions=FOUR)
        made = await service.post("/offers/decisions", context=[0.5], within={"price": [12, 20], "template": ["long"]})
        assert status["actions"] == FOUR
        assert list(made["action"]) == list(FOUR) == list(made["densities"])
        assert 12 <= made["action"]["price"] <= 20
        assert made["action"]["template"] == "long"
        assert made["density"] == pytest.approx(math.prod(made["densities"].values()))


@run
async def test_a_batch_and_single_requests_get_the_same_decisions(tmp_path):
    asked = [{"context": [each / 10], "id": f"o{each}", "within": {"price": [12, 40]}} for each in range(10)]
    answers = []
    for name in ("single.db", "batch.db"):
        async with Service(tmp_path / name).running() as service:
            await service.post("", 201, **OFFERS)
            if name == "single.db":
                answers.append([await service.post("/offers/decisions", **each) for each in asked])
            else:
                answers.append((await service.post("/offers/decisions/batch", decisions=asked))["decisions"])
    assert answers[0] == answers[1]


@run
async def test_a_repeated_request_gets_the_stored_decision(service):
    async with service.running():
        await service.post("", 201, **OFFERS)
        asked = {"context": [0.5, 0.5], "id": "order-1", "within": {"price": [12, 20]}}
        first = await service.post("/offers/decisions", **asked)
        await play(service, 30)
        assert await service.post("/offers/decisions", **asked) == first
        await service.post("/offers/decisions", 409, **asked | {"within": {"price": [12, 21]}})


@pytest.mark.parametrize(("actions", "sentence"), SETTINGS)
def test_bad_knobs_are_refused_in_one_sentence(tmp_path, actions, sentence):
    assert refusal_of_loop(tmp_path, actions) == sentence


@run
async def test_limits_and_agents_with_one_knob_are_refused(tmp_path):
    async with Service(tmp_path / "a.db").running() as service:
        await service.post("", 201, name="heat", actions=[20, 70])
        said = await service.refused(422, "/v1/loops", OFFERS | {"limits": "x"}, field="limits")
        assert said == "body has an unknown field, 'limits'. See /openapi.json."
        cats = {"kind": "cats", "leaves": 8, "bandwidth": 1}
        said = await service.refused(422, "/v1/loops", OFFERS | {"agent": cats}, field="agent")
        assert said == "Cats sets one knob: actions must be (low, high), got a mapping. Use Auto."


LIMITS = ["discount <= 1 - 9 / price", "template in ('bold',) if discount > 0.15"]
LIMITED = OFFERS | {"agent": {"kind": "auto", "epsilon": 0.3, "limits": LIMITS}}


def is_allowed(action):
    return action["discount"] <= 1 - 9 / action["price"] and (
        action["discount"] <= 0.15 or action["template"] == "bold"
    )


@pytest.mark.whole
@run
async def test_a_loop_keeps_its_limits_in_decisions_log_model_and_after_a_restart(tmp_path):
    service = Service(tmp_path / "a.db")
    async with service.running():
        status = await service.post("", 201, **LIMITED)
        assert status["agent"]["limits"] == LIMITS
        decisions = await play(service, 200)
        (tmp_path / "log.parquet").write_bytes((await service.client.get("/v1/loops/offers/log")).content)
        model = (await service.client.get("/v1/loops/offers/model")).content
        assert (await service.client.put("/v1/loops/offers/model", content=model)).status_code == 200
        assert (await service.get("/offers/report"))["candidates"]
    async with service.running():
        decisions += await play(service, 100, seed=1)
        assert (await service.get("/offers/summary"))["knobs"]
    log = manul.Log.read(tmp_path / "log.parquet")
    policy = manul.optimize(log, epsilon=0.5, progress=False).policy
    drawn = policy.decide_many(np.random.default_rng(2).random((300, 2)))
    assert all(is_allowed(each["action"]) for each in decisions)
    assert all(is_allowed(each.action) for each in drawn)
    assert list(map(str, manul.loads(model).limits)) == LIMITS


@run
async def test_bad_limits_and_models_with_other_limits_are_refused_in_one_sentence(tmp_path):
    async with Service(tmp_path / "a.db").running() as service:
        await service.post("", 201, **LIMITED)
        for limit, sentence in (
            ("discount <= 1 - 9 / (", "limit 'discount <= 1 - 9 / (' is incomplete at character 22"),
            ("price >= 60", "The limits leave no range of price."),
            ("template == 'blue' if price > 20", "template must be one of 'plain', 'bold', 'long', got 'blue'."),
        ):
            body = OFFERS | {"name": "other", "agent": {"kind": "auto", "limits": [limit]}}
            said = await service.refused(422, "/v1/loops", body, field="agent")
            assert said.startswith(sentence)
        body = manul.dumps(manul.Auto(actions=manul.loads(await model_of(service)).actions, epsilon=0.3))
        said = await service.refused(422, "/v1/loops/offers/model", body, method="PUT", field="model")
        assert said == f"The loop has the limits {'; '.join(LIMITS)}, but the model has none."


async def model_of(service):
    return (await service.client.get("/v1/loops/offers/model")).content


@run
async def test_a_context_that_the_limits_leave_nothing_for_is_refused_in_one_sentence(tmp_path):
    settings = {"name": "offers", "actions": KNOBS, "agent": {"kind": "auto", "limits": ["price >= 1.2 * cost"]}}
    async with Service(tmp_path / "a.db").running() as service:
        await service.post("", 201, **settings)
        said = await service.refused(422, "/v1/loops/offers/decisions", {"context": {"cost": 60}})
        assert said.startswith("The limits leave no range of price with this cost.")
        said = await service.refused(422, "/v1/loops/offers/decisions", {"context": {"age": 60}})
        assert said == "The limits need the number 'cost' in the context, which has none."
        made = await service.post("/offers/decisions", context={"cost": 25})
        assert made["action"]["price"] >= 30


@run
async def test_bad_actions_and_ranges_are_refused_in_one_sentence(tmp_path):
    async with Service(tmp_path / "a.db").running() as service:
        await service.post("", 201, name="offers", actions=FOUR)
        for action, sentence in ACTIONS:
            body = {"context": [1], "action": action, "density": 0.1}
            assert await service.refused(422, "/v1/loops/offers/observations", body, field="action") == sentence
        for within, sentence in WITHINS:
            asked = {"context": [1], "within": within}
            assert await service.refused(422, "/v1/loops/offers/decisions", asked, field="within") == sentence
            batch = {"decisions": [{"context": [1]}, asked]}
            assert await service.refused(422, "/v1/loops/offers/decisions/batch", batch, field="within") == sentence
        outside = {"context": [1], "action": ACTION, "within": {"template": ["long"]}}
        said = await service.refused(422, "/v1/loops/offers/observations", outside, field="action")
        assert said.startswith("template must be in ['long'], got bold.")
        not_json = b'{"context": [1], "action": {"price": NaN}}'
        await service.refused(400, "/v1/loops/offers/observations", not_json)


@run
async def test_a_loop_with_one_knob_refuses_values_by_knob(tmp_path):
    async with Service(tmp_path / "a.db").running() as service:
        await service.post("", 201, name="heat", actions=[20, 70])
        body = {"context": [1], "action": {"price": 21}, "density": 1}
        said = await service.refused(422, "/v1/loops/heat/observations", body, field="action")
        assert said == "action must be a number, because this loop has one knob, got {'price': 21}."
        asked = {"context": [1], "within": {"price": [21, 22]}}
        said = await service.refused(422, "/v1/loops/heat/decisions", asked, field="within")
        assert said == "within must be [low, high], because this loop has one knob, got {'price': [21, 22]}."
        body = {"context": [1], "action": 21, "densities": {"price": 1}}
        said = await service.refused(422, "/v1/loops/heat/observations", body, field="densities")
        assert said == "densities must not be given to a loop with one knob; give its density."


@run
async def test_the_order_of_knobs_is_part_of_the_settings(tmp_path):
    async with Service(tmp_path / "a.db").running() as service:
        await service.post("", 201, **OFFERS)
        await service.post("", 200, **OFFERS)
        await service.post("", 409, name="offers", actions=dict(reversed(KNOBS.items())))
        assert list((await service.get("/offers"))["actions"]) == list(KNOBS)


def test_snapshot_and_replay_give_the_bytes_of_a_full_replay(service):
    @run
    async def recover():
        async with service.running(snapshot_events=7):
            await service.post("", 201, **OFFERS)
            await play(service, 25)
        async with service.running(snapshot_events=10**9):
            await service.post("/offers/decisions", context=[0.1, 0.2], within={"template": ["bold"]})
            await play(service, 11, seed=1)
            loop = service.engine.loop("offers")
            await service.learned("offers", 36)
            assert replayed(service.engine, "offers") == (manul.dumps(loop.model.agent), 36, 36)
            with loop.history.snapshot() as history:
                assert len(history.actions) == 36

    recover()


@run
async def test_the_model_is_that_of_an_agent_with_the_same_decisions(tmp_path):
    choice = manul.Choice(["plain", "bold", "long"])
    agent = manul.Auto(actions={"price": (10, 50), "discount": (0, 0.3), "template": choice})
    async with Service(tmp_path / "a.db").running() as service:
        await service.post("", 201, **OFFERS)
        for each in range(40):
            made = await service.post("/offers/decisions", context=[each / 40])
            await service.post(f"/offers/decisions/{made['id']}/loss", loss=0.5)
            agent.learn([each / 40], Decision(made["action"], made["density"], made["densities"]), 0.5)
        narrow = {"template": ["bold"]}
        action = made["action"] | {"template": "bold"}
        await service.post("/offers/observations", context=[0.5], action=action, within=narrow, loss=0.25)
        agent.learn([0.5], Decision(action, 1 / (40 * 0.3), {}), 0.25)
        await service.learned("offers", 41)
        assert (await service.client.get("/v1/loops/offers/model")).content == manul.dumps(agent)


@run
async def test_an_apprentice_learns_from_the_caller_and_is_judged(tmp_path):
    async with Service(tmp_path / "a.db").running() as service:
        await service.post("", 201, **OFFERS, apprentice=True)
        rng = np.random.default_rng(0)
        for each in range(150):
            context, price = rng.random(2).tolist(), float(rng.uniform(10, 50))
            template = str(rng.choice(["plain", "bold", "long"]))
            action = {"template": template, "price": price, "discount": float(rng.uniform(0, 0.3))}
            densities = {"price": 1 / 40, "discount": 1 / 0.3, "template": 1 / 3}
            known = {"densities": densities} if each % 2 else {"density": math.prod(densities.values())}
            loss = loss_of(action, context)
            await service.post("/offers/observations", context=context, action=action, loss=loss, **known)
        await service.learned("offers", 150)
        assert len(service.engine.loop("offers").model.history.judged) > 100
        names = [each["name"] for each in (await service.get("/offers/report"))["candidates"]]
        assert {"played", "model"} <= set(names)
        await service.post("/offers/promote")
        best = [(await service.post("/offers/decisions", context=[0.5, 0.5]))["action"]["template"] for _ in range(20)]
        assert best.count("bold") > 10


@run
async def test_densities_must_fit_each_other(tmp_path):
    async with Service(tmp_path / "a.db").running() as service:
        await service.post("", 201, name="offers", actions=FOUR)
        densities = dict.fromkeys(FOUR, 0.5)
        body = {"context": [1], "action": ACTION, "density": 0.5, "densities": densities}
        said = await service.refused(422, "/v1/loops/offers/observations", body, field="density")
        assert said == "density must be the product of the densities, 0.0625, got 0.5."
        body = {"context": [1], "action": ACTION, "densities": densities | {"days": 2}}
        said = await service.refused(422, "/v1/loops/offers/observations", body, field="densities")
        assert said == "density of days must be a probability, at most 1, got 2."
        body = {"context": [1], "action": ACTION, "densities": {"price": 0.5}}
        await service.refused(422, "/v1/loops/offers/observations", body, field="densities")


@pytest.mark.parametrize("context", [[0.5, 1.0], {"x": 0.5, "within": "SE"}], ids=["row", "named"])
def test_the_log_has_what_was_decided(service, tmp_path, context):
    @run
    async def export():
        async with service.running():
            await service.post("", 201, name="offers", actions=FOUR)
            narrow = {"price": [12, 20], "template": ["long", "bold"]}
            made = [
                await service.post("/offers/decisions", context=context, within=narrow if each % 2 else None)
                for each in range(6)
            ]
            losses = [{"id": each["id"], "loss": 0.25} for each in made]
            await service.post("/offers/losses", losses=losses)
            (tmp_path / "log.parquet").write_bytes((await service.client.get("/v1/loops/offers/log")).content)
            log = manul.Log.read(tmp_path / "log.parquet")
            assert log.knobs.names == list(FOUR)
            for name in FOUR:
                assert log.actions[name].tolist() == [each["action"][name] for each in made]
                assert log.densities_by_knob[name].tolist() == [each["densities"][name] for each in made]
            assert log.densities.tolist() == [each["density"] for each in made]
            assert list(log.within) == [None, {"price": (12.0, 20.0), "template": ["long", "bold"]}] * 3

    export()


@run
async def test_models_move_between_loops_with_the_same_knobs_only(tmp_path):
    async with Service(tmp_path / "a.db").running() as service:
        await service.post("", 201, **OFFERS)
        await service.post("", 201, name="others", actions=FOUR)
        await service.post("", 201, name="heat", actions=[20, 70])
        await play(service, 20)
        body = (await service.client.get("/v1/loops/offers/model")).content
        assert list(manul.loads(body).actions) == list(KNOBS)
        for loop in ("others", "heat"):
            said = await service.refused(422, f"/v1/loops/{loop}/model", body, method="PUT", field="model")
            assert said.startswith("The loop has actions")
        assert (await service.client.put("/v1/loops/offers/model", content=body)).status_code == 200
        again = (await service.client.get("/v1/loops/offers/model")).content
        assert again == body


def test_a_damaged_action_is_skipped_and_the_others_are_learned(tmp_path):
    @run
    async def damage():
        service = Service(tmp_path / "a.db")
        async with service.running(snapshot_events=10**9):
            await service.post("", 201, **OFFERS)
            await play(service, 4)
            await play(service, 1, seed=1)
            await service.learned("offers", 5)
        with sqlite3.connect(tmp_path / "a.db") as connection:
            connection.execute("DELETE FROM snapshots")
            (body,) = connection.execute("SELECT body FROM blocks WHERE first = 5").fetchone()
            for old in (b'"plain"', b'"bold"', b'"long"'):
                body = body.replace(old, b'"' + b"x" * (len(old) - 2) + b'"')
            connection.execute("UPDATE blocks SET body = ? WHERE first = 5", [body])
        async with service.running():
            loop = service.engine.loop("offers")
            assert (loop.model.learned, loop.model.refused) == (4, 1)
            assert len((await service.get("/offers/summary"))["knobs"]) == 3

    damage()
