"""Differences between policies are paired, by segment, and hold as often as they say, also with clusters."""

import numpy as np
import pytest

import manul
from manul.errors import InputError, ParameterError
from manul.offpolicy.smoothed import Smoothed
from tests.twins import empirical_likelihood as twin

RANGE = (0.0, 1.0)
LOW, HIGH = Smoothed(lambda _: 0.25, 0.2, RANGE), Smoothed(lambda _: 0.7, 0.25, RANGE)


def named_log(rows=600, seed=0, users=60):
    rng = np.random.default_rng(seed)
    actions = rng.random(rows)
    columns = {"city": rng.choice(["Oslo", "Bath"], rows), "user": rng.integers(0, users, rows)}
    losses = (rng.random(rows) < actions).astype(float)
    ones = np.ones(rows)
    return manul.Log.from_table(columns | {"action": actions, "density": ones, "floor": ones, "loss": losses})


def weights(policy, log):
    window = policy.distribution(None)
    return window.density_many(log.actions)


def ends(comparison):
    return [(row.low, row.high) for row in comparison]


@pytest.mark.whole
def test_the_difference_to_the_logged_policy_is_the_paired_interval():
    log = named_log(300)
    (row,) = manul.compare([LOW], log)
    assert (row.low, row.high) == pytest.approx(twin.gain_interval(weights(LOW, log), log.losses, 2.5), abs=5e-4)
    assert (row.policy, row.against, row.verdict, row.rows) == ("1", "logged", "better", 300)


@pytest.mark.parametrize("against", ["high", HIGH])
def test_the_difference_of_two_policies_is_the_paired_interval(against):
    log, policies = named_log(), {"low": LOW, "high": HIGH} if isinstance(against, str) else {"low": LOW}
    row = next(iter(manul.compare(policies, log, against)))
    both = weights(LOW, log), log.losses, 2.5, weights(HIGH, log), 2.0
    assert (row.low, row.high) == pytest.approx(twin.gain_interval(*both), abs=5e-4)


def test_a_policy_against_itself_gains_nothing():
    (row,) = manul.compare({"low": LOW}, named_log(), LOW)
    assert row.difference == pytest.approx(0, abs=1e-9)
    assert row.low <= 0 <= row.high


def test_a_segment_is_the_comparison_of_its_rows():
    log = named_log()
    bath, oslo = manul.compare([LOW], log, by="city")
    only = log.rows(np.flatnonzero(log.fields["city"] == "Oslo"))
    assert (bath.segment, oslo.segment, oslo.rows) == ("Bath", "Oslo", len(only))
    assert ends([oslo]) == ends(manul.compare([LOW], only))


@pytest.mark.parametrize("settings", [{}, {"by": "city"}, {"clusters": "user"}, {"by": "city", "clusters": "user"}])
def test_batches_of_any_size_give_the_same_comparison(settings, monkeypatch):
    monkeypatch.setattr("manul.logs.sample.Sample.pieces.__defaults__", (128,))
    log = named_log()
    cut = [log.rows(slice(start, start + 7)) for start in range(0, 600, 7)]
    assert manul.compare({"low": LOW}, cut, **settings) == manul.compare({"low": LOW}, log, **settings)


def test_the_units_of_losses_do_not_matter():
    log = named_log()
    table = log.table.set_column(log.table.column_names.index("loss"), "loss", [10 * log.losses - 4])
    (one,), (other,) = (
        manul.compare([LOW], each, losses=losses)
        for each, losses in ((log, RANGE), (manul.Log.from_table(table), (-4, 6)))
    )
    expected = [10 * one.loss - 4, 10 * one.difference, 10 * one.low, 10 * one.high]
    assert [other.loss, other.difference, other.low, other.high] == pytest.approx(expected)


def test_rows_that_are_their_own_cluster_are_almost_rows():
    log = named_log()
    alone = log.table.set_column(log.table.column_names.index("user"), "user", [np.arange(600.0)])
    rows, clusters = (manul.compare([LOW], manul.Log.from_table(alone), clusters=name) for name in (None, "user"))
    assert ends(rows)[0] == pytest.approx(ends(clusters)[0], abs=5e-4)


@pytest.mark.whole
def test_the_interval_of_clusters_is_that_of_their_sums():
    log = named_log(150, users=12)
    (row,) = manul.compare([LOW], log, clusters="user")
    expected = twin.clustered_gain_interval(log.fields["user"], weights(LOW, log), log.losses, 2.5)
    assert (row.low, row.high) == pytest.approx(expected, abs=5e-4)


# Each user has one action of their own on all of their rows, and one loss.
def clustered_log(seed, users=40, each=10):
    rng = np.random.default_rng(seed)
    actions = rng.random(users).repeat(each)
    losses = (rng.random(users).repeat(each) < actions).astype(float)
    ones = np.ones(users * each)
    return manul.Log(np.arange(users, dtype=np.float32).repeat(each)[:, np.newaxis], actions, ones, losses, floors=ones)


@pytest.mark.parametrize(("clusters", "covers"), [(None, False), ("0", True)])
def test_the_interval_of_clusters_holds_where_that_of_rows_does_not(clusters, covers):
    logs = [clustered_log(seed) for seed in range(60)]
    held = [row.low <= 0.25 - 0.5 <= row.high for log in logs for row in manul.compare([LOW], log, clusters=clusters)]
    assert (np.mean(held) >= 0.93) == covers


def test_the_difference_of_two_policies_holds_as_often_as_it_says():
    logs = [named_log(200, seed) for seed in range(100)]
    held = [row.low <= -0.45 <= row.high for log in logs for row in manul.compare([LOW], log, HIGH)]
    assert np.mean(held) >= 0.93


