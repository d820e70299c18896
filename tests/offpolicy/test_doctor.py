"""The doctor finds each defect that is planted, and nothing in a clean log."""

import numpy as np
import pytest

import manul
from manul.errors import InputError
from manul.offpolicy import doctor, estimate_densities
from manul.offpolicy.evaluation import report


def replace(log, **columns):
    """The log with other columns."""
    names = ("contexts", "actions", "densities", "losses", "lows", "highs")
    return manul.Log(**{name: getattr(log, name) for name in names} | columns)


def clean(seed=0, rows=20_000, epsilon=0.05, bandwidth=1 / 8, actions=(0.0, 1.0)):
    span = actions[1] - actions[0]
    agent = manul.Cats(leaves=16, bandwidth=bandwidth * span, epsilon=epsilon, actions=actions, seed=seed)
    return manul.simulate(agent, manul.worlds.linear(rounds=rows, width=4, seed=seed)).log


def found(log, **settings):
    return {finding.title: finding for finding in doctor(log, **settings)}


@pytest.mark.parametrize("seed", [*range(8), *(pytest.param(seed, marks=pytest.mark.whole) for seed in range(8, 50))])
def test_a_clean_log_passes(seed):
    assert doctor(clean(seed, rows=8000)) == []


@pytest.mark.parametrize(("epsilon", "bandwidth"), [(1.0, 1 / 8), (0.2, 1 / 64), (0.02, 1 / 4)])
def test_clean_logs_of_other_settings_pass(epsilon, bandwidth):
    assert doctor(clean(3, rows=50_000, epsilon=epsilon, bandwidth=bandwidth)) == []


def test_a_clean_log_in_other_units_passes():
    assert doctor(clean(1, actions=(-10.0, 30.0)), actions=(-10.0, 30.0)) == []


def test_a_clean_log_of_narrowed_rounds_passes():
    agent = manul.Cats(leaves=32, bandwidth=1 / 32, epsilon=0.1)
    assert doctor(manul.simulate(agent, manul.worlds.ranges(rounds=20_000)).log) == []


def test_a_clean_log_of_discrete_actions_passes():
    agent = manul.agents.DiscreteTree(leaves=8, epsilon=0.1)
    assert doctor(manul.simulate(agent, manul.worlds.linear(rounds=20_000)).log) == []


def test_wrong_densities_are_found():
    log = clean()
    wrong = found(replace(log, densities=log.densities / 2))["wrong densities"]
    assert wrong.severity == "error"
    assert "but is 2" in wrong.sentence or "but is 1.9" in wrong.sentence


# What CATX does: an explored action has density epsilon even where the greedy window covers it.
def test_densities_of_epsilon_for_every_explored_action_are_found(rng):
    rows, epsilon, h = 20_000, 0.1, 1 / 8
    centres, explored = rng.uniform(h, 1 - h, rows), rng.random(rows) < epsilon
    actions = np.where(explored, rng.random(rows), centres + h * rng.uniform(-1, 1, rows))
    densities = np.where(explored, epsilon, epsilon + (1 - epsilon) / (2 * h))
    log = manul.Log(rng.random((rows, 2), np.float32), actions, densities, np.abs(actions - 0.5))
    assert found(log)["wrong densities"].severity == "error"
    right = epsilon + (1 - epsilon) / (2 * h) * (np.abs(actions - centres) <= h)
    assert doctor(replace(log, densities=right)) == []


def test_densities_that_are_wrong_for_some_actions_are_found(rng):
    actions, ones = rng.random(20_000), np.ones(20_000)
    skewed = np.where(actions < 0.5, 2 / 3, 2.0)
    log = manul.Log(rng.random((20_000, 2), np.float32), actions, skewed, 0.5 * ones)
    titles = found(log)
    assert "0 to 0.5" in titles["wrong densities"].sentence


def test_missing_exploration_is_found():
    greedy = found(clean(epsilon=0.0))["missing exploration"]
    assert greedy.severity == "error"
    assert "cover about 25 % of the range" in greedy.sentence


def test_duplicated_rows_are_found():
    log = clean()
    doubled = [log, log.rows(slice(0, 2000))]
    assert found(doubled)["duplicated rows"].severity == "error"
    assert found([log, log.rows(slice(0, 100))])["duplicated rows"].severity == "warning"


@pytest.mark.parametrize(("rows", "copies"), [(4000, 1), (4000, 3), (60, 2)])
def test_a_few_duplicated_rows_are_no_problem(rows, copies):
    log = clean(rows=rows)
    assert "duplicated rows" not in found([log, log.rows(slice(7, 7 + copies))])


def test_losses_outside_the_range_are_found():
    log = clean()
    losses = log.losses.copy()
    losses[[17, 40]] = 1.5, np.nan
    finding = found(replace(log, losses=losses))["losses outside the range"]
    assert "2 of 20,000 losses are not in [0, 1]; the first is 1.5 in row 17" in finding.sentence
    assert finding.severity == "error"


