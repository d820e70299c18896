# %% [markdown]
# # A service, from the first call to a safe rollout
#
# A fixed rule sets the water temperature of a heating system. You want an agent to take over, but only if it is better than the rule,
# and you want it to give control back by itself if it gets worse. This tutorial does that over HTTP:
#
# 1. The agent learns beside the rule, as an *apprentice*. The rule keeps deciding.
# 2. A *rollout* gives the agent more and more of the decisions, as soon as the evidence allows it.
# 3. Something breaks, and the rollout takes the decisions away from the agent.
#
# The house is simulated, so that you can run this on your machine. In your own program, only the two functions `weather` and
# `discomfort` are different.

# %%
import json
import subprocess
import sys
import time

import matplotlib.pyplot as plt
import numpy as np

import manul

rng = np.random.default_rng(0)


def weather():
    return {"outdoor": round(rng.normal(8, 7), 1), "wind": round(rng.gamma(2, 2), 1)}


def discomfort(context, temperature):
    """A loss from 0 to 1: how far the temperature is from what the house needs."""
    right = 24 + 1.3 * max(19 - context["outdoor"], 0) + 0.6 * context["wind"]
    return min(abs(temperature - right) / 50 + rng.uniform(0, 0.05), 1.0)


def rule(context):
    """What decides today: it heats too much when it is cold, and ignores the wind."""
    return float(np.clip(58 - 1.5 * context["outdoor"], 30, 60))


# %% [markdown]
# ## Start the service
#
# On the command line, `manul serve --store decisions.db` listens on port 8000 of the local machine, and shows a dashboard at
# `http://127.0.0.1:8000/`. Here the script starts it on a free port.


# %%
def start():
    command = [sys.executable, "-m", "manul", "serve", "--store", "decisions.db", "--port", "0"]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    listening = next(json.loads(line) for line in server.stderr if "listening" in line)
    return server, manul.Client(f"http://127.0.0.1:{listening['port']}")


server, client = start()
loop = client.create("heating", actions=(20, 70), apprentice=True)
print(f"loop {loop.name!r}: actions from {loop.actions[0]:g} to {loop.actions[1]:g}, apprentice: {loop.apprentice}")

# %% [markdown]
# A *loop* is one decision problem, with a name and a range of actions. Losses are in [0, 1] unless you pass `losses` or `rewards`.
# Any HTTP client works; `manul.Client` has a method for every route and retries requests that got no response. Here every hour has its
# loss. If yours can go missing, create the loop with `wait` and `default_loss`: every loss is then learned when its wait ends, because
# those that come fast are not like the others.
#
# ## Learn beside the rule
#
# Every hour, the program reports what the rule chose and what it led to. The `id` makes retries safe: an observation that is already stored
# is not counted twice. The apprentice needs some variation to learn from, so the rule varies its temperature by up to 5 degrees. It
# reports the density of its choice: 1/10 per degree. (If the rule sits at the end of its range, the varied temperature is cut off there, and the
# density is wrong. Leave `density` out in such a case.)


# %%
def wait_until_learned(count):
    while client.status("heating").learned < count:
        time.sleep(0.01)


losses = []
for hour in range(400):
    context = weather()
    temperature = float(np.clip(rule(context) + rng.uniform(-5, 5), 20, 70))
    losses.append(discomfort(context, temperature))
    client.observe("heating", context, action=temperature, density=1 / 10, loss=losses[-1], id=f"observed-{hour}")
wait_until_learned(400)
print(f"mean loss of the rule: {np.mean(losses):.3f}")

# %% [markdown]
# ## Start a rollout
#
# The baseline is the caller, that is, your own program: each request for a decision carries the `action` that the rule would choose. With
# probability 90 % the rule's action is played at first, with 10 % the agent's. The agent's loss may be at most 5 % above that of the
# rule (`tolerance`). As soon as this is proven at a confidence of 95 %, the agent gets half of the decisions, and then all but 2 %, which the
# rule keeps for ever as a control group.

# %%
rollout = client.start_rollout(
    "heating", baseline="caller", tolerance=0.05, confidence=0.95, steps=(0.1, 0.5, 1.0), least_decisions=100
)
print(rollout.sentence)

# %% [markdown]
# From now on the program asks the service, and reports the loss of what was played. It does not need to know which arm decided.


# %%
def discomfort_of(context, decision):
    return discomfort(context, decision.action)


