# %% [markdown]
# # A dose with limits for each patient
#
# A medicine helps more at a higher dose, but less and less so, and its side effects grow faster and faster. The best dose differs between patients: it depends on
# weight, age, kidneys and metabolism. Today a guideline sets the dose by weight alone. This tutorial lets `manul.Auto` adjust the dose, under two
# conditions:
#
# - Each patient has a lower and an upper limit, and no dose may leave them (`within`).
# - Patients must not fare worse than with the guideline while the agent learns (`manul.Rollout`).
#
# **The patients and the medicine are simulated. Nothing here is a clinical recommendation**, and manul is not a medical device. The same
# conditions apply to any number that must not get worse: a dose of fertiliser, a credit limit, the set-point of a machine.
#
# ## The patients
#
# The score of a patient is between 0 (no symptoms, no side effects) and 100 (unbearable), and it is measured a week later. Lower is better, so it
# is a loss. The kidney function (eGFR) is missing for one patient in seven.

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
# The guideline has three weight classes. To be fair to it, we compare its doses with the best ones that any table by weight could have. Then we
# draw the score of three patients. The doctors set the limits: at least 40 % and at most twice the dose of the guideline, and never more
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

BLUE, RED, GREEN, PINK, ORANGE, _ = manul.plotting.COLOURS
axes = plt.figure(figsize=(10, 4.8), layout="constrained").subplots()
examples = ((BLUE, 40, 100, "normal"), (GREEN, 40, 100, "fast"), (RED, 80, 50, "normal"))
for colour, years, egfr, kind in examples:
    curve = mean_score(grid, years, 75, egfr, kind)
    axes.plot(grid, curve, color=colour, linewidth=2.4, label=f"{years} years, eGFR {egfr}, {kind}")
axes.axvline(20, color=manul.plotting.GREY, linestyle="--", linewidth=1.5, label="guideline")
axes.set_title("Mean score of patients of 75 kg")
manul.plotting.style(manul.plotting.from_zero(axes), "dose (mg)", "score (lower is better)");

# %% [markdown]
# A young patient with good kidneys should get more than the guideline says, an old patient with weak kidneys less. No table by weight can do both.
#
# ## A safe start
#
# `Rollout` gives the agent 10 % of the patients first, then 50 %, then all but 2 %. It moves up only when the scores prove that the agent is not
# worse than the guideline by more than the `tolerance`, 5 %. The `budget` limits what learning may cost beyond that: here 20 times the width of the
# range of scores, 2,000 points in total. The baseline is `"caller"`: with each decision we pass the dose that the doctor would give.

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
    bounds = f"between {move.low:.1f} and {move.high:.1f} points"
    print(f"after {move.judged:,} patients: step {move.origin} to {move.target}; excess over what is tolerated {bounds}")
print(rollout.evidence)

# %% [markdown]
# `excess` is the mean score of the agent's patients minus what is tolerated, 105 % of the score with the guideline. The rollout moves up as soon as
# the upper bound is below zero.
#
# ## What the caution cost, and what it bought
#
# For comparison, a second agent treats the same patients from the first one on, within the same limits but without a rollout.

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
    means = "".join(f"{scores[part].mean():{width}.1f}" for part, width in ((slice(100), 9), (slice(1000), 14), (slice(-2000, None), 13)))
    print(f"{name:14}  {means} {scores.mean():7.1f}   {np.sum(scores > with_guideline + 10):21} patients")

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
manul.plotting.style(lower, "patients", "score (lower is better)");

# %% [markdown]
# What the numbers mean:
#
# - In this simulation the caution was not necessary: the agent was better than the guideline from the first hundred patients on, because the
#   limits of each patient exclude the worst doses. Nobody could know that in advance. The rollout is the price of not knowing: about 3,500 patients during which most
#   get the dose of the guideline.
# - With either method, some patients get a dose that is clearly worse for them than that of the guideline. An agent has to try doses to learn. `within` is what
#   limits such trials for a single patient; the rollout limits them on average.
#
# ## What it has learned
#
# Doctors will ask what the agent does with whom. `agent.best(patient, within=...)` is its dose without exploration.

# %%
def best_permitted(low, high, *patient):
    doses = np.arange(low, high + 0.25, 0.25)
    return doses[mean_score(doses, *patient).argmin()]


axes = plt.figure(figsize=(10, 4.8), layout="constrained").subplots()
filtration = np.arange(20, 121, 2)
for years, kind, colour in ((40, "normal", BLUE), (80, "normal", RED), (80, "slow", PINK)):
    limits = [(8.0, 40.0 if egfr >= 30 else 20.0) for egfr in filtration]
    people = [{"age": years, "weight": 75.0, "egfr": float(egfr), "metabolism": kind} for egfr in filtration]
    learned = [agent.best(person, within=limit) for person, limit in zip(people, limits)]
    best = [best_permitted(*limit, years, 75, egfr, kind) for egfr, limit in zip(filtration, limits)]
    axes.plot(filtration, learned, color=colour, linewidth=2.4, label=f"{years} years, {kind}: learned")
    axes.plot(filtration, best, color=colour, linewidth=1.2, linestyle="--", label=f"{years} years, {kind}: best")
axes.plot(filtration, [high for _, high in limits], color=manul.plotting.GREY, linestyle=":", linewidth=2, label="upper limit")
axes.plot(filtration, np.full(len(filtration), 20.0), color=GREEN, linewidth=1.5, label="guideline")
axes.set_title("Dose for a patient of 75 kg")
manul.plotting.style(manul.plotting.from_zero(axes), "kidney function, eGFR (ml/min)", "dose (mg)");

# %% [markdown]
# The agent has learned to reduce the dose for weak kidneys, old age and slow metabolism, without being told. Where patients are rare, such as young ones with an eGFR below 50,
# its dose is less accurate.
#
# ## Who gains
#
# The rollout compares means over all patients. A mean can hide a group that fares worse, so compute the groups that you care about. We take the last
# 2,000 patients.

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
# What if somebody starts a useless agent? This one draws every dose at random within the limits (`epsilon=1`), for ever.

# %%
useless = manul.Auto(actions=(5, 60), losses=(0, 100), epsilon=1.0, seed=7)
guarded = manul.Rollout(useless, baseline="caller", tolerance=0.05, steps=(0.1, 0.5, 1.0), holdout=0.1, seed=7)
random_doses = np.array([decision.action for decision in treat(guarded, 6000)[0]])
random_scores = expected_scores(np.append(random_doses, guideline[6000:]))[:6000]
print(guarded.evidence)
print(f"mean score {random_scores.mean():.1f}, with the guideline alone {with_guideline[:6000].mean():.1f}")

# %% [markdown]
# ## The log
#
# Keep every decision with its density, its limits and its arm. With such a log, other doses can be judged before any patient gets them. As an example: what if
# all patients got 20 % less than the guideline? The estimate uses the patients who got about that dose by chance, weighted by their densities.

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


print("doctor:", manul.offpolicy.doctor(log))
print(manul.evaluate(less, log, estimator="dr", bandwidth=1.0))
print(f"true mean score: {expected_scores(0.8 * guideline).mean():.1f}")
