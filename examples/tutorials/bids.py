# %% [markdown]
# # A bid landscape
#
# You buy in auctions: ad impressions, leads, freight, energy. A higher bid wins more often, but earns less per win. The best bid depends
# on what the item is worth to you and on what the others bid, and you never see the bids of the others.
#
# In this tutorial, an insurance broker buys leads (people who want an offer) in first-price auctions. If its bid is the
# highest, the broker pays it. Some leads sign a contract days later, and most do not. The profit of a lead is the margin of the contract minus
# the bid if the broker won, and 0 otherwise. There are 500 leads a day.
#
# The auctions are simulated, so that we can compare with the truth. Neither the value of a lead nor the bids of the others have a simple
# formula: the other brokers bid for some sources in office hours only, and young people on social networks sign at night.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import manul

rng = np.random.default_rng(0)
KNOWN = ["source", "hour", "amount", "returning"]  # what the broker knows before the auction
HIGHEST = 40  # EUR, the highest bid
SIGN = {"portal": 0.30, "search": 0.40, "partner": 0.45, "social": 0.15}
RIVALS = {"portal": 15.4, "search": 16.8, "partner": 8.4, "social": 9.8}


def leads(count):
    table = pd.DataFrame({"source": rng.choice([*SIGN], count), "hour": rng.integers(0, 24, count)})
    table["amount"] = np.round(np.exp(rng.normal(3, 0.5, count)), 1)  # the insured sum, in thousand EUR
    table["returning"] = rng.choice(["yes", "no"], count, p=[0.25, 0.75])
    night, office = (table.hour < 7) | (table.hour > 21), table.hour.between(8, 17)
    chance = table.source.map(SIGN) * np.where(table.returning == "yes", 1.4, 1) * np.where(table.amount > 35, 0.6, 1)
    chance *= np.where((table.source == "social") & night, 2.5, 1)
    margin = 3 * table.amount**0.9
    table["worth"] = chance * margin  # the expected margin; nobody knows it
    table["margin"] = np.where(rng.random(count) < chance, margin * 0.6 * (1 + rng.pareto(2.5, count)), 0).round(2)
    table["rivals"] = table.source.map(RIVALS) * np.sqrt(table.amount / 20)
    table.rivals *= np.where(table.source.isin(["portal", "search"]), np.where(office, 1.5, 0.7), 1)
    table["highest_rival"] = table.rivals * np.exp(rng.logistic(size=count) / 4)
    return table


def expected_profit(table, bid):
    """The truth: expected margin minus bid, times the probability of winning."""
    return (table.worth - bid) / (1 + (table.rivals / np.maximum(bid, 1e-9)) ** 4)


market = leads(20_000)  # 40 days
won_at_ten = market.highest_rival < 10
print(f"mean margin of a lead {market.margin.mean():.1f} EUR, standard deviation {market.margin.std():.0f} EUR")
print(f"a bid of 10 EUR wins {won_at_ten.mean():.0%} and earns {expected_profit(market, 10).mean():.2f} EUR per lead")

# %% [markdown]
# The standard deviation of the margin is many times the profit per lead. This is what makes bidding hard to learn.
#
# The figure shows the true bid landscape of four leads with an insured sum of 20,000 EUR, at 8 p.m. To the left of the maximum, the broker
# wins too rarely. To the right, it wins and pays too much.

# %%
bids = np.linspace(0, 30, 200)
figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
for colour, source in zip(manul.plotting.COLOURS, SIGN):
    lead = market[(market.source == source) & (market.hour == 20) & (market.returning == "no")]
    lead = lead.iloc[(lead.amount - 20).abs().argmin()]
    axes.plot(bids, expected_profit(lead, bids), color=colour, linewidth=2, label=source)
axes.axhline(0, color="black", linewidth=1)
axes.set_ylim(-4, 8)
axes.set_title("The best bid depends on the lead")
axes = manul.plotting.style(axes, "bid, EUR", "expected profit, EUR per lead")

