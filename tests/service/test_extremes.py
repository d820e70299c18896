"""Values at the edge of what is accepted: every answer is a number that can be read, or one clear sentence."""

import math

import pytest

from tests.service.conftest import run
from tests.service.test_modes import HEAT


@pytest.mark.parametrize("density", [5e-324, 1e-300, 1e-160, 1e160, 1e300, 1.7e308])
@run
async def test_a_report_after_extreme_densities_has_only_finite_numbers(service, density):
    async with service.running():
        await service.post("", 201, **HEAT)
        await service.post("/heat/observations", context=[1, 2], action=30, density=0.02, loss=0.5)
        for action in (30, 40):
            body = {"context": [1, 2], "action": action, "density": density, "loss": 0.5}
            answer = await service.client.post("/v1/loops/heat/observations", json=body)
            assert answer.status_code in (200, 422), answer.text
        await service.engine.write(lambda _: None)
        report = await service.get("/heat/report")
        assert all(each["loss"] is None or math.isfinite(each["loss"]) for each in report["candidates"])
        await service.get("/heat/summary")


@pytest.mark.parametrize(
    "agent", ["auto", {"kind": "adaptive", "leaves": 16}, {"kind": "cats", "leaves": 16, "bandwidth": 1e-9}]
)
@pytest.mark.parametrize("low", [0.0, 0.5, 1.0 - 2**-53, -1.0])
@run
async def test_a_range_of_one_representable_step_is_decided_in_or_refused(service, agent, low):
    async with service.running():
        await service.post("", 201, name="heat", actions=[-1, 1], agent=agent)
        for width in (math.nextafter(low, 2) - low, 1e-300, 1e-12, 1e-6):
            body = {"context": [1.0], "within": [low, low + width]}
            answer = await service.client.post("/v1/loops/heat/decisions", json=body)
            assert answer.status_code in (200, 422), answer.text
            if answer.status_code == 200:
                path = f"/v1/loops/heat/decisions/{answer.json()['id']}/loss"
                assert (await service.client.post(path, json={"loss": 0.5})).status_code == 200
        assert (await service.client.get("/v1/loops/heat/report")).status_code == 200
        assert (await service.get("/heat"))["refused"] == 0
