# %% [markdown]
# # Moving from Vowpal Wabbit
#
# manul started from CATS, the algorithm behind Vowpal Wabbit's `--cats`. It reads and writes Vowpal Wabbit's logs, so that what you have logged
# stays useful. This tutorial reads a log, trains a policy from it, and goes online with it. Vowpal Wabbit itself is not needed.
#
# The example: a shop promises a delivery time for each order. If it promises too little, it pays 1 EUR for each minute of delay. If it
# promises too much, it loses orders, which costs 0.20 EUR per minute. The orders are simulated, and stand in for your own.

# %%
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import manul

rng = np.random.default_rng(0)
SHORTEST, LONGEST, WORST = 5, 60, 20  # minutes, minutes, EUR


def order():
    """The features of an order, and the minutes that it will take."""
    distance, rain, rush = round(rng.gamma(3, 1), 1), rng.random() < 0.3, rng.random() < 0.4
    minutes = 8 + 3 * distance * (1.5 if rush else 1) + (8 if rain and rush else 0) + rng.gamma(2, 2)
    minutes = round(minutes, 1)
    features = {"trip^distance": distance} | ({"trip^rain": 1.0} if rain else {}) | ({"time^rush": 1.0} if rush else {})
    return features, minutes


def cost(promise, minutes):
    late = minutes - promise
    return min(late if late > 0 else -0.2 * late, WORST)


# %% [markdown]
# ## Your log
#
# A log of `--cats` has one line per decision: `ca action:cost:density | features`. The lines that we write here stand in for such a
# file. The logged policy promises a time within 3 minutes of a rule, and explores the whole range in 20 % of the orders.

# %%
lines, span = [], LONGEST - SHORTEST
for _ in range(5000):
    features, minutes = order()
    centre = np.clip(14 + 3 * features["trip^distance"], SHORTEST + 3, LONGEST - 3)
    promise = rng.uniform(SHORTEST, LONGEST) if rng.random() < 0.2 else rng.uniform(centre - 3, centre + 3)
    density = 0.2 / span + (0.8 / 6 if abs(promise - centre) < 3 else 0)
    text = f"|trip distance:{features['trip^distance']}" + (" rain" if "trip^rain" in features else "")
    text += " |time rush" if "time^rush" in features else ""
    lines.append(f"ca {promise:.2f}:{cost(promise, minutes):.2f}:{density:.5f} {text}")
Path("history.vw").write_text("\n".join(lines) + "\n")
print(*lines[:3], sep="\n")

# %% [markdown]
# Vowpal Wabbit's text does not contain the ranges of actions and costs, so state them. A cost is a loss. A namespace becomes part of the
# name of a feature, as in Vowpal Wabbit's audit: `|trip rain` is the feature `trip^rain`.

# %%
log = manul.Log.read("history.vw", action_range=(SHORTEST, LONGEST), loss_range=(0, WORST))
names = sorted({name for context in log.context_rows() for name in context})
print(f"{len(log):,} rows, features {', '.join(names)}, mean cost {log.losses.mean():.2f} EUR per order")
print(*manul.offpolicy.doctor(log) or ["doctor: no problems found"], sep="\n")

# %% [markdown]
# `doctor` found no problem. On logs of Vowpal Wabbit it is worth running: if densities were not logged with the decision, or were
# copied from the wrong branch of the exploration, it says so.
#
# ## From the log to a policy
#
# The counterpart of running `vw --cats` over the log for each set of options is `optimize`. It trains all candidates in one pass, and says
# what the log proves (`print(best)` shows the table of candidates). We train on the first 3,000 rows and evaluate on the other 2,000. We evaluate
# promises within 2 minutes of the best one, because few logged promises are closer. The interval is narrower if `evaluate` knows how large
# a weight can be. Logs of manul contain the smallest density, the `floor`; here we know it, because epsilon is 0.2:

# %%
train, held_out = log.split(0.6)
best = manul.optimize(train)
print(best.verdict)
floor = 0.2 / span
estimate = manul.evaluate(best.policy.best, held_out, bandwidth=2, largest_weight=1 / 4 / floor)
print(f"held out: {estimate.value:.2f} EUR per order, 95 % interval {estimate.low:.2f} to {estimate.high:.2f}")

# %% [markdown]
# The whole interval is below the 3.36 EUR of the logged policy, so the new one is better.
#
# ## The same algorithm online, and others
#
# `Cats.paper` is the agent that is closest to `vw --cats 32 --bandwidth 3 --min_value 5 --max_value 60 --epsilon 0.05 --coin`. `Cats` is our
# version of the tree with a better training rule and the same options. `Auto` has no options. All of them decide on the same 8,000 orders. The
# last one has first learned from the log: a model of Vowpal Wabbit cannot be loaded, but its log can be learned from.


# %%
def play(agent):
    """The cost of each order in EUR."""
    costs = []
    for context, minutes in orders:
        decision = agent.decide(context)
        costs.append(cost(decision.action, minutes))
        agent.learn(context, decision, costs[-1])
    return np.array(costs)


orders = [order() for _ in range(8000)]
ranges = {"actions": (SHORTEST, LONGEST), "losses": (0, WORST), "seed": 1}
agents = {
    "Cats.paper": manul.Cats.paper(leaves=32, bandwidth=3, epsilon=0.05, **ranges),
    "Cats": manul.Cats(leaves=32, bandwidth=3, epsilon=0.05, **ranges),
    "Auto": manul.Auto(**ranges),
    "Auto, after the log": manul.Auto(**ranges),
}
decisions = manul.Decisions(log.actions, log.densities)
agents["Auto, after the log"].learn_many(list(log.context_rows()), decisions, log.losses)
costs = {name: play(agent) for name, agent in agents.items()}
minutes = np.array([each for _, each in orders])
constants = {promise: np.mean([cost(promise, each) for each in minutes]) for promise in range(SHORTEST, LONGEST + 1)}
print(f"{'best constant promise':21} {min(constants.values()):.2f} EUR per order")
for name, each in costs.items():
    first, last = each[:1000].mean(), each[-2000:].mean()
    print(f"{name:21} {each.mean():.2f} EUR per order, {first:.2f} in the first 1,000, {last:.2f} in the last 2,000")

# %% [markdown]
# With these options, `Cats.paper` does not beat the best constant within 8,000 orders: it learns only from promises close to its own, and the
# noise of an order is large. Other options may suit it better; that is the search which `Auto` spares you. `Auto` beats the best constant in its
# first 1,000 orders, and after the log it is good from the first order. This is one simulated problem. [Benchmarks](../benchmarks.md) compares with
# Vowpal Wabbit itself, with the best of all its settings, on real tables.

# %%
figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
for colour, (name, each) in zip(manul.plotting.COLOURS, costs.items()):
    recent = np.convolve(each, np.ones(500) / 500, mode="valid")
    axes.plot(np.arange(500, 8001), recent, color=colour, linewidth=2, label=name)
axes.axhline(min(constants.values()), color=manul.plotting.GREY, linestyle="--", label="best constant")
axes.set_ylim(0, None)
axes.set_title("Cost of the last 500 orders")
axes = manul.plotting.style(axes, "orders", "cost, EUR per order")

# %% [markdown]
# ## Back to Vowpal Wabbit
#
# A log of manul can be written for Vowpal Wabbit, so nothing is lost if you go back. Ranges, times and floors are not part of its text format; use
# Parquet for your archive.

# %%
log.rows(slice(3)).write("back.vw")
print(Path("back.vw").read_text(), end="")

