"""Many clients of all kinds at one loop at once: each is answered as if it were alone."""

import asyncio
import gc
import weakref

import pytest

from manul.service.engine import loop_agent
from tests.service.conftest import Service, run, until
from tests.service.several_knobs import OFFERS
from tests.service.test_modes import HEAT
from tests.service.test_recovery import model_of, replayed

ROLLOUT = {"baseline": 30, "steps": [0.5, 1]}


def asked(client):
    """What one of many clients asks: its path and its body; every id is used twice."""
    context = [client % 7, 1.0]
    return [
        ("/heat/decisions", {"context": context}),
        ("/heat/decisions", {"context": context, "within": [30, 40]}),
        ("/heat/decisions", {"context": [1.0, 2.0], "id": f"order-{client // 8 // 2}"}),
        ("/heat/decisions/batch", {"decisions": [{"context": context}, {"context": context, "within": [25, 35]}]}),
        ("/heat/observations", {"context": context, "action": 33, "density": 0.02, "loss": 0.5}),
        ("/heat/decisions", {"context": context, "id": f"alone-{client}"}),
    ][client % 8 % 6]


async def decided(service, clients=64):
    """The decisions of many clients at once, each with what was asked."""
    made = await asyncio.gather(*(service.post(path, **body) for path, body in map(asked, range(clients))))
    pairs = zip(map(asked, range(clients)), made, strict=True)
    return [
        pair
        for (path, body), answer in pairs
        if not path.endswith("observations")
        for pair in zip(body.get("decisions", [body]), answer.get("decisions", [answer]), strict=True)
    ]


@pytest.mark.parametrize("rollout", [False, True], ids=["", "rollout"])
@run
async def test_clients_of_all_kinds_at_once_get_what_each_would_get_alone(service, rollout):
    async with service.running():
        await service.post("", 201, **HEAT)
        if rollout:
            assert (await service.client.put("/v1/loops/heat/rollout", json=ROLLOUT)).status_code == 200
        await service.post("/heat/pause")  # so that all decisions are of one model
        loop, observed = service.engine.loop("heat"), sum("action" in asked(client)[1] for client in range(64))
        made = await decided(service)
        by_id = {answer["id"]: (body, answer) for body, answer in made}
        own = [answer["id"] for body, answer in made if "id" not in body]
        assert len(own) == len({*own})
        assert all(by_id[answer["id"]][1] == answer for _, answer in made)
        for body, answer in made:
            low, high = body.get("within") or [20, 70]
            assert low <= answer["action"] <= high or answer.get("arm") == "baseline"
            density = loop.model.distribution(body["context"]).density(answer["action"])
            assert rollout or "within" in body or answer["density"] == pytest.approx(density, rel=1e-9)
        losses = [service.post(f"/heat/decisions/{each}/loss", loss=0.25) for each in by_id for _ in range(2)]
        said = [each["status"] for each in await asyncio.gather(*losses)]
        assert sorted(said) == ["recorded"] * len(by_id) + ["repeated"] * len(by_id)
        await service.post("/heat/resume")
        await service.learned("heat", len(by_id) + observed)
        status = await service.get("/heat")
        assert (status["decisions"], status["waiting"]) == (len(by_id) + observed, 0)
        await service.caught_up("heat")
        assert replayed(service.engine, "heat")[:2] == (model_of(loop), len(by_id) + observed)
        assert not rollout or loop.model.rollout.progress.next > len(by_id)


@run
async def test_several_knobs_in_one_group_keep_to_their_ranges_and_ids(service):
    async with service.running():
        await service.post("", 201, **OFFERS)
        narrow = {"price": [12, 20], "template": ["bold"]}
        bodies = [
            {"context": [n / 9], "within": narrow if n % 2 else None, "id": f"o{n // 2}"} for n in range(0, 32, 3)
        ]
        answers = await asyncio.gather(*(service.post("/offers/decisions", **body) for body in bodies * 2))
        assert answers[: len(bodies)] == answers[len(bodies) :]
        actions = [answer["action"] for body, answer in zip(bodies, answers, strict=False) if body["within"]]
        assert all(12 <= each["price"] <= 20 and each["template"] == "bold" for each in actions)
        assert (await service.get("/offers"))["decisions"] == len(bodies)


@run
async def test_what_is_refused_in_a_group_is_refused_alone(service):
    async with service.running():
        await service.post("", 201, **HEAT)
        await service.post("/heat/decisions", context=[1, 2], id="taken")
        bad = [({"context": [1, 2, 3]}, 422), ({"context": [1, 2], "within": [80, 90]}, 422)]
        bad += [({"context": {"sky": "grey"}}, 422), ({"context": [9, 9], "id": "taken"}, 409)]
        bodies = [pair for place in range(12) for pair in (({"context": [place, 1]}, 200), bad[place % 4])]
        answers = await asyncio.gather(
            *(service.client.post("/v1/loops/heat/decisions", json=each) for each, _ in bodies)
        )
        assert [each.status_code for each in answers] == [status for _, status in bodies]
        assert (await service.get("/heat"))["decisions"] == 13


@run
async def test_an_id_with_another_action_of_the_caller_is_a_conflict(service):
    async with service.running():
        await service.post("", 201, **HEAT)
        rollout = {"baseline": "caller", "steps": [0.5, 1]}
        assert (await service.client.put("/v1/loops/heat/rollout", json=rollout)).status_code == 200
        for place in range(8):  # of both arms
            body = {"context": [1, 2], "id": f"o{place}"}
            first = await service.post("/heat/decisions", **body, action=30)
            assert await service.post("/heat/decisions", **body, action=30.0) == first
            refused = await service.post("/heat/decisions", 409, **body, action=31)
            assert refused["error"]["field"] == "id"
    async with service.running():
        assert await service.post("/heat/decisions", **body, action=30) == first
        await service.post("/heat/decisions", 409, **body, action=31)


@run
async def test_loops_that_were_reset_are_freed(tmp_path):
    service = Service(tmp_path / "decisions.db")
    async with service.running():
        await service.post("", 201, **HEAT)
        before = []
        for _ in range(50):
            made = await service.post("/heat/decisions", context=[1, 2])
            await service.post(f"/heat/decisions/{made['id']}/loss", loss=0.5)
            before.append(weakref.ref(service.engine.loop("heat")))
            await service.post("/heat/reset")
        await until(lambda: gc.collect() >= 0 and sum(each() is not None for each in before) <= 1)


@run
async def test_the_first_batch_of_a_loop_makes_few_agents(tmp_path, monkeypatch):
    service, made, make = Service(tmp_path / "decisions.db"), [], loop_agent.make_agent
    async with service.running():
        await service.post("", 201, **HEAT)
        monkeypatch.setattr(loop_agent, "make_agent", lambda settings: made.append(1) or make(settings))
        await service.post("/heat/decisions/batch", decisions=[{"context": [n, 1]} for n in range(200)])
        assert len(made) < 5
