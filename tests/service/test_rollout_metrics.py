"""Metrics of rollouts."""

from tests.service.conftest import Service, run

LOOP = {"name": "heat", "actions": [0, 1], "agent": {"kind": "cats", "leaves": 8, "bandwidth": 0.1}}
PLAN = {"baseline": 0.5, "steps": [0.5, 1], "least_decisions": 50}


async def scrape(service):
    lines = (await service.client.get("/metrics")).text.splitlines()
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")}


async def live(service, rounds):
    for _ in range(rounds):
        made = (await service.post("/heat/decisions/batch", decisions=[{}] * 50))["decisions"]
        losses = [{"id": each["id"], "loss": float(each["arm"] == "baseline")} for each in made]
        await service.post("/heat/losses", losses=losses)


@run
async def test_a_rollout_has_metrics_of_its_traffic_decisions_moves_and_budget(tmp_path):
    service = Service(tmp_path / "decisions.db")
    async with service.running(webhook_hosts=["127.0.0.1"]):
        await service.post("", 201, **LOOP)
        assert not any("rollout_" in name for name in await scrape(service))
        webhook = {"url": "http://127.0.0.1:9/moves", "secret": "longer than eight"}
        await service.client.put("/v1/loops/heat/rollout", json={**PLAN, "webhook": webhook})
        await live(service, 8)
        await service.learned("heat", 400)
        rollout, metrics = await service.get("/heat/rollout"), await scrape(service)
    values = {name: metrics[f'manul_rollout_{name}{{loop="heat"}}'] for name in ("traffic", "step", "spent", "budget")}
    assert values == {name: rollout[name] for name in values}
    assert values["step"] == 2
    by_arm = [metrics[f'manul_rollout_decisions_total{{loop="heat",arm="{arm}"}}'] for arm in ("learner", "baseline")]
    assert sum(by_arm) == 400
    assert by_arm[0] == rollout["learner_decisions"]
    assert metrics['manul_rollout_moves_total{loop="heat",reason="not worse"}'] == 1
    assert metrics['manul_rollout_unsent{loop="heat"}'] == len(rollout["moves"]) == 2


@run
async def test_loops_without_a_rollout_are_not_among_them(tmp_path):
    service = Service(tmp_path / "decisions.db")
    async with service.running(webhook_hosts=["127.0.0.1"]):
        for name in ("heat", "light"):
            await service.post("", 201, **{**LOOP, "name": name})
        await service.client.put("/v1/loops/heat/rollout", json=PLAN)
        names = [name for name in await scrape(service) if name.startswith("manul_rollout_")]
    assert names
    assert all('loop="heat"' in name for name in names)
