"""Trees of classifiers: their geometry is the core's, and their training is the paper's."""

import re
import sys

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import manul
from manul import _core
from manul.actions.ranges import Actions
from manul.actions.smoothing import explore, smooth
from manul.errors import FileError, InputError, MissingDependency, ParameterError
from manul.paper import algorithms
from manul.policies.classifier_tree import LEARNED, LEFT, RIGHT, Geometry
from manul.utils import model_files


class Threshold(ClassifierMixin, BaseEstimator):
    """The best rule 'right if x > t' (or its mirror) in hindsight: an exact argmin over a small class."""

    def fit(self, X, y, sample_weight):
        self.classes_ = np.array([LEFT, RIGHT])
        self.examples_ = X[:, 0].tolist(), y.tolist(), sample_weight.tolist()
        rules = [(t, flip) for t in np.linspace(-2, 2, 41) for flip in (False, True)]
        self.rule_ = min(rules, key=lambda rule: sample_weight[self.sides(X, rule) != y].sum())
        return self

    def sides(self, X, rule):
        return np.where((X[:, 0] > rule[0]) != rule[1], RIGHT, LEFT)

    def predict(self, X):
        return self.sides(X, self.rule_)


class Oracle:
    """The paper's oracle with the same class; one label is that side, as train_tree has it."""

    def __init__(self, examples):
        self.labels = np.array([RIGHT if c[LEFT] > c[RIGHT] else LEFT for _, c in examples])
        if len(set(self.labels)) > 1:
            weights = np.array([abs(c[LEFT] - c[RIGHT]) for _, c in examples])
            self.rule = Threshold().fit(np.array([x[:1] for x, _ in examples]), self.labels, weights)

    def f(self, x):
        return int(self.rule.predict(x[np.newaxis])[0] if len(set(self.labels)) > 1 else self.labels[0])


def uniform_log(rng, rows, *, width=1, best=lambda x: (x[:, 0] + 2) / 4):
    """Uniform actions; the loss is the distance to the best action."""
    contexts = rng.uniform(-2, 2, (rows, width)).astype(np.float32)
    actions = rng.uniform(0, 1, rows)
    return manul.Log(contexts, actions, np.ones(rows), np.abs(actions - best(contexts)))


@pytest.mark.parametrize("partition", [True, False])
@pytest.mark.parametrize("power", [0, 1])
def test_training_chooses_as_the_paper_does(power, partition, rng):
    log, h = uniform_log(rng, 400), 2**power / 8
    costs = [
        np.array([algorithms.Smooth(h, a, (i + 0.5) / 8) / p * loss for i in range(8)])
        for a, p, loss in zip(log.actions, log.densities, log.losses, strict=True)
    ]
    S = [(algorithms.row(x), c) for x, c in zip(log.contexts, costs, strict=True)]
    twin = algorithms.Train_tree(3, Oracle, power, S, partition=partition)
    policy = manul.policies.train_tree(log, leaves=8, bandwidth=h, classifier=Threshold(), partition=partition)
    expected = [twin.root.get_action(x) + 1 / 16 for x, _ in S]
    assert policy.actions_many(log.contexts).tolist() == expected


