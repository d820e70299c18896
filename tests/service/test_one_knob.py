"""A loop with one knob that is no range: steps, or options."""

import base64

import numpy as np
import pytest

import manul
from manul.actions.space import ActionSpace
from manul.service.client import calls
from manul.service.engine.loop_space import LoopSpace
from manul.service.loop_settings import stored_loop
from manul.service.store import blocks
from manul.service.store.blocks import DecisionRow
from tests.service.conftest import Service, refusal_of_loop, run

STEPS, CHOICE = {"low": 1, "high": 14, "step": 1}, {"options": ["plain", "bold", 3, True]}
LIMITS = ["discount <= 1 - 9 / price"]
OFFERS = {
    "name": "x",
    "actions": {"price": [10, 50], "discount": [0, 0.5]},
    "agent": {"kind": "auto", "limits": LIMITS},
}
BROKEN = {"price": 10, "discount": 0.4}
RULE = "action must keep the limit 'discount <= 1 - 9 / price', got {'price': 10.0, 'discount': 0.4}."
SETTINGS = [
    ({"low": 1, "high": 14}, "actions must have a step too."),
    ({"options": ["a"]}, "Choice must have 2 to 32 options, got 1."),
    ({"options": "many"}, "options must be two numbers, [low, high], or an object with steps or options, got 'many'."),
]
ACTIONS = [
    (STEPS, "three", "action must be a number, got 'three'."),
    (STEPS, True, "action must be a number, got True."),
    (STEPS, 2.5, "action must be one of 1, 2, …, 14, got 2.5."),
    (STEPS, {"days": 1}, "action must be a number, because this loop has one knob, got {'days': 1}."),
    (CHOICE, "blue", "action must be one of 'plain', 'bold', 3, True, got 'blue'."),
    (CHOICE, 1, "action must be one of 'plain', 'bold', 3, True, got 1."),
    ([0, 1], "high", "action must be a number, got 'high'."),
    ([0, 1], True, "action must be a number, got True."),
]
WITHINS = [
    (STEPS, [1.2, 1.8], "within of action must contain one of its steps, got (1.2, 1.8)."),
    (STEPS, ["a", "b"], "within must be a number, got 'a'."),
    (CHOICE, [], "within of action must have at least one option, got none."),
    (CHOICE, ["blue"], "action must be one of 'plain', 'bold', 3, True, got 'blue'."),
    (CHOICE, {"a": [1]}, "within must be a list of options, because this loop has one knob, got {'a': [1]}."),
    ([0, 1], ["a", 1], "within must be two numbers, [low, high], got ['a', 1]."),
    ([0, 1], [0.1], "within must be two numbers, [low, high], got [0.1]."),
]


@pytest.mark.parametrize(("actions", "sentence"), SETTINGS)
def test_bad_settings_are_refused_in_one_sentence(tmp_path, actions, sentence):
    assert refusal_of_loop(tmp_path, actions, field="actions").startswith(sentence)


@run
async def test_bad_actions_and_ranges_are_refused_in_one_sentence(tmp_path):
    async with Service(tmp_path / "a.db").running() as service:
        loops = {str(actions): f"loop{place}" for place, actions in enumerate((STEPS, CHOICE, [0, 1]))}
        for actions, name in zip((STEPS, CHOICE, [0, 1]), loops.values(), strict=True):
            await service.post("", 201, name=name, actions=actions)
        for actions, action, sentence in ACTIONS:
            body, path = {"context": [1], "action": action}, f"/v1/loops/{loops[str(actions)]}/observations"
            assert await service.refused(422, path, body, field="action") == sentence
        for actions, within, sentence in WITHINS:
            body, path = {"context": [1], "within": within}, f"/v1/loops/{loops[str(actions)]}/decisions"
            assert await service.refused(422, path, body, field="within") == sentence


