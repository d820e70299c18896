"""Running sums: exact however events are grouped, kept across restarts, and what the dashboard's routes make of them."""

import asyncio

import numpy as np
import pytest

from manul.actions.kinds.span import Span
from manul.service.insights.history import BUCKETS, SUMS, History
from manul.service.insights.summary import history
from manul.service.insights.traffic import Traffic
from manul.service.store import Event
from manul.service.store.blocks import DecisionRow
from tests.service.conftest import run

RANGE = (20.0, 70.0)
KNOB = Span(*RANGE)


def facts(count, seconds=1.0, seed=0):
    """Actions drawn evenly; the loss is the distance to 40."""
    rng = np.random.default_rng(seed)
    times = 1_000_000 + np.cumsum(rng.exponential(seconds, count))
    actions = rng.uniform(*RANGE, count)
    return [
        (
            Event(place + 1, place + 1, "loss", abs(action - 40) / 50, time),
            DecisionRow(place + 1, None, [0.5], None, action, 1 / 50, time, 0),
        )
        for place, (time, action) in enumerate(zip(times.tolist(), actions.tolist(), strict=True))
    ]


def late(events, most, seed=2):
    """The same decisions, whose losses come up to so many seconds later, in the order in which they come."""
    delays = np.random.default_rng(seed).uniform(0, most, len(events))
    delayed = [
        (event._replace(time=event.time + delay), made) for (event, made), delay in zip(events, delays, strict=True)
    ]
    return sorted(delayed, key=lambda fact: fact[0].time)


def in_groups(events, sizes):
    made = History([("action", KNOB)])
    rest = list(events)
    while rest:
        size = next(sizes)
        made.add(rest[:size])
        rest = rest[size:]
    with made.snapshot():
        return made


@pytest.mark.parametrize("delay", [0, 300, 30_000])
def test_the_past_is_the_same_however_events_are_grouped(delay):
    events = late(facts(2000, seconds=30), delay)
    sizes = np.random.default_rng(1)
    alone = in_groups(events, iter(lambda: 1, 0))
    assert in_groups(events, iter(lambda: int(sizes.integers(1, 400)), 0)).to_bytes() == alone.to_bytes()


def test_the_past_survives_as_bytes():
    before, after = in_groups(facts(500), iter(lambda: 100, 0)), History([("action", KNOB)])
    after.restore(before.to_bytes())
    assert after.to_bytes() == before.to_bytes()


@pytest.mark.parametrize("span", ["minutes", "day", "all"])
def test_a_loss_counts_at_the_time_of_its_decision(span):
    events = late(facts(500, seconds=100), 5000)
    buckets = in_groups(events, iter(lambda: 50, 0)).spans[span]
    ends = buckets.start + buckets.seconds * np.arange(BUCKETS + 1)
    expected, _ = np.histogram([decision.time for _, decision in events], ends)
    assert buckets.sums[:, SUMS.index("outcomes")].tolist() == expected.tolist()
    assert expected.sum() > 5


@pytest.mark.parametrize("span", ["minutes", "day", "all"])
def test_a_span_counts_every_event_that_is_not_older(span):
    events = facts(3000, seconds=60)
    buckets = in_groups(events, iter(lambda: 250, 0)).spans[span]
    expected = sum(event.time >= buckets.start for event, _ in events)
    assert buckets.sums[:, SUMS.index("outcomes")].sum() == expected
    assert (expected == len(events)) == (span == "all")


def test_the_mean_of_a_span_is_the_mean_of_its_losses():
    events = facts(300)
    found = history(in_groups(events, iter(lambda: 7, 0)).spans["all"], KNOB)
    total = sum(loss * count for loss, count in zip(found.loss, found.outcomes, strict=True) if count)
    assert total == pytest.approx(sum(event.loss for event, _ in events))
    assert sum(map(sum, found.played)) == sum(found.outcomes) == 300


def test_few_losses_are_put_together_until_they_say_something():
    found = history(in_groups(facts(100, seconds=30), iter(lambda: 10, 0)).spans["all"], KNOB)
    assert 4 <= len(found.loss) <= 24
    assert min(found.outcomes[:-1]) > 1


