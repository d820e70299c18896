# %% [markdown]
# # A dose with limits for each patient
#
# A medicine relieves symptoms. A higher dose helps more, but less and less so, and the side effects grow ever faster. The
# best dose depends on weight, age, kidneys and metabolism. Today a guideline sets the dose by weight alone. In this
# tutorial `manul.Auto` adjusts the dose, under two conditions:
#
# - Each patient has a lowest and a highest dose, and no dose may be outside of them (`within`).
# - While the agent learns, patients on average must not fare clearly worse than with the guideline (`manul.Rollout`).
#
# **The patients and the medicine are simulated. A simulation is not a clinical recommendation, and manul is not a medical
# device.** The same conditions apply to other numbers that must not get worse, such as a credit limit or the set-point of
# a machine.
#
# ## The patients
#
# The result of a treatment is a clinical score, measured a week later: 0 means no symptoms and no side effects, 100 is
# the worst. Lower is better, so the score is a loss. The kidney function (eGFR) is missing for one patient in seven.

# %%
import matplotlib.pyplot as plt
import numpy as np

import manul

PATIENTS = 12_000
rng = np.random.default_rng(2)
age = rng.integers(25, 93, PATIENTS)
weight = np.clip(rng.normal(76, 15, PATIENTS), 42, 130).round(1)
kidneys = np.clip(122 - 0.9 * (age - 20) + rng.normal(0, 22, PATIENTS), 15, 130).round()
metabolism = rng.choice(["normal", "slow", "fast"], PATIENTS, p=[0.6, 0.2, 0.2])
has_egfr = rng.random(PATIENTS) < 6 / 7
noise = rng.normal(0, 8, PATIENTS)


def mean_score(dose, age, weight, kidneys, metabolism):
    """The mean score after a dose in mg: the symptoms that remain, and the side effects."""
    slow, fast = np.equal(metabolism, "slow"), np.equal(metabolism, "fast")
    half_effect = 14 * weight / 75 * np.where(slow, 0.5, np.where(fast, 2.0, 1.0))
    tolerated = 70 * weight / 75 * kidneys / 90 * np.where(np.greater(age, 70), 0.7, 1.0) * np.where(slow, 0.6, 1.0)
    symptoms, side_effects = 70 * half_effect / (dose + half_effect), 40 * (dose / tolerated) ** 2
    return np.minimum(symptoms + side_effects, 100)


def expected_scores(doses):
    """The mean scores of one dose per patient, without noise."""
    return mean_score(doses, age, weight, kidneys, metabolism)


def measured_score(dose, i):
    """The score of a patient a week after the dose."""
    return float(np.clip(mean_score(dose, age[i], weight[i], kidneys[i], metabolism[i]) + noise[i], 0, 100))


patients = [
    {"age": int(age[i]), "weight": float(weight[i]), "egfr": float(kidneys[i]) if has_egfr[i] else None}
    | {"metabolism": str(metabolism[i])}
    for i in range(PATIENTS)
]
for patient in patients[:3]:
    print(patient)

# %% [markdown]
# ## The guideline, and the limits
#
# The guideline has three weight classes. To be fair to it, we compare its doses with the best ones that any table by
# weight can have. The doctors set the limits: at least 40 % and at most twice the dose of the guideline, and never more
# than the guideline if the kidneys are weak (eGFR below 30) or were not measured.

# %%
classes = np.digitize(weight, [60, 90])
guideline = np.array([15.0, 20.0, 25.0])[classes]
lows, highs = 0.4 * guideline, np.where(has_egfr & (kidneys >= 30), 2 * guideline, guideline)

grid = np.arange(5, 60.5, 0.5)
by_dose = np.array([expected_scores(np.full(PATIENTS, dose)) for dose in grid])
table = [grid[by_dose[:, classes == number].mean(axis=1).argmin()] for number in range(3)]
permitted = np.where((grid[:, np.newaxis] >= lows) & (grid[:, np.newaxis] <= highs), by_dose, np.inf)
with_guideline = expected_scores(guideline)
best_table = ", ".join(f"{dose:g}" for dose in table)
for name, scores in (
    ("guideline, 15, 20 or 25 mg", with_guideline),
    (f"best table by weight, {best_table} mg", expected_scores(np.array(table)[classes])),
    ("best dose for each patient, within the limits", permitted.min(axis=0)),
):
    print(f"{name:46} mean score {scores.mean():.1f}")

