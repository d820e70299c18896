"""Rollouts in the service: arms, evidence, owner's acts, replays, bad settings."""

import base64

import numpy as np
import pytest

import manul
from manul.agents.rollout.rollout_progress import COHORT
from manul.service.engine.loop_rollout import LoopRollout
from manul.service.store import Event
from tests.service.conftest import run, until
from tests.service.test_recovery import model_of, replayed

CATS = {"kind": "cats", "leaves": 16, "bandwidth": 0.1}
LOOP = {"name": "a", "actions": [0, 1], "agent": CATS}
QUICK = {"baseline": 0.5, "steps": [0.4, 1.0], "least_decisions": 50}
GOOD = {"learner": 0.0, "baseline": 1.0}
BAD = {"learner": 1.0, "baseline": 0.0}


async def put(service, status=200, **settings):
    answer = await service.client.put("/v1/loops/a/rollout", json=settings)
    assert answer.status_code == status, answer.text
    return answer.json()


async def play(service, rounds, losses, batch=50, kind="loss", parts=None, **asked):
    """Decisions whose loss and parts depend on the arm, in batches that are learned one after the other."""
    for _ in range(0, rounds, batch):
        requests = [{"context": [0.25, 0.5], **asked}] * batch
        made = (await service.post("/a/decisions/batch", decisions=requests))["decisions"]
        said = [{"id": each["id"], kind: losses[each["arm"]]} for each in made]
        said = (
            said
            if parts is None
            else [{**each, "parts": parts[arm["arm"]]} for each, arm in zip(said, made, strict=True)]
        )
        await service.post("/a/losses", losses=said)
        await service.caught_up("a")


@run
async def test_a_better_learner_takes_over_and_the_baseline_keeps_its_holdout(service):
    async with service.running():
        await service.post("", 201, **LOOP)
        started = await put(service, **QUICK)
        assert (started["status"], started["traffic"], started["step"]) == ("waiting", 0.4, 1)
        await play(service, 1000, GOOD)
        said = await service.get("/a/rollout")
        assert (said["status"], said["traffic"]) == ("done", 0.98)
        assert [move["reason"] for move in said["moves"]] == ["started", "not worse"]
        assert said["moves"][1]["high"] < 0
        assert said["in_flight"] == 0
        assert sum(said["looks"][-1][arm] for arm in GOOD) == 1000


@run
async def test_a_worse_learner_goes_back_to_the_baseline(service):
    async with service.running():
        await service.post("", 201, **LOOP)
        await put(service, **QUICK)
        await play(service, 1000, BAD)
        said = await service.get("/a/rollout")
        assert (said["status"], said["traffic"], said["moves"][-1]["by"]) == ("rolled back", 0.0, "evidence")
        made = await service.post("/a/decisions", context=[0.25, 0.5])
        assert (made["arm"], made["action"]) == ("baseline", 0.5)


GUARDED = LOOP | {"parts": {"returned": "yes/no", "latency": "amount"}}
GUARD = {"returned": ["<=", 1.02], "latency": ["<=", 1.1, [0, 5]]}


@run
async def test_a_learner_that_breaks_a_guard_goes_back_to_the_baseline(service):
    worse = {"learner": {"returned": True, "latency": 1.0}, "baseline": {"returned": False, "latency": 1.0}}
    async with service.running():
        await service.post("", 201, **GUARDED)
        started = await put(service, **QUICK, guard=GUARD)
        assert started["guard"] == GUARD
        await play(service, 1000, GOOD, parts=worse)
        said = await service.get("/a/rollout")
        assert said["status"] == "rolled back"
        assert "the learner was worse than tolerated in 'returned'" in said["sentence"]
        assert (said["moves"][-1]["guard"], said["moves"][-1]["low"] > 0) == ("returned", True)
        metrics = (await service.client.get("/metrics")).text
        assert 'manul_rollout_guard{guard="latency",loop="a"}' in metrics.replace(
            'loop="a",guard="latency"', 'guard="latency",loop="a"'
        )