def test_traffic_forgets_what_is_older_than_five_minutes():
    traffic = Traffic()
    traffic.add(1000.0, 500, 0.001)
    assert max(traffic.table(1200.0).decisions) == 100
    assert max(traffic.table(1305.0).decisions) == 0


async def taught(service):
    await service.post("", 201, name="heat", actions=RANGE)
    for place in range(40):
        made = await service.post("/heat/decisions", context={"outdoor": place / 40, "sky": "grey"})
        await service.post(f"/heat/decisions/{made['id']}/loss", loss=abs(made["action"] - 40) / 50)
    await service.learned("heat", 40)


@run
async def test_a_summary_is_the_same_after_a_restart(service):
    async with service.running():
        await taught(service)
        service.clock.time += 10
        before = await service.get("/heat/summary")
    async with service.running():
        after = await service.get("/heat/summary")
    for name in ("history", "density", "features"):
        assert after[name] == before[name]
    assert sum(before["history"]["outcomes"]) == 40


@run
async def test_a_summary_brings_report_and_findings_once_they_are_there(service):
    async with service.running():
        await taught(service)
        async with asyncio.timeout(60):
            while not (found := (await service.get("/heat/summary"))["examined"]):
                await asyncio.sleep(0.01)
    assert [each["name"] for each in found["report"]["candidates"]][:1] == ["played"]
    assert found["findings"][0]["title"] == "small effective sample"


@run
async def test_the_policy_varies_one_feature_of_contexts_with_names_or_without(service):
    async with service.running():
        await taught(service)
        number, text = await service.get("/heat/policy"), await service.get("/heat/policy?feature=sky")
        await service.post("", 201, name="rows", actions=RANGE)
        await service.post("/rows/decisions", context=[1.0, 2.0])
        row = await service.get("/rows/policy?feature=1")
    assert number["feature"] == "outdoor"
    assert len(number["density"]) == len(number["values"]) > 10
    assert (text["values"], text["typical"]) == (["grey"], "grey")
    assert (row["values"], row["typical"]) == ([2.0], 2.0)
    assert sum(row["density"][0]) * 50 / len(row["density"][0]) == pytest.approx(1.0)


@run
async def test_every_kind_of_field_can_be_varied(service):
    context = {"open": True, "rooms": [{"warm": 2}], "tags": ["old"], "gap": None, "loss": 3}
    async with service.running():
        await service.post("", 201, name="heat", actions=RANGE)
        made = await service.post("/heat/decisions", context=context)
        await service.post(f"/heat/decisions/{made['id']}/loss", loss=0.5)
        await service.learned("heat", 1)
        features = (await service.get("/heat/summary"))["features"]
        views = [await service.get(f"/heat/policy?feature={name}") for name in features]
    assert features == ["open", "rooms[0].warm", "tags=old", "loss"]
    assert [view["values"] for view in views] == [["true"], [2.0], [1.0], [3.0]]


@run
async def test_an_unknown_feature_or_span_is_refused_with_what_is_meant(service):
    async with service.running():
        await taught(service)
        said = await service.refused(422, "/v1/loops/heat/policy?feature=outdor", b"", method="GET", field="feature")
        assert said.endswith("Did you mean 'outdoor'?")
        await service.refused(422, "/v1/loops/heat/summary?span=year", b"", method="GET", field="span")


@run
async def test_the_page_and_its_parts_are_served(service):
    async with service.running():
        page = await service.client.get("/")
        assert "default-src 'self'" in page.headers["content-security-policy"]
        parts = [each.split('"')[0] for each in page.text.replace('src="', 'href="').split('href="')[1:]]
        for part in {each for each in parts if each.startswith("dashboard/")}:
            assert (await service.client.get(f"/{part}")).status_code == 200
        assert "MIT" in (await service.client.get("/dashboard/uplot/LICENSE")).text
        assert (await service.client.get("/dashboard/none.js")).json()["error"]["code"] == "not_found"
