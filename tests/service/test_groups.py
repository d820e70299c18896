"""Operations that are written together are answered as if each had been written alone."""

import asyncio
import threading

from manul.service.engine.group import FULL
from manul.service.engine.group_commit import MAX_GROUP, Operation, Task, Writer
from manul.service.store import Collision
from manul.service.store.store_registry import open_store
from tests.service.conftest import run, until
from tests.service.test_modes import HEAT


@run
async def test_losses_of_one_group_see_each_other(service):
    async with service.running():
        await service.post("", 201, **HEAT)
        made = await asyncio.gather(*(service.post("/heat/decisions", context=[n, 1, 2]) for n in range(4)))
        ids = [each["id"] for each in made]

        async def report(id_, loss):
            return (await service.client.post(f"/v1/loops/heat/decisions/{id_}/loss", json={"loss": loss})).status_code

        reports = [(ids[0], 0.5)] * 3 + [(ids[1], loss) for loss in (0.1, 0.2, 0.3)] + [("~99", 0.5), (ids[2], 0.5)]
        statuses = await asyncio.gather(*(report(*each) for each in reports))
        assert [statuses[:3], sorted(statuses[3:6]), statuses[6:]] == [[200] * 3, [200, 409, 409], [404, 200]]
        await service.learned("heat", 3)
        assert service.engine.store.counts(1).events == 3


class Colliding(Operation):
    """Collides with another replica a number of times."""

    def __init__(self, times):
        self.left, self.answers = times, []

    def apply(self, transaction):
        if self.left:
            self.left -= 1
            raise Collision("for a test")

    def answer(self, error):
        self.answers.append(error)


def commits(store, operations):
    """Write some operations together; returns the number of transactions."""
    opened = open_store(store)
    writer = Writer(opened)
    for operation in operations:
        writer.submit(operation)
    writer.start()
    writer.stop()
    opened.close()
    return writer.commits


def test_a_group_that_collides_once_is_still_one_transaction(store):
    operations = [Colliding(0), Colliding(1), Colliding(0)]
    assert commits(store, operations) == 1
    assert [each.answers for each in operations] == [[None]] * 3


def test_an_operation_that_goes_on_to_collide_does_not_hold_up_the_others(store):
    operations = [Colliding(0), Colliding(3), Colliding(0)]
    assert commits(store, operations) == 3
    assert [each.answers for each in operations] == [[None]] * 3


def test_an_urgent_operation_is_written_before_those_that_wait(tmp_path):
    opened, order = open_store(str(tmp_path / "decisions.db")), []
    writer = Writer(opened)
    waiting = [Task(lambda _, place=place: order.append(place)) for place in range(2 * MAX_GROUP)]
    for task in waiting:
        writer.submit(task)
    writer.submit(Task(lambda _: order.append("urgent")), urgent=True)
    writer.start()
    writer.stop()
    opened.close()
    assert order == ["urgent", *range(2 * MAX_GROUP)]


@run
async def test_a_full_group_is_drawn_while_another_one_is_written(service):
    async with service.running():
        await service.post("", 201, **HEAT)
        await service.post("/heat/decisions", context=[0, 1, 2])
        begun, go, batch = threading.Event(), threading.Event(), [{"context": [n, 1, 2]} for n in range(FULL)]
        writing = asyncio.create_task(service.engine.write(lambda _: begun.set() or go.wait(60)))
        await until(begun.is_set)
        asked = [asyncio.create_task(service.post("/heat/decisions/batch", decisions=batch)) for _ in range(2)]
        await until(lambda: service.engine.writer.depth == len(asked))
        go.set()
        _, *answers = await asyncio.gather(writing, *asked)
        made = [each["id"] for answer in answers for each in answer["decisions"]]
        assert len({*made}) == 2 * FULL