@run
async def test_a_restart_and_a_replay_give_the_same_guards(service):
    parts = {"learner": {"returned": False, "latency": 9.0}, "baseline": {"returned": True}}
    async with service.running(snapshot_events=77):
        await service.post("", 201, **GUARDED)
        await put(service, **QUICK, guard=GUARD)
        await play(service, 260, GOOD, batch=20, parts=parts)
        before = await service.get("/a/rollout")
        latency, returned = before["guards"]
        assert (latency["beyond"] > 30, latency["baseline_left_out"] > 30) == (True, True)
        assert (returned["learner"], returned["baseline"], returned["state"]) == (0.0, 1.0, "holds")
    async with service.running():
        loop = service.engine.loop("a")
        await service.caught_up("a")
        assert replayed(service.engine, "a") == (model_of(loop), 260, loop.model.event)
        assert await service.get("/a/rollout") == before


@run
async def test_a_restart_and_a_replay_give_the_same_rollout(service):
    async with service.running(snapshot_events=77):
        await service.post("", 201, **LOOP)
        await put(service, **QUICK, patience=30)
        await play(service, 300, GOOD, batch=30)
        await service.post("/a/decisions", context=[0.25, 0.5], id="never")
        await play(service, 100, GOOD, batch=10)
        loop = service.engine.loop("a")
        await until(lambda: not loop.model.rollout.progress.arrived)  # the rollout does not wait for it any more
        before = await service.get("/a/rollout")
    async with service.running():
        loop = service.engine.loop("a")
        await service.caught_up("a")
        assert replayed(service.engine, "a") == (model_of(loop), 400, loop.model.event)
        assert await service.get("/a/rollout") == before
        await play(service, 300, BAD)
        await service.caught_up("a")
        assert replayed(service.engine, "a") == (model_of(loop), 700, loop.model.event)


@run
@pytest.mark.parametrize("context", [[0.25, 0.5], {"age": 31}])
async def test_the_rollout_has_counted_what_the_model_contains(service, monkeypatch, context):
    add, ahead = LoopRollout.add, []
    async with service.running():
        await service.post("", 201, **LOOP)
        await put(service, **QUICK)
        model = service.engine.loop("a").model

        def count(rollout, event, decision):
            ahead.append(event.number - model.event)
            add(rollout, event, decision)

        monkeypatch.setattr(LoopRollout, "add", count)
        await play(service, 50, GOOD, context=context)
    assert len(ahead) == 50
    assert min(ahead) > 0


@run
async def test_the_arm_is_a_function_of_the_id_and_a_repeat_gets_the_first_answer(service):
    async with service.running():
        await service.post("", 201, **LOOP)
        await put(service, **QUICK)
        first = [await service.post("/a/decisions", context=[1, 2], id=f"id-{number}") for number in range(60)]
        again = [await service.post("/a/decisions", context=[1, 2], id=f"id-{number}") for number in range(60)]
        assert again == first
        assert {each["arm"] for each in first} == {"learner", "baseline"}


@pytest.mark.whole
@run
async def test_the_density_is_that_of_the_mixture_and_the_log_holds_it(service, tmp_path):
    async with service.running():
        await service.post("", 201, **LOOP)
        await put(service, **QUICK)
        await play(service, 2000, {"learner": 0.5, "baseline": 0.5}, batch=200)
        answer = await service.client.get("/v1/loops/a/log")
        (tmp_path / "a.parquet").write_bytes(answer.content)
        log = manul.Log.read(tmp_path / "a.parquet")
        assert set(log.arms) == {"learner", "baseline"}
        inverse = 1 / log.densities
        assert abs(inverse.mean() - 1) <= 4 * inverse.std() / np.sqrt(len(inverse))
        estimate = manul.evaluate(lambda _: 0.5, log, bandwidth=0.1)
        assert estimate.low <= 0.5 <= estimate.high