BLUE, RED, GREEN, _, ORANGE, _ = manul.plotting.COLOURS
axes = plt.figure(figsize=(10, 4.8), layout="constrained").subplots()
examples = ((BLUE, 40, 100, "normal"), (GREEN, 40, 100, "fast"), (RED, 80, 50, "normal"))
for colour, years, egfr, kind in examples:
    curve = mean_score(grid, years, 75, egfr, kind)
    axes.plot(grid, curve, color=colour, linewidth=2.4, label=f"{years} years, eGFR {egfr}, {kind}")
axes.axvline(20, color=manul.plotting.GREY, linestyle="--", linewidth=1.5, label="guideline")
axes.set_title("Mean score of patients of 75 kg")
manul.plotting.style(manul.plotting.from_zero(axes), "dose (mg)", "score (lower is better)")

# %% [markdown]
# A young patient with good kidneys should get more than the guideline says, and an old patient with weak kidneys less. No
# table by weight can do both.
#
# ## A safe start
#
# `Rollout` gives the agent 10 % of the patients first, then 50 %, then 90 %. The guideline keeps 10 % for ever
# (`holdout`), so that the comparison never ends. The rollout moves up a step when the scores prove that the agent's mean
# score is at most 5 % above that of the guideline (`tolerance`), and down when they prove that it is above that. The
# baseline is `"caller"`: with each decision, we pass the dose that the doctor would give.
#
# The loop below learns from each score at once. In a clinic, call `learn` when the score arrives, a week later.


# %%
def treat(rollout, count):
    """Treat the first patients; returns their decisions and the share of the agent at each of them."""
    decisions, traffic = [], []
    for i, patient in enumerate(patients[:count]):
        limits = (float(lows[i]), float(highs[i]))
        decision = rollout.decide(patient, within=limits, action=float(guideline[i]))
        rollout.learn(patient, decision, measured_score(decision.action, i))
        decisions.append(decision)
        traffic.append(rollout.traffic)
    return decisions, np.array(traffic)


agent = manul.Auto(actions=(5, 60), losses=(0, 100), seed=7)
rollout = manul.Rollout(agent, baseline="caller", tolerance=0.05, steps=(0.1, 0.5, 1.0), holdout=0.1, seed=7)
decisions, traffic = treat(rollout, PATIENTS)
doses = np.array([decision.action for decision in decisions])
outside = np.sum((doses < lows) | (doses > highs))
print(f"doses outside the limits of the patient: {outside} of {PATIENTS:,}")
for move in rollout.evidence.moves:
    print(
        f"after {move.judged:,} patients: step {move.origin} to {move.target}; excess {move.low:.3f} to {move.high:.3f}"
    )
print(rollout.evidence)

# %% [markdown]
# The excess is the mean score of the agent's patients minus what is tolerated, 105 % of the mean score with the
# guideline. The two numbers are its confidence bounds. The rollout moves up as soon as both are below zero.
#
# ## What the caution cost, and what it bought
#
# For comparison, a second agent treats the same patients from the first one on, within the same limits but without a
# rollout.

# %%
bold = manul.Auto(actions=(5, 60), losses=(0, 100), seed=7)
bold_doses = np.empty(PATIENTS)
for i, patient in enumerate(patients):
    decision = bold.decide(patient, within=(float(lows[i]), float(highs[i])))
    bold.learn(patient, decision, measured_score(decision.action, i))
    bold_doses[i] = decision.action

