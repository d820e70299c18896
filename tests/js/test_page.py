"""The page of the documentation decides and learns in a browser, without a request."""

import importlib.util
import json
import re

import pytest

import manul
from tests.c_library import ROOT
from tests.js.node import serving
from tests.service import browser

pytestmark = pytest.mark.whole
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The part of the page that decides, with its files as the hook of mkdocs adds them."""
    spec = importlib.util.spec_from_file_location("edge_files", DOCS / "edge_files.py")
    hook = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    folder = tmp_path_factory.mktemp("site")
    files = {**hook.contents(), "edge/demo.js": (DOCS / "edge" / "demo.js").read_bytes()}
    for address, content in files.items():
        (folder / address).parent.mkdir(parents=True, exist_ok=True)
        (folder / address).write_bytes(content)
    part = re.search(r"<div id=\"edge\".*</script>", (DOCS / "edge.md").read_text(), re.DOTALL)[0]
    page = f'<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,">{part}'
    (folder / "edge.html").write_text(page, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def served(site):
    assert not browser.missing(), browser.missing()
    with serving(site) as (address, requests), browser.browsing() as page:
        page.open(f"{address}/edge.html")
        page.until(lambda: page.text("[data-part=state]") == "ready", 120)
        yield page, requests


def test_ten_thousand_visitors_need_no_request_and_the_agent_learns(served):
    page, requests = served
    before = len(requests)
    page.find("[data-count='10000']").click()
    page.until(lambda: page.text("[data-part=visitors]") == "10000" and page.text("[data-part=state]") == "ready", 300)
    assert len(requests) == before
    assert not page.complaints()
    student, tourist = (float(page.text(f"[data-part={name}]")) for name in ("student", "tourist"))
    assert 8 < student < 14
    assert 20 < tourist < 32


def test_a_decision_in_chromium_is_that_of_python(served):
    page, _ = served
    script = """
      return (async () => {
        const { load } = await import('./edge/manul.js')
        const bytes = await (await fetch('./edge/shop.manul')).arrayBuffer()
        const agent = await load(bytes)
        const drawn = []
        for (let i = 0; i < 100; ++i) {
          const context = { segment: 'ab'[i % 2], hour: i }
          const decision = agent.decide(context, { within: [5, 30] })
          drawn.push([decision.action, decision.density, decision.floor])
          agent.learn(context, decision, { reward: decision.action / 2 })
        }
        return JSON.stringify(drawn)
      })()
    """
    agent = manul.Auto(actions=(0, 40), rewards=(0, 40), seed=7)
    for number, drawn in enumerate(json.loads(page.run(script))):
        context = {"segment": "ab"[number % 2], "hour": number}
        decision = agent.decide(context, (5, 30))
        assert drawn == [decision.action, decision.density, decision.floor]
        agent.learn(context, decision, reward=decision.action / 2)
