"""Loops of rewards, and loops without a range."""

import json

import numpy as np
import pytest

import manul
from tests.service.conftest import run

PRICES = {"name": "prices", "actions": [0, 10], "rewards": [0, 100]}


async def decide(service, count=1):
    return [(await service.post("/prices/decisions", context=[1, 2]))["id"] for _ in range(count)]


@run
async def test_a_reward_is_learned_as_a_negative_loss(service):
    async with service.running():
        created = await service.post("", 201, **PRICES)
        assert (created["rewards"], created["losses"]) == ([0.0, 100.0], [-100.0, 0.0])
        one, two = await decide(service, 2)
        answer = await service.post(f"/prices/decisions/{one}/loss", reward=40)
        batch = await service.post("/prices/losses", losses=[{"id": two, "reward": 60}])
        assert (answer["status"], batch["losses"][0]["status"]) == ("recorded", "recorded")
        await service.learned("prices", 2)
        assert (await service.get("/prices"))["mean_loss"] == -50.0
        assert service.engine.loop("prices").model.agent.outcome.rewards == (0.0, 100.0)


@run
async def test_a_loop_of_rewards_survives_a_restart(service):
    async with service.running():
        await service.post("", 201, **PRICES)
        (given,) = await decide(service)
        await service.post(f"/prices/decisions/{given}/loss", reward=40)
    async with service.running():
        again = await service.post("", 200, **PRICES)
        assert (again["rewards"], again["mean_loss"]) == ([0.0, 100.0], -40.0)
        (other,) = await decide(service)
        await service.post(f"/prices/decisions/{other}/loss", reward=50)
        await service.learned("prices", 2)
        assert (await service.get("/prices"))["refused"] == 0


@pytest.mark.parametrize(
    ("body", "field", "message"),
    [
        ({"loss": 0.5}, "loss", "loss must not be reported to a loop with rewards; report its reward."),
        ({"loss": 1, "reward": 1}, "loss", "loss must not be reported to a loop with rewards; report its reward."),
        ({}, "reward", "reward is missing; the loop has rewards."),
        ({"reward": 101}, "reward", "reward must be in [0, 100], the loop's range, got 101."),
        ({"reward": "much"}, "reward", "reward must be a number or null, got text."),
    ],
)
@run
async def test_a_bad_reward_is_refused_and_changes_nothing(service, body, field, message):
    async with service.running():
        await service.post("", 201, **PRICES)
        (given,) = await decide(service)
        said = await service.refused(422, f"/v1/loops/prices/decisions/{given}/loss", body, field=field)
        assert message in said


@run
async def test_a_reward_is_refused_by_a_loop_of_losses(service):
    async with service.running():
        await service.post("", 201, name="prices", actions=[0, 10])
        (given,) = await decide(service)
        said = await service.refused(422, f"/v1/loops/prices/decisions/{given}/loss", {"reward": 0.5}, field="reward")
        assert said == "reward must not be reported to a loop with losses; report its loss."
        batch = {"losses": [{"id": given, "reward": 0.5}]}
        await service.refused(422, "/v1/loops/prices/losses", batch, field="losses[0].reward")
        observation = {"action": 5, "density": 0.1, "reward": 0.5}
        await service.refused(422, "/v1/loops/prices/observations", observation, field="reward")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rewards": [0, 1], "losses": [0, 1]}, "losses and rewards exclude each other. Set one of them."),
        ({"rewards": "auto", "losses": "auto"}, "losses and rewards exclude each other. Set one of them."),
        ({"rewards": [0, 1], "losses": [-1, 0]}, "losses and rewards exclude each other. Set one of them."),
        ({"rewards": [1, 0]}, "rewards must be finite with low < high, got (1.0, 0.0)."),
        ({"rewards": "autom"}, "autom"),
        ({"rewards": 1}, "rewards"),
        (
            {"rewards": [0, 1], "wait": 60, "default_loss": 0},
            "default_loss needs a loop with losses. Set default_reward.",
        ),
        (
            {"rewards": [0, 1], "wait": 60, "default_loss": 0, "default_reward": 0},
            "default_loss needs a loop with losses. Set default_reward.",
        ),
        ({"wait": 60, "default_reward": 0}, "default_reward needs a loop with rewards. Set default_loss."),
        (
            {"rewards": [0, 1], "wait": 60, "default_reward": 2},
            "default_reward must be in the range of rewards, [0, 1], got 2.",
        ),
        ({"rewards": [0, 1], "wait": 60}, "wait is set, but default_reward is not. Set both or neither."),
        (
            {"rewards": "auto", "agent": {"kind": "cats", "leaves": 8, "bandwidth": 1}},
            "rewards must be two numbers (low, high) for Cats, got 'auto'. Only Auto learns without a range.",
        ),
    ],
)
@run
async def test_a_loop_with_contradicting_rewards_is_refused(service, settings, message):
    async with service.running():
        await service.post("", 201, **PRICES)
        said = await service.refused(422, "/v1/loops", {"name": "other", "actions": [0, 10], **settings})
        assert message in said


