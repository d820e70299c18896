"""Agents that run outside of Python too, with contexts, narrower ranges and outcomes for them; all values are those of JSON."""

import random

import manul

CITIES = ("Oslo", "Łódź", "São Paulo", "🦄 town")
KNOBS = {
    "price": (10, 50),
    "discount": (0, 0.5),
    "days": manul.Stepped(1, 14, 1),
    "template": manul.Choice(["plain", "bold", "grün", 'a "quoted" one']),
}
LIMITS = [
    "discount <= 1 - 9 / price",
    "price >= 20 if template == 'bold'",
    "days <= cost / 2 and days >= 2 if template != 'plain'",
    "template in ('plain', 'bold', 'grün') if discount > 0.25",
    "price < max(45, cost * 3, 30) if not (cost < 12 or template == 'plain')",
]
OPTIONS = manul.Choice(["a", 2, 2.5, True, False])

AGENTS = {
    "cats-rows": lambda: manul.Cats(leaves=32, bandwidth=1 / 8, seed=11),
    "cats-fading-half-life": lambda: manul.Cats(
        leaves=16, bandwidth=0.5, actions=(-2, 8), epsilon=manul.schedules.Fading(), half_life=200, losses=(-1, 3)
    ),
    "cats-named": lambda: manul.Cats(leaves=16, bandwidth=1 / 8, seed=5, table_bits=12),
    "cats-paper": lambda: manul.Cats.paper(leaves=16, bandwidth=1 / 8),
    "cats-paper-named": lambda: manul.Cats.paper(
        leaves=16, bandwidth=1 / 8, learner=manul.learners.AdaGrad(loss="squared")
    ),
    "auto-rows": lambda: manul.Auto(actions=(-2.0, 8.0), rewards=(0, 100), seed=2**63 + 5),
    "auto-named": lambda: manul.Auto(actions=(0, 32), losses="auto", nearby=0.1, start=7.0),
    "auto-steps": lambda: manul.Auto(actions=manul.Stepped(0, 1, 0.1), seed=1),
    "auto-choice": lambda: manul.Auto(actions=OPTIONS, epsilon=0.3, rewards="auto"),
    "auto-knobs-rows": lambda: manul.Auto(actions={"price": (10, 50), "discount": (0, 0.5)}, start={"price": 20}),
    "auto-knobs-limits": lambda: manul.Auto(actions=KNOBS, limits=LIMITS, rewards=(-5, 100), seed=3),
}


def is_named(name):
    return "named" in name or name in ("auto-knobs-limits", "auto-steps")


def context(name, number):
    """The context of a round: a row of numbers, or fields of every kind."""
    noise = random.Random(number)
    if not is_named(name):
        return [noise.gauss(0, 1), float(noise.random() < 0.2), noise.random() * 1e3]
    fields = {
        "cost": round(noise.uniform(8, 28), 3),
        "city": noise.choice(CITIES),
        "new": noise.random() < 0.5,
        "at": {"$date": f"2024-0{1 + number % 9}-1{number % 7}T{number % 24:02}:30:00+01:00"},
        "clock": {"$time": "12:30:59.25"},
        "tags": noise.sample(["x", "y", "zß"], noise.randrange(3)),
        "person": {"age": noise.randrange(90), "income": None if noise.random() < 0.3 else noise.lognormvariate(8, 1)},
        "basket": [{"item": noise.choice("ab"), "count": noise.randrange(3)} for _ in range(noise.randrange(3))],
    }
    for left_out in noise.sample(["city", "new", "at", "tags"], noise.randrange(2)):
        del fields[left_out]
    return fields


def within(name, number):
    """The narrower range of a round; most have none."""
    if number % 4:
        return None
    if name == "auto-choice":
        return ["a", 2.5, False]
    if name == "auto-steps":
        return [0.2, 0.7]
    if name == "auto-knobs-limits":
        return {"price": [12, 40], "template": ["plain", "grün"], "days": [2, 9]}
    if name == "auto-knobs-rows":
        return {"price": [12, 40 + number % 5]}
    low, high = AGENTS[name]().actions
    return [low + (high - low) / 8, high - (high - low) / 4]


def outcome(name, number, action):
    """The loss or reward of an action, in the range of every agent."""
    noise = random.Random(-1 - number).random()
    if isinstance(action, dict):
        action = sum(value for value in action.values() if not isinstance(value, str)) / 60
    if name == "auto-choice":
        action = float(len(str(action))) / 5
    return min(1.0, abs(float(action) / 40 - 0.3) + 0.1 * noise)


def play(name, rounds, agent):
    """What an agent in Python decides and learns in some rounds: actions, densities, floors, and best actions."""
    played = []
    for number in range(rounds):
        seen, narrowed = context(name, number), within(name, number)
        decision = agent.decide(seen, narrowed)
        best = agent.best(seen, narrowed)
        value = outcome(name, number, decision.action)
        agent.learn(seen, decision, **{agent.outcome.keyword: value})
        played.append((decision.action, decision.density, decision.floor, best))
    return played