@pytest.mark.parametrize(("name", "value"), [("densities", 0.0), ("densities", np.inf), ("actions", 7.0)])
def test_densities_and_actions_that_cannot_be_are_found(name, value):
    log = clean()
    column = getattr(log, name).copy()
    column[3] = value
    assert f"{name} outside the range" in found(replace(log, **{name: column}))


@pytest.mark.parametrize("change", [lambda x: x + 1, lambda x: 3 * x])
def test_contexts_that_drift_are_found(change):
    log = clean()
    contexts = log.contexts.copy()
    contexts[14_000:, 2] = change(contexts[14_000:, 2])
    finding = found(replace(log, contexts=contexts))["context drift"]
    assert "1 of 4 features" in finding.sentence
    assert "feature 2" in finding.sentence


def test_actions_with_no_support_are_found(rng):
    actions = rng.random(20_000) * 0.8
    log = manul.Log(rng.random((20_000, 2), np.float32), actions, np.full(20_000, 1.25), actions**2)
    finding = found(log)["actions with no support"]
    assert finding.severity == "error"
    assert "Actions 0.8 to 1 " in finding.sentence
    assert doctor(log, actions=(0.0, 0.8)) == []


def test_a_small_effective_sample_is_a_note_that_says_what_it_means():
    assert found(clean(rows=300))["small effective sample"].severity == "warning"
    note = found(clean(rows=1200))["small effective sample"]
    assert (note.severity, "of 1,200 rows explored; a policy very different" in note.sentence) == ("note", True)


def test_a_small_log_of_random_actions_is_not_told_to_explore_more():
    actions = np.random.default_rng(0).random(30)
    log = manul.Log(np.zeros((30, 1), np.float32), actions, np.ones(30), actions)
    assert "Log more decisions if you plan" in found(log)["small effective sample"].sentence


def test_a_log_of_an_agent_that_fades_has_no_warning():
    agent = manul.Auto(epsilon=manul.schedules.Fading())
    log = manul.simulate(agent, manul.worlds.linear(rounds=2000, width=4)).log
    assert [finding.severity for finding in doctor(log)] == ["note"]


def test_a_log_of_a_default_agent_is_said_to_explore_rarely_and_nothing_else():
    log = manul.simulate(manul.Auto(), manul.worlds.linear(rounds=2000, width=4)).log
    assert [finding.title for finding in doctor(log)] == ["small effective sample"]


def test_the_effective_sample_is_that_of_the_given_policy():
    log = clean(rows=20_000)
    far = manul.Cats(leaves=256, bandwidth=1 / 1000, epsilon=0.0, seed=1)
    assert "for this policy" in found(log, policy=far)["small effective sample"].sentence


def test_the_worst_comes_first():
    log = clean()
    contexts = log.contexts + np.linspace(0, 3, len(log), dtype=np.float32)[:, np.newaxis]
    findings = doctor(replace(log, contexts=contexts, densities=log.densities / 2))
    assert [finding.severity for finding in findings] == ["error", "warning"]
    assert not report.fit(findings)
    assert report.findings_text(findings).endswith("not suitable for off-policy evaluation.")


@pytest.mark.parametrize("size", [1000, 7777])
def test_batches_change_nothing(size):
    log = clean(epsilon=0.0)
    assert doctor([log.rows(slice(at, at + size)) for at in range(0, len(log), size)]) == doctor(log)


def test_an_empty_log_is_refused():
    with pytest.raises(InputError, match="no rows"):
        doctor([])


def test_estimated_densities_are_close_and_never_silent():
    log = clean(rows=6000, epsilon=0.5, bandwidth=1 / 4)
    guessed = estimate_densities(replace(log, densities=np.ones(len(log))))
    assert np.corrcoef(guessed.densities, log.densities)[0, 1] > 0.6
    assert np.mean(1 / guessed.densities) == pytest.approx(1, abs=0.1)
    assert found([guessed.rows(slice(0, 900)), log])["estimated densities"].severity == "note"


def test_a_constant_policy_has_its_own_shares_as_densities(rng):
    actions = np.where(rng.random(4000) < 0.75, rng.uniform(0, 0.5, 4000), rng.uniform(0.5, 1, 4000))
    log = manul.Log(np.zeros((4000, 1), np.float32), actions, np.ones(4000), np.ones(4000))
    densities = estimate_densities(log).densities
    assert np.median(densities[actions < 0.5]) == pytest.approx(1.5, abs=0.2)
    assert np.median(densities[actions > 0.5]) == pytest.approx(0.5, abs=0.1)


def test_numbers_stored_as_text_are_pointed_out():
    rng = np.random.default_rng(0)
    columns = {"action": rng.random(400), "density": np.ones(400), "loss": rng.random(400)}
    ages = rng.integers(18, 90, 400)
    for values, expected in ((ages.astype(str), 1), (ages, 0), ([f"{age} years" for age in ages], 0)):
        found = doctor(manul.Log.from_table({"age": [*values], **columns}))
        assert [each.title for each in found].count("numbers stored as text") == expected
