"""Named features of which each context has few."""

import numpy as np
import pytest

import manul
from manul.contexts.sparse_features import Features, SparseFeatures, concatenate
from manul.errors import InputError


@pytest.fixture
def rows():
    return SparseFeatures(("b", "a"), np.array([0, 2, 2, 3]), np.array([0, 1, 1]), np.array([1.0, 2.0, 3.0]))


@pytest.mark.parametrize("which", [slice(1, 3), slice(0, 0), np.array([True, False, True]), np.array([2, 0])])
def test_a_selection_has_the_selected_rows(rows, which):
    every = np.array(rows.to_dicts(), dtype=object)
    assert rows.select(which).to_dicts() == every[which].tolist()


def test_parts_with_other_names_are_put_together(rows):
    other = SparseFeatures(("c", "a"), np.array([0, 2]), np.array([1, 0]), np.array([5.0, 6.0]))
    assert concatenate([rows, other]).to_dicts() == [{"b": 1, "a": 2}, {}, {"a": 3}, {"a": 5, "c": 6}]


def test_a_batch_is_encoded_like_each_context(rows):
    features = Features(("a", "b", "c"))
    each = [features(context) for context in rows.to_dicts()]
    assert features.rows(rows).tolist() == np.array(each).tolist() == [[2, 1, 0], [0, 0, 0], [3, 0, 0]]


def test_features_that_the_log_had_not_are_left_out():
    assert Features(("a",))({"a": 1, "z": 9, "odd | name:": "x"}).tolist() == [1]


def test_contexts_of_another_log_are_refused(rows):
    with pytest.raises(InputError, match="no context has a feature of the log; the first one is 'b'"):
        Features(("x",)).rows(rows)


@pytest.mark.parametrize("context", [[1.0], {"a": object()}, {"a": {"b": [object()]}}])
def test_what_is_no_feature_is_refused(context):
    with pytest.raises(InputError, match="must be a"):
        Features(("a",))(context)


def test_a_policy_on_features_is_saved_and_takes_an_empty_context(tmp_path):
    agent = manul.Mapped(agent=manul.Cats(leaves=8, bandwidth=1 / 8), features=manul.maps.Features(("a", "n^b=x")))
    for context in ({"a": 2}, {"n": {"b": "x"}}, {}):
        agent.learn(context, agent.decide(context), 0.5)
    agent.save(tmp_path / "p.manul")
    again = manul.load(tmp_path / "p.manul")
    single = [again.distribution(context).mean() for context in ({}, {"a": 2})]
    assert again.distributions([{}, {"a": 2}]).moments()[0].tolist() == single
