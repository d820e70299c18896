"""Three replicas on one PostgreSQL: any decides, one learns each loop, and when it dies another takes over."""

import http.client
import random
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

import numpy as np
import psycopg
import pytest

from manul.service.engine.write_operations import own_number
from manul.service.store.postgres_schema import LEARNING
from tests.service.conftest import Service, run, until
from tests.service.processes import Process
from tests.service.several_knobs import OFFERS
from tests.service.test_crash import AGENT, LOOP, ROLLOUT, Known, check_store
from tests.service.test_modes import HEAT
from tests.service.test_modes import model as model_of
from tests.service.test_recovery import play, replayed
from tests.service.test_several_knobs import play as play_offers

pytestmark = [pytest.mark.whole, pytest.mark.usefixtures("replicated")]

TAKEOVER, PAUSE = 60, 5


class Caller(threading.Thread):
    """Decides at one replica and reports to any that lives; remembers what was acknowledged, and when."""

    def __init__(self, name, home, living, known):
        super().__init__()
        self.name, self.home, self.living, self.known = name, home, living, known
        self.times, self.stopping, self.failure = [], False, None

    def run(self):
        rng = random.Random(self.name)
        try:
            for number in range(10**9):
                if self.stopping or not self.once(rng, number):
                    return
        except AssertionError as failure:
            self.failure = failure

    def once(self, rng, number):
        """Whether the replica is still there."""
        asked = {"context": [rng.random(), rng.random()], "id": f"{self.name}-{number}" if number % 2 else None}
        made = self.ask(self.home, "/v1/loops/a/decisions", asked)
        if made is None:
            return False
        self.times.append(time.monotonic())
        self.known.decisions[made["id"]] = (made["action"], made["density"])
        if rng.random() < 0.8:
            loss = round(rng.random(), 3)
            said = self.ask(rng.choice(self.living), f"/v1/loops/a/decisions/{made['id']}/loss", {"loss": loss})
            if said is not None:
                self.known.losses[made["id"]] = (loss, said["status"])
        return True

    def ask(self, replica, path, body):
        """What was answered; None by a replica that is gone."""
        try:
            status, said = replica.ask("POST", path, body)
        except (OSError, http.client.HTTPException, ValueError):
            assert replica.killed
            return None
        assert status == 200, said
        return said


@pytest.fixture
def replicas(tmp_path, postgres):
    """Three on one database; those that are left in the end are killed."""
    store, folders = postgres.database(), [tmp_path / f"replica{number}" for number in range(3)]
    for folder in folders:
        folder.mkdir()
    with ThreadPoolExecutor() as pool:
        running = list(pool.map(lambda folder: start(folder, store), folders))
    yield running
    for replica in running:
        replica.kill()


def start(folder, store):
    return Process(folder, f"{store}&application_name={folder.name}", "--snapshot-seconds", "0.2")


def learner(replicas, loop=1):
    """The one that learns a loop; None if none does."""
    query = (
        "SELECT application_name FROM pg_stat_activity JOIN pg_locks USING (pid) "
        "WHERE locktype = 'advisory' AND objid = %s AND datname = current_database()"
    )
    with psycopg.connect(replicas[0].store) as connection:
        names = [name for (name,) in connection.execute(query, [(LEARNING + loop) & 0xFFFFFFFF])]
    assert len(names) <= 1
    return next((each for each in replicas if [each.folder.name] == names), None)


def leads(replica):
    """Whether its log says that it leads."""
    lines = (replica.folder / "service.log").read_text().splitlines()
    said = [line for line in lines if "the leader" in line]
    return bool(said) and "now the leader" in said[-1]


def wait_for(condition, seconds):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def model(replica):
    connection = replica.connection()
    connection.request("GET", "/v1/loops/a/model")
    answer = connection.getresponse()
    found = int(answer.getheader("X-Manul-Event")), answer.read()
    connection.close()
    return found