results = {"guideline": with_guideline, "rollout": expected_scores(doses), "agent at once": expected_scores(bold_doses)}
print("mean score      first 100   first 1,000   last 2,000     all   10 points worse than the guideline")
for name, scores in results.items():
    means = "".join(
        f"{scores[part].mean():{width}.1f}"
        for part, width in ((slice(100), 9), (slice(1000), 14), (slice(-2000, None), 13))
    )
    print(f"{name:14}  {means} {scores.mean():7.1f}   {np.sum(scores > with_guideline + 10):21} patients")
lost = (results["rollout"] - with_guideline).cumsum()
print(f"rollout: at most {max(lost.max(), 0):,.0f} points lost in total, after {lost.argmax() + 1:,} patients")

figure = plt.figure(figsize=(10, 6.4), layout="constrained")
upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(1, 2))
upper.plot(np.arange(PATIENTS), 100 * traffic, color=BLUE, linewidth=1.8)
upper.set_title("Share of the agent, and mean score of the last 1,000 patients")
ends = np.arange(500, PATIENTS + 1, 100)
starts = np.maximum(ends - 1000, 0)
for (name, scores), colour in zip(results.items(), (GREEN, BLUE, ORANGE)):
    total = np.append(0, scores.cumsum())
    lower.plot(ends, (total[ends] - total[starts]) / (ends - starts), color=colour, linewidth=2, label=name)
upper.set_ylim(0, 100)
manul.plotting.style(upper, "", "share of patients (%)")
manul.plotting.style(lower, "patients", "score (lower is better)")

# %% [markdown]
# What the numbers mean:
#
# - At the end, the mean score is 3.7 points lower than with the guideline, in a range of 100. The best possible dose for
#   each patient would lower it by 4.6.
# - In this simulation the caution was not needed: the agent alone was better than the guideline within the first few
#   hundred patients. Nobody could know that in advance. Not knowing cost about 3,500 patients of whom most got the dose
#   of the guideline.
# - While the rollout learned, its patients together never lost more than the number of points in the last line. It is far
#   below what was permitted.
# - With both methods, a few patients got a dose that was much worse for them than that of the guideline. An agent has to
#   try doses to learn. `within` limits the trials of each patient; the rollout limits what they cost on average.
#
# ## What it has learned
#
# Doctors will ask who gets which dose. `agent.best(patient, within=...)` is the dose without exploration. The dashed
# lines are the best doses of the simulation.


# %%
def best_permitted(low, high, *patient):
    doses = np.arange(low, high + 0.25, 0.25)
    return doses[mean_score(doses, *patient).argmin()]


axes = plt.figure(figsize=(10, 4.8), layout="constrained").subplots()
filtration = np.arange(20, 101, 2)
for years, kind, colour in ((40, "normal", BLUE), (80, "normal", RED)):
    limits = [(8.0, 40.0 if egfr >= 30 else 20.0) for egfr in filtration]
    people = [{"age": years, "weight": 75.0, "egfr": float(egfr), "metabolism": kind} for egfr in filtration]
    learned = [agent.best(person, within=limit) for person, limit in zip(people, limits)]
    best = [best_permitted(*limit, years, 75, egfr, kind) for egfr, limit in zip(filtration, limits)]
    axes.plot(filtration, learned, color=colour, linewidth=2.4, label=f"{years} years, learned")
    axes.plot(filtration, best, color=colour, linewidth=1.2, linestyle="--", label=f"{years} years, best")
axes.plot(
    filtration, [high for _, high in limits], color=manul.plotting.GREY, linestyle=":", linewidth=2, label="upper limit"
)
axes.plot(filtration, np.full(len(filtration), 20.0), color=GREEN, linewidth=1.5, label="guideline")
axes.set_title("Dose for a patient of 75 kg with normal metabolism")
manul.plotting.style(manul.plotting.from_zero(axes), "kidney function, eGFR (ml/min)", "dose (mg)")

# %% [markdown]
# The agent has learned from the scores alone to reduce the dose for weak kidneys and old age. Its dose moves in steps,
# because `Auto` models the score partly by regression trees, and it is inexact if such patients are rare. Near the best
# dose the score is flat, so the steps cost little. A doctor may still not want them: then fit a smooth rule to these
# doses, and let the rule take over by a rollout of its own.
#
# ## Who gains
#
# The rollout compares means over all patients. A mean can hide a group that fares worse, so look at the groups that you
# care about. These are the last 2,000 patients:

# %%
groups = {
    "older than 70": age > 70,
    "eGFR below 45": kidneys < 45,
    "slow metabolism": metabolism == "slow",
    "fast metabolism": metabolism == "fast",
    "eGFR not measured": ~has_egfr,
    "all": np.full(PATIENTS, fill_value=True),
}
print("last 2,000 patients   number   guideline   rollout   difference")
for name, members in groups.items():
    who = np.flatnonzero(members[-2000:]) + PATIENTS - 2000
    before, now = with_guideline[who].mean(), results["rollout"][who].mean()
    print(f"{name:20} {len(who):7} {before:11.1f} {now:9.1f} {now - before:+12.1f}")

# %% [markdown]
# ## If the agent is not better
#
# What if somebody starts a useless agent? This one draws every dose at random within the limits, and never stops
# (`epsilon=1`).

# %%
useless = manul.Auto(actions=(5, 60), losses=(0, 100), epsilon=1.0, seed=7)
guarded = manul.Rollout(useless, baseline="caller", tolerance=0.05, steps=(0.1, 0.5, 1.0), holdout=0.1, seed=7)
random_doses = np.array([decision.action for decision in treat(guarded, 6000)[0]])
random_scores = expected_scores(np.append(random_doses, guideline[6000:]))[:6000]
print(guarded.evidence)
print(f"mean score {random_scores.mean():.1f}, with the guideline alone {with_guideline[:6000].mean():.1f}")

# %% [markdown]
# Its patients fare worse, and the rollout does not move up: nine of ten patients still get the dose of the guideline, and
# the mean score of all patients is hardly affected. The rollout does not move down either, because the agent is so close
# to the tolerated 5 % that the scores do not prove it to be worse than that.
#
# ## What is guaranteed, and what is not
#
# Guaranteed, for every patient: the dose is within the limits that you pass.
#
# Guaranteed on average, each with a confidence of 95 %, however often you look:
#
# - The rollout moves up only if the agent's mean score in that step is at most 5 % above that of the guideline, and down
#   only if it is above that.
# - At all times, the agent's patients together have lost at most 5 % of the scores with the guideline, plus the `budget`.
#   By default the budget is 100 times the width of the range of scores: 10,000 points, as many as 100 patients lose whose
#   score is 100 instead of 0. A smaller budget makes the first steps slower.
#
# Not guaranteed:
#
# - that a single patient or a group is not worse off;
# - anything about harm that the score does not measure, or that shows later than the score;
# - anything if scores are missing more often with some doses than with others, for example because patients with side
#   effects do not come back. Report a score for every patient.
#
# ## The log
#
# Keep every decision with its density, its limits and its arm. Then you can ask what other doses would have done, without
# treating anybody. Here we ask: what if every patient got 20 % less than the guideline says?

# %%
log = manul.Log.from_table(
    {name: [patient[name] for patient in patients] for name in patients[0]}
    | {"action": doses, "density": [decision.density for decision in decisions], "low": lows, "high": highs}
    | {"loss": [measured_score(dose, i) for i, dose in enumerate(doses)]}
    | {"rollout_arm": [decision.arm for decision in decisions]},
    action_range=(5, 60),
    loss_range=(0, 100),
)


def less(patient):
    return 0.8 * (15 if patient["weight"] < 60 else 20 if patient["weight"] < 90 else 25)


print(manul.evaluate(less, log, estimator="dr", bandwidth=1.0))
print(f"true mean score: {expected_scores(0.8 * guideline).mean():.1f}")

# %% [markdown]
# The estimate says itself that it is not worth much: hardly any patient got such a dose. Its interval is wide, and
# contains the true score. To answer such questions, the agent has to explore more: `manul.Auto(nearby=0.1)` explores near
# its best dose, and [Reading an off-policy estimate](estimates.md) explains the numbers. [A service](service.md) runs a
# rollout over HTTP, where a bug makes the agent worse and the rollout goes back by itself.
