"""The dashboard in a real browser: a loop is created, taught, looked at and promoted, at both widths, light and dark."""

import re
import sqlite3
import subprocess
from contextlib import closing

import numpy as np
import pytest
from selenium.webdriver import ActionChains

from manul.service.http import tokens as token_file
from tests.service.browser import BOXES, PAINTED
from tests.service.processes import MANUL, Process
from tests.service.several_knobs import OFFERS
from tests.service.several_knobs import loss_of as offer_loss
from tests.service.wire import exchanged, request

pytestmark = pytest.mark.whole

BEST, RANGE = 30.0, (20.0, 70.0)
SIZES = [(width, scheme) for width in (1280, 390) for scheme in ("light", "dark")]
NOT_READY = """
const usual = window.fetch
const answer = () => new Response('{"error":{"message":"Not ready: the learner has stopped."}}', { status: 503 })
window.fetch = (path, options) => path === "readyz" ? Promise.resolve(answer()) : usual(path, options)
"""
TROUBLED = """
const usual = window.fetch
const changed = async reply => {
  const summary = await reply.json()
  summary.status.trouble = "learning fails"
  return new Response(JSON.stringify(summary))
}
window.fetch = (path, options) => path.includes("/summary") ? usual(path, options).then(changed) : usual(path, options)
"""
CHARTS = ("loss", "density", "moved", "policy", "rate", "latency", "waits")


@pytest.fixture(scope="module")
def taught(tmp_path_factory):
    """A service with a loop that has been used for a while."""
    service = Process(tmp_path_factory.mktemp("taught"))
    settings = {"name": "heating", "actions": RANGE, "wait": 0.1, "default_loss": 1}
    assert service.ask("POST", "/v1/loops", settings)[0] == 201
    observe(service, 1, 100)
    decide(service, 2, 100, reported=97)
    assert service.ask("POST", "/v1/loops", OFFERS)[0] == 201
    for _ in range(3):
        make_offers(service)
    yield service
    assert service.stop() == 0


def loss_of(action, context):
    return min(1.0, abs(action - BEST - 2 * context["outdoor"]) / 50)


def contexts(seed, count):
    rng = np.random.default_rng(seed)
    skies = rng.choice(["grey", "blue"], count).tolist()
    return [
        {"outdoor": outdoor, "sky": sky} for outdoor, sky in zip(rng.normal(size=count).round(3), skies, strict=True)
    ]


def observe(service, seed, count):
    """A caller that draws evenly by itself and reports what came of it."""
    connection = service.connection()
    actions = np.random.default_rng(seed).uniform(*RANGE, count)
    for context, action in zip(contexts(seed, count), actions, strict=True):
        body = {"context": context, "action": action, "density": 1 / 50, "loss": loss_of(action, context)}
        assert service.ask("POST", "/v1/loops/heating/observations", body, connection)[0] == 200
    connection.close()


def decide(service, seed, count, reported=None):
    asked = contexts(seed, count)
    body = {"decisions": [{"context": context} for context in asked]}
    made = service.ask("POST", "/v1/loops/heating/decisions/batch", body)[1]["decisions"]
    losses = [
        {"id": each["id"], "loss": loss_of(each["action"], context)} for each, context in zip(made, asked, strict=True)
    ]
    assert service.ask("POST", "/v1/loops/heating/losses", {"losses": losses[:reported]})[0] == 200


def make_offers(service):
    """Forty decisions of the loop with several knobs, and their losses."""
    asked = {"decisions": [{"context": [each / 40]} for each in range(40)]}
    made = service.ask("POST", "/v1/loops/offers/decisions/batch", asked)[1]["decisions"]
    losses = [{"id": each["id"], "loss": offer_loss(each["action"], [place / 40])} for place, each in enumerate(made)]
    assert service.ask("POST", "/v1/loops/offers/losses", {"losses": losses})[0] == 200


def tile(browser, name):
    """The number under a name, None before there is one."""
    found = re.search(rf"{name}\n([\d,.]+)", browser.text("[data-is=tiles]"))
    return float(found[1].replace(",", "")) if found else None


def create(browser, name):
    browser.find("#new").click()
    for field, text in {"name": name, "action_low": RANGE[0], "action_high": RANGE[1]}.items():
        browser.enter(f"#create [name={field}]", str(text))
    browser.find("#create [name=apprentice]").click()
    browser.find("#create [type=submit]").click()