# %% [markdown]
# ## A value model first
#
# The broker has the results of 7,000 leads that it bought last year. A least-squares regression on 5,000 of them predicts the margin of a
# lead. It needs no random bids, because the margin of a lead does not depend on the bid. Its prediction becomes one more feature.


# %%
def features(table):
    columns = {"constant": 1 + 0 * table.hour, "returning": table.returning == "yes", "amount": np.log(table.amount)}
    columns |= {name: table.source == name for name in ("portal", "search", "partner")}
    columns |= {"cos": np.cos(2 * np.pi * table.hour / 24), "sin": np.sin(2 * np.pi * table.hour / 24)}
    return pd.DataFrame(columns).to_numpy(float)


def value_features(table):
    return np.hstack([features(table), features(table) * table.amount.to_numpy()[:, None]])


past = leads(7000)
fitted, held_out = past[:5000], past[5000:]
coefficients = np.linalg.lstsq(value_features(fitted), fitted.margin, rcond=None)[0]
predicted = value_features(held_out) @ coefficients
print(f"held-out leads: mean prediction {predicted.mean():.1f} EUR, mean margin {held_out.margin.mean():.1f} EUR")
print(f"noise that remains: {np.std(held_out.margin - predicted):.0f} EUR")
market["predicted"] = np.clip(value_features(market) @ coefficients, 1, None).round(2)

# %% [markdown]
# ## Let Auto bid
#
# `manul.Bid()` says what every bidder knows: the profit is the value minus the bid if the bid wins, and 0 otherwise, and a higher bid wins
# more often. Auto then learns the two parts that nobody knows: how often each bid wins, and what a lead is worth. The broker reports
# `parts={"won": False}`, or `parts={"won": True, "value": 31.5}` when it knows the margin.
#
# A broker with a value model can say more. The prediction is a field of the context, so the formula can use it:
# `(predicted - money * action) * won`. Only "won" is left to learn, and the broker reports it right after the auction.


# %%
MODELLED = manul.Outcome(
    "profit",
    better="high",
    range="auto",
    formula="(predicted - money * action) * won",  # money is 1.0 until the section on budgets
    parts={"won": "yes/no"},
    hints={"won": "rises"},
)


def play(outcome, money=1.0):
    """Let Auto bid for all leads, one after the other; `money` is one number, or one per lead."""
    agent = manul.Auto(actions=(0, HIGHEST), outcome=outcome, seed=1)
    table = market[[*KNOWN, "predicted"]].assign(money=money)
    bids = []
    for row, margin, highest_rival in zip(table.to_dict("records"), market.margin, market.highest_rival):
        decision = agent.decide(row)
        bids.append(decision.action)
        seen = {"won": decision.action > highest_rival, "value": margin}
        if not outcome.formula:
            told = {"reward": margin - decision.action if seen["won"] else 0}
        else:
            told = {"parts": {part: seen[part] for part in outcome.parts if part == "won" or seen["won"]}}
        agent.learn(row, decision, **told)
    return np.array(bids)


bids = {
    "Auto, profits only": play(manul.Outcome("profit", better="high", range="auto")),
    "Auto with Bid()": play(manul.Bid()),
    "Auto with a value model": play(MODELLED),
}
for name, each in bids.items():
    parts = [part.mean() for part in np.array_split(expected_profit(market, each).to_numpy(), 8)]
    print(f"{name:31} EUR per lead in each 5 days:", *[f"{value:.1f}" for value in parts])

# %% [markdown]
# An Auto that sees only profits needs a week to earn anything. With `manul.Bid()` it earns in its first five days what it otherwise earns after
# weeks, from the same noisy margins, because it knows that a lost auction says something about the rivals and nothing about the value. With a
# value model it is nearly as good in the first days as later.
#
# The formula trusts the value model: if this predicts 20 % too much, Auto bids too much. Compare the predictions and the margins of the
# leads that you win every week. `manul.Bid()` learns values from margins, so it has no such error.
#
# ## What a practitioner would do otherwise
#
# On the same leads, with the same value model:
#
# - **constant bid**: the best of all constants, chosen with the truth. Nobody can do this, but it shows what a constant can reach.
# - **multiplier**: bid a fixed share of the predicted margin. 2,000 leads with random shares show which share is best.
# - **landscape regression**: a logistic regression of "won" on the logarithm of the bid and the features, from the same 2,000
#   leads. The bid maximises `(prediction - bid) * probability of winning`.