@run
async def test_another_reward_is_a_conflict_in_rewards(service):
    async with service.running():
        await service.post("", 201, **PRICES)
        (given,) = await decide(service)
        await service.post(f"/prices/decisions/{given}/loss", reward=40)
        path = f"/v1/loops/prices/decisions/{given}/loss"
        said = await service.refused(409, path, {"reward": 50}, field="reward")
        assert said.startswith("A reward of 40 was already reported for this decision, got 50.")


@run
async def test_a_decision_without_a_reward_gets_the_default_reward(service):
    async with service.running():
        await service.post("", 201, **PRICES, wait=60, default_reward=10)
        await decide(service)
        service.clock.time += 61
        service.engine.end_waits()
        await service.learned("prices", 1)
        status = await service.get("/prices")
        assert (status["defaulted"], status["mean_loss"], status["default_loss"]) == (1, -10.0, -10.0)


@run
async def test_a_loop_without_a_range_learns_from_any_finite_reward(service):
    async with service.running():
        await service.post("", 201, name="prices", actions=[0, 10], rewards="auto")
        ids = await decide(service, 40)
        rewards = np.random.default_rng(0).normal(1e6, 1e3, 39).tolist()
        batch = [{"id": each, "reward": reward} for each, reward in zip(ids, [*rewards, -1e12], strict=True)]
        await service.post("/prices/losses", losses=batch)
        await service.learned("prices", 40)
        report = await service.get("/prices/report")
        assert report["beliefs"]["clipped"] == 1
        assert [each["name"] for each in report["candidates"]][:1] == ["played"]
        path = f"/v1/loops/prices/decisions/{ids[0]}/loss"
        assert "reward" in await service.refused(422, path, b'{"reward": 1e999}')


@run
async def test_the_log_of_a_loop_of_rewards_has_rewards(service, tmp_path):
    async with service.running():
        await service.post("", 201, **PRICES)
        (given,) = await decide(service)
        await service.post(f"/prices/decisions/{given}/loss", reward=40)
        (tmp_path / "log.parquet").write_bytes((await service.client.get("/v1/loops/prices/log")).content)
    log = manul.Log.read(tmp_path / "log.parquet")
    assert (log.rewards.tolist(), log.losses.tolist(), log.loss_range) == ([40.0], [-40.0], (-100.0, 0.0))


@run
async def test_a_model_of_the_same_rewards_can_replace_that_of_a_loop(service, tmp_path):
    async with service.running():
        await service.post("", 201, **PRICES)
        for rewards, status in (((0, 100), 200), ((0, 50), 422)):
            manul.Auto(actions=(0, 10), rewards=rewards).save(tmp_path / "agent.manul")
            body = (tmp_path / "agent.manul").read_bytes()
            answer = await service.client.put("/v1/loops/prices/model", content=body)
            assert answer.status_code == status, json.loads(answer.content)
