# %% [markdown]
# # A price with a cliff
#
# A shop sells a backpack that it buys for 20 EUR. It chooses a price between 20 and 80 EUR for each visitor. Each visitor
# has a limit, which the shop does not know, and nobody pays more than the competitor asks. So the profit rises with the
# price and then drops to zero: a cliff. The best price is close to the edge, and the edge differs between visitors.
#
# In this tutorial `manul.Auto` finds the prices. We measure what it earns, in euros, and compare it with what a shop
# would do otherwise.
#
# ## The visitors
#
# The visitors are simulated, so we know what every price would have earned. This cell is the only part that you replace:
# in your shop, visitors come from the web server and purchases from the order system.
#
# The shop knows three things about a visitor: the channel (a category), the number of earlier visits, and the
# competitor's price on that day. The program that reads the competitor's price fails for one visitor in five. Then the
# shop does not know that price, but the visitor does.

# %%
import matplotlib.pyplot as plt
import numpy as np

import manul

COST, VISITORS = 20.0, 20_000
rng = np.random.default_rng(1)
channel = rng.choice(["newsletter", "search", "comparison site"], VISITORS, p=[0.3, 0.4, 0.3])
visits = rng.poisson(2, VISITORS)
competitor = rng.uniform(32, 60, VISITORS).round(2)
price_is_known = rng.random(VISITORS) < 0.8
luck = rng.random(VISITORS)  # decides whether a visitor buys; the same for every method below

limit = 38 + 2 * visits + np.select([channel == "newsletter", channel == "search"], [12, 4], -4)


def purchase_probability(price, who=slice(None)):
    return np.where(price <= competitor[who], 1 / (1 + np.exp((price - limit[who]) / 4)), 0.0)


def profit(price, who):
    """What the shop earns from a visitor at a price."""
    return price - COST if luck[who] < purchase_probability(price, who) else 0.0


def expected_profit(prices):
    """The mean profit of one price per visitor, without the luck of single purchases."""
    return (prices - COST) * purchase_probability(prices)


visitors = [
    {
        "channel": str(channel[i]),
        "visits": int(visits[i]),
        "competitor": float(competitor[i]) if price_is_known[i] else None,
    }
    for i in range(VISITORS)
]
for visitor in visitors[:4]:
    print(visitor)

# %% [markdown]
# ## What a fixed price earns
#
# Most shops charge everybody the same price. We compute the profit of every fixed price. The best one is hard to beat,
# because no shop knows it in advance.

# %%
grid = np.arange(20, 80.25, 0.25)
by_price = np.array([expected_profit(np.full(VISITORS, price)) for price in grid])
fixed_price = grid[by_price.mean(axis=1).argmax()]
fixed = expected_profit(np.full(VISITORS, fixed_price))
best = by_price.max(axis=0)
print(f"best fixed price: {fixed_price:.2f} EUR, profit per visitor: {fixed.mean():.2f} EUR")
print(f"best price for each visitor, if the shop knew every limit: {best.mean():.2f} EUR")

BLUE, RED, GREEN, PINK, ORANGE, _ = manul.plotting.COLOURS
one = next(i for i, c in enumerate(visitors) if c["channel"] == "newsletter" and 40 < (c["competitor"] or 0) < 44)
axes = plt.figure(figsize=(10, 4.8), layout="constrained").subplots()
axes.plot(grid, by_price.mean(axis=1), color=BLUE, linewidth=2.4, label="mean of all visitors")
axes.plot(grid, by_price[:, one], color=RED, linewidth=1.8, label=f"one visitor; competitor: {competitor[one]:.2f} EUR")
axes.set_title("Expected profit of a fixed price")
manul.plotting.style(axes, "price (EUR)", "expected profit (EUR per visitor)")

# %% [markdown]
# The orange line has the cliff. The mean of all visitors has none, because the competitor's price differs from visitor to
# visitor.
#
# ## The loop
#
# `Auto` needs the range of prices and what is known of the outcome: `manul.Sale(cost=20.0)` says that the profit is the
# price minus 20 EUR if the visitor buys, and that fewer buy at higher prices. The agent then has to learn only who buys
# at which price, and the loop reports just that. A visitor is a dictionary. The category and the missing value need no
# preparation. Report every visitor, also those who do not buy: an agent that learns only from sales does not notice that
# a price is too high.
#
# We compare methods by their expected profit, so that the luck of single purchases does not decide. The agent sees only
# the purchases.