def test_nothing_is_better_on_a_log_with_wrong_densities():
    rows, actions = 2000, np.random.default_rng(0).random(2000)
    log = manul.Log(np.zeros((rows, 1)), actions, np.full(rows, 0.5), actions, floors=np.full(rows, 0.5))
    comparison = manul.compare([LOW], log)
    (row,) = comparison
    assert (row.objections[0].title, row.high < 0, row.verdict) == ("wrong densities", True, "not shown")
    assert f"{row.difference:.4f}" not in str(comparison)
    assert str(comparison).splitlines()[1].split()[2:7] == [*["unknown"] * 4, "not"]


def test_a_policy_without_support_is_an_error():
    log = named_log()
    (row,) = manul.compare([Smoothed(lambda _: 5.0, 0.1, (0.0, 10.0))], log, actions=(0.0, 10.0))
    assert [objection.title for objection in row.objections] == ["no support"]
    assert row.verdict == "not shown"


@pytest.mark.parametrize(
    ("policies", "settings", "sentence"),
    [
        ({}, {}, "policies must have at least one policy"),
        ({"low": LOW}, {"against": "lwo"}, "against must be one of logged, low, or a policy, got 'lwo'"),
        ({"low": LOW}, {"against": "low"}, "policies must have at least one policy"),
        ({"low": LOW}, {"by": "town"}, r"by must be a column of the contexts \(city, user\), got 'town'"),
        ({"low": LOW}, {"clusters": "town"}, r"clusters must be a column of the contexts"),
        ({"low": LOW}, {"level": 1.0}, r"level must be in \(0, 1\)"),
        ({"low": 3}, {}, "policy must have a method distribution"),
    ],
)
def test_a_bad_setting_is_one_sentence(policies, settings, sentence):
    with pytest.raises(ParameterError, match=sentence):
        manul.compare(policies, named_log(), **settings)


def test_too_many_segments_are_refused():
    with pytest.raises(InputError, match="by has more than 100 values"):
        manul.compare([LOW], named_log(users=1000), by="user")


def test_a_row_without_a_cluster_is_named():
    log = named_log()
    users = np.append(log.fields["user"][:-1], np.nan)
    table = log.table.set_column(log.table.column_names.index("user"), "user", [users])
    with pytest.raises(InputError, match="clusters needs a value in every row; row 599 has none"):
        manul.compare([LOW], manul.Log.from_table(table), clusters="user")


def without_floors(log):
    return manul.Log(np.zeros((len(log), 1), np.float32), log.actions, log.densities, log.losses)


def test_two_policies_can_be_told_apart_on_a_log_without_floors():
    log = without_floors(named_log(3000))
    (row,) = manul.compare({"low": LOW, "high": HIGH}, log, "high")
    assert row.verdict == "better"
    assert row.high - row.low < 0.4


def test_the_difference_is_that_of_the_self_normalised_losses():
    log = without_floors(named_log())
    (row,) = manul.compare([LOW], log)
    assert row.difference == pytest.approx(row.loss - log.losses.mean(), abs=1e-12)
    (row,) = manul.compare([LOW], manul.Log(log.contexts, log.actions, log.densities, 0 * log.losses))
    assert row.difference == 0


def test_a_policy_without_support_is_no_standard_of_comparison():
    log = named_log()
    low_only = log.rows(np.flatnonzero(log.actions < 0.4))
    (row,) = manul.compare([LOW], low_only, HIGH)
    assert (row.objections[0].severity, row.objections[0].title) == ("error", "no support")
    assert np.isnan(row.difference)


def test_estimated_densities_of_actions_that_were_hardly_played_are_refused():
    log = named_log()
    estimated = log.with_estimated_densities(np.full(len(log), 3.0))
    (row,) = manul.compare([LOW], estimated)
    assert row.objections[0].title == "estimated densities"
    assert np.isnan(row.loss)
    fair = log.with_estimated_densities(np.full(len(log), 1.1))
    assert ends(manul.compare([LOW], fair))[0][0] < ends(manul.compare([LOW], without_floors(log)))[0][0]


def test_a_column_may_be_absent_from_a_batch():
    log = named_log()
    bare = manul.Log.from_table(
        {"user": np.zeros(9000), "action": np.full(9000, 0.5)}
        | {n: np.ones(9000) for n in ("density", "floor", "loss")}
    )
    assert [row.segment for row in manul.compare([LOW], [bare, log], by="city")] == ["(missing)", "Bath", "Oslo"]


def test_a_segment_named_missing_keeps_its_rows():
    names = [None, "(missing)"] * 50
    log = manul.Log.from_table({"city": names, "action": [0.2] * 100, "density": [1.0] * 100, "loss": [0.5] * 100})
    (row,) = manul.compare([LOW], log, by="city")
    assert row.rows == 100


def test_a_feature_that_no_sparse_context_has_is_an_unknown_column(tmp_path):
    path = tmp_path / "log.vw"
    path.write_text("ca 0.3:0.5:1.0 | age:31 old\nca 0.3:0.25:1.0 | age:20\n")
    log = manul.Log.read(path)
    assert [(row.segment, row.rows) for row in manul.compare([LOW], log, by="old")] == [("(missing)", 1), (1.0, 1)]
    with pytest.raises(ParameterError, match=r"by must be a column of the contexts \(age, old\), got 'new'"):
        manul.compare([LOW], log, by="new")


@pytest.mark.parametrize("policies", [LOW, {1: LOW}, {"logged": LOW}])
def test_policies_need_names_that_can_be_told_apart(policies):
    with pytest.raises(ParameterError, match="olicies must be"):
        manul.compare(policies, named_log(20))
