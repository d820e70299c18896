"""A shop: sales are reported at once, visitors who do not buy never. With a wait, neither is learned before the other."""

import asyncio

import numpy as np
import pytest

from tests.service.conftest import Service

pytestmark = pytest.mark.whole

PRICES, VISITORS, BATCH, SEEDS = (10.0, 60.0), 4000, 50, 3
WAIT = 400  # visitors
SHOP = {"actions": PRICES, "rewards": [0, 60]}


def profit(price):
    """The price, if the visitor buys; the chance falls with the price."""
    return price / (1 + np.exp((price - 28) / 4))


async def play(service, name, seed, **wait):
    """The expected profit of each visitor, of whom BATCH come in a second."""
    await service.post("", 201, name=name, **SHOP, **wait, agent={"kind": "auto", "seed": seed})
    rng, earned = np.random.default_rng(seed), []
    for _ in range(0, VISITORS, BATCH):
        decisions = (await service.post(f"/{name}/decisions/batch", decisions=[{}] * BATCH))["decisions"]
        prices = np.array([each["action"] for each in decisions])
        earned.append(profit(prices))
        rewards = (prices * (rng.random(BATCH) < profit(prices) / prices)).tolist()
        reports = [(each["id"], reward) for each, reward in zip(decisions, rewards, strict=True) if reward or not wait]
        if reports:
            losses = [{"id": given, "reward": reward} for given, reward in reports]
            await service.post(f"/{name}/losses", losses=losses)
        service.clock.time += 1
        service.engine.end_waits()
        await service.engine.write(lambda _: None)
        await service.caught_up(name)
    return np.concatenate(earned)


@pytest.fixture(scope="module")
def shops(tmp_path_factory):
    """The profit of shops with a wait, and of shops that know at once who does not buy."""
    service = Service(tmp_path_factory.mktemp("shops") / "decisions.db")
    wait = {"wait": WAIT / BATCH - 0.5, "default_reward": 0}

    async def play_all():
        async with service.running():
            late = [await play(service, f"late-{seed}", seed, **wait) for seed in range(SEEDS)]
            return np.array(late), np.array([await play(service, f"now-{seed}", seed) for seed in range(SEEDS)])

    return asyncio.run(play_all())


def test_during_the_first_wait_prices_earn_what_random_prices_earn(shops):
    first, random = shops[0][:, :WAIT], profit(np.linspace(*PRICES, 1001))
    chance = random.std() / np.sqrt(first.size)
    assert first.mean() > random.mean() - chance


def test_after_the_wait_prices_earn_what_they_earn_without_a_wait(shops):
    late, now = (earned[:, -VISITORS // 5 :].mean(axis=1) for earned in shops)
    assert (late > 0.95 * now).all()
