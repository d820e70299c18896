"""Killed at any instant under load, on one store or several replicas, a loop spends no more than its budget, and counts every cost once."""

import http.client
import os
import random
import threading
import time
from collections import defaultdict

import msgspec
import pytest

from manul.service.engine.loop_limits import LimitsEvent
from manul.service.engine.losses import parts_of
from manul.service.store import OUTCOMES
from tests.service.conftest import Service, run, until
from tests.service.processes import Process
from tests.service.test_budgets import ADS, caught_up

pytestmark = pytest.mark.whole

AMOUNT, PERIOD = 30.0, 20
LOOP = {"name": "ads", **ADS, "spend_at_most": ["won * action", AMOUNT, PERIOD]}
SOAK = bool(os.environ.get("MANUL_SOAK"))
KILLS, DECISIONS = (10, 300) if SOAK else (2, 80)  # decisions that are answered before each of the kills


class Bidder(threading.Thread):
    """Bids at any replica that lives, and reports most outcomes; remembers what was acknowledged."""

    def __init__(self, name, replicas, known):
        super().__init__()
        self.name, self.replicas, self.known = name, replicas, known
        self.stopping, self.refused = False, set()

    def run(self):
        rng = random.Random(self.name)
        number = 0
        while not self.stopping:
            number += 1
            self.once(rng, f"{self.name}-{number}" if number % 2 else None)

    def once(self, rng, given):
        asked = {"context": [rng.random(), rng.random()], "id": given}
        made = self.ask(rng, "/v1/loops/ads/decisions", asked)
        if made is None:
            return
        self.known.decisions[made["id"]] = made["action"]
        if rng.random() < 0.9:
            parts = {"won": True, "value": 9.0} if made["action"] > 12 * rng.random() else {"won": False}
            if self.ask(rng, f"/v1/loops/ads/decisions/{made['id']}/loss", {"parts": parts}) is not None:
                self.known.parts[made["id"]] = parts

    def ask(self, rng, path, body):
        """What was answered; None if that replica is gone, or does not keep the account."""
        replica = rng.choice(self.replicas)
        try:
            status, said = replica.ask("POST", path, body)
        except (OSError, http.client.HTTPException, ValueError):
            time.sleep(0.01)
            return None
        if status != 200:
            self.refused.add((status, said["error"]["message"]))
            time.sleep(0.01)
        return said if status == 200 else None


class Known:
    """What the service has acknowledged."""

    def __init__(self):
        self.decisions, self.parts = {}, {}


def bid_until(replicas, known, count):
    """Bids until so many more decisions are answered; returns those who bid, and go on."""
    bidders = [Bidder(f"b{time.monotonic_ns()}-{number}", replicas, known) for number in range(4)]
    target = len(known.decisions) + count
    for each in bidders:
        each.start()
    deadline = time.monotonic() + 300
    while len(known.decisions) < target:
        assert time.monotonic() < deadline, [each.refused for each in bidders]
        time.sleep(0.005)
    return bidders


def stop(bidders):
    refused = set()
    for each in bidders:
        each.stopping = True
    for each in bidders:
        each.join()
        refused |= each.refused
    return refused


async def check_account(store, known):
    """The account of the service against one that is counted from the events alone."""
    service = Service(store)
    async with service.running():
        await caught_up(service)
        loop = service.engine.loop("ads")
        period_of, costs, outcomes, actions = {}, {}, {}, {}
        after = 0
        while facts := service.engine.store.events(loop.number, after, 1000):
            for event, decision in facts:
                if event.kind == "limits":
                    for each in msgspec.json.decode(event.parts, type=LimitsEvent).booked:
                        assert each.number not in period_of
                        period_of[each.number] = each.moment[0]
                elif event.kind in OUTCOMES:
                    assert decision.number not in costs
                    costs[decision.number] = decision.action * parts_of(event).parts["won"]
                    outcomes[decision.public_id] = parts_of(event).parts
            after = facts[-1][0].number
        after = 0
        while blocks := service.engine.store.blocks(loop.number, after, 64):
            for row in (row for block in blocks for row in block.decisions()):
                actions[row.number] = row.action
                assert known.decisions.get(row.public_id, row.action) == row.action
            after = blocks[-1].last
        assert actions.keys() == period_of.keys()
        assert known.parts.keys() <= outcomes.keys()
        spent, most = defaultdict(float), defaultdict(float)
        for number, period in period_of.items():
            spent[period] += costs.get(number, 0.0)
            most[period] += costs.get(number, actions[number])
        assert max(most.values()) <= AMOUNT + 1e-6
        account = loop.model.agent._account
        own = {each.start: each.spent for each in account.past} | {account.period: account.spent}
        assert own == pytest.approx({period: spent[period] for period in own})  # the account remembers 64 periods
        print(len(spent), "periods,", len(actions), "decisions,", len(costs), "costs")
        assert {*account.open} <= {*period_of} - {*costs}
        return len(actions)


@run
async def check(store, known):
    assert await check_account(store, known) >= len(known.decisions)


def test_a_service_that_is_killed_spends_no_more_and_counts_every_cost_once(tmp_path):
    service, known = Process(tmp_path, "decisions.db", "--snapshot-seconds", "0.2"), Known()
    assert service.ask("POST", "/v1/loops", LOOP)[0] == 201
    for _ in range(KILLS):
        bidders = bid_until([service], known, DECISIONS)
        service.kill()
        stop(bidders)
        service = Process(tmp_path, "decisions.db", "--snapshot-seconds", "0.2")
    service.kill()
    check(service.store, known)


def test_two_replicas_that_are_killed_spend_no_more_and_count_every_cost_once(tmp_path, postgres):
    store, known = postgres.database(), Known()
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
    replicas = [Process(folder, store, "--snapshot-seconds", "0.2") for folder in folders]
    assert replicas[0].ask("POST", "/v1/loops", LOOP)[0] == 201
    refused = set()
    for kill in range(KILLS):
        bidders = bid_until(replicas, known, DECISIONS)
        killed = kill % 2
        replicas[killed].kill()
        refused |= stop(bidders)
        bidders = bid_until([replicas[1 - killed]], known, DECISIONS)  # it takes the account over
        replicas[killed] = Process(folders[killed], store, "--snapshot-seconds", "0.2")
        refused |= stop(bidders)
    for replica in replicas:
        replica.kill()
    check(store, known)
    assert {status for status, _ in refused} == {503}
    assert any("another replica keeps" in said for _, said in refused)


@run
async def test_a_replica_that_takes_itself_for_the_one_that_keeps_the_account_spends_nothing(postgres):
    """As one does whose locks the server has given to another one."""
    store = postgres.database()
    one, other = Service(store), Service(store)
    async with one.running(), other.running():
        await one.post("", 201, **LOOP)
        await until(lambda: "ads" in other.engine.loops)
        for each in (one, other):
            each.engine.loop("ads").check_account = lambda: None
        spent = 0.0
        for number in range(12):
            for each in (one, other):
                answer = await each.client.post("/v1/loops/ads/decisions", json={"context": [0.5, number]})
                assert answer.status_code in (200, 503), answer.text
                if answer.status_code == 200:
                    spent += answer.json()["action"]
                else:
                    assert answer.json()["error"]["message"].startswith("The account of loop 'ads' has just changed.")
        assert 0 < spent <= AMOUNT