def test_a_loop_is_created_taught_watched_and_promoted(browser, tmp_path):
    served = Process(tmp_path)
    browser.open(f"http://127.0.0.1:{served.port}/")
    browser.until(lambda: "No loops yet" in browser.text("main"))
    create(browser, "heating")
    browser.until(lambda: browser.text("[data-is=state]") == "apprentice")
    assert f"127.0.0.1:{served.port}/v1/loops/heating/observations" in browser.text("[data-is=commands]")

    observe(served, 1, 120)
    browser.until(lambda: tile(browser, "Learned") == 120)
    before = browser.until(lambda: browser.run(PAINTED, "loss"))
    browser.picture(tmp_path / "first.png")
    observe(served, 2, 120)
    browser.until(lambda: tile(browser, "Learned") == 240)
    browser.until(lambda: browser.run(PAINTED, "loss") != before)

    played = re.search(r"Mean action ([\d.]+); 80 % of actions between", browser.text("[data-is=density-caption]"))
    assert abs(float(played[1]) - BEST) < 10
    browser.find("[data-do=promote]").click()
    browser.until(lambda: browser.text("[data-is=state]") == "deciding")
    decide(served, 3, 60)
    browser.until(lambda: tile(browser, "Decisions") == 300)
    browser.until(lambda: "all decisions" in browser.text("[data-is=candidates]"))
    browser.until(lambda: browser.text("[data-is=findings]").endswith("."))
    assert browser.complaints() == []
    assert served.stop() == 0


def test_a_loop_with_a_formula_is_created_and_shows_it(browser, tmp_path):
    served = Process(tmp_path)
    browser.open(f"http://127.0.0.1:{served.port}/")
    browser.until(lambda: "No loops yet" in browser.text("main"))
    browser.find("#new").click()
    given = {"name": "shop", "action_low": "10", "action_high": "50", "wait": "3600", "default_loss": "bought: no"}
    given |= {"formula": "(action - cost) * bought", "parts": "bought: yes/no falls"}
    for field, text in given.items():
        browser.enter(f"#create [name={field}]", text)
    browser.find("#create [name=outcomes] [value=rewards]").click()
    browser.find("#create [type=submit]").click()
    browser.until(lambda: '{"parts": {"bought":true}}' in browser.text("[data-is=commands]"))
    assert '"context": {"cost":1.2}' in browser.text("[data-is=commands]")
    assert "reward (action - cost) * bought, of bought (yes/no)" in browser.text("[data-is=about]")
    status = served.ask("GET", "/v1/loops/shop")[1]
    assert (status["rewards"], status["hints"], status["default_parts"]) == (
        "auto",
        {"bought": "falls"},
        {"bought": False},
    )
    assert "the default of bought no" in browser.text("body")
    assert browser.complaints() == []
    assert served.stop() == 0


def test_a_loop_of_rewards_shows_rewards(browser, tmp_path):
    served = Process(tmp_path)
    browser.open(f"http://127.0.0.1:{served.port}/")
    browser.until(lambda: "No loops yet" in browser.text("main"))
    browser.find("#new").click()
    for field, text in {"name": "heating", "loss_low": "", "loss_high": ""}.items():
        browser.enter(f"#create [name={field}]", text)
    browser.find("#create [name=outcomes] [value=rewards]").click()
    browser.find("#create [type=submit]").click()
    browser.until(lambda: '{"reward": 0.25}' in browser.text("[data-is=commands]"))
    made = served.ask("POST", "/v1/loops/heating/decisions/batch", {"decisions": [{}] * 40})[1]["decisions"]
    rewards = [{"id": each["id"], "reward": 500 + each["action"]} for each in made]
    assert served.ask("POST", "/v1/loops/heating/losses", {"losses": rewards})[0] == 200
    browser.until(lambda: 500 <= (tile(browser, "Mean reward") or 0) <= 501)
    browser.until(lambda: "Estimated reward on the last 40 decisions" in browser.text("[data-is=candidates]"))
    assert browser.text("[data-is=loss-title]") == "Reward over time"
    assert "loss" not in browser.text("[data-is=tiles]").lower()
    browser.picture(tmp_path / "rewards.png")
    assert browser.complaints() == []
    assert served.stop() == 0


