"""The card of a rollout in a real browser, in each of its states."""

import re
import subprocess

import pytest
from selenium.webdriver import ActionChains

from tests.service import rollout_states
from tests.service.browser import BOXES, PAINTED
from tests.service.processes import MANUL, Process

pytestmark = pytest.mark.whole

CHARTS = ("rollout-traffic", "rollout-excess")
CARD = "[data-is=rollout]"
SAYS = {
    "waiting": "Step 1 of 3: 25 % of the traffic, mean loss 0.4 against 0.6.",
    "stepping up": "Step 2 of 3: 50 % of the traffic, mean loss 0 against 1.",
    "paused": "Paused: the learner can lose traffic, but does not get more.",
    "rolled back": "the learner was worse than tolerated.",
    "aborted": "Aborted by its owner. The baseline makes all decisions.",
    "done": "This is the last step; the baseline keeps the rest.",
}
WHY = {
    "stepping up": r"step 2, 50.% proven not worse, difference -\S+ to -\S+ \d",
    "paused": r"step 2, 50.% paused by the owner \d",
    "rolled back": r"baseline proven worse, difference 0\S+ to \S+ \d",
    "aborted": r"baseline aborted by the owner \d",
    "done": r"step 3, 98.% proven not worse, difference -\S+ to -\S+ \d",
}
BUTTONS = {"waiting": "pause abort", "stepping up": "pause abort", "paused": "resume abort", "done": "abort"}
SHOWN = "return [...document.querySelectorAll('[data-is=rollout] button')].filter(each => !each.hidden).map(each => each.dataset.do)"

# Puts the cursor on the first point in time that has bounds, or has none.
POINT_AT = """
const { plot } = document.querySelector("[data-chart=rollout-excess]").chart
const place = plot.data[1].findIndex(low => (low !== null) === arguments[0])
plot.setCursor({ left: plot.valToPos(plot.data[0][place], "x"), top: 10 })
"""


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """A service with a loop in each state."""
    service = Process(tmp_path_factory.mktemp("rollouts"))
    for name, reach in rollout_states.STATES.items():
        reach(service, name.replace(" ", "-"))
    yield service
    assert service.stop() == 0


def show(browser, service, loop, width=1280):
    browser.open(f"http://127.0.0.1:{service.port}/#{loop.replace(' ', '-')}", width)
    browser.until(lambda: all(browser.run(PAINTED, chart) for chart in CHARTS))


def state(browser):
    return browser.text("[data-is=rollout-state]")


@pytest.mark.parametrize("name", rollout_states.STATES)
def test_each_state_is_shown_with_its_reason(browser, service, name):
    show(browser, service, name)
    browser.until(lambda: state(browser) == name and SAYS[name] in browser.text("[data-is=rollout-sentence]"))
    moves = re.sub(r"\s+", " ", browser.text("[data-is=rollout-moves]"))
    assert re.search(WHY.get(name, r"step 1, 25.% started by the owner 0"), moves), moves
    assert browser.run(SHOWN) == [f"rollout/{verb}" for verb in BUTTONS.get(name, "").split()]
    assert browser.complaints() == []


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", rollout_states.STATES)
def test_nothing_in_the_card_is_cut_off(browser, service, tmp_path, name, width):
    show(browser, service, name, width)
    browser.picture(tmp_path / f"{name}-{width}.png")
    found = browser.run(BOXES)
    assert (found["scroll"] <= width, found["cut"]) == (True, [])
    box = browser.run("return document.querySelector('[data-is=rollout]').getBoundingClientRect().right")
    assert all(part["right"] <= box + 1 for part, name in found["parts"][1])


def test_the_card_says_how_long_the_next_step_takes(browser, service):
    show(browser, service, "waiting")
    rollout_states.live(service, "waiting", rollout_states.BETTER, 50, report=False)
    said = browser.until(lambda: re.search(r"At (\S+) decisions per second.*", browser.text("[data-is=rollout-next]")))
    assert float(said[1]) > 0
    assert re.search(r", [\d,]+ decisions take about \S+ \w+\.$", said[0])
    assert re.search(r"Not judged yet\n\d+", browser.text("[data-is=rollout-tiles]"))


def test_a_loop_without_a_rollout_has_no_card(browser, service):
    service.ask("POST", "/v1/loops", {"name": "plain", "actions": [0, 1]})
    browser.open(f"http://127.0.0.1:{service.port}/#plain")
    browser.until(lambda: browser.text("[data-is=name]") == "plain")
    assert not browser.find(CARD).is_displayed()
    assert browser.complaints() == []


