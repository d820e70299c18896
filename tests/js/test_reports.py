"""A page downloads a model from a service, decides without a request, and reports its decisions later."""

import json

import pytest

from tests.js.node import JS, serving
from tests.service import browser
from tests.service.processes import Process

pytestmark = pytest.mark.whole
DECISIONS = 10_000
# The settings of loops, and the range of every fifth decision.
NUMBER = ({"actions": [20, 70]}, [30, 60])
KNOBS = {"price": [10, 50], "template": {"options": ["plain", "grün"]}, "days": {"low": 0, "high": 4, "step": 1}}
LIMITS = ["price >= 20 if template == 'grün'", "price <= age + 40"]
KINDS = {
    "steps": ({"actions": {"low": 0, "high": 8, "step": 2}}, [2, 6]),
    "options": ({"actions": {"options": ["plain", 2, True]}, "rewards": [0, 1]}, ["plain", True]),
    "cats": ({"actions": [20, 70], "agent": {"kind": "cats", "leaves": 16, "bandwidth": 0.125}}, [30, 60]),
    "knobs": ({"actions": KNOBS}, {"price": [12, 40], "template": ["grün"]}),
    "limits": ({"actions": KNOBS, "agent": {"kind": "auto", "limits": LIMITS}}, {"price": [12, 40], "days": [1, 3]}),
}
# The service is behind the server of the page. Contexts of the page have a field that the service has not seen.
SHARED = """
  const { load } = await import('/manul.js')
  const { Client } = await import('/client.js')
  const client = new Client(location.origin, { timeout: 120 })
  const visitor = (n) => ({
    city: ['Oslo', 'Bergen', 'Tromsø'][n % 3], age: 18 + n % 60, income: n % 7 ? n * 10 : null,
    at: new Date(Date.UTC(2024, 1, 1 + n % 28)), tags: n % 2 ? ['new'] : [],
  })
  const GIVEN = arguments[0]
  const outcome = (n) => ({ [GIVEN.settings?.rewards ? 'reward' : 'loss']: n * 7 % 10 / 10 })
"""
# The loop has learned from decisions of its own, so that the model is not uniform.
DOWNLOADS = """
  const { name } = await client.create(GIVEN.settings)
  const asked = await client.decideMany(name, Array.from({ length: 100 }, (_, n) => ({ context: visitor(n) })))
  await client.reportLosses(name, asked.map((decision, n) => ({ decision, ...outcome(n) })))
  while ((await client.status(name)).learned < 100) continue
  globalThis.agent = await load(await client.model(name))
"""
DECIDES = """
  globalThis.made = Array.from({ length: GIVEN.count }, (_, n) => {
    const context = { ...visitor(n), device: 'phone' }
    const decision = agent.decide(context, { within: n % 5 ? undefined : GIVEN.within, seed: n })
    return { ...decision, context, ...outcome(n) }
  })
  return new Set(made.map((each) => each.density)).size
"""
REPORTS = """
  const reported = await client.observeMany(GIVEN.settings.name, made)
  const { decisions, events } = await client.status(GIVEN.settings.name)
  return { ids: reported.map((each) => each.id), decisions, events }
"""
CHANGES = """
  const changed = made.slice(0, 10).map((each, n) => ({ ...each, copy: 'other', density: each.density * (n === 7 ? 1.001 : 1) }))
  return client.observeMany(GIVEN.settings.name, changed).catch(({ status, field, message }) => ({ status, field, message }))
"""
LEARNS = """
  agent.learn(made[0].context, made[0], outcome(0))
  const late = { ...agent.decide(made[0].context), context: made[0].context, ...outcome(1) }
  return client.observeMany(GIVEN.settings.name, [late]).catch(({ status, field, message }) => ({ status, field, message }))
"""


class Page:
    """A page that decides for a loop."""

    def __init__(self, page, requests):
        self.page, self.requests = page, requests

    def begin(self, name, settings, within, count):
        self.given = {"settings": {"name": name, **settings}, "within": within, "count": count}
        self.run(DOWNLOADS)

    def run(self, script):
        ends = "(value) => JSON.stringify({ value }), (error) => JSON.stringify({ error: String(error) })"
        said = json.loads(self.page.run(f"return (async () => {{ {SHARED}{script} }})().then({ends})", self.given))
        assert "error" not in said, said
        return said.get("value")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    assert not browser.missing(), browser.missing()
    process = Process(tmp_path_factory.mktemp("service"))
    try:
        with serving(JS, process) as (address, requests), browser.browsing() as page:
            page.driver.set_script_timeout(300)
            page.open(f"{address}/test/empty.html")
            yield Page(page, requests)
    finally:
        process.kill()


def test_ten_thousand_decisions_without_a_request_are_accepted_and_learned_once(page):
    page.begin("heating", *NUMBER, DECISIONS)
    before = len(page.requests)
    assert page.run(DECIDES) > 1  # densities that differ
    assert len(page.requests) == before
    reported = page.run(REPORTS)
    assert page.requests[before:].count("/v1/loops/heating/observations/batch") == DECISIONS // 1000
    assert len(set(reported["ids"])) == DECISIONS
    assert reported["decisions"] == 100 + DECISIONS
    refused = page.run(CHANGES)
    assert (refused["status"], refused["field"]) == (422, "observations[7].density")
    assert page.run(REPORTS) == reported


@pytest.mark.parametrize("kind", KINDS)
def test_decisions_of_every_kind_of_action_are_accepted_as_they_are(page, kind):
    page.begin(kind, *KINDS[kind], 200)
    assert page.run(DECIDES) > 1
    assert page.run(REPORTS)["decisions"] == 300
    assert page.run(CHANGES)["field"] == "observations[7].density"


def test_a_copy_that_has_learned_is_refused_and_told_what_to_do(page):
    page.begin("learns", *NUMBER, 10)
    page.run(DECIDES)
    refused = page.run(LEARNS)
    assert (refused["status"], refused["field"]) == (422, "observations[0].copy")
    assert "A copy that has learned since has none: download the model again" in refused["message"]