# %%
agent = manul.Auto(actions=(20, 80), outcome=manul.Sale(cost=COST), seed=7)
prices, greedy_prices = np.empty(VISITORS), np.empty(VISITORS)
for i, visitor in enumerate(visitors):
    greedy_prices[i] = agent.best(visitor)  # only to measure below what exploration costs
    decision = agent.decide(visitor)
    prices[i] = decision.action
    bought = bool(luck[i] < purchase_probability(decision.action, i))
    agent.learn(visitor, decision, parts={"bought": bought})
learned = expected_profit(prices)
for last in (250, 500, 1000, 2000, 5000, 20_000):
    print(f"first {last:6,} visitors: {learned[:last].mean():5.2f} EUR per visitor")
print(agent.report().formula)

# %% [markdown]
# The weight is the share of the formula in the predictions. A model of the profit itself has the rest: it finds the cliff
# at the competitor's price, which models of purchases blur.
#
# ## Without the formula
#
# If your profit follows no formula, report the profit. Its range is not known in advance, so we pass `rewards="auto"`. A
# visitor who does not buy has the reward 0.

# %%
unaided = manul.Auto(actions=(20, 80), rewards="auto", seed=7)
unaided_prices = np.empty(VISITORS)
for i, visitor in enumerate(visitors):
    decision = unaided.decide(visitor)
    unaided_prices[i] = decision.action
    unaided.learn(visitor, decision, reward=profit(decision.action, i))
without = expected_profit(unaided_prices)
for last in (250, 500, 1000, 2000, 5000, 20_000):
    print(f"first {last:6,} visitors: {without[:last].mean():5.2f} EUR per visitor")

# %% [markdown]
# ## Against what a shop would do otherwise
#
# All methods get the same visitors:
#
# - **A/B/C test:** 30, 40 and 50 EUR for 1,000 visitors each; then the price that earned most, for everybody.
# - **Best fixed price:** the one of the previous section, from the first visitor on.
# - **Rule:** half a euro below the competitor, but at most a ceiling; the best fixed price if the competitor's price is
#   missing. The ceiling is the best one in hindsight. To write this rule, somebody has to know that the competitor's
#   price matters.

# %%
tested = np.array([30.0, 40.0, 50.0])[np.arange(3000) % 3]
earned = np.array([profit(price, i) for i, price in enumerate(tested)])
winner = max((30.0, 40.0, 50.0), key=lambda price: earned[tested == price].mean())
abc = expected_profit(np.append(tested, np.full(VISITORS - 3000, winner)))


def rule(ceiling):
    return expected_profit(np.where(price_is_known, np.minimum(competitor - 0.5, ceiling), fixed_price))


rule_profit = max((rule(ceiling) for ceiling in grid), key=np.mean)
methods = {f"A/B/C test, then {winner:.0f} EUR": abc, "best fixed price": fixed, "rule": rule_profit}
methods |= {"manul, profits only": without, "manul": learned}
print("EUR per visitor            all   last 5,000   per year, with 100,000 visitors")
for name, values in methods.items():
    yearly = round(100_000 * values[-5000:].mean(), -4)
    print(f"{name:24} {values.mean():5.2f} {values[-5000:].mean():12.2f} {yearly:21,.0f} EUR")

axes = plt.figure(figsize=(10, 4.8), layout="constrained").subplots()
for (name, values), colour in zip(methods.items(), (PINK, GREEN, ORANGE, RED, BLUE)):
    total = np.append(0, values.cumsum())
    ends = np.arange(500, VISITORS + 1, 100)
    starts = np.maximum(ends - 1000, 0)
    axes.plot(ends, (total[ends] - total[starts]) / (ends - starts), color=colour, linewidth=2, label=name)
axes.set_title("Expected profit, mean of the last 1,000 visitors")
manul.plotting.style(manul.plotting.from_zero(axes), "visitors", "profit (EUR per visitor)")