# %%
TRIAL = 2000
trial, predicted = market[:TRIAL], market.predicted.to_numpy()
share = rng.uniform(0.05, 1.2, TRIAL)
tried = np.minimum(share * predicted[:TRIAL], HIGHEST)
won = (tried > trial.highest_rival).to_numpy()

grid = np.arange(1.0, HIGHEST + 1)
bids["constant bid, best of all"] = np.full(len(market), max(grid, key=lambda bid: expected_profit(market, bid).mean()))

shares = np.arange(0.2, 1.1, 0.05)
means = [(won * (predicted[:TRIAL] - tried))[np.abs(share - each) < 0.1].mean() for each in shares]
multiplier = shares[np.argmax(means)]
bids["multiplier, after a trial"] = np.append(tried, np.minimum(multiplier * predicted[TRIAL:], HIGHEST))


def with_bid(table, bid):
    return np.column_stack([features(table), np.log(bid) * np.ones(len(table))])


weights = np.zeros(9)
for _ in range(25):  # logistic regression by Newton's method
    chance = 1 / (1 + np.exp(-with_bid(trial, tried) @ weights))
    curvature = with_bid(trial, tried).T @ (with_bid(trial, tried) * (chance * (1 - chance))[:, None])
    weights += np.linalg.solve(curvature, with_bid(trial, tried).T @ (won - chance))
rest = market[TRIAL:]
profits = [(predicted[TRIAL:] - bid) / (1 + np.exp(-with_bid(rest, bid) @ weights)) for bid in grid]
bids["regression, after a trial"] = np.append(tried, grid[np.argmax(profits, axis=0)])

for name, each in bids.items():
    profit = expected_profit(market, each).to_numpy()
    print(f"{name:31} {profit.mean():.2f} EUR per lead, {profit[-10_000:].mean():.2f} in the last 20 days")
print(
    f"{'best bid for each lead':31} {np.max([expected_profit(market, bid) for bid in grid], axis=0).mean():.2f} EUR per lead"
)

# %% [markdown]
# The figure shows the profit so far, beyond that of the best constant bid:

# %%
figure, axes = plt.subplots(figsize=(9, 4.2), layout="constrained")
constant = expected_profit(market, bids["constant bid, best of all"])
for colour, (name, each) in zip(manul.plotting.COLOURS, bids.items()):
    total = np.cumsum(expected_profit(market, each) - constant) / 1000
    axes.plot(np.arange(len(total)) / 500, total, color=colour, linewidth=2, label=name.replace(", ", ",\n"))
axes.axvline(TRIAL / 500, color=manul.plotting.GREY, linestyle=":", linewidth=1)
axes.set_title("Auto needs no trial, which ends at the dotted line")
axes = manul.plotting.style(axes, "days, with 500 leads each", "profit beyond the best constant bid, thousand EUR")

# %% [markdown]
# What the numbers say:
#
# - **Auto with a value model earns most**, 6 % more than the regression and 12 % more than the multiplier, because it needs no trial. In the last
#   20 days, it and the regression earn the same.
# - **Auto with `manul.Bid()` alone earns 1 % less than the regression**, which has a value model from 5,000 leads of last year. In the last
#   20 days it is 3 % below Auto with a value model: margins with this much noise are hard to learn from. If you can, fit a value model.
# - **The multiplier does not know where the others bid low.** It is simple, and a good baseline for a
#   [rollout](../how-to/take-over.md).
# - **Auto with profits only is 9 % above the best constant bid.** 20,000 results with this much noise are few. If you know the formula, say it.
# - The difference between the best constant bid and Auto with a value model, 1.0 EUR per lead, is about 180,000 EUR in a year of
#   182,500 leads.
#
# ## Results that come late
#
# Suppose that there is no value model, and a contract is signed up to 14 days after the lead was bought. A decision can be learned from at any time. It matters *when* results are reported. Compare:
#
# - **wait**: report each day all leads of 14 days ago, won or lost, with contract or not;
# - **report at once** what is known on the same day: a value of 0 for nearly every lead that was won, because hardly any contract is signed yet.

