# %% [markdown]
# # A bid landscape with a budget
#
# You buy in auctions, as in [A bid landscape](bids.md), but you may spend only so much a day. If you bid what is best for each lead and stop
# when the money is gone, it is gone by noon, and the cheap leads of the evening go to others. This tutorial gives the agent the budget
# itself: it learns how much a lead must earn for each euro that it costs, and spends the euros where they earn most.
#
# A broker buys about 400 leads a day in first-price auctions. The others bid less in the evening. The auctions are simulated, so that we can
# compare with the truth.

# %%
from datetime import datetime, timedelta

import matplotlib.pyplot as plt
import numpy as np

import manul

DAYS, BUDGET, HIGHEST = 12, 800.0, 40.0  # EUR a day, and the highest bid
SOURCES = {"portal": 12.0, "search": 16.0, "partner": 8.0}  # the worth of a lead, EUR
START = datetime(2024, 3, 1)


def leads(day, seed=0):
    """The leads of a day in the order of their times."""
    rng = np.random.default_rng([seed, day])
    count = int(rng.poisson(400))
    hours = np.sort(24 * rng.beta(3, 2.2, count))
    found = []
    for hour in hours:
        source = str(rng.choice([*SOURCES]))
        worth = SOURCES[source] * np.exp(rng.normal(0, 0.2))
        rivals = 0.6 * worth * (0.6 if hour > 18 else 1.0)
        lead = {"at": START + timedelta(days=day, hours=float(hour)), "worth": worth, "rivals": rivals}
        lead["context"] = {"source": source, "insured": round(float(worth * np.exp(rng.normal(0, 0.1))), 1)}
        lead["context"]["evening"] = bool(hour > 18)
        lead["margin"], lead["highest_rival"] = worth * rng.gamma(4, 0.25), rivals * np.exp(rng.logistic() / 5)
        found.append(lead)
    return found


def parts_of(lead, bid):
    """What the broker learns after the auction."""
    won = bool(bid >= lead["highest_rival"])
    return {"won": won, "value": float(lead["margin"])} if won else {"won": False}


def expected_profit(lead, bid):
    """The truth: worth minus bid, times the probability of winning."""
    return (lead["worth"] - bid) / (1 + (lead["rivals"] / max(bid, 1e-9)) ** 5)


# %% [markdown]
# ## Until the money is gone
#
# `manul.Bid()` says that a decision earns the value of the lead less the bid if it won. An agent without a budget bids what earns most; we only
# stop it when the money of the day is gone.


# %%
def play_until_gone(agent):
    days = []
    for day in range(DAYS):
        left, spent, profit = BUDGET, [], 0.0
        for lead in leads(day):
            bid = 0.0
            if left > 0.1:
                decision = agent.decide(lead["context"], within=(0.0, min(left, HIGHEST)))
                bid, parts = decision.action, parts_of(lead, decision.action)
                agent.learn(lead["context"], decision, parts=parts)
                left -= bid * parts["won"]
            profit += expected_profit(lead, bid)
            spent.append((lead["at"].hour + lead["at"].minute / 60, BUDGET - left))
        days.append({"spent": spent, "profit": profit})
    return days


until_gone = play_until_gone(manul.Auto(actions=(0.0, HIGHEST), outcome=manul.Bid(), seed=1))
gone = next(hour for hour, spent in until_gone[-1]["spent"] if spent > 0.99 * BUDGET)
print(f"on the last day, 99 % of the money was spent at {int(gone)}:{int(gone % 1 * 60):02}")

# %% [markdown]
# ## With a budget
#
# `spend_at_most` says what is spent, how much of it, and in which period. What is spent is a formula of the parts of the outcome and of the
# action. The period is an "hour", a "day" or a "week" in the time zone `zone`, or a number of decisions. `decide` takes the time of the
# decision; without it, it is now.


# %%
def play(agent, days=DAYS, first=0):
    played = []
    for day in range(first, first + days):
        spent, profit, used = [], 0.0, 0.0
        for lead in leads(day):
            decision = agent.decide(lead["context"], at=lead["at"])
            parts = parts_of(lead, decision.action)
            agent.learn(lead["context"], decision, parts=parts)
            used += decision.action * parts["won"]
            profit += expected_profit(lead, decision.action)
            spent.append((lead["at"].hour + lead["at"].minute / 60, used))
        played.append({"spent": spent, "profit": profit})
    return played


settings = {"actions": (0.0, HIGHEST), "outcome": manul.Bid(), "seed": 1}
agent = manul.Auto(**settings, spend_at_most=("won * action", BUDGET, "day"), zone="Europe/Oslo")
paced = play(agent)
for name, days in (("until gone", until_gone), ("with a budget", paced)):
    profit = sum(day["profit"] for day in days[3:])
    print(
        f"{name:14} {profit / len(days[3:]):5.0f} EUR a day, most spent on a day {max(day['spent'][-1][1] for day in days):.2f} EUR"
    )

# %% [markdown]
# The budget earns much more from the same money, and no day spends more than 800 EUR. The figure shows the last day. The agent spends through the
# whole day, and more in the evening, when leads are cheap.

