"""The card of a budget and of a rate to keep in a real browser."""

import pytest

from tests.service.browser import PAINTED
from tests.service.processes import Process
from tests.service.test_budgets import ADS, auction, parts_of

pytestmark = pytest.mark.whole


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """A service with a loop with a budget, and one without."""
    service = Process(tmp_path_factory.mktemp("budgets"))
    limits = {"spend_at_most": ["won * action", 60.0, 50], "keep": ["won", ">=", 0.25]}
    assert service.ask("POST", "/v1/loops", {"name": "ads", **ADS, **limits})[0] == 201
    assert service.ask("POST", "/v1/loops", {"name": "plain", **ADS})[0] == 201
    for number in range(70):
        made = service.ask("POST", "/v1/loops/ads/decisions", {"context": auction(number)[0]})[1]
        told = {"parts": parts_of(number, made["action"])}
        assert service.ask("POST", f"/v1/loops/ads/decisions/{made['id']}/loss", told)[0] == 200
    yield service
    assert service.stop() == 0


def test_the_card_says_what_is_spent_and_kept(browser, service):
    browser.open(f"http://127.0.0.1:{service.port}/#ads")
    browser.until(lambda: browser.run(PAINTED, "limits"))
    assert browser.text("[data-is=budget-about]") == "won * action, at most 60 per 50 decisions"
    assert browser.text("[data-is=kept-about]") == "won at least 0.25 in the mean"
    budget = service.ask("GET", "/v1/loops/ads")[1]["budget"]
    spent = float(format(budget["spent"], ".4g"))
    assert f"{spent:g}" in browser.text("[data-is=budget-tiles]")
    assert "The period before spent" in browser.text("[data-is=limits-caption]")
    assert browser.complaints() == []


def test_a_loop_without_limits_has_no_card(browser, service):
    browser.open(f"http://127.0.0.1:{service.port}/#plain")
    browser.until(lambda: browser.text("[data-is=name]") == "plain")
    assert browser.run("return document.querySelector('[data-is=limits]').hidden")
    assert browser.complaints() == []
