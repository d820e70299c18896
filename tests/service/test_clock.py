"""Waits last as long as they should, whatever happens to the clock of the machine."""

import pytest

from manul.service.engine.clock import SteadyClock
from tests.service.conftest import run, until
from tests.service.test_modes import HEAT

WAITS = HEAT | {"wait": 60, "default_loss": 1.0}


class Machine:
    """A machine whose wall clock can be set."""

    def __init__(self):
        self.ticks, self.offset = 0.0, 1_000_000.0

    def clock(self):
        return SteadyClock(wall=lambda: self.ticks + self.offset, ticks=lambda: self.ticks)


@pytest.mark.parametrize("jump", [1e9, -3600.0], ids=["forward", "back"])
@run
async def test_a_wall_clock_that_is_set_neither_ends_waits_early_nor_keeps_them_from_ending(service, jump):
    machine = Machine()
    service.clock = machine.clock()
    async with service.running():
        await service.post("", 201, **WAITS)
        await service.post("/heat/decisions", context=[1])
        machine.offset += jump
        machine.ticks += 0.2
        service.engine.end_waits()
        machine.offset -= jump if jump > 0 else 0
        machine.ticks += 40
        service.engine.end_waits()
        await service.engine.write(lambda _: None)
        assert (await service.get("/heat"))["defaulted"] == 0
        machine.ticks += 40
        service.engine.end_waits()
        await until(lambda: service.engine.store.counts(1).defaulted == 1)


@run
async def test_a_store_from_the_future_keeps_no_wait_from_ending(service):
    async with service.running():
        await service.post("", 201, **WAITS)
        await service.post("/heat/decisions", context=[1])
    service.clock.time -= 10_000
    async with service.running():
        await service.post("/heat/decisions", context=[2])
        service.clock.time += 61
        service.engine.end_waits()
        await until(lambda: service.engine.store.counts(1).defaulted == 2)


def test_a_steady_clock_never_goes_back_and_meets_the_wall_clock_again(rng):
    machine = Machine()
    clock = machine.clock()
    before = clock()
    for step in rng.exponential(size=500):
        machine.ticks += step
        if rng.random() < 0.1:
            machine.offset += rng.normal() * 100
        now = clock()
        assert 0.9 * step - 1e-6 <= now - before <= 1.1 * step + 1e-6
        before = now
    machine.ticks += 100_000
    assert clock() == machine.ticks + machine.offset