def test_another_replica_takes_over_and_nothing_is_lost(replicas):
    known = Known()
    wait_for(lambda: sum(map(leads, replicas)) == 1, TAKEOVER)
    replicas[0].ask("POST", "/v1/loops", LOOP)
    replicas[0].ask("PUT", "/v1/loops/a/rollout", ROLLOUT | {"baseline": 0.5})
    callers = [Caller(f"c{place}", home, list(replicas), known) for place, home in enumerate([*replicas, *replicas])]
    for caller in callers:
        caller.start()
    wait_for(lambda: all(len(caller.times) > 20 for caller in callers), 60)
    learners = []  # for a second after the start, shares of the loops move between the replicas
    wait_for(lambda: learners.append(learner(replicas)) or learners[-1] is not None, TAKEOVER)
    killed = learners[-1]
    killed.kill()
    living = [each for each in replicas if each is not killed]
    wait_for(lambda: sum(map(leads, living)) == 1 and learner(living) is not None, TAKEOVER)
    taken = time.monotonic()
    survivors = [caller for caller in callers if caller.home is not killed]
    wait_for(lambda: all(caller.times[-1] > taken + 0.5 for caller in survivors), 60)
    for caller in callers:
        caller.stopping = True
    for caller in callers:
        caller.join()
        assert caller.failure is None
    for caller in survivors:
        assert max(after - before for before, after in zip(caller.times, caller.times[1:], strict=False)) < PAUSE
    settle(living)
    assert model(living[0]) == model(living[1])
    told = [each.ask("GET", "/v1/loops/a/rollout")[1] for each in living]
    assert told[0]["looks"] == told[1]["looks"]
    assert told[0]["moves"] == told[1]["moves"]
    for replica in living:
        assert replica.stop() == 0
    check_store(replicas[0].store, known)


def test_a_leader_that_hangs_is_replaced(replicas):
    leader = next(filter(leads, replicas))
    leader.process.send_signal(signal.SIGSTOP)
    wait_for(lambda: any(leads(each) for each in replicas if each is not leader), TAKEOVER)
    leader.process.send_signal(signal.SIGCONT)
    wait_for(lambda: sum(map(leads, replicas)) == 1, TAKEOVER)
    assert not leads(leader)


def test_the_same_question_at_every_replica_at_once_has_one_answer(replicas):
    replicas[0].ask("POST", "/v1/loops", {"name": "a", "actions": [0, 1], "agent": AGENT})
    path = "/v1/loops/a/decisions"
    with ThreadPoolExecutor(len(replicas)) as pool:

        def everywhere(path, *bodies):
            asked = zip(replicas, bodies, strict=True)
            return [each.result() for each in [pool.submit(one.ask, "POST", path, body) for one, body in asked]]

        for number in range(25):
            made = everywhere(path, *[{"context": [1, 2], "id": f"o{number}"}] * 3)
            assert made[0][0] == 200
            assert made == [made[0]] * 3
            said = everywhere(f"{path}/o{number}/loss", *[{"loss": 0.5}] * 3)
            assert sorted(each["status"] for _, each in said) == ["recorded", "repeated", "repeated"]
            everywhere(path, *[{"context": [1, 2], "id": f"p{number}"}] * 3)
            said = everywhere(f"{path}/p{number}/loss", *({"loss": loss} for loss in (0.1, 0.2, 0.3)))
            assert sorted(status for status, _ in said) == [200, 409, 409]
    settle(replicas)
    assert replicas[0].ask("GET", "/v1/loops/a")[1]["events"] == 50


@asynccontextmanager
async def leader_and_follower(postgres):
    """Two replicas with one loop."""
    store = postgres.database()
    leader, follower = Service(store), Service(store)
    async with leader.running(), follower.running():
        await leader.post("", 201, **HEAT)
        yield leader, follower


@run
async def test_a_pause_at_one_replica_and_a_resumption_at_the_other_leave_no_replica_paused(postgres):
    async with leader_and_follower(postgres) as (leader, follower):
        await follower.get("/heat")
        for _ in range(10):
            await leader.post("/heat/pause")
            await follower.post("/heat/resume")
            await until(lambda: not leader.engine.loop("heat").paused and not follower.engine.loop("heat").paused)
        assert [(await each.get("/heat"))["paused"] for each in (leader, follower)] == [False, False]


