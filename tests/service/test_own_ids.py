"""The ids that the service gives: none is given twice, so a late loss never lands on another decision."""

import pytest

from manul.service.store.backup import backup, restore
from manul.service.store.blocks import DecisionRow, pack
from tests.service.conftest import Service, run
from tests.service.test_modes import HEAT


async def decided(service, count=3):
    made = await service.post("/heat/decisions/batch", decisions=[{"context": [1, 2]}] * (count - 1))
    alone = await service.post("/heat/decisions", context=[1, 2])
    return [each["id"] for each in (*made["decisions"], alone)]


async def refuses(service, ids):
    """Whether a loss for each id is refused, alone and in a batch, and nothing is stored."""
    for given in ids:
        path = f"/v1/loops/heat/decisions/{given}/loss"
        sentence = await service.refused(404, path, {"loss": 0.5}, field="id")
        assert sentence.endswith("It may have been made before the loop was reset, deleted or restored from a backup.")
        losses = {"losses": [{"id": given, "loss": 0.5}]}
        await service.refused(404, "/v1/loops/heat/losses", losses, field="losses[0].id")


@pytest.mark.parametrize("way", ["reset", "delete"])
@run
async def test_a_loss_from_before_a_reset_or_deletion_lands_on_no_new_decision(tmp_path, way):
    service = Service(tmp_path / "decisions.db")
    async with service.running():
        await service.post("", 201, **HEAT | {"name": "other"})
        await service.post("", 201, **HEAT)
        before = await decided(service)
        if way == "reset":
            await service.post("/heat/reset")
        else:
            await service.client.delete("/v1/loops/heat")
            await service.post("", 201, **HEAT)
        after = await decided(service)
        await refuses(service, before)
        assert (await service.post(f"/heat/decisions/{after[0]}/loss", loss=0.5))["status"] == "recorded"


@run
async def test_a_loss_from_after_the_backup_lands_on_no_decision_of_the_restored_store(service, tmp_path):
    restored = Service(tmp_path / "restored.db")
    async with service.running():
        await service.post("", 201, **HEAT)
        known = await decided(service)
        saved = backup(service.store, tmp_path / "monday.zip")
        lost = await decided(service)
    restore(saved.file, restored.store)
    async with restored.running():
        await decided(restored, 100)
        await refuses(restored, lost)
        for given in known:
            assert (await restored.post(f"/heat/decisions/{given}/loss", loss=0.5))["status"] == "recorded"


@run
async def test_ids_of_earlier_versions_stay_valid_for_their_decisions_only(service):
    async with service.running():
        await service.post("", 201, **HEAT)
        old = pack([DecisionRow(9000 + n, None, [1.0, 2.0], None, 30.0, 0.02, 1e6, 0) for n in range(2)])
        await service.engine.write(lambda transaction: transaction.add_block(1, old))
        new = await decided(service)
        assert (await service.post("/heat/decisions/~9001/loss", loss=0.5))["status"] == "recorded"
        await refuses(service, [new[0].partition(".")[0], "~9000.k3f7x2ab", "~09000"])


@run
async def test_the_number_of_a_decision_with_an_id_of_the_caller_is_no_id(service):
    async with service.running():
        await service.post("", 201, **HEAT)
        await service.post("/heat/decisions", context=[1, 2], id="mine")
        number = service.engine.store.first_decision(1).number
        await refuses(service, [f"~{number}", f"~{number}.{service.engine.loop('heat').epoch}"])