@run
async def test_the_caller_can_be_the_baseline_of_an_apprentice(service):
    async with service.running():
        await service.post("", 201, **LOOP, apprentice=True)
        await put(service, **QUICK | {"baseline": "caller"})
        sentence = await service.refused(422, "/v1/loops/a/decisions", {"context": [1, 2]}, field="action")
        assert sentence.startswith("action must be what you would choose, since the baseline is the caller, got None: ")
        made = [await service.post("/a/decisions", context=[1, 2], action=0.7) for _ in range(20)]
        assert {each["action"] for each in made if each["arm"] == "baseline"} == {0.7}
        await service.post("/a/promote")
        assert "arm" not in await service.post("/a/decisions", context=[1, 2], action=0.7)


@run
async def test_a_policy_can_be_the_baseline_if_it_fits_the_contexts(service):
    policy, other = (manul.Cats(leaves=8, bandwidth=1 / 8) for _ in range(2))
    manul.simulate(policy, manul.worlds.Regression(np.random.default_rng(0).random((50, 2)), np.full(50, 0.5)))
    manul.simulate(other, manul.worlds.Regression(np.zeros((50, 3)), np.full(50, 0.5)))
    encoded = [base64.b64encode(manul.dumps(each)).decode() for each in (policy, other)]
    async with service.running():
        await service.post("", 201, **LOOP)
        await service.post("/a/decisions", context=[1, 2])
        wrong = {"baseline": {"policy": encoded[1]}}
        sentence = await service.refused(422, "/v1/loops/a/rollout", wrong, method="PUT", field="baseline")
        assert sentence.startswith("The baseline does not accept this loop's contexts")
        assert (await put(service, baseline={"policy": encoded[0]}))["baseline"] == "policy"
        assert (await service.post("/a/decisions", context=[1, 2]))["arm"] in GOOD


@run
async def test_the_owner_pauses_resumes_and_aborts(service):
    async with service.running():
        await service.post("", 201, **LOOP)
        await put(service, **QUICK)
        assert (await service.post("/a/rollout/pause"))["status"] == "paused"
        await play(service, 600, GOOD)
        assert (await service.get("/a/rollout"))["step"] == 1
        await service.post("/a/rollout/resume")
        await play(service, 100, GOOD)
        assert (await service.get("/a/rollout"))["step"] == 2
        aborted = await service.post("/a/rollout/abort")
        assert (aborted["status"], aborted["traffic"]) == ("aborted", 0.0)
        await until(
            lambda: service.engine.loop("a").model.rollout.progress.level < 0
        )  # the answer hardly waits for the learner
        reasons = [move["reason"] for move in (await service.get("/a/rollout"))["moves"]]
        assert reasons == ["started", "paused", "resumed", "not worse", "aborted"]
        await service.refused(409, "/v1/loops/a/rollout/resume", b"")


@run
async def test_the_same_settings_change_nothing_and_others_start_a_new_test(service):
    async with service.running():
        await service.post("", 201, **LOOP)
        first = await put(service, **QUICK)
        assert await put(service, **QUICK) == first
        await play(service, 300, GOOD)
        second = await put(service, **QUICK | {"tolerance": 0.1})
        assert (second["judged"], second["step"], second["moves"][0]["reason"]) == (0, 1, "restarted")
        assert second["sentence"].startswith("This is a new test: earlier evidence does not count.")


@run
async def test_a_step_lasts_for_its_least_time(service):
    async with service.running():
        await service.post("", 201, **LOOP)
        await put(service, **QUICK, least_seconds=3600)
        await play(service, 600, GOOD)
        said = await service.get("/a/rollout")
        assert (said["step"], said["not_before"]) == (1, service.clock.time + 3600)
        service.clock.time += 3600
        await play(service, 100, GOOD)
        assert (await service.get("/a/rollout"))["step"] == 2