def test_an_apprentice_with_a_rollout_decides(browser, service):
    rollout_states.start(service, "taught", apprentice=True)
    browser.open(f"http://127.0.0.1:{service.port}/#taught")
    browser.until(lambda: state(browser) == "waiting")
    assert browser.text("[data-is=state]") == "deciding"
    assert browser.text("[data-is=first]") == "Request the first decision"
    assert not browser.find("[data-do=promote]").is_displayed()


def test_traffic_that_the_budget_limits_is_marked(browser, service):
    rollout_states.limited(service, "limited")
    show(browser, service, "limited")
    browser.until(lambda: browser.text("[data-is=rollout-limited]") == "limited by the budget")
    assert re.search(r"Budget spent\n\S+ of 5", browser.text("[data-is=rollout-tiles]"))


def test_a_rollout_of_rewards_shows_rewards(browser, service, tmp_path):
    rollout_states.rewarded(service, "rewarded")
    show(browser, service, "rewarded")
    browser.until(lambda: "mean reward 8 against 6" in browser.text("[data-is=rollout-sentence]"))
    shown = re.search(r"Difference\n(\S+) to (\S+)", browser.text("[data-is=rollout-tiles]")).groups()
    low, high = service.ask("GET", "/v1/loops/rewarded/rollout")[1]["excess"]
    assert [float(end) for end in shown] == pytest.approx([-high, -low], rel=0.05)
    assert "loss" not in browser.text(CARD).lower()
    browser.picture(tmp_path / "rewards.png")


def test_the_owner_pauses_resumes_and_aborts_after_a_confirmation(browser, service):
    rollout_states.waiting(service, "owned")
    show(browser, service, "owned")
    for verb, after in {"pause": "paused", "resume": "waiting"}.items():
        browser.until(lambda verb=verb: browser.find(f'[data-do="rollout/{verb}"]').is_displayed())
        browser.find(f'[data-do="rollout/{verb}"]').click()
        browser.until(lambda after=after: state(browser) == after)
    browser.find('[data-do="rollout/abort"]').click()
    assert browser.text("#abort h2") == "Abort the rollout of owned?"
    browser.find("#abort [value=cancel]").click()
    assert service.ask("GET", "/v1/loops/owned/rollout")[1]["status"] == "waiting"
    browser.find('[data-do="rollout/abort"]').click()
    browser.find("#abort [type=submit]").click()
    browser.until(lambda: state(browser) == "aborted")
    assert not browser.find("#abort").is_displayed()
    assert browser.complaints() == []


def test_the_traffic_under_the_cursor_is_read_out(browser, service):
    show(browser, service, "done")
    ActionChains(browser.driver).move_to_element(browser.find("[data-chart=rollout-traffic] .u-over")).perform()
    assert browser.until(
        lambda: re.search(r"\d: learner .*, baseline", browser.text("[data-is=rollout-traffic-caption]"))
    )


@pytest.mark.parametrize(("known", "read"), [(True, r"-?\d\S* to -?\d"), (False, "no bounds yet")])
def test_the_bounds_under_the_cursor_are_read_out(browser, service, known, read):
    show(browser, service, "done")

    def read_out():
        """Charts follow the clock, so the cursor is put again on the same point."""
        browser.run(POINT_AT, known)
        return re.search(rf"\d: {read}", browser.text("[data-is=rollout-excess-caption]"))

    assert browser.until(read_out)


def test_a_token_without_the_right_is_told_so(browser, tmp_path):
    tokens, made = tmp_path / "tokens", {}
    for rights in ("admin", "report"):
        command = [MANUL, "token", rights, "--file", tokens]
        made[rights] = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[-1]
    service = Process(tmp_path, "decisions.db", "--token-file", tokens)
    service.token = made["admin"]
    rollout_states.start(service, "guarded")
    browser.open(f"http://127.0.0.1:{service.port}/#guarded")
    browser.until(lambda: browser.find("#token").is_displayed())
    browser.enter("#token [name=token]", made["report"])
    browser.find("#token [type=submit]").click()
    browser.until(lambda: state(browser) == "waiting")
    browser.find('[data-do="rollout/abort"]').click()
    browser.find("#abort [type=submit]").click()
    browser.until(lambda: "admin" in browser.text("#abort .error"))
    assert service.ask("GET", "/v1/loops/guarded/rollout")[1]["status"] == "waiting"
    assert service.stop() == 0