# %% [markdown]
# What the numbers mean:
#
# - After learning, manul earns 14.42 EUR per visitor, 2.83 EUR more than the best fixed price. With 100,000 visitors per
#   year, that is about 280,000 EUR.
# - A good rule gets most of this gain: manul earns 0.83 EUR more than the rule. It found the relation to the competitor's
#   price by itself, and a different ceiling for each channel.
# - Learning costs money at first. The mean profit of all visitors so far reached that of the best fixed price after 138
#   visitors, and with four other seeds after 55 to 131; it reached that of the rule after 3,003 (1,688 to 2,233).
# - Without the formula, these numbers are 323 (363 to 1,438), and 11,145 (from 7,408 to more than all 20,000). What you
#   know about the profit is worth most at first. In the end the difference is 0.15 EUR per visitor.
# - The A/B/C test can only find the best of its three prices. 35 EUR was not among them.
# - The yearly amounts hold for visitors like these, who do not wait for a better price and do not compare what they paid.
#
# ## What it has learned
#
# Before anybody trusts such prices, they want to see them. `agent.best(visitor)` is the price without exploration. The
# dashed lines are the best prices of the simulation; in your shop, you do not have them.

# %%
shown = np.arange(32, 60.5, 0.5)
axes = plt.figure(figsize=(10, 4.8), layout="constrained").subplots()
for name, worth, colour in (("newsletter", 54, BLUE), ("search", 46, GREEN), ("comparison site", 38, RED)):
    curve = [agent.best({"channel": name, "visits": 2, "competitor": float(price)}) for price in shown]
    axes.plot(shown, curve, color=colour, linewidth=2.4, label=f"{name}, learned")
    ceiling = grid[((grid - COST) / (1 + np.exp((grid - worth) / 4))).argmax()]
    axes.plot(shown, np.minimum(shown, ceiling), color=colour, linewidth=1.2, linestyle="--", label=f"{name}, best")
axes.set_title("Price by channel, for a visitor with two earlier visits")
manul.plotting.style(axes, "price of the competitor (EUR)", "price (EUR)")

for name in ("newsletter", "search", "comparison site"):
    price = agent.best({"channel": name, "visits": 2, "competitor": None})
    print(f"{name:15} if the competitor's price is missing: {price:.0f} EUR")

# %% [markdown]
# The agent stays just below the competitor's price, up to a ceiling that depends on the channel. It keeps a distance of
# about a euro from the cliff: a price that is a little too low costs some cents, and one that is a little too high costs
# the sale. If the competitor's price is missing, it is careful.
#
# In many countries, laws limit prices that differ between people, and customers may find them unfair. Leave out of the
# context what you must not use.
#
# ## What exploration cost
#
# An agent that never tries another price never learns that another price is better. So `Auto` draws its price from a
# narrow window around the best one, and sometimes from the whole range. In the loop we also asked for the best price, so
# we can compute what the trials cost.

# %%
cost = expected_profit(greedy_prices) - learned
for first, last in ((0, 1000), (1000, 5000), (5000, 20_000)):
    part = slice(first, last)
    trials = np.mean(np.abs(prices - greedy_prices)[part] > 5)
    print(
        f"visitors {first + 1:6,} to {last:6,}: {cost[part].mean():.2f} EUR per visitor; {trials:4.1%} of the prices differ by 5 EUR or more"
    )
print(f"all {VISITORS:,} visitors together: {cost.sum():,.0f} EUR, {cost.sum() / learned.sum():.1%} of the profit")

# %% [markdown]
# ## Restricting prices
#
# `within` restricts one decision, for example to a campaign's highest price, a minimum margin, or 10 % around yesterday's
# price. Trials stay in this range too, and the agent learns from restricted decisions as from all others. Here we measure
# what some restrictions cost, on 2,000 visitors and with what was learned above.

# %%
decision = agent.decide(visitors[0], within=(30, 36))
print(f"a price between 30 and 36 EUR for {visitors[0]['channel']}: {decision.action:.2f} EUR")


