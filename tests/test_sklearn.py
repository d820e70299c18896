"""The estimators of `manul.sklearn` keep the conventions of scikit-learn, and decide like what they wrap."""

import numpy as np
import pandas
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import check_array, column_or_1d

import manul
from manul.errors import InputError, ParameterError
from manul.sklearn import AutoRegressor, PolicyRegressor, outcomes

RANGE = (-500.0, 500.0)


def told(y):
    """The target of scikit-learn's checks as logged actions, drawn uniformly, with losses."""
    if y is None:
        return None
    actions = column_or_1d(check_array(y, ensure_2d=False, dtype=np.float64, input_name="y"), warn=True)
    return outcomes(actions, np.full(len(actions), 0.001), np.tanh(actions) ** 2)


class CheckedPolicy(PolicyRegressor):
    """The estimator for scikit-learn's checks, whose targets are plain numbers: it adds densities and losses."""

    def fit(self, X, y):
        return super().fit(X, told(y))

    def score(self, X, y):
        return super().score(X, told(y))


class CheckedAuto(AutoRegressor):
    """The same of the online estimator."""

    def fit(self, X, y):
        return super().fit(X, told(y))

    def partial_fit(self, X, y):
        return super().partial_fit(X, told(y))

    def score(self, X, y):
        return super().score(X, told(y))