def shown(browser, service, width=1280, scheme="light"):
    """The board of the taught loop, with everything on it."""
    browser.open(f"http://127.0.0.1:{service.port}/#heating", width, scheme)
    browser.until(lambda: all(browser.run(PAINTED, chart) for chart in CHARTS) and browser.text("[data-is=beliefs]"))


def test_a_loop_is_paused_and_resumed(browser, taught):
    shown(browser, taught)
    browser.find("[data-do=pause]").click()
    browser.until(lambda: browser.text("[data-is=state]") == "paused")
    assert taught.ask("GET", "/v1/loops/heating")[1]["paused"]
    browser.find("[data-do=resume]").click()
    browser.until(lambda: browser.text("[data-is=state]") == "deciding")


def test_a_loop_is_reset_and_deleted_after_its_name_is_typed(browser, tmp_path):
    service = Process(tmp_path)
    service.ask("POST", "/v1/loops", {"name": "heating", "actions": RANGE})
    observe(service, 1, 10)
    browser.open(f"http://127.0.0.1:{service.port}/#heating")
    gone = {"reset": lambda: tile(browser, "Decisions") == 0, "delete": lambda: "No loops yet" in browser.text("main")}
    for verb in gone:
        browser.until(lambda: tile(browser, "Decisions") is not None)
        browser.find(f"[data-do={verb}]").click()
        browser.enter("#erase [name=name]", "heat")
        browser.find("#erase [type=submit]").click()
        browser.until(lambda: browser.text("#erase .error") == "Type heating to confirm.")
        browser.picture(tmp_path / f"{verb}.png")
        browser.enter("#erase [name=name]", "heating")
        browser.find("#erase [type=submit]").click()
        browser.until(gone[verb])
    assert service.ask("GET", "/v1/loops")[1]["loops"] == []
    # The page may have asked for the loop just before it heard that it is gone.
    assert [each for each in browser.complaints() if "404" not in each] == []
    assert service.stop() == 0


def test_a_service_that_cannot_learn_says_so_on_the_page(browser, taught):
    shown(browser, taught)
    browser.run(NOT_READY)
    browser.until(lambda: "the learner has stopped" in browser.text("#notice"))


def test_a_loop_that_does_not_learn_says_so_on_the_page(browser, taught):
    shown(browser, taught)
    browser.run(TROUBLED)
    browser.until(lambda: "not ready: learning fails" in browser.text("[data-is=trouble]"))


def test_a_loop_that_cannot_be_read_is_named_on_the_page_and_can_be_deleted(browser, tmp_path):
    service = Process(tmp_path)
    for name in ("heating", "lost"):
        service.ask("POST", "/v1/loops", {"name": name, "actions": RANGE})
    service.stop()
    with closing(sqlite3.connect(service.store, isolation_level=None)) as connection:
        connection.execute("UPDATE loops SET settings = x'00' WHERE name = 'lost'")
    service = Process(tmp_path)
    browser.open(f"http://127.0.0.1:{service.port}/")
    browser.until(lambda: "lost: Out of service" in browser.text("#out-of-service"))
    browser.run("document.querySelector('#out-of-service button').click()")
    browser.run(
        "const form = document.querySelector('#erase form'); form.elements.name.value = 'lost'; form.requestSubmit()"
    )
    browser.until(lambda: browser.run("return document.getElementById('out-of-service').hidden"))
    assert service.ask("GET", "/v1/loops/lost")[0] == 404
    service.stop()


def test_the_policy_is_shown_against_any_feature(browser, taught):
    shown(browser, taught)
    before = browser.run(PAINTED, "policy")
    browser.run("const choice = document.querySelector('[data-is=feature]'); choice.value = 'sky'; choice.onchange()")
    browser.until(lambda: "sky is typically" in browser.text("[data-is=policy-caption]"))
    browser.until(lambda: browser.run(PAINTED, "policy") != before)


