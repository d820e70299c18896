# %% [markdown]
# # From a price history to a policy
#
# You have last year's prices: a table of requests, the price that somebody set, and the profit that it made. Can you compute better prices
# from it? Sometimes. This tutorial shows how to ask, what the answer is worth, and what to do if the answer is "the table cannot say".
#
# A company rents out holiday flats. For each request the staff set a price per night. The guest accepts it or not. The company pays 40 EUR
# per night for cleaning, so the profit is the price minus 40 if the guest accepts, and 0 if not.
#
# The guests are simulated, so that we can compare with the truth in the end. In reality, you have a table instead of `requests` and
# `earn`. One detail matters: on one of five nights there is an **event** in town. Guests then pay more, and the staff know
# it, but nobody writes it into the table.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import manul

rng = np.random.default_rng(0)
COST, LOWEST, HIGHEST = 40, 48, 360  # EUR per night
KNOWN = ["beds", "month", "night", "days_ahead"]  # the columns that the company has: neither "event" nor "limit"


def requests(count):
    table = pd.DataFrame({"beds": rng.integers(1, 5, count), "month": rng.integers(1, 13, count)})
    table["night"] = np.where(rng.random(count) < 0.4, "weekend", "weekday")
    table["days_ahead"] = np.round(rng.gamma(1.5, 25, count))
    table["event"] = rng.random(count) < 0.2
    table["worth"] = (65 + 18 * table.beds) * (1.175 - 0.175 * np.cos(2 * np.pi * (table.month - 1) / 12))
    table.worth *= np.where(table.night == "weekend", 1.2, 1) * np.where(table.days_ahead < 7, 0.85, 1)
    table.worth *= np.where(table.event, 1.4, 1)  # half of such guests accept this price
    table["limit"] = table.worth * (1 + 0.1 * rng.logistic(size=count))  # this guest accepts any price up to this one
    return table


def earn(requests, price):
    return np.where(price <= requests.limit, price - COST, 0.0)


def acceptance(requests, price):
    """The probability of an acceptance, which only a simulation knows."""
    return 1 / (1 + np.exp((price / requests.worth - 1) / 0.1))


def staff(requests):
    """Habits: 25 EUR per bed, more in July and August and at events; weekends are ignored; everybody rounds to 5 EUR."""
    usual = (55 + 25 * requests.beds) * np.where(requests.month.isin([7, 8]), 1.4, 1)
    usual *= np.where(requests.event, 1.35, 1) * np.exp(rng.normal(0, 0.08, len(requests)))
    price = np.clip(usual, 60, 300)
    return 5 * np.round(price.to_numpy() / 5)


# %% [markdown]
# ## Last year's table
#
# The company gets 20,000 requests a year. This table is a random sample of 4,000 of them. Nobody recorded how the prices were chosen, so
# there are no densities.

# %%
year = requests(4000)
price = staff(year)
history = year[KNOWN].assign(action=price, reward=earn(year, price))
print(history.head(3).to_string())
print(f"{len(history):,} requests, {np.mean(history.reward > 0):.0%} accepted")
print(f"profit: {history.reward.mean():.1f} EUR per request")

# %% [markdown]
# `density="estimate"` lets a model estimate how likely each price was, given the columns of the table. The rewards are the
# profits, and `reward_range` is their range. `doctor` (on the command line: `manul check`) says what is wrong with the log:

# %%
ranges = {"action_range": (LOWEST, HIGHEST), "reward_range": (0, HIGHEST - COST)}
log = manul.Log.from_table(history, density="estimate", **ranges)
for finding in manul.offpolicy.doctor(log):
    print(finding)

# %% [markdown]
# For a given flat and month, the staff use only a part of the range of prices. Nothing is known about the rest, and the estimated densities
# are an assumption. A policy can still be trained. What can be said about it is limited.
#
# ## Ask for a better policy
#
# On a log with estimated densities, `optimize` returns a policy that stays at prices that the log has for similar requests:

# %%
from_history = manul.optimize(log)
print(from_history.without_densities)

# %% [markdown]
# There is a policy, but **no estimate of its profit**. Estimates compare how often two policies choose a price. Where this policy prefers
# a price, the staff hardly ever chose it for similar requests, so little can be said about it without believing a model.
#
# You could deploy the policy all the same, and believe its model. Here is why you should not.
#
# ## What the history gets wrong
#
# The figure shows the share of accepted offers for flats with two beds, by price. In the history, guests accept 150 EUR more often than
# 120 EUR. In truth, which only a simulation can show, demand falls steeply. High prices were accepted because they were set **at events**. This
# is confounding. No method can detect it in this table, neither `manul` nor a regression.