def profit_within(low, high, count=2000):
    prices = np.array([agent.best(visitor, within=(low, high)) for visitor in visitors[-count:]])
    return expected_profit(np.append(np.zeros(VISITORS - count), prices))[-count:].mean()


for low, high in ((20, 80), (20, 40), (33, 37), (40, 80)):
    print(f"from {low} to {high} EUR: {profit_within(low, high):5.2f} EUR per visitor")

# %% [markdown]
# ## Returns: rewards that come late
#
# Customers may send a backpack back within two weeks. That costs the shop the margin and 8 EUR. Readers of the newsletter
# often do so if the price was high. So the profit is known only about 1,000 visitors later. The shop of the loop above
# ignores returns. A second shop keeps each decision and learns from it after two weeks. `learn` takes decisions at any
# later time and in any order. `manul.Sale` knows no returns, so this shop reports the profit.
#
# Before the first rewards arrive, the agent of the second shop knows nothing. We try three ranges of prices for it.

# %%
DELAY, RETURN_COST = 1000, 8.0
return_luck = rng.random(VISITORS)


def return_probability(price, who=slice(None)):
    return np.where(channel[who] == "newsletter", np.clip((price - 30) / 25, 0.05, 1), 0.05)


def net_profit(price, who):
    sold = profit(price, who)
    return -RETURN_COST if sold and return_luck[who] < return_probability(price, who) else sold


def expected_net_profit(prices):
    returned = return_probability(prices)
    return purchase_probability(prices) * ((1 - returned) * (prices - COST) - returned * RETURN_COST)


def learn_after_two_weeks(within):
    agent = manul.Auto(actions=(20, 80), rewards="auto", seed=7)
    waiting, prices = {}, np.empty(VISITORS)
    for i, visitor in enumerate(visitors):
        waiting[i] = agent.decide(visitor, within=within(i))
        prices[i] = waiting[i].action
        if i >= DELAY:
            old = i - DELAY
            decision = waiting.pop(old)
            agent.learn(visitors[old], decision, reward=net_profit(decision.action, old))
    return expected_net_profit(prices)


net = {
    "best fixed price": max((expected_net_profit(np.full(VISITORS, price)) for price in grid), key=np.mean),
    "ignores returns": expected_net_profit(prices),
    "waits, any price": learn_after_two_weeks(lambda _: None),
    "waits, 28 to 38 EUR for 2,000 visitors, then any": learn_after_two_weeks(lambda i: (28, 38) if i < 2000 else None),
    "waits, always 28 to 45 EUR": learn_after_two_weeks(lambda _: (28, 45)),
}
parts = [slice(0, 1000), slice(1000, 2000), slice(2000, 3000), slice(15_000, 20_000), slice(None)]
print(f"{'EUR per visitor':48}  0-1,000  -2,000  -3,000  last 5,000    all")
for name, values in net.items():
    print(f"{name:48}", "".join(f"{values[part].mean():{width}.2f}" for part, width in zip(parts, (8, 8, 8, 12, 7))))

# %% [markdown]
# What the numbers mean:
#
# - The shop that ignores returns is no better than a fixed price. It asks newsletter readers for prices that they pay
#   first and send back later. Report the profit that you want, even if it comes late.
# - Without a restriction, the first 1,000 visitors get prices from the whole range, because no reward has arrived yet.
#   Choose a range of prices that you would accept.
# - Do not open a narrow range at once. Outside 28 to 38 EUR the agent can only guess, and here it guesses wrong for 1,000
#   visitors before the first reward tells. A range that is a little wider from the start avoids this.
#
# [The service](../service.md) keeps waiting decisions for you. A loop with `"rewards": "auto"`, `"combine": "sum"`,
# `"wait": 1209600` and `"default_reward": 0` adds up the sale and the return for two weeks, and counts a visitor without
# a purchase as 0.
#
# ## What this does not show
#
# Your visitors are not ours. The gain is large here because the best price differs much between visitors, and the context
# explains why. If your context says little about the best price, no method beats the best fixed price by much, and you
# pay for exploration all the same. [Let it take over safely](../how-to/take-over.md) shows how to find out at a limited
# cost; for that, state the range of the rewards, such as `rewards=(-8, 60)`.