@pytest.mark.parametrize(
    ("chart", "read"),
    [
        ("loss", "over .* losses"),
        ("density", "action .*: density"),
        ("moved", "action .*: density"),
        ("policy", "outdoor .*, action"),
    ],
)
def test_what_is_under_the_cursor_is_read_out(browser, taught, chart, read):
    shown(browser, taught)
    ActionChains(browser.driver).move_to_element(browser.find(f"[data-chart={chart}] .u-over")).perform()
    assert browser.until(lambda: re.search(read, browser.text(f"[data-is={chart}-caption]")))


@pytest.mark.parametrize("width", [1280, 390])
def test_several_knobs_have_a_view_each_and_heat_maps_of_pairs(browser, taught, tmp_path, width):
    browser.open(f"http://127.0.0.1:{taught.port}/#offers", width)
    browser.until(lambda: all(browser.run(PAINTED, chart) for chart in ("pair", "moved", "policy")))
    assert re.search(r"price\s+80 % of decisions between", browser.text("[data-is=knobs]"))
    assert re.search(r"bold\s+[\d.]+ %", browser.text("[data-is=knobs]"))
    before = browser.run(PAINTED, "pair")
    for name, value in {"pair-second": "template", "pair-kind": "recent", "knob": "template"}.items():
        browser.run(
            f"const choice = document.querySelector('[data-is={name}]'); choice.value = '{value}'; choice.onchange()"
        )
    browser.until(lambda: "latest 120 decisions" in browser.text("[data-is=pair-caption]"))
    browser.until(lambda: browser.run(PAINTED, "pair") != before)
    ActionChains(browser.driver).move_to_element(browser.find("[data-chart=pair] .u-over")).perform()
    browser.until(lambda: re.search("price .*, bold: predicted loss", browser.text("[data-is=pair-caption]")))
    browser.until(lambda: "share of the actions" in browser.text("[data-is=moved-caption]"))
    browser.picture(tmp_path / f"{width}.png")
    found = browser.run(BOXES)
    assert (found["scroll"] <= width, found["cut"], browser.complaints()) == (True, [], [])
    assert all(inside(*pair) for pair in found["canvases"])


def test_one_knob_with_options_shows_their_shares(browser, taught):
    settings = {"name": "templates", "actions": {"options": ["plain", "bold"]}}
    assert taught.ask("POST", "/v1/loops", settings)[0] == 201
    asked = {"decisions": [{"context": [each / 20]} for each in range(20)]}
    made = taught.ask("POST", "/v1/loops/templates/decisions/batch", asked)[1]["decisions"]
    losses = [{"id": each["id"], "loss": 0.2 + 0.5 * (each["action"] == "plain")} for each in made]
    assert taught.ask("POST", "/v1/loops/templates/losses", {"losses": losses})[0] == 200
    browser.open(f"http://127.0.0.1:{taught.port}/#templates", 1280)
    browser.until(lambda: re.search(r"action\s+plain\s+[\d.]+ %\s+bold\s+[\d.]+ %", browser.text("[data-is=knobs]")))
    browser.until(lambda: browser.run(PAINTED, "moved"))
    assert browser.text("[data-is=about]").startswith("action plain or bold, agent auto")
    assert browser.complaints() == []


@pytest.mark.parametrize("width", [1280, 390])
def test_a_candidate_that_the_log_cannot_judge_says_why_instead_of_a_number(browser, taught, width):
    browser.open(f"http://127.0.0.1:{taught.port}/#offers", width)
    browser.until(lambda: "best constant price" in browser.text("[data-is=candidates]"))
    assert re.search(r"price\s+Cannot be known\. .* decisions", browser.text("[data-is=candidates]"))
    assert browser.run(BOXES)["cut"] == browser.complaints() == []


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_nothing_is_clipped_or_overlaps(browser, taught, tmp_path, width, scheme):
    shown(browser, taught, width, scheme)
    browser.picture(tmp_path / f"{width}-{scheme}.png")
    found = browser.run(BOXES)
    assert found["scroll"] <= found["width"] == width
    assert found["cut"] == []
    for card, parts in zip(found["cards"], found["parts"], strict=True):
        assert [name for part, name in parts if not inside(part, card)] == []
    assert len(found["canvases"]) == len(CHARTS)
    assert all(inside(*pair) for pair in found["canvases"])
    pairs = [(a, b) for place, a in enumerate(found["cards"]) for b in found["cards"][:place]]
    assert not any(overlap(*pair) for pair in pairs)
    assert (sum(map(int, re.findall(r"\d+", found["background"])[:3])) < 384) == (scheme == "dark")
    assert browser.complaints() == []