# %%
BLUE, ORANGE, GREEN, _, _, _ = manul.plotting.COLOURS
figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
two_beds = (year.beds == 2) & ~year.month.isin([7, 8])
bins = np.arange(85, 156, 10)
middle = (bins[:-1] + bins[1:]) / 2
place = np.digitize(price[two_beds], bins) - 1
shares = [np.mean(history.reward[two_beds].to_numpy()[place == number] > 0) for number in range(len(middle))]
axes.plot(middle, 100 * np.array(shares), "o-", color=ORANGE, label="in the history")
truth = [100 * acceptance(year[two_beds], each).mean() for each in middle]
axes.plot(middle, truth, color=BLUE, linewidth=2, label="true demand:\nthe same guests\nat each price")
axes.set_ylim(0, 100)
axes.set_title("High prices look harmless, because they were set at events")
axes = manul.plotting.style(axes, "price, EUR per night", "accepted offers, %")

# %% [markdown]
# To measure the damage, we let several policies set the prices of next year's requests. `profit` is the true expected profit. As a
# practitioner would do it, we also fit a logistic regression of "accepted" on the columns and the price, and choose the price
# with the highest predicted profit.

# %%
next_year = requests(2000)
proposals = staff(next_year)
PRICES = np.arange(60, 301, 2.0)


def profit(requests, prices):
    return np.mean((prices - COST) * acceptance(requests, prices))


def design(requests, price):
    columns = pd.DataFrame({"constant": 1.0, "price": price / 100, "beds": requests.beds})
    columns["season"] = np.cos(2 * np.pi * (requests.month - 1) / 12)
    columns["weekend"], columns["late"] = requests.night == "weekend", requests.days_ahead < 7
    return columns.to_numpy(float)


def fit_logistic(features, accepted):
    weights = np.zeros(features.shape[1])
    for _ in range(25):  # Newton's method
        chance = 1 / (1 + np.exp(-features @ weights))
        curvature = features.T @ (features * (chance * (1 - chance))[:, None])
        weights += np.linalg.solve(curvature, features.T @ (accepted - chance))
    return weights


weights = fit_logistic(design(year, price), history.reward > 0)
predicted = [(each - COST) / (1 + np.exp(-design(next_year, each) @ weights)) for each in PRICES]
rows = next_year[KNOWN].to_dict("records")
results = {
    "staff": profit(next_year, proposals),
    "regression on the history": profit(next_year, PRICES[np.argmax(predicted, axis=0)]),
    "optimize on the history": profit(next_year, np.array([from_history.policy.best(row) for row in rows])),
}
for name, value in results.items():
    print(f"{name:26} {value:5.1f} EUR per request")

# %% [markdown]
# Both are **worse than the staff**. Deployed for a year of 20,000 requests, either would have cost more than 100,000 EUR. Nothing in
# the table warns of it. `manul` gave no number because the staff's prices vary too little; if they vary more it may give one, and it does
# not notice the events either.
#
# ## The remedy: vary the prices a little
#
# For the next 2,000 requests, the staff propose a price as always, and a program multiplies it by a random number between 0.8 and 1.2. Three
# things make this log better than 4,000 rows of history:
#
# - The variation is random, so it has nothing to do with events. Confounding is impossible.
# - The density is known: 1 divided by the length of the interval. It is also the `floor`, the smallest density that any price of the interval had.
# - The proposal is part of the context. It contains what the staff know and the table does not.


# %%
def explore(requests, proposed):
    """Prices within 20 % of the proposals, and the log of what they led to."""
    low, high = 0.8 * proposed, 1.2 * proposed
    price = rng.uniform(low, high)
    table = requests[KNOWN].assign(proposed=proposed, low=low, high=high, action=price, reward=earn(requests, price))
    return price, manul.Log.from_table(table.assign(density=1 / (high - low), floor=1 / (high - low)), **ranges)


trial = requests(2000)
proposed = staff(trial)
tried, log = explore(trial, proposed)
cost = profit(trial, proposed) - profit(trial, tried)
print(f"exploration cost {cost:.1f} EUR per request, {2 * cost:.1f} thousand EUR in total")

# %% [markdown]
# Now the same questions get answers. `compare` answers simple ones, such as "what if all proposals were 10 % lower?". Its differences are
# profits, so positive ones are better. `optimize` trains a policy and says what the log shows about its gain:

# %%
print(*manul.offpolicy.doctor(log) or ["doctor: no problems found"], sep="\n")
rules = {
    "10 % lower": lambda context: 0.9 * context["proposed"],
    "10 % higher": lambda context: 1.1 * context["proposed"],
}
for row in manul.compare(rules, log, bandwidth=8):
    gain = row.reward
    print(f"{row.policy:11} {gain.difference:+5.1f} [{gain.low:+.1f}, {gain.high:+.1f}] EUR per request: {row.verdict}")