def play(first_day, days, loss_of):
    """Ask for the decisions of one day at a time, and report what they led to."""
    for day in range(first_day, first_day + days):
        hours = [weather() for _ in range(24)]
        decisions = client.decide_many(
            "heating", hours, actions=[rule(each) for each in hours], ids=[f"day-{day}-{hour}" for hour in range(24)]
        )
        losses = [loss_of(context, decision) for context, decision in zip(hours, decisions)]
        client.report_losses("heating", list(zip(decisions, losses)))
        wait_until_learned(400 + 24 * (day + 1))


play(0, 90, discomfort_of)
rollout = client.rollout("heating")
print(rollout.sentence)
for move in rollout.moves:
    print(f"after {move.judged:5,} decisions: step {move.origin} -> {move.target}, {move.reason}")

# %% [markdown]
# Each move has its reason, and the evidence behind it. `excess` bounds the agent's mean loss minus what is tolerated: both ends below 0 mean
# "proven not to be worse". Each step is a test of its own, so the band starts anew. The dashboard shows the same picture.

# %%
figure, (above, below) = plt.subplots(2, 1, sharex=True, figsize=(7, 5), layout="constrained")


def draw(rollout):
    judged = [look.learner + look.baseline for look in rollout.looks]
    above.step(judged, [100 * look.traffic for look in rollout.looks], where="post", color="#0072B2")
    known = [(count, look.low, look.high) for count, look in zip(judged, rollout.looks) if look.low is not None]
    below.fill_between(*zip(*known), color="#0072B2", alpha=0.3, linewidth=0)
    below.axhline(0, color="black", linewidth=1)
    above.set_ylabel("agent's share, %")
    below.set_ylabel("excess loss over\nwhat is tolerated")
    below.set_ylim(-0.4, 0.4)
    below.set_xlabel("decisions with losses")


draw(rollout)
above.set_title("The agent takes over as soon as the evidence allows it")

# %% [markdown]
# ## Something breaks
#
# A new release of your program has a bug: if the agent decides, the valve stays at 20 degrees, whatever the agent has chosen. The rollout
# notices that the agent's decisions lead to higher losses than those of the rule, and takes the decisions away from it. That takes time: at
# 98 % of the traffic, the rule makes only one decision in fifty, and the comparison needs both. (`webhook=` reports each move to a URL of
# yours; a larger `holdout` notices sooner.)


# %%
def discomfort_with_bug(context, decision):
    return discomfort(context, 20.0 if decision.arm == "learner" else decision.action)


play(90, 45, discomfort_with_bug)
rollout = client.rollout("heating")
print(rollout.sentence)
for move in rollout.moves:
    print(f"after {move.judged:5,} decisions: step {move.origin} -> {move.target}, {move.reason}")

# %% [markdown]
# What it has cost is bounded: `spent` is an upper bound of the agent's total loss beyond the tolerance since the rollout began, and
# the traffic is limited so that it stays within `budget`.

# %%
print(f"spent at most {rollout.spent:.1f} of {rollout.budget:g}")

# %% [markdown]
# ## Kill it
#
# A decision is on disk before it is returned, and a loss before it is acknowledged. After a kill, the service resumes with the same model
# and the same rollout, byte for byte.

# %%
before = client.model("heating", "before.manul").read_bytes(), client.rollout("heating")
client.close()
server.kill()
server.communicate()
server, client = start()
after = client.model("heating", "after.manul").read_bytes(), client.rollout("heating")
print("same model:", before[0] == after[0], "- same moves:", before[1].moves == after[1].moves)

# %% [markdown]
# ## Use the log
#
# The log has every decision with its context, loss and density. The density is that of the mixture of both arms, so the log can be used
# to [evaluate](estimates.md) other policies and to [train](../how-to/off-policy.md) a better one. The column `rollout_arm` says who decided.

# %%
log = manul.Log.read(client.log("heating", "heating.parquet"))
print(f"{len(log):,} decisions, {log.arms.count('learner'):,} of them by the agent")
print(log.to_pandas()[["outdoor", "wind", "action", "density", "loss", "rollout_arm"]].tail(3).round(2).to_string())
client.close()
server.terminate()
log_lines = server.communicate()[1]

# %% [markdown]
# [The service](../service.md) describes missing and late losses, tokens, webhooks and limits, [Operate it](../operate.md) how to run it in
# production, and [Let it take over safely](../how-to/take-over.md) what exactly is guaranteed.
