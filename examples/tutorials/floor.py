# %% [markdown]
# # Prices that keep a conversion
#
# The prices that earn most may sell to too few visitors: a shop may want to keep its market share, its place on a comparison site, or its stock
# moving. Then the goal has a limit: earn as much as possible, while at least 17 % of the visitors buy. This tutorial gives the agent the limit
# itself, and shows what the limit costs, and what the agent says if no prices keep it.
#
# The shop is simulated, so that we can compare with the truth. It knows the channel of each visitor and the number of earlier visits. Three of
# four visitors only look; the others buy if the price is below a limit that nobody knows.

# %%
import warnings

import matplotlib.pyplot as plt
import numpy as np

import manul

COST, HIGHEST, VISITORS, FLOOR = 20.0, 80.0, 10_000, 0.17
CHANNELS = {"newsletter": 46.0, "search": 40.0, "comparison site": 33.0}  # the usual limit, EUR
rng = np.random.default_rng(11)
visitors = [{"channel": str(rng.choice([*CHANNELS])), "visits": int(rng.poisson(2))} for _ in range(VISITORS)]
limits = np.array([CHANNELS[visitor["channel"]] + 1.5 * visitor["visits"] for visitor in visitors])
luck = rng.random(VISITORS)  # decides whether a visitor buys; the same for every agent below


def chance(prices, who=slice(None)):
    """The probability that a visitor buys; only the simulation knows it."""
    return 0.25 / (1 + np.exp((prices - limits[who]) / 8))


grid = np.arange(COST, HIGHEST + 0.5, 0.5)
bought = np.array([chance(price) for price in grid])  # one row for each price
profit = (grid[:, None] - COST) * bought


def best(worth):
    """The profit and the conversion of the best prices if each sale were worth so much more."""
    chosen = (profit + worth * bought).argmax(axis=0), np.arange(VISITORS)
    return profit[chosen].mean(), bought[chosen].mean()


free = best(0.0)
print(f"the best prices earn {free[0]:.3f} EUR per visitor, and {free[1]:.1%} buy")

# %% [markdown]
# ## What a sale is worth
#
# If each sale were worth a few euros more than its profit, lower prices would be better, and more visitors would buy. There is a smallest worth at
# which enough of them do: the *price* of the limit. The figure shows it for the truth. A shop that does not know the truth has to learn it.

# %%
worths = np.linspace(0, 15, 61)
profits, conversions = np.array([best(worth) for worth in worths]).T
enough = int(np.argmax(conversions >= FLOOR))
print(
    f"if a sale is worth {worths[enough]:.2f} EUR more, {conversions[enough]:.1%} buy, and the profit is {profits[enough]:.3f} EUR"
)
figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
axes.plot(worths, conversions, color=manul.plotting.COLOURS[0], linewidth=2)
axes.axhline(FLOOR, color="black", linewidth=1)
axes.axvline(worths[enough], color=manul.plotting.GREY, linestyle=":", linewidth=1)
axes.set_title("The more a sale is worth, the more visitors buy")
axes = manul.plotting.style(axes, "worth of a sale beyond its profit, EUR", "share that buys")

# %% [markdown]
# ## Keep it
#
# `keep` is a bound on the mean of a part of the outcome, or of a formula of parts. The agent learns how many visitors buy at which price, and the
# worth of a sale: it rises while fewer buy than should, and falls while more do. The limit holds in the long run; the share of 1,000 visitors varies.


# %%
def play(**settings):
    """The prices that an agent asks for, whether visitors buy, and the worth of a sale that it has learned."""
    agent = manul.Auto(actions=(COST, HIGHEST), outcome=manul.Sale(cost=COST), seed=1, **settings)
    prices, sales, learned = np.zeros(VISITORS), np.zeros(VISITORS, bool), np.zeros(VISITORS)
    for number, visitor in enumerate(visitors):
        decision = agent.decide(visitor)
        prices[number] = decision.action
        sales[number] = luck[number] < chance(decision.action, number)
        agent.learn(visitor, decision, parts={"bought": bool(sales[number])})
        if agent.keep is not None:
            learned[number] = agent.report().kept.price if number % 50 == 0 else learned[number - 1]
    return agent, prices, sales, learned


agents = {"without a limit": play(), "keep": play(keep=("bought", ">=", FLOOR))}
for (name, (_, prices, sales, _)), most in zip(agents.items(), (profits[0], profits[enough])):
    late = slice(VISITORS // 2, None)
    earned = ((prices - COST) * chance(prices))[late].mean()
    print(
        f"{name:16} second half: {earned:.2f} EUR per visitor, {earned / most:.0%} of the best; {sales[late].mean():.1%} bought"
    )
print(agents["keep"][0].report().kept)

# %% [markdown]
# The agent keeps the limit, and pays for it with a part of its profit, also because the learned worth of a sale goes up and down, mostly above the
# true one: with few sales it takes long to see how many visitors buy. The figures show the share of 1,000 visitors, and the learned worth.

# %%
figure, (upper, lower) = plt.subplots(2, 1, figsize=(8, 6), sharex=True, layout="constrained")
for colour, (name, (_, prices, _, _)) in zip(manul.plotting.COLOURS, agents.items()):
    rolling = np.convolve(chance(prices), np.ones(1000) / 1000, mode="valid")
    upper.plot(np.arange(1000, VISITORS + 1), rolling, color=colour, linewidth=2, label=name)
upper.axhline(FLOOR, color="black", linewidth=1)
upper.legend()
upper.set_title("The share that buys, over 1,000 visitors")
lower.plot(agents["keep"][3], color=manul.plotting.COLOURS[1], linewidth=2)
lower.axhline(worths[enough], color=manul.plotting.GREY, linestyle=":", linewidth=1)
lower.set_title("The learned worth of a sale, and the true one, dotted")
manul.plotting.style(upper, "", "share that buys")
lower = manul.plotting.style(lower, "visitor", "EUR")

# %% [markdown]
# ## A limit that cannot be kept
#
# At the lowest price, 20 EUR, a quarter of the visitors would buy at most. An agent that must sell to 30 % tries for a while, and then says that it
# cannot: in the report, and with a warning, once.

# %%
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    missed = play(keep=("bought", ">=", 0.3))
print(*(each.message for each in caught), sep="\n")
rolling = np.convolve(chance(missed[1]), np.ones(300) / 300, mode="valid")
figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
axes.plot(np.arange(300, VISITORS + 1), rolling, color=manul.plotting.COLOURS[0], linewidth=2)
axes.axhline(0.3, color="black", linewidth=1)
axes.set_ylim(0, 0.35)
axes.set_title("A limit that no prices keep")
axes = manul.plotting.style(axes, "visitor", "share that buys, over 300 visitors")

# %% [markdown]
# ## What logs say
#
# Whether visitors bought is an outcome of its own, `agent.kept`, so `evaluate` and `compare` judge it on a log with the parts, and a rollout
# guards it: `Rollout(agent, baseline=35.0, guard={"bought": (">=", 0.95)})`. A loop of the service takes `"keep": ["bought", ">=", 0.17]`, and its status
# says what is kept: see [the service](../service.md#budgets-and-rates-to-keep).

# %%
agent, prices, sales, _ = agents["keep"]
print(agent.kept.formula, agent.kept.better)
