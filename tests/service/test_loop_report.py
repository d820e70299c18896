"""The report of a loop: each number comes with the objections to it, and is not said if there is one."""

import numpy as np
import pytest

import manul
from manul.service.insights.loop_report import best_constant
from tests.service.conftest import Service, run
from tests.service.several_knobs import OFFERS

PRICES = (5.0, 50.0)
EPSILON = 0.002


def prices(count, seed=1):
    """Prices of an agent that knows who pays 46 (three of ten visitors) and who pays 18, and hardly explores."""
    rng = np.random.default_rng(seed)
    rich = rng.random(count) < 0.3
    centres = np.where(rich, 41.0, 15.0)
    explores = rng.random(count) < EPSILON
    actions = np.where(explores, rng.uniform(*PRICES, count), rng.uniform(centres - 1.5, centres + 1.5))
    densities = EPSILON / 45 + (1 - EPSILON) / 3 * (np.abs(actions - centres) <= 1.5)
    rewards = actions * (actions < np.where(rich, 46.0, 18.0))
    return rich.astype(np.float32)[:, np.newaxis], actions, densities, rewards


def log_of(contexts, actions, densities, rewards):
    floors = np.full(len(actions), EPSILON / 45)
    ranges = {"action_range": PRICES, "loss_range": (-50.0, 0.0)}
    return manul.Log(contexts, actions, densities, -rewards, floors=floors, **ranges, rewards=True)


@run
async def test_no_screen_shows_the_reward_of_a_constant_that_was_played_only_where_it_suits(tmp_path):
    async with Service(tmp_path / "a.db").running() as service:
        await service.post("", 201, name="shop", actions=PRICES, rewards=[0, 50], apprentice=True)
        for context, action, density, reward in zip(*prices(500), strict=True):
            known = {"action": action, "density": density, "floor": EPSILON / 45, "reward": reward}
            service.clock.time += 1
            await service.post("/shop/observations", context=context.tolist(), **known)
        await service.learned("shop", 500)
        report, summary = await service.get("/shop/report"), await service.get("/shop/summary")
    constant = report["candidates"][-1]
    assert (constant["loss"], constant["low"], constant["high"]) == (None, None, None)
    assert constant["note"].startswith("Weights average 0.2")
    assert summary["history"]["best_constant"] is None


def test_a_constant_has_the_objections_of_evaluate_to_the_same_rows():
    log = log_of(*prices(1000))
    expected = manul.evaluate(lambda _: 17.5, log.rows(np.arange(0, 1000, 2)), bandwidth=45 / 16).objections
    objections = best_constant(log, PRICES).objections
    assert [each.sentence for each in objections] == [each.sentence for each in expected]
    assert [each.title for each in objections] == ["mean weight", "wide interval"]


def even_log(count=900, loss=lambda actions: np.abs(actions - 0.5)):
    actions = np.linspace(0, 1, count)
    return manul.Log(np.empty((count, 0)), actions, np.ones(count), loss(actions), action_range=(0.0, 1.0))


def test_the_best_constant_is_found_from_what_was_played():
    found = best_constant(even_log(), (0.0, 1.0))
    assert (found.name, found.action, found.note) == ("constant 0.5", 0.5, None)
    assert found.loss == pytest.approx(1 / 32, abs=0.002)
    assert found.low < found.loss < found.high


def test_the_best_constant_is_judged_by_other_rows_than_those_that_chose_it():
    def loss(actions):
        near, odd = np.abs(actions - 0.5) < 1 / 9, np.arange(len(actions)) % 2
        return np.where(near, odd, 0.5)

    found = best_constant(even_log(loss=loss), (0.0, 1.0))
    assert (found.action, found.loss) == (0.5, 1.0)


def test_an_action_that_one_half_of_the_rows_never_has_gets_no_number():
    count, odd = 400, np.arange(400) % 2
    actions = np.where(odd, 0.9, 0.1) + np.random.default_rng(0).uniform(-0.05, 0.05, count)
    log = manul.Log(np.empty((count, 0)), actions, np.full(count, 5.0), odd.astype(float), action_range=(0.0, 1.0))
    assert best_constant(log, (0.0, 1.0)).loss is None


@run
async def test_several_knobs_have_constants_with_intervals_or_objections(tmp_path):
    async with Service(tmp_path / "a.db").running() as service:
        await service.post("", 201, **OFFERS | {"rewards": [0, 50]}, apprentice=True)
        rng = np.random.default_rng(0)
        for _ in range(200):  # a caller who always offers "bold" to the contexts that pay
            pays = bool(rng.random() < 0.4)
            action = {"template": "bold" if pays else "plain", "price": rng.uniform(10, 20), "discount": 0.15}
            known = {"densities": {"price": 1 / 10, "discount": 100.0, "template": 0.99}, "reward": 40.0 * pays}
            await service.post("/offers/observations", context=[float(pays)], action=action, **known)
        await service.learned("offers", 200)
        candidates = (await service.get("/offers/report"))["candidates"]
    assert [each["knob"] for each in candidates if each["knob"]] == list(OFFERS["actions"])
    assert all((each["note"] is None) == (each["low"] is not None) for each in candidates)
    assert not any(each["loss"] == -40 for each in candidates)  # the truth is -16