def test_nodes_get_just_the_papers_examples(rng):
    log, h = uniform_log(rng, 100), 1 / 8
    costs = np.array([[algorithms.Smooth(h, a, (i + 0.5) / 16) for i in range(16)] for a in log.actions])
    costs *= log.losses[:, np.newaxis]
    policy = manul.policies.train_tree(log, leaves=16, bandwidth=h, classifier=Threshold())
    bottom = policy.nodes.classifiers[16 // 2 + 3]
    differ = costs[:, 6] != costs[:, 7]
    assert bottom.examples_[0] == log.contexts[differ, 0].tolist()
    assert bottom.examples_[1] == np.where(costs[differ, 6] > costs[differ, 7], RIGHT, LEFT).tolist()
    assert np.allclose(bottom.examples_[2], np.abs(costs[differ, 6] - costs[differ, 7]), rtol=1e-12)


def native(geometry):
    """The core's tree with the same leaves; as long as it has learned nothing it goes left."""
    return _core.PaperCatsPlayer(
        actions=(geometry.actions.low, geometry.actions.high),
        losses=(0.0, 1.0),
        width=1,
        depth=geometry.depth,
        offset=0.5,
        bandwidth=geometry.bandwidth,
        learner=_core.NodeLearner.coin_margin,
        epsilon=0.05,
        seed=0,
    )


def random_geometry(rng):
    low, span = rng.uniform(-5, 5), rng.choice([1.0, rng.uniform(0.1, 30)])
    actions = Actions(low, float(low + span))
    bandwidth = actions.span * float(rng.choice([2.0 ** -rng.integers(1, 6), rng.uniform(0.01, 0.5)]))
    return Geometry(actions, 2 ** int(rng.integers(1, 8)), bandwidth)


def test_the_first_reachable_leaf_and_its_centre_are_the_cores(rng):
    for _ in range(500):
        geometry = random_geometry(rng)
        low, high = np.sort(rng.uniform(geometry.actions.low, geometry.actions.high, 2))
        low, high = (
            (low, high) if high - low >= 2 * geometry.bandwidth else (geometry.actions.low, geometry.actions.high)
        )
        centre, _ = native(geometry).window(np.zeros(1), low, high)
        assert geometry.centres(geometry.reachable(low, high).first, low, high) == centre


def test_one_example_trains_the_nodes_that_the_core_trains(rng, monkeypatch):
    monkeypatch.setattr(Geometry, "default_sides", lambda self: np.zeros(self.leaves, np.int8))
    for _ in range(150):
        geometry = random_geometry(rng)
        ends = geometry.actions.low, geometry.actions.high
        log = manul.Log(np.ones((1, 1), np.float32), rng.uniform(*ends, 1), rng.uniform(0.1, 1, 1), np.ones(1))
        core = native(geometry)
        updates = core.trace(log.contexts[0], log.actions[0], log.densities[0], 1.0, *ends)
        policy = manul.policies.train_tree(
            log, leaves=geometry.leaves, bandwidth=geometry.bandwidth, actions=ends, jobs=1
        )
        assert np.flatnonzero(policy.nodes.sides == RIGHT).tolist() == sorted(v for v, left, _ in updates if left > 0)
        assert policy.actions_many(log.contexts)[0] == core.window(log.contexts[0], *ends)[0]


def test_rows_whose_costs_are_equal_are_left_out(rng):
    log = uniform_log(rng, 50)
    free = manul.Log(log.contexts, log.actions, log.densities, np.zeros(50))
    with_free = manul.Log(*(np.concatenate(pair) for pair in zip(columns(log), columns(free), strict=True)))
    one, two = (
        manul.policies.train_tree(each, leaves=8, bandwidth=1 / 8, classifier=Threshold()) for each in (log, with_free)
    )
    assert one.nodes.sides.tolist() == two.nodes.sides.tolist()
    assert all(one.nodes.classifiers[v].examples_ == two.nodes.classifiers[v].examples_ for v in one.nodes.classifiers)


def columns(log):
    return log.contexts, log.actions, log.densities, log.losses


def test_a_node_whose_examples_favour_one_side_always_takes_it(rng):
    contexts = rng.standard_normal((20, 2)).astype(np.float32)
    log = manul.Log(contexts, rng.uniform(0, 0.2, 20), np.ones(20), np.ones(20))
    policy = manul.policies.train_tree(log, leaves=2, bandwidth=1 / 4)
    assert policy.nodes.sides[1] == RIGHT
    assert not policy.nodes.classifiers
    assert (policy.actions_many(contexts) == 0.75).all()


@pytest.mark.parametrize(("bandwidth", "action"), [(1 / 16, 0.5 - 1 / 32), (1 / 8, 0.5 - 1 / 32), (1 / 2, 0.5)])
def test_nodes_without_examples_go_towards_the_middle(bandwidth, action, rng):
    log = manul.Log(np.zeros((9, 1), np.float32), rng.uniform(0, 1, 9), np.ones(9), np.zeros(9))
    policy = manul.policies.train_tree(log, leaves=16, bandwidth=bandwidth)
    assert policy.actions_many([[1.0], [-1.0]]).tolist() == [action, action]


def test_nodes_right_of_the_middle_go_left_and_the_others_right():
    sides = Geometry(Actions(0.0, 1.0), leaves=8, bandwidth=1 / 8).default_sides()
    assert sides[1:].tolist() == [LEFT, RIGHT, LEFT, RIGHT, RIGHT, LEFT, LEFT]


def test_forced_nodes_are_not_trained(rng):
    policy = manul.policies.train_tree(uniform_log(rng, 300), leaves=16, bandwidth=1 / 4)
    assert {2, 3, 4, 7, 8, 9, 14, 15}.isdisjoint(policy.nodes.classifiers)
    centres = policy.actions_many(rng.uniform(-2, 2, (200, 1)))
    assert ((centres >= 1 / 4) & (centres <= 3 / 4)).all()


def test_parallel_training_equals_serial_training_to_the_byte(rng):
    log = uniform_log(rng, 600, width=3)
    one, two = (manul.policies.train_tree(log, leaves=32, bandwidth=1 / 16, jobs=jobs).nodes for jobs in (1, 4))
    assert one.sides.tobytes() == two.sides.tobytes()
    assert one.classifiers.keys() == two.classifiers.keys()
    for node, classifier in one.classifiers.items():
        assert classifier.coef_.tobytes() == two.classifiers[node].coef_.tobytes()


@pytest.mark.parametrize("narrowed", [False, True])
def test_many_actions_are_the_single_ones(narrowed, rng):
    policy = manul.policies.train_tree(uniform_log(rng, 600, width=3), leaves=32, bandwidth=1 / 16)
    contexts, lows = rng.uniform(-2, 2, (100, 3)), rng.uniform(0, 0.5, 100)
    ranges = np.stack([lows, lows + rng.uniform(0.13, 0.5, 100)], axis=1) if narrowed else np.tile([0.0, 1.0], (100, 1))
    given = contexts, ranges if narrowed else None
    many = zip(policy.actions_many(*given), policy.distributions(*given), strict=True)
    for context, within, (action, distribution) in zip(contexts, ranges.tolist(), many, strict=True):
        single = policy.distribution(context, tuple(within))
        for other in (explore(smooth(action, 1 / 16, within), 0.05, within), distribution):
            assert single.edges.tobytes() == other.edges.tobytes()
            assert single.densities.tobytes() == other.densities.tobytes()


@pytest.mark.parametrize("partition", [True, False])
@pytest.mark.parametrize(
    "classifier", [None, make_pipeline(StandardScaler(), LogisticRegression()), DecisionTreeClassifier(max_depth=4)]
)
def test_a_trained_policy_loses_less_than_the_one_that_logged(classifier, partition):
    world = manul.worlds.linear(rounds=8000, width=3)
    seen = manul.worlds.Regression(world.contexts[:4000], world.targets[:4000])
    unseen = manul.worlds.Regression(world.contexts[4000:], world.targets[4000:])
    run = manul.simulate(manul.Cats(leaves=16, bandwidth=1 / 16, epsilon=1.0), seen)
    policy = manul.policies.train_tree(run.log, leaves=16, bandwidth=1 / 16, classifier=classifier, partition=partition)
    losses = unseen.losses(policy.actions_many(unseen.contexts), policy.actions)
    assert losses.mean() < 0.6 * run.mean_loss


def test_without_features_the_cheapest_window_is_played(rng):
    log = uniform_log(rng, 2000, width=0, best=lambda _: 0.3)
    policy = manul.policies.train_tree(log, leaves=16, bandwidth=1 / 16)
    assert abs(policy.distribution(None).mean() - 0.3) < 0.05


def test_a_classifier_that_draws_numbers_gives_one_policy(rng):
    log = uniform_log(rng, 400, width=3)
    one, two = (
        manul.policies.train_tree(log, leaves=8, bandwidth=1 / 8, classifier=DecisionTreeClassifier(splitter="random"))
        for _ in range(2)
    )
    contexts = rng.uniform(-2, 2, (200, 3))
    assert one.actions_many(contexts).tolist() == two.actions_many(contexts).tolist()


def test_a_saved_policy_comes_back_with_its_settings_and_actions(rng, tmp_path):
    log = uniform_log(rng, 400, width=3)
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    policy = manul.policies.train_tree(log, leaves=16, bandwidth=1 / 8, classifier=pipeline, epsilon=0.2)
    policy.save(tmp_path / "policy.manul")
    loaded = manul.load(tmp_path / "policy.manul")
    assert repr(loaded) == repr(policy)
    assert loaded.actions_many(log.contexts).tobytes() == policy.actions_many(log.contexts).tobytes()


def test_a_classifier_of_foreign_types_is_not_saved(rng, tmp_path):
    policy = manul.policies.train_tree(uniform_log(rng, 100), leaves=8, bandwidth=1 / 8, classifier=Threshold())
    with pytest.raises(
        FileError, match=r"this classifier: it contains types that skops does not trust: .*Threshold\. Train with"
    ):
        policy.save(tmp_path / "policy.manul")
    assert not list(tmp_path.iterdir())


def test_a_file_of_foreign_types_is_not_loaded(rng, tmp_path):
    from skops import io

    policy = manul.policies.train_tree(uniform_log(rng, 100), leaves=2, bandwidth=1 / 4)
    policy.save(tmp_path / "policy.manul")
    kind, parameters, arrays = model_files.read(tmp_path / "policy.manul")
    contents = (
        (io.dumps([Threshold()]), r"does not trust: .*Threshold"),
        (b"no archive", "cannot read the classifiers in the file"),
        (io.dumps({}), "got dict"),
    )
    for content, sentence in contents:
        changed = {**arrays, "classifiers": np.frombuffer(content, np.uint8)}
        model_files.write(tmp_path / "policy.manul", kind, parameters, changed)
        with pytest.raises(FileError, match=sentence):
            manul.load(tmp_path / "policy.manul")


def test_a_file_whose_arrays_do_not_fit_is_refused(rng, tmp_path):
    manul.policies.train_tree(uniform_log(rng, 100), leaves=8, bandwidth=1 / 8).save(tmp_path / "policy.manul")
    kind, parameters, arrays = model_files.read(tmp_path / "policy.manul")
    for sides in (arrays["sides"][:-1], np.full(8, LEARNED, np.int8)):
        model_files.write(tmp_path / "policy.manul", kind, parameters, {**arrays, "sides": sides})
        with pytest.raises(FileError, match="the arrays do not match the settings"):
            manul.load(tmp_path / "policy.manul")


class Unweighted(ClassifierMixin, BaseEstimator):
    """Cannot tell dear rows from cheap ones."""

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.zeros(len(X))


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        (
            {"classifier": Unweighted()},
            "classifier must be a scikit-learn classifier whose fit accepts sample_weight, got",
        ),
        ({"classifier": make_pipeline(StandardScaler(), Unweighted())}, "accepts sample_weight, got Pipeline"),
        ({"classifier": "linear"}, "accepts sample_weight, got 'linear'."),
        ({"leaves": 100}, "leaves must be a power of two from 2 to 2^24, got 100. Try 128."),
        ({"bandwidth": 0.75}, "bandwidth must be in (0, 0.5], got 0.75."),
        ({"epsilon": 2}, "epsilon must be in [0, 1], got 2."),
        ({"jobs": 0}, "jobs must be a whole number of at least 1, got 0."),
    ],
)
def test_setting_is_refused(setting, sentence, rng):
    with pytest.raises(ParameterError, match=re.escape(sentence)):
        manul.policies.train_tree(uniform_log(rng, 20), **{"leaves": 8, "bandwidth": 1 / 8, **setting})


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"densities": [1, 0, 1, 1]}, "densities must be above 0 and finite, got 0 in row 1."),
        ({"densities": [1, 1, np.inf, 1]}, "densities must be above 0 and finite, got inf in row 2."),
        ({"actions": [0, 0, 0, 7]}, "actions must be in [0, 1], got 7 in row 3."),
        ({"losses": [np.nan, 0, 0, 0]}, "losses must be in [0, 1], got nan in row 0."),
        ({"contexts": [[0], [np.nan], [0], [0]]}, "contexts must be finite numbers, got nan in row 1, column 0."),
    ],
)
def test_log_is_refused(changed, sentence):
    good = {"contexts": [[0], [0], [0], [0]], "actions": [0] * 4, "densities": [1] * 4, "losses": [0] * 4}
    log = manul.Log(**{name: np.array(column, dtype=np.float64) for name, column in {**good, **changed}.items()})
    with pytest.raises(InputError, match=re.escape(sentence)):
        manul.policies.train_tree(log, leaves=8, bandwidth=1 / 8)


