"""What users write, and the types that it has: checked with `mypy --strict` and `pyright` in strict mode by test_typing.py.

Each `assert_type` is a claim: one number or steps give float, a choice the type of its options, several knobs a dict. Lines
at the end are mistakes that must be errors: they carry `type: ignore`, and both checkers fail if one of them is accepted.
"""
# pyright: strict, reportUnnecessaryTypeIgnoreComment=true

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any, assert_type

import numpy as np

import manul


def one_number() -> None:
    agent = manul.Auto(actions=(10.0, 60.0), rewards="auto", seed=7)
    assert_type(agent, manul.Auto[float])
    decision = agent.decide({"segment": "student", "visits": 3, "at": datetime.date(2024, 2, 29), "tags": ["new"]})
    assert_type(decision, manul.Decision[float])
    assert_type(decision.action, float)
    agent.learn({"visits": 3}, decision, reward=decision.action - 8.0)
    agent.learn({"visits": 3}, decision, 0.25)
    assert_type(agent.best([0.3, 1.2]), float)
    assert_type([each.action for each in agent.decide_many(np.zeros((3, 2)))], list[float])
    action, density, *_ = decision
    assert_type(action, float)
    assert_type(density, float)


def steps_and_choices() -> None:
    assert_type(manul.Auto(actions=manul.Stepped(1, 14, 1)).decide(None).action, float)
    assert_type(manul.Auto(actions=manul.Choice(["plain", "bold"])).decide(None).action, str)
    assert_type(manul.Auto(actions=manul.Choice([1, 2, 3])).best(None), int)


def several_knobs() -> None:
    agent = manul.Auto(
        actions={
            "price": (10, 50),
            "discount": (0, 0.3),
            "days": manul.Stepped(1, 14, 1),
            "template": manul.Choice(["plain", "bold"]),
        },
        rewards="auto",
    )
    assert_type(agent, manul.Auto[dict[str, Any]])
    decision = agent.decide({"country": "SE"}, within={"price": (12, 20), "template": ["plain"]})
    assert_type(decision.action, dict[str, Any])
    print(decision.action["price"] * (1 - decision.action["discount"]), decision.densities)
    agent.learn({"country": "SE"}, decision, reward=3.0)
    assert_type(agent.best({"country": "SE"}), dict[str, Any])


def outcomes() -> None:
    profit = manul.Outcome("profit", better="high", range="auto")
    agent = manul.Auto(actions={"price": (10.0, 50.0)}, outcome=profit)
    decision = agent.decide({"cost": 9.0})
    agent.learn({"cost": 9.0}, decision, reward=1.0)
    sale = manul.Sale(cost="cost", wait=manul.Wait(3600, default={"bought": False}))
    assert_type(sale, manul.Outcome)
    seller = manul.Auto(actions=(10.0, 50.0), outcome=sale)
    price = seller.decide({"cost": 9.0})
    seller.learn({"cost": 9.0}, price, parts={"bought": True})
    seller.learn({"cost": 9.0}, price, parts={"bought": True}, reward=21.0)
    seller.learn_many([{"cost": 9.0}], seller.decide_many([{"cost": 9.0}]), parts={"bought": [True]})
    bidder = manul.Auto(actions=(0.0, 40.0), outcome=manul.Bid())
    bidder.learn(None, bidder.decide(None), parts={"won": True, "value": 12.3})
    manul.Outcome(
        "profit",
        better="high",
        range="auto",
        formula="(price - cost) * bought",
        parts={"bought": "yes/no"},
        hints={"bought": "falls"},
    )


def logs_and_policies() -> None:
    agent = manul.Auto(actions=(10.0, 60.0))
    log = manul.Log.read("run.parquet")
    manul.evaluate(agent, log)
    manul.evaluate(lambda _: 20.0, log)
    assert_type(manul.load("x.manul", manul.Cats), manul.Cats)
    rollout = manul.Rollout(agent, baseline=12.0)
    assert_type(rollout.decide(None).action, float)
    several = manul.Auto(actions={"price": (10, 50)})
    assert_type(manul.Rollout(several, baseline={"price": 20}).decide(None), manul.Decision[dict[str, Any]])
    space = manul.ActionSpace({"price": (10, 50)})
    assert_type(manul.Auto(actions=space), manul.Auto[dict[str, Any]])


if TYPE_CHECKING:  # mistakes that must be found
    _one, _several = manul.Auto(actions=(0.0, 1.0)), manul.Auto(actions={"price": (10, 50)})
    _one.decide(None).action["price"]  # type: ignore[index]
    _one.learn(None, _several.decide(None), 0.5)  # type: ignore[arg-type]
    _one.decidee(None)  # type: ignore[attr-defined]
    _one.learn(None, _one.decide(None), loss=0.5, reward=0.5)  # type: ignore[call-overload]
    _one.learn(None, _one.decide(None))  # type: ignore[call-overload]
    manul.Outcome(formula="2 * sold", parts={"sold": "number"})  # type: ignore[dict-item]
    manul.Auto(actions=(0.0, 1.0), limits=["a <= 1"])  # type: ignore[call-overload]
    manul.Cats(leaves=8, bandwidth=0.1, actions={"a": (0, 1)})  # type: ignore[arg-type]