# %% [markdown]
# ## On the command line
#
# `manul convert` reads and writes all formats. The output of `vw --cbify_reg -p log.acp` contains no features; `manul convert log.acp log.parquet
# --features data.vw` joins it with the data file that vw read. Vowpal Wabbit's JSON with `_label_ca` (`.json`) is read, too. Every format
# can be gzipped. If a file is called `train.dat` or `log.acpx`, add `--format vw`.
#
# ```sh
# cat > history.vw <<'END'
# ca 0.31:0.2:3.85 | hour:7 weekday
# ca 0.62:0.5:0.05 | hour:12 weekday
# ca 0.44:0.1:3.85 | hour:18
# END
# manul convert history.vw history.parquet --actions 0 1 --losses 0 1
# manul check history.parquet || true
# ```
#
# A regression file, `label | features`, can be used online as with `--cbify_reg`. The first command runs the paper's algorithm, the
# second `Cats`, and the third `Auto`:
#
# ```sh
# for i in $(seq 200); do echo "0.$((i % 10)) | size:$((i % 10)) old"; done > data.vw
# manul run data.vw --agent paper --leaves 16 --bandwidth 1/16 --epsilon 1/20
# manul run data.vw --leaves 16 --bandwidth 1/16
# manul run data.vw --agent auto
# ```
#
# ## Options
#
# | Vowpal Wabbit | manul | |
# |---|---|---|
# | `--cats K`, `--cbify K` | `leaves=K` | a power of two |
# | `--bandwidth h` | `bandwidth=h` | always in units of the action |
# | `--min_value`, `--max_value` | `actions=(low, high)` | may be negative |
# | `--epsilon` | `epsilon` | a number, or a schedule such as `schedules.Fading()` |
# | `--coin` | `Cats.paper(learner=learners.CoinBetting(...))` | the default of `Cats.paper` |
# | `--adaptive`, `--loss_function` | `Cats.paper(learner=learners.AdaGrad(loss=...))` | "squared" or "logistic" |
# | `--cb_discrete --cats_tree K` | `agents.DiscreteTree(leaves=K)` | O(log K) here |
# | `--cb_discrete` | `agents.DiscreteLinear(leaves=K)` | |
# | `-b 18` | `table_bits=20` | only for named contexts of `Cats`; `Auto` does not hash |
# | `-q ab`, `--interactions` | `Mapped(agent=..., features=maps.Crosses())` | `Auto` needs none |
# | `--random_seed` | `seed` | the same seed gives the same bytes |
# | `-f model`, `-i model` | `save`, `load` | JSON and arrays; loading runs no code |
# | `-p predictions` | `Log.write`, `manul run --log` | with the density of the whole distribution |
# | `--daemon` | `manul serve` | [a service](service.md) that stores decisions before it answers |
# | the off-policy estimate of `vw` on a log | `evaluate`, `optimize` | with intervals, and objections |
#
# ## What carries over, and what does not
#
# **Carries over:** logs with densities, as text and JSON; data files; ids (tags); names of features and namespaces; the options above.
#
# **Does not carry over:**
#
# - *Models.* A file of `vw -f` cannot be loaded. Let the new agent learn from the log, as above.
# - *Discrete bandits with features of actions* (`--cb_explore_adf`, `--ccb_explore_adf`, slates). manul chooses numbers, and a few
#   [choices beside them](../how-to/several-knobs.md).
# - *Other learners and text options*: `--nn`, `--boosting`, `--ngram`, `--skips`, `--l1`, `--l2`, `--passes`. Prepare texts yourself; an agent learns
#   from each result once, and `Auto` repeats what it remembers by itself.
# - *Importance weights of examples.* Every row counts the same.
#
# **Behaves differently:**
#
# - The density is that of the whole distribution, whether the action was explored or exploited.
# - If only one side of a tree node is reachable, the node passes up the cost of that side. Vowpal Wabbit passes up the cost of the side it
#   came from, which increases the loss by 8 to 10 % at wide bandwidths.
# - The window is exactly twice the bandwidth wide.
# - The same seed gives the same bytes on every x86 machine and with any number of threads.