def inside(part, card):
    return (
        card["left"] <= part["left"] + 1
        and part["right"] <= card["right"] + 1
        and card["top"] <= part["top"] + 1
        and part["bottom"] <= card["bottom"] + 1
    )


def overlap(a, b):
    across = a["left"] < b["right"] and b["left"] < a["right"]
    return across and a["top"] < b["bottom"] and b["top"] < a["bottom"]


def test_the_theme_can_be_switched(browser, taught):
    shown(browser, taught)
    background = "return getComputedStyle(document.body).backgroundColor"
    before = browser.run(background)
    browser.find("#theme").click()
    assert browser.run(background) != before
    browser.find("#theme").click()
    assert browser.run(background) == before


def test_the_page_is_light_and_asks_nobody_else(browser, taught):
    shown(browser, taught)
    entries = "return performance.getEntries().filter(each => each.name.startsWith('http')).map(each => [each.name, each.decodedBodySize])"
    loaded = browser.run(entries)
    assert all(name.startswith(f"http://127.0.0.1:{taught.port}/") for name, _ in loaded)
    assert 60_000 < sum(size for name, size in loaded if "/v1/" not in name) < 400_000


def test_a_token_is_asked_for_and_kept_for_the_tab(browser, tmp_path):
    tokens = tmp_path / "tokens"
    made = subprocess.run([MANUL, "token", "admin", "--file", tokens], capture_output=True, text=True, check=True)
    service = Process(tmp_path, "decisions.db", "--token-file", tokens)
    browser.open(f"http://127.0.0.1:{service.port}/")
    browser.until(lambda: browser.find("#token").is_displayed())
    browser.enter("#token [name=token]", "guessed")
    browser.find("#token [type=submit]").click()
    browser.until(lambda: "The token is unknown" in browser.text("#token .error"))
    browser.enter("#token [name=token]", made.stdout.split()[-1])
    browser.find("#token [type=submit]").click()
    browser.until(lambda: "No loops yet" in browser.text("main"))
    browser.driver.refresh()
    browser.until(lambda: "No loops yet" in browser.text("main"))
    assert service.stop() == 0


def test_a_token_for_some_loops_shows_and_creates_only_those(browser, tmp_path):
    everything, some = (token_file.add(tmp_path / "tokens", ["admin"], loops) for loops in ([], ["heat*"]))
    service = Process(tmp_path, "decisions.db", "--token-file", tmp_path / "tokens")
    for name in ("heat", "other"):
        body, header = {"name": name, "actions": [20, 70]}, f"Authorization: Bearer {everything}"
        assert exchanged(service.port, request("POST", "/v1/loops", body, header), count=1)[0].status == 201
    browser.open(f"http://127.0.0.1:{service.port}/#other")
    browser.until(lambda: browser.find("#token").is_displayed())
    browser.enter("#token [name=token]", some)
    browser.find("#token [type=submit]").click()
    browser.until(lambda: browser.run("return [...document.getElementById('loops').options].map(each => each.value)"))
    assert browser.run("return [...document.getElementById('loops').options].map(each => each.value)") == ["heat"]
    browser.find("#new").click()
    for field, text in {"name": "other-2", "action_low": "20", "action_high": "70"}.items():
        browser.enter(f"#create [name={field}]", text)
    browser.find("#create [type=submit]").click()
    browser.until(lambda: "does not give access to a loop named 'other-2'" in browser.text("#create .error"))
    assert service.stop() == 0


def test_a_loop_that_waits_says_what_it_waits_for(browser, tmp_path):
    served = Process(tmp_path)
    served.ask("POST", "/v1/loops", {"name": "heating", "actions": RANGE, "wait": 7200, "default_loss": 1})
    decide(served, 1, 20, reported=5)
    browser.open(f"http://127.0.0.1:{served.port}/#heating")
    browser.until(lambda: tile(browser, "Waiting") == 20)
    browser.until(lambda: "No wait is over yet: losses are learned and shown 2" in browser.text("main"))
    assert "20 decisions whose wait is not over" in browser.text("[data-is=waits-caption]")
    assert browser.complaints() == []
    assert served.stop() == 0