BAD_SETTINGS = [
    ({}, "baseline"),
    ({"tolerance": -0.1}, "tolerance"),
    ({"steps": [0.5, 0.2]}, "steps"),
    ({"steps": []}, "steps"),
    ({"steps": [2]}, "steps"),
    ({"holdout": 1}, "holdout"),
    ({"confidence": 1}, "confidence"),
    ({"baseline": 3}, "baseline"),
    ({"baseline": "me"}, "baseline"),
    ({"baseline": {"policy": "bm9uc2Vuc2U="}}, "baseline"),
    ({"budget": 0}, "budget"),
    ({"guard": {"returned": ["<=", 1.02]}}, "guard"),
    ({"guard": {"returned": 1.02}}, "guard[...]"),
    ({"patience": 0}, "patience"),
    ({"least_seconds": -1}, "least_seconds"),
    ({"least_decisions": 10**30}, "least_decisions"),
    ({"webhook": {"url": "file:///etc/passwd", "secret": "12345678"}}, "webhook.url"),
    ({"webhook": {"url": "http://127.0.0.1/"}}, "secret"),
]


@pytest.mark.parametrize(("settings", "field"), BAD_SETTINGS)
@run
async def test_a_bad_setting_gets_one_sentence_and_changes_nothing(service, settings, field):
    async with service.running():
        await service.post("", 201, **LOOP)
        given = settings if not settings else {"baseline": 0.5} | settings
        sentence = await service.refused(422, "/v1/loops/a/rollout", given, method="PUT", field=field)
        assert sentence.count("\n") == 0
        assert service.engine.loop("a").model.rollout is None


KNOBS = {"price": [10, 50], "days": {"low": 1, "high": 14, "step": 1}, "template": {"options": ["a", "b"]}}
SPACES = {
    "steps": ({"days": {"low": 1, "high": 14, "step": 1}}, {"days": 3.0}, {"days": 99}),
    "several": (KNOBS, {"price": 20.0, "days": 3.0, "template": "b"}, {"price": 20.0, "days": 3.0}),
    "policy": ({"policy": {"options": ["a", "b"]}}, {"policy": "b"}, {"policy": "bm9uc2Vuc2U="}),
}


@pytest.mark.whole
@pytest.mark.parametrize("space", SPACES)
@run
async def test_loops_of_every_space_have_rollouts(service, space, tmp_path):
    actions, baseline, wrong = SPACES[space]
    async with service.running():
        await service.post("", 201, name="a", actions=actions, agent={"kind": "auto", "epsilon": 0.5})
        sentence = await service.refused(
            422, "/v1/loops/a/rollout", {"baseline": wrong}, method="PUT", field="baseline"
        )
        assert sentence.startswith("baseline must be an action, a policy or 'caller', got ")
        assert (await put(service, **QUICK | {"baseline": baseline}))["baseline"] == baseline
        await play(service, 600, GOOD)
        said = await service.get("/a/rollout")
        assert (said["status"], said["traffic"]) == ("done", 0.98)
        made = [await service.post("/a/decisions", context=[0.25, 0.5], id=f"id-{each}") for each in range(120)]
        assert {str(each["action"]) for each in made if each["arm"] == "baseline"} <= {str(baseline)}
        assert all("densities" not in each or len(each["densities"]) == 1 for each in made)
        (tmp_path / "a.parquet").write_bytes((await service.client.get("/v1/loops/a/log")).content)
        log, loop = manul.Log.read(tmp_path / "a.parquet"), service.engine.loop("a")
        assert set(log.arms) == {"learner", "baseline"}
        inverse = 1 / (log.densities * loop.space.volume)
        assert abs(inverse.mean() - 1) <= 4 * inverse.std() / np.sqrt(len(inverse))
        said = await service.get("/a/rollout")
        await service.caught_up("a")
        assert replayed(service.engine, "a")[0] == model_of(loop)
    async with service.running():
        assert await service.get("/a/rollout") == said


@run
async def test_the_caller_can_be_the_baseline_of_several_knobs(service):
    async with service.running():
        await service.post("", 201, name="a", actions=KNOBS)
        await put(service, **QUICK | {"baseline": "caller"})
        asked = {"context": [1, 2], "action": {"price": 20, "days": 3}}
        sentence = await service.refused(422, "/v1/loops/a/decisions", asked, field="action")
        assert sentence.endswith("action must set the knob 'template' too.")
        asked["action"]["template"] = "b"
        made = [await service.post("/a/decisions", **asked) for _ in range(20)]
        own = [each["action"] for each in made if each["arm"] == "baseline"]
        assert own
        assert all(each == asked["action"] for each in own)
        asked["within"] = {"template": ["a"]}
        await service.refused(422, "/v1/loops/a/decisions", asked, field="action")