best = manul.optimize(log, candidates="auto")
print(best.verdict)

# %% [markdown]
# 2,000 requests are enough to *find* a better policy, as we will see, but not to *prove* that it is better: it chooses another price
# for each request, so only a few of the 2,000 random prices were close to its own. A trial of 6,000 requests can prove it:

# %%
longer = requests(6000)
_, longer_log = explore(longer, staff(longer))
print(manul.optimize(longer_log, candidates="auto").verdict)

# %% [markdown]
# Instead of pure exploration, you can let `Auto` set the prices of these 2,000 requests from the first day, within the same 20 % of
# the proposal (`within`). It starts at random, and uses what it learns at once:


# %%
def limits(row):
    return 0.8 * row["proposed"], 1.2 * row["proposed"]


agent = manul.Auto(actions=(LOWEST, HIGHEST), rewards=(0, HIGHEST - COST), seed=1)
chosen = []
for row, limit in zip(trial[KNOWN].assign(proposed=proposed).to_dict("records"), trial.limit):
    decision = agent.decide(row, within=limits(row))
    chosen.append(decision.action)
    agent.learn(row, decision, reward=decision.action - COST if decision.action <= limit else 0)
for name, prices in {"staff": proposed, "explored": tried, "Auto": np.array(chosen)}.items():
    print(f"profit of the 2,000 requests of the trial, {name:8} {2 * profit(trial, prices):4.0f} thousand EUR")

# %% [markdown]
# ## The true result
#
# Again we let each policy set next year's prices, and compare the true expected profit. The A/B test compares three fixed prices on 2,000 requests of its own. "Best fixed price"
# is chosen with the truth, which nobody has.

# %%
rows = next_year[KNOWN].assign(proposed=proposals).to_dict("records")
tested, arms = requests(2000), np.array([90.0, 120.0, 150.0])
arm = rng.integers(0, 3, 2000)
winner = arms[np.argmax([earn(tested, arms[arm])[arm == number].mean() for number in range(3)])]
results |= {
    "A/B test of three prices": profit(next_year, winner),
    "best fixed price": max(profit(next_year, each) for each in PRICES),
    "10 % below the staff": profit(next_year, 0.9 * proposals),
    "optimize on the trial": profit(next_year, np.array([best.policy.best(row, within=limits(row)) for row in rows])),
    "Auto after the trial": profit(next_year, np.array([agent.best(row, within=limits(row)) for row in rows])),
}
results = dict(sorted(results.items(), key=lambda item: item[1]))
for name, value in results.items():
    print(f"{name:26} {value:5.1f} EUR per request, {20 * (value - results['staff']):+5.0f} thousand EUR per year")
colours = [ORANGE if "history" in name else GREEN if "trial" in name else manul.plotting.GREY for name in results]
figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
axes.barh(range(len(results)), [20 * (value - results["staff"]) for value in results.values()], color=colours)
axes.axvline(0, color="black", linewidth=1)
axes.set_title("Gain over the staff: orange from the history, green from the trial")
axes = manul.plotting.style(axes, "true gain over the staff, thousand EUR per year", "")
names = axes.set_yticks(range(len(results)), [*results])

# %% [markdown]
# What this means:
#
# - **The history alone made prices worse**, with `manul` and with a regression. `manul` said that it cannot estimate the profit; the regression
#   predicted one.
# - **2,000 prices with a random variation were worth more than 4,000 rows of history.** The variation cost about 4,000 EUR. With `Auto`, the trial
#   cost nothing: `Auto` earned more than the staff while it was still learning.
# - **The simple rule "10 % less" brings most of the gain.** The staff were too expensive. If you want a single number, `compare` on
#   the trial is enough. The policies add what depends on the request: weekends, beds and season.
# - **An A/B test of fixed prices loses here**, because no fixed price suits all flats. Test factors on the proposal instead.
#
# We ran the script with two other seeds: the order is the same, except that `Auto` and `optimize` on the trial, which are close, change places.
#
# What it does not mean: your history may be better than this one. If the table has everything that the people who set the prices knew,
# and prices vary for no particular reason, the policy from the history can be good. If they also vary enough, you get an estimate
# of its profit. The log cannot tell you which case is yours. A trial can.
#
# To go from the trial to production with a guarantee, give the policy more and more of the requests with a
# [rollout](../how-to/take-over.md). [Reading an off-policy estimate](estimates.md) explains intervals and objections.