def expected_failures(_):
    """None: what the checks do not reach is that a plain target without losses is refused (below)."""
    return {}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(
    [CheckedPolicy(actions=RANGE), CheckedAuto(actions=RANGE)], expected_failed_checks=expected_failures
)
def test_the_conventions_of_scikit_learn_hold(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def logged():
    rng = np.random.default_rng(0)
    X, actions = rng.random((1200, 2)), rng.random(1200)
    return X, actions, np.ones(1200), np.abs(actions - X[:, 0])


def test_the_policy_is_that_of_optimize(logged):
    X, actions, densities, losses = logged
    fitted = PolicyRegressor(loss_range=(0, 1), seed=3).fit(X, actions, sample_densities=densities, losses=losses)
    log = manul.Log(X.astype(np.float32), actions, densities, losses, action_range=(0, 1), loss_range=(0, 1))
    policy = manul.optimize(log, seed=3).policy
    assert manul.dumps(fitted.policy_) == manul.dumps(policy)
    assert fitted.predict(X[:50]).tolist() == [policy.best(row) for row in X[:50].astype(np.float32)]


def test_one_target_says_the_same_as_three_arguments(logged):
    X, actions, densities, losses = logged
    one = PolicyRegressor().fit(X, outcomes(actions, densities, losses))
    other = PolicyRegressor().fit(X, actions, sample_densities=densities, losses=losses)
    assert manul.dumps(one.policy_) == manul.dumps(other.policy_)
    assert one.score(X, outcomes(actions, densities, losses)) == other.score(
        X, actions, sample_densities=densities, losses=losses
    )


def test_the_score_is_the_negative_estimate_of_the_loss(logged):
    X = logged[0]
    policy = PolicyRegressor(loss_range=(0, 1)).fit(X[:800], outcomes(*(each[:800] for each in logged[1:])))
    held_out = [each[800:] for each in logged]
    log = manul.Log(held_out[0].astype(np.float32), *held_out[1:], action_range=(0, 1), loss_range=(0, 1))
    assert policy.score(held_out[0], outcomes(*held_out[1:])) == -manul.evaluate(policy.policy_, log).value


def test_rewards_give_the_policy_of_their_negative_losses(logged):
    X, actions, densities, losses = logged
    one = PolicyRegressor(loss_range=(0, 1)).fit(X, outcomes(actions, densities, losses))
    other = PolicyRegressor(loss_range=(-1, 0), rewards=True).fit(X, outcomes(actions, densities, -losses))
    assert one.predict(X[:50]).tolist() == other.predict(X[:50]).tolist()
    assert one.score(X, outcomes(actions, densities, losses)) == pytest.approx(
        other.score(X, outcomes(actions, densities, -losses))
    )


def test_a_search_over_a_pipeline_takes_the_outcomes_as_its_target(logged):
    X, *rest = logged
    pipeline = make_pipeline(StandardScaler(), PolicyRegressor(loss_range=(0, 1)))
    search = GridSearchCV(pipeline, {"policyregressor__candidates": ["auto", "cats"]}, cv=2, error_score="raise")
    search.fit(X, outcomes(*rest))
    assert search.best_score_ > -0.2
    assert np.abs(search.predict(X) - X[:, 0]).mean() < 0.1


def test_metadata_routing_takes_densities_and_losses_by_name(logged):
    X, actions, densities, losses = logged
    with sklearn.config_context(enable_metadata_routing=True):
        policy = PolicyRegressor(loss_range=(0, 1)).set_fit_request(sample_densities=True, losses=True)
        policy = policy.set_score_request(sample_densities=True, losses=True)
        routed = cross_val_score(
            policy, X, actions, cv=2, params={"sample_densities": densities, "losses": losses}, error_score="raise"
        )
    plain = cross_val_score(PolicyRegressor(loss_range=(0, 1)), X, outcomes(actions, densities, losses), cv=2)
    assert routed.tolist() == plain.tolist()


@pytest.mark.parametrize("kind", [PolicyRegressor, AutoRegressor])
def test_a_data_frame_is_named_contexts_of_any_kind(logged, kind):
    X, actions, densities, _ = logged
    frame = pandas.DataFrame({"city": np.where(X[:, 0] < 0.5, "Oslo", None), "age": X[:, 1]})
    best = np.where(X[:, 0] < 0.5, 0.2, 0.8)
    policy = kind(loss_range=(0, 1)).fit(frame, outcomes(actions, densities, np.abs(actions - best)))
    assert np.abs(policy.predict(frame[:100]) - best[:100]).mean() < 0.1
    assert policy.feature_names_in_.tolist() == ["city", "age"]
    with pytest.raises(ValueError, match="feature names"):
        policy.predict(frame.rename(columns={"age": "ages"}))


def test_without_densities_the_policy_stays_where_the_log_has_actions():
    rng = np.random.default_rng(0)
    X, actions = rng.random((2000, 1)), rng.uniform(0.2, 0.5, 2000)
    policy = PolicyRegressor(loss_range=(0, 1)).fit(X, actions, losses=np.abs(actions - 0.9))
    assert (policy.predict(X[:50]) < 0.55).all()


def test_the_online_estimator_is_auto(logged):
    X, _, _, losses = logged
    agent, online = manul.Auto(losses=(0, 1), seed=3), AutoRegressor(loss_range=(0, 1), seed=3)
    for first in range(0, 600, 100):
        rows = X[first : first + 100].astype(np.float32)
        expected, decisions = agent.decide_many(rows), online.decide(rows)
        agent.learn_many(rows, expected, losses[:100])
        online.partial_fit(rows, decisions, losses=losses[:100])
    assert manul.dumps(online.policy_) == manul.dumps(agent)


def test_fit_begins_anew_and_a_clone_has_learned_nothing(logged):
    X, *rest = logged
    policy = AutoRegressor(loss_range=(0, 1)).fit(X, outcomes(*rest))
    first = manul.dumps(policy.policy_)
    assert manul.dumps(policy.fit(X, outcomes(*rest)).policy_) == first
    assert not hasattr(clone(policy), "policy_")
    assert clone(policy).get_params() == policy.get_params()


@pytest.mark.parametrize("kind", [PolicyRegressor, AutoRegressor])
def test_actions_without_losses_are_refused_in_one_sentence(logged, kind):
    X, actions, *_ = logged
    for bad in (actions, np.ones((len(X), 2))):
        with pytest.raises(
            InputError, match="actions must have one number per row with losses=, or be outcomes"
        ) as got:
            kind().fit(X, bad)
        assert got.value.field == "actions"


def test_the_online_estimator_needs_densities(logged):
    X, actions, _, losses = logged
    with pytest.raises(InputError, match="sample_densities must be given to learn online"):
        AutoRegressor().fit(X, actions, losses=losses)


@pytest.mark.parametrize("actions", [manul.Stepped(1, 9, 1), {"price": (10, 50)}])
def test_other_actions_than_a_range_are_refused(logged, actions):
    X, *rest = logged
    for kind in (PolicyRegressor, AutoRegressor):
        with pytest.raises(ParameterError, match="actions must be"):
            kind(actions=actions).fit(X, outcomes(*rest))
    with pytest.raises(ParameterError, match="actions must be"):
        AutoRegressor(actions=actions).decide(X)


@pytest.mark.parametrize("losses", [[0.1, np.nan, 0.3], [np.nan] * 3])
def test_a_loss_that_is_not_known_is_named_also_without_a_range(losses):
    with pytest.raises(InputError, match=r"loss is NaN \(not a number\) in row [01]"):
        PolicyRegressor().fit(np.eye(3), [0.1, 0.2, 0.3], sample_densities=np.ones(3), losses=losses)