@run
async def test_a_policy_of_several_knobs_can_be_the_baseline(service):
    knobs = {"price": (10, 50), "days": manul.Stepped(1, 14, 1), "template": manul.Choice(["a", "b"])}
    policy = base64.b64encode(manul.dumps(manul.Auto(actions=knobs))).decode()
    async with service.running():
        await service.post("", 201, name="a", actions=KNOBS)
        assert (await put(service, **QUICK | {"baseline": {"policy": policy}}))["baseline"] == "policy"
        await play(service, 100, GOOD)
        assert (await service.get("/a/rollout"))["judged"] > 0


@run
async def test_a_loop_without_a_range_of_rewards_has_a_rollout_with_one(service):
    async with service.running():
        await service.post("", 201, name="a", actions=KNOBS, rewards="auto")
        baseline = {"price": 20.0, "days": 3.0, "template": "b"}
        settings = QUICK | {"baseline": baseline, "least_decisions": 500}
        sentence = await service.refused(422, "/v1/loops/a/rollout", settings, method="PUT", field="outcome_range")
        assert "pass outcome_range=(low, high)" in sentence
        assert (await service.client.get("/v1/loops/a/rollout")).status_code == 404
        assert (await put(service, **settings, outcome_range=[0, 100]))["budget"] == 10_000
        await play(service, 100, {"learner": 150, "baseline": 50}, kind="reward")
        said = await service.get("/a/rollout")
        beyond = service.engine.loop("a").model.rollout.counts[0]
        assert f"Rewards beyond the range, which count as its ends: {beyond}." in said["sentence"]
        assert "mean reward 100 against 50" in said["sentence"]


@run
async def test_a_replaced_model_begins_a_new_trial(service):
    async with service.running():
        await service.post("", 201, **LOOP)
        await put(service, **QUICK)
        await play(service, 100, {"learner": 0.5, "baseline": 0.5})
        model = (await service.client.get("/v1/loops/a/model")).content
        await service.client.put("/v1/loops/a/model", content=model)
        said = await service.get("/a/rollout")
        assert (said["judged"], said["moves"][-1]["reason"]) == (0, "model replaced")
        await service.caught_up("a")
        assert replayed(service.engine, "a")[0] == model_of(service.engine.loop("a"))


@pytest.mark.parametrize("act", ["abort", "replace"])
@run
async def test_an_owner_can_act_before_the_first_losses_come(service, act):
    async with service.running():
        await service.post("", 201, **LOOP)
        await put(service, **QUICK)
        requests = [{"context": [0.25, 0.5]}] * COHORT
        made = (await service.post("/a/decisions/batch", decisions=requests))["decisions"]
        if act == "abort":
            await service.post("/a/rollout/abort")
        else:
            model = (await service.client.get("/v1/loops/a/model")).content
            await service.client.put("/v1/loops/a/model", content=model)
        await service.post("/a/losses", losses=[{"id": each["id"], "loss": 0.5} for each in made])
        await play(service, COHORT, GOOD)
        loop = service.engine.loop("a")
        await service.caught_up("a")
        assert (loop.model.refused, replayed(service.engine, "a")[0]) == (0, model_of(loop))


@run
async def test_a_damaged_act_is_skipped(service):
    async with service.running():
        await service.post("", 201, **LOOP)
        await service.post("/a/decisions", context=[1, 2])
        add = [Event(0, 0, "rollout", 0.0, 1.0)]
        event = (await service.engine.write(lambda tx: tx.add_events(1, add)))[0]
        service.engine.loop("a").feed.add([(event, None)])
        service.engine.learner.wake()
        await until(lambda: service.engine.loop("a").model.event >= event.number)
        assert (service.engine.loop("a").model.refused, service.engine.loop("a").model.rollout) == (1, None)