# %%
days = [market[first : first + 500] for first in range(0, len(market), 500)]
delay = rng.integers(0, 15, len(market))


def play_by_day(wait):
    """Let Auto bid for a day at a time, and report results after `wait` days, as they are known then."""
    agent, played, bids = manul.Auto(actions=(0, HIGHEST), outcome=manul.Bid(), seed=1), [], []
    for day, table in enumerate(days):
        contexts = table[KNOWN].to_dict("records")
        played.append((contexts, agent.decide_many(contexts)))
        bids.append(played[-1][1].actions)
        if day >= wait:
            table, signed = days[day - wait], delay[days[day - wait].index] <= wait
            won = bids[day - wait] > table.highest_rival
            margin = np.where(signed, table.margin, 0)
            agent.learn_many(*played[day - wait], parts={"won": won, "value": np.where(won, margin, np.nan)})
    return np.concatenate(bids)


for name, wait in {"wait for 14 days": 14, "report at once": 0}.items():
    late = play_by_day(wait)[-2500:]
    profit = round(expected_profit(market[-2500:], late).sum() / 5)
    print(f"{name:16} in the last 5 days: mean bid {late.mean():4.1f} EUR, profit {profit:5,} EUR a day")

# %% [markdown]
# "Report at once" teaches Auto that leads bring nothing, so it stops buying. Nothing looks wrong in its log. Rules for late results:
#
# - Report every decision after the same time, also the lost auctions. If lost auctions are reported at once and won ones later, Auto first
#   learns from a biased sample.
# - If a prediction of the final result is good, report the prediction, as above, and do not wait.
# - In [the service](../service.md), a loss can be sent at any later time: let a job send the losses of 14 days ago every night. `wait` and
#   `default_loss` are for problems in which "no result" is one known loss. Here, a lead without a contract loses its bid, and a lost auction nothing.
#
# ## A budget per day
#
# So far the broker buys every lead that is worth it. With a budget of, say, 1,500 EUR a day, stopping at noon would be wrong: the leads
# of the evening may be cheaper. `Auto(spend_at_most=("won * action", 1500.0, "day"))` paces the spending by itself: see
# [a budget](budget.md). Or put a price on money yourself, above 1: the formula multiplies the bid by the field `money` of the context. How
# often a bid wins does not depend on it, so the price can change at any time and nothing has to be learned again. Here it changes after
# 20 days:

# %%
money = np.where(np.arange(len(market)) < 10_000, 1.0, 1.5)
careful = play(MODELLED, money)
for name, part in {"money 1.0": slice(5000, 10_000), "money 1.5": slice(10_000, 15_000)}.items():
    spent = np.where(careful > market.highest_rival, careful, 0)[part].sum() / 10
    earned = expected_profit(market, careful)[part].sum() / 10
    print(f"{name}: spends {spent:5,.0f} EUR a day and earns {earned:5,.0f} EUR")

# %% [markdown]
# Choose the price so that the spend fits, and adjust it every week.
#
# Other limits of this page: in second-price auctions the reward is `value - price paid`; without a budget, the best bid is then simply
# the value, so you need a value model and no bandit. If others know more about a lead than you, those that you win are worth less than those that
# you see (the winner's curse): fit the value model on leads that you have won at similar bids. And if the others react to your bids, the
# landscape moves; Auto detects changes, but it does not plan ahead.