@pytest.mark.parametrize(
    ("rows", "sentence"), [(0, "log has no rows"), (2, "at least 3 rows, one per level of the tree, got 2")]
)
def test_a_log_that_is_too_short_is_refused(rows, sentence, rng):
    with pytest.raises(InputError, match=sentence):
        manul.policies.train_tree(uniform_log(rng, rows), leaves=8, bandwidth=1 / 8, partition=True)


@pytest.mark.parametrize("within", [(0.0, 1.0), [[0.0, 0.1]], [[0.5, 2.0]]])
def test_ranges_that_do_not_fit_are_refused(within, rng):
    policy = manul.policies.train_tree(uniform_log(rng, 100), leaves=8, bandwidth=1 / 8)
    with pytest.raises(InputError, match="within must"):
        policy.actions_many([[0.0]], within)


@pytest.mark.parametrize(("package", "use"), [("sklearn.base", "train"), ("skops", "save")])
def test_a_missing_package_is_named_with_the_line_that_installs_it(package, use, rng, tmp_path, monkeypatch):
    log = uniform_log(rng, 100)
    policy = manul.policies.train_tree(log, leaves=8, bandwidth=1 / 8)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingDependency, match=r"Install it: pip install 'manul\[sklearn\]'\."):
        manul.policies.train_tree(log, leaves=8, bandwidth=1 / 8) if use == "train" else policy.save(
            tmp_path / "policy.manul"
        )