# %%
figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
for colour, (name, days) in zip(manul.plotting.COLOURS, {"with a budget": paced, "until gone": until_gone}.items()):
    axes.plot(*zip(*days[-1]["spent"], strict=True), color=colour, linewidth=2, label=name)
axes.axhline(BUDGET, color="black", linewidth=1)
axes.set_title("What a day spends")
axes.legend()
axes = manul.plotting.style(axes, "hour", "spent, EUR")

# %% [markdown]
# How does it do this? Each euro has a *price*: a bid is worth its expected profit less the price times its expected cost. The price rises while more
# is spent than planned, and falls while less is. What is planned follows the profile of the earlier days. The report has the price, what is planned,
# and a forecast.

# %%
budget = agent.report().budget
print(budget)
figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
axes = budget.plot_periods(axes)
axes.set_title("The price of a euro, and what each day spent")

# %% [markdown]
# The amount can be changed at any time, here at midnight. With twice the money, a euro has a lower price.

# %%
agent.spend_at_most = ("won * action", 2 * BUDGET, "day")
richer = play(agent, days=4, first=DAYS)
print(f"price before {budget.price:.2f}, after {agent.report().budget.price:.2f}")
print(f"spent on the last day {richer[-1]['spent'][-1][1]:.0f} EUR")

# %% [markdown]
# ## The hard stop, and what logs say
#
# When less is left than the highest bid, the agent cuts the range of bids *before* it draws one, so that the density of the decision is true. A
# decision has its range as `within`, and when nothing is left the agent declines: it bids 0, or the action `decline`. Logs have the parts, so what
# is spent is an outcome of its own, which `evaluate` judges: `agent.spending`.

# %%
tight = manul.Auto(**settings, spend_at_most=("won * action", 30.0, "day"))
print(tight.decide(leads(0)[0]["context"], at=START))
print(agent.spending.formula, agent.spending.better)

# %% [markdown]
# ## Costs that come late
#
# So far the agent knew at once what a lead cost. If costs come a day late, a hard limit and full spending exclude each other: nobody knows what
# is left. You must choose. With `late="reserve"` the agent holds back the expected cost of each open bid plus a margin, so few days are over the
# budget, but a fifth of the money is not spent. With `late="carry"` it holds back the expected cost, and what that was wrong by goes to the next day:
# the total is right, single days are not. In the first week, when it knows little, both are over the budget more often.


# %%
def play_late(agent):
    spent, waiting = [], []
    for day in range(21):
        today = []
        for lead in leads(day):
            today.append((lead, agent.decide(lead["context"], at=lead["at"])))
        for lead, decision in waiting:
            agent.learn(lead["context"], decision, parts=parts_of(lead, decision.action))
        spent.append(sum(decision.action * parts_of(lead, decision.action)["won"] for lead, decision in today))
        waiting = today
    return spent


for late in ("reserve", "carry"):
    shares = (
        np.array(play_late(manul.Auto(**settings, spend_at_most=("won * action", BUDGET, "day"), late=late))) / BUDGET
    )
    for week, days in (("first week", shares[:7]), ("later", shares[7:])):
        print(
            f"{late:8} {week:10} {days.mean():4.0%} of the budget spent, {(days > 1).sum()} of {len(days)} days over it"
        )

# %% [markdown]
# If you do not choose, an agent with many open bids asks:

# %%
try:
    manul.Auto(**settings, spend_at_most=("won * action", BUDGET, "day")).decide_many(
        [leads(0)[0]["context"]] * 20, at=START
    )
except manul.ManulError as error:
    print(error)

# %% [markdown]
# ## Keep a rate
#
# `keep` is a bound on the mean of a second outcome: here the broker wants to win at least 80 % of the leads, because its sales team must not be
# idle. It has a price too, and what is promised is the mean: about the latest 1,000 outcomes keep the bound. A bound that no bids can keep is
# reported, and the agent warns of it.

# %%
import warnings

figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
for colour, (name, actions, floor) in zip(
    manul.plotting.COLOURS, [("kept", (0.0, HIGHEST), 0.8), ("missed: bids up to 7 EUR", (0.0, 7.0), 0.8)]
):
    agent = manul.Auto(actions=actions, outcome=manul.Bid(), keep=("won", ">=", floor), seed=1)
    won = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for day in range(6):
            for lead in leads(day):
                decision = agent.decide(lead["context"])
                parts = parts_of(lead, decision.action)
                agent.learn(lead["context"], decision, parts=parts)
                won.append(parts["won"])
    print(name, "-", agent.report().kept)
    print(*(f"warning: {each.message}" for each in caught), sep="\n")
    rolling = np.convolve(won, np.ones(300) / 300, mode="valid")
    axes.plot(np.arange(300, len(won) + 1), rolling, color=colour, linewidth=2, label=name)
axes.axhline(0.8, color="black", linewidth=1)
axes.set_ylim(0, 1)
axes.set_title("The share of leads won, over 300 leads")
axes.legend()
axes = manul.plotting.style(axes, "lead", "share won")
