"""A formula for every space of actions, and what was reported of some rounds."""

import numpy as np

import manul
from tests.laws.spaces import SPACES

FORMULAS = {
    "span": "(action - cost) * bought",
    "steps": "action * bought - cost",
    "choice": "(2 if action == 'plain' else 3) * bought + tip * bought - cost",
    "log": "log(action) * bought - cost",
    "named": "(price - cost) * bought",
    "several": "(price - cost) * bought + days * bought - (2 if template == 'b' else log(reach))",
    "limited": "price * (1 - discount) * bought - cost + (template == 'bold')",
}
SPAN = (-100.0, 100.0)
ROUNDS = 40
rng = np.random.default_rng(4)
CONTEXTS = [
    {"cost": round(float(cost), 3), "city": city} for cost, city in zip(rng.random(ROUNDS), "ab" * 20, strict=True)
]
BOUGHT = (rng.random(ROUNDS) < 0.6).tolist()
TIPS = [round(float(tip), 2) if bought else None for tip, bought in zip(rng.random(ROUNDS), BOUGHT, strict=True)]


def outcome_of(space, **changes):
    parts = {"bought": "yes/no"} | ({"tip": "amount"} if space == "choice" else {})
    return manul.Outcome(
        **{"name": "profit", "better": "high", "range": SPAN, "formula": FORMULAS[space], "parts": parts} | changes
    )


def parts_of(name):
    return {"bought": BOUGHT} | ({"tip": TIPS} if name == "choice" else {})


def told(name, row):
    return {"parts": {part: column[row] for part, column in parts_of(name).items()}}


def value_of(name, action, row):
    """The value as Python computes it: the oracle."""
    known = {"action": action} if not isinstance(action, dict) else dict(action)
    known |= {"cost": CONTEXTS[row]["cost"], "log": np.log, "bought": BOUGHT[row], "tip": TIPS[row] or 0.0}
    return float(eval(FORMULAS[name], {}, known))


def agent_of(name, **changes):
    return manul.Auto(actions=SPACES[name], outcome=outcome_of(name, **changes), epsilon=0.5, seed=7)