@run
async def test_whatever_is_changed_at_one_replica_holds_at_the_other(postgres):
    async with leader_and_follower(postgres) as (leader, follower):
        await play(follower, 5)
        await leader.learned("heat", 5)
        await follower.learned("heat", 5)
        assert await model_of(leader) == await model_of(follower)
        early = await model_of(follower)
        await follower.post("/heat/pause")
        await until(lambda: leader.engine.loop("heat").paused)
        await follower.post("/heat/resume")
        await play(leader, 5)
        assert (await follower.client.put("/v1/loops/heat/model", content=early)).status_code == 200
        for each in (leader, follower):
            await each.caught_up("heat")
        assert await model_of(leader) == await model_of(follower) == early
        await follower.refused(422, "/v1/loops/heat/decisions", {"context": [1, 2]}, field="context")
        assert await follower.post("", 200, **HEAT) | {"model": 0} == await leader.get("/heat") | {"model": 0}


@run
async def test_what_the_leader_learns_in_its_first_turn_reaches_the_others(postgres):
    async with leader_and_follower(postgres) as (leader, follower):
        await leader.post("/heat/pause")
        await play(follower, 5)
        await leader.post("/heat/resume")
        await follower.learned("heat", 5)
        await leader.learned("heat", 5)
        assert await model_of(leader) == await model_of(follower)


@run
async def test_a_follower_plays_the_rollout_that_the_leader_judges(postgres):
    async with leader_and_follower(postgres) as (leader, follower):
        started = await follower.client.put("/v1/loops/heat/rollout", json={"baseline": 40, "steps": [0.5, 1]})
        assert started.status_code == 200
        await until(lambda: leader.engine.loop("heat").model.rollout is not None)
        made = [await each.post("/heat/decisions", context=[1, 2, 3]) for each in (leader, follower) * 60]
        for each in made:
            await leader.post(f"/heat/decisions/{each['id']}/loss", loss=0.5)
        numbers = [own_number(each["id"]) for each in made]
        assert numbers == list(range(numbers[0], numbers[0] + 120))
        for each in (leader, follower):
            await each.learned("heat", 120)
        looks = [(await each.get("/heat/rollout"))["looks"] for each in (leader, follower)]
        assert looks[0] == looks[1] != []
        assert (await follower.post("/heat/rollout/abort"))["status"] == "aborted"
        await until(lambda: leader.engine.loop("heat").model.rollout.progress.level < 0)


@run
async def test_each_replica_learns_its_part_of_the_loops_and_the_survivor_all(postgres):
    store = postgres.database()
    one, other = Service(store), Service(store)
    async with one.running():
        async with other.running():

            def learned():
                return [[each.engine.store.replicas.learns(loop) for loop in range(32)] for each in (one, other)]

            await until(lambda: [sum(each) for each in learned()] == [16, 16])
            first, second = learned()
            assert first == [not each for each in second]
            await one.post("", 201, **HEAT)
            await play(one, 5)
            await one.learned("heat", 5)
        await until(lambda: all(map(one.engine.store.replicas.learns, range(32))))
        await play(one, 5)
        await one.learned("heat", 10)
        assert replayed(one.engine, "heat")[1:] == (10, 10)


@run
async def test_a_follower_sets_several_knobs_with_the_leaders_model(postgres):
    async with leader_and_follower(postgres) as (leader, follower):
        await leader.post("", 201, **OFFERS)
        made = await play_offers(follower, 40)
        await leader.learned("offers", 40)
        models = [(await each.client.get("/v1/loops/offers/model")).content for each in (leader, follower)]
        assert models[0] == models[1]
        assert np.sum((await follower.get("/offers/pair"))["count"]) == 40
        answers = [await each.post("/offers/decisions", context=[0.5, 0.5], id="q") for each in (leader, follower)]
        assert answers[0] == answers[1] != made[0]


def settle(living):
    """Waits until nothing waits, and every replica has learned everything."""

    def settled():
        statuses = [replica.ask("GET", "/v1/loops/a")[1] for replica in living]
        return all(each["waiting"] == 0 and each["model"] == each["events"] for each in statuses)

    wait_for(settled, 60)