def test_options_come_back_from_a_block_with_their_types():
    rows = [
        DecisionRow(n, None, [0.5], within, action, 0.25, 1.0, 0, False, 0.1)
        for n, (action, within) in enumerate([("bold", None), (3, [3, True]), (True, ["bold", True]), (0.5, None)], 1)
    ]
    read = blocks.decode(blocks.encode(blocks.pack(rows))).decisions()
    assert read == rows
    assert [type(each.action) for each in read] == [str, int, bool, float]


def test_a_stored_range_named_options_stays_a_range():
    stored = stored_loop(b'{"name": "x", "actions": {"options": [1.0, 5.0]}}')
    assert LoopSpace.of(stored).knobs == ActionSpace({"options": (1.0, 5.0)}).knobs


def test_clients_describe_knobs():
    assert calls._described(manul.Choice(["a", "b"])) == {"options": ["a", "b"]}
    assert calls._described({"days": manul.Stepped(1, 3, 1), "price": (1, 2)}) == {
        "days": {"low": 1, "high": 3, "step": 1},
        "price": (1, 2),
    }


@pytest.mark.parametrize(("actions", "baseline"), [(CHOICE, "bold"), (CHOICE, True), (STEPS, 3)], ids=str)
def test_a_rollout_begins_with_an_option_or_a_step(tmp_path, actions, baseline):
    @run
    async def roll_out():
        async with Service(tmp_path / "a.db").running() as service:
            await service.post("", 201, name="x", actions=actions)
            settings = {"baseline": baseline, "steps": [0.5, 1.0]}
            answer = await service.client.put("/v1/loops/x/rollout", json=settings)
            assert answer.json()["baseline"] == baseline
            asked = [{"context": [0.5]}] * 20
            made = (await service.post("/x/decisions/batch", decisions=asked))["decisions"]
            kept = [each for each in made if each["arm"] == "baseline"]
            assert kept
            assert all(each["action"] == baseline and 0.5 <= each["density"] <= 1 for each in kept)
            body = {"baseline": "blue"}
            said = await service.refused(422, "/v1/loops/x/rollout", body, method="PUT", field="baseline")
            assert said.startswith("baseline must be an action, a policy or 'caller', got 'blue': action must be")

    roll_out()


@run
async def test_an_observation_of_unknown_density_counts_as_uniform_over_what_the_limits_leave(tmp_path):
    agent = manul.Auto(actions={"price": (10, 50), "discount": (0, 0.5)}, limits=LIMITS)
    async with Service(tmp_path / "a.db").running() as service:
        await service.post("", 201, **OFFERS)
        action = {"price": 12.0, "discount": 0.1}
        await service.post("/x/observations", context=[0.5], action=action, loss=0.25)
        await service.learned("x", 1)
        agent.learn(np.array([0.5]), manul.Decision(action, 1 / (40 * 0.25)), 0.25)
        assert (await service.client.get("/v1/loops/x/model")).content == manul.dumps(agent)


@run
async def test_actions_of_the_caller_that_break_a_limit_are_refused(tmp_path):
    async with Service(tmp_path / "a.db").running() as service:
        await service.post("", 201, **OFFERS)
        body = {"context": [0.5], "action": BROKEN}
        assert (await service.refused(422, "/v1/loops/x/observations", body, field="action")).startswith(RULE)
        rollout = "/v1/loops/x/rollout"
        said = await service.refused(422, rollout, {"baseline": BROKEN}, method="PUT", field="baseline")
        assert RULE in said
        policy = base64.b64encode(manul.dumps(manul.Auto(actions={"price": (10, 50), "discount": (0, 0.5)}))).decode()
        said = await service.refused(422, rollout, {"baseline": {"policy": policy}}, method="PUT", field="baseline")
        assert said == "baseline must have the limits of the agent, 'discount <= 1 - 9 / price', got none."
        assert (await service.client.put(rollout, json={"baseline": "caller"})).status_code == 200
        assert RULE in await service.refused(422, "/v1/loops/x/decisions", body, field="action")
