"""Limits between knobs: `python -m benchmarks.offers [--seeds N] [--rounds N]`.

An offer has a price, a discount in percent and a template, and a discount above 15 needs the template "sale", which
puts customers off: without the rule it would never be used. Three agents learn from sales: Auto with this rule as a limit, Auto with one
`Choice` of 32 allowed offers, and the best fixed offer, which knows the world. The table has the expected revenue per round
over the last third of the rounds, means over seeds with standard errors, and the best possible.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

import manul
from benchmarks.limits import standard_error

Array = NDArray[np.float64]
TEMPLATES = ("plain", "bold", "sale")
ACTIONS: dict[str, Any] = {"price": (10, 50), "discount": (0, 40), "template": manul.Choice(TEMPLATES)}
RULE = "discount <= 15 if template != 'sale'"
ROUNDS, SEEDS = 3000, 12


def chance(contexts: Array, price: Any, discount: Any, template: Any) -> Array:
    """The probability of a sale to a customer with a budget and a taste for bargains, both in [0, 1].

    >>> float(chance(np.array([0.5, 1.0]), 30.0, 0.0, "plain").round(3))
    0.5
    """
    budget, bargains = contexts[..., 0], contexts[..., 1]
    paid = price * (1 - discount / 100)
    is_sale = np.asarray(template) == "sale"
    appeal = np.where(is_sale, -2.0, np.where(np.asarray(template) == "bold", 0.8 - 1.6 * bargains, 0.0))
    appeal = appeal + 0.12 * discount * bargains
    sold: Array = 1 / (1 + np.exp(-((20 + 20 * budget - paid) / 3 + appeal)))
    return sold


def revenue(contexts: Array, price: Any, discount: Any, template: Any) -> Array:
    """The expected revenue of an offer."""
    expected: Array = price * (1 - discount / 100) * chance(contexts, price, discount, template)
    return expected


def allowed_offers(prices: int, discounts: int) -> list[dict[str, Any]]:
    """A grid of offers that the rule allows.

    >>> len(allowed_offers(4, 4))
    32
    """
    offers = product(np.linspace(14, 46, prices), np.linspace(0, 40, discounts), TEMPLATES)
    return [
        {"price": price, "discount": discount, "template": template}
        for price, discount, template in offers
        if template == "sale" or discount <= 15
    ]


def optimum(contexts: Array, offers: list[dict[str, Any]]) -> tuple[float, float]:
    """The mean revenue of the best offer for each context, and of the best offer for all."""
    table = np.array([revenue(contexts, **offer) for offer in offers])
    return float(table.max(axis=0).mean()), float(table.mean(axis=1).max())


def with_limits(seed: int) -> tuple[Any, Callable[[Any], Mapping[str, Any]]]:
    """Auto with three knobs and the rule."""
    return manul.Auto(actions=ACTIONS, limits=[RULE], rewards="auto", seed=seed), lambda action: action


def with_one_choice(seed: int) -> tuple[Any, Callable[[Any], Mapping[str, Any]]]:
    """Auto with one choice of allowed offers."""
    offers = {str(number): offer for number, offer in enumerate(allowed_offers(4, 4))}
    agent = manul.Auto(actions={"offer": manul.Choice(offers)}, rewards="auto", seed=seed)
    return agent, lambda action: offers[action["offer"]]


def play(make: Callable[[int], Any], rounds: int, seed: int) -> float:
    """The mean expected revenue of the last third of the rounds."""
    rng = np.random.default_rng(seed)
    agent, offer_of = make(seed)
    earned = []
    for context in rng.random((rounds, 2)):
        decision = agent.decide(context)
        offer = offer_of(decision.action)
        assert offer["discount"] <= 15 or offer["template"] == "sale"
        sold = rng.random() < chance(context, **offer)
        agent.learn(context, decision, reward=offer["price"] * (1 - offer["discount"] / 100) * sold)
        earned.append(float(revenue(context, **offer)))
    return float(np.mean(earned[-rounds // 3 :]))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    arguments = parser.parse_args()
    contexts = np.random.default_rng(10**6).random((2000, 2))
    best, fixed = optimum(contexts, allowed_offers(41, 17))
    print(f"best offer for each customer {best:.2f}, one offer for all {fixed:.2f}")
    for name, make in (("Auto with limits", with_limits), ("Auto with one choice", with_one_choice)):
        means = [play(make, arguments.rounds, seed) for seed in range(arguments.seeds)]
        below = sum(mean < fixed for mean in means)
        print(
            f"{name}: {np.mean(means):.2f} ± {standard_error(means):.2f}, {below} of {len(means)} below one offer for all"
        )


if __name__ == "__main__":
    main()
