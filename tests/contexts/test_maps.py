"""Feature maps: what they add to a context, and how they are kept in files."""

import re

import numpy as np
import pandas
import pytest
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, PolynomialFeatures, StandardScaler

from manul.contexts import maps
from manul.errors import FileError, InputError, ParameterError


def described_again(features):
    return maps.from_description(*maps.describe(features))


def test_crosses_are_the_products_of_all_pairs(rng):
    row = rng.normal(size=5).astype(np.float32)
    products = [float(row[i]) * float(row[j]) for i in range(5) for j in range(i + 1, 5)]
    assert maps.Crosses()(row).tolist() == [*row.tolist(), *products]
    assert len(maps.Crosses().names(5)) == 15


def test_crosses_of_fields_do_not_depend_on_their_order():
    one = maps.Crosses()({"b": 2.0, "a": 3, "vip": True, "x": None, "n": float("nan"), "in": {"c": 1.0}})
    assert one["a*b"] == maps.Crosses()({"a": 3, "b": 2.0})["a*b"] == 6.0
    assert set(one) == {"b", "a", "vip", "x", "n", "in", "a*b"}


def test_crosses_of_texts_are_joined_and_never_with_numbers():
    crossed = maps.Crosses()({"city": "Oslo", "age": 31, "device": "phone"})
    assert {name: value for name, value in crossed.items() if "*" in name} == {"city*device": "Oslo*phone"}


def test_a_field_with_the_name_of_a_cross_is_refused():
    with pytest.raises(InputError, match=re.escape("the name of a cross: 'a*b'. Rename it.")):
        maps.Crosses()({"a": 1.0, "b": 2.0, "a*b": 3.0})


def test_waves_approximate_the_gaussian_kernel(rng):
    waves = maps.Fourier(count=4096, scale=0.7, seed=3)
    one, two = rng.normal(size=(2, 3))
    estimate = 2 * np.mean(waves(one)[3:] * waves(two)[3:])
    assert abs(estimate - np.exp(-(0.7**2) * np.sum((one - two) ** 2) / 2)) < 0.05


def test_waves_are_the_same_each_time_and_keep_the_row():
    row = np.array([0.25, -1.5], np.float32)
    assert maps.Fourier(count=3, seed=7)(row).tolist() == [0.25, -1.5, 0.821993, 0.217083, -0.749896]
    assert maps.Fourier(count=3, seed=8)(row).tolist() != maps.Fourier(count=3, seed=7)(row).tolist()


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"count": 0}, "count must be a whole number from 1 to 4096, got 0. Try 64."),
        ({"scale": float("inf")}, "scale must be above 0 and finite, got inf."),
        ({"seed": -1}, "seed must be an integer"),
    ],
)
def test_waves_refuse_what_cannot_work(settings, sentence):
    with pytest.raises(ParameterError, match=re.escape(sentence)):
        maps.Fourier(**settings)


@pytest.mark.parametrize("features", [maps.Fourier(), maps.Transformer(StandardScaler().fit(np.eye(3)))])
def test_maps_of_rows_refuse_mappings(features):
    with pytest.raises(InputError, match=r"context must be a row of numbers for .*, got a mapping\. "):
        features({"a": 1.0})


@pytest.mark.parametrize("transformer", [PCA(2), PolynomialFeatures(2), OneHotEncoder(handle_unknown="ignore")])
def test_a_transformer_comes_back_from_a_file(transformer, rng):
    rows = rng.normal(size=(20, 3))
    features = maps.Transformer(transformer.fit(rows))
    again = described_again(features)
    assert all(np.array_equal(features(row), again(row)) for row in rows)
    assert len(features.names(3)) == len(features(rows[0]))


def test_a_transformer_of_frames_maps_fields():
    frame = pandas.DataFrame({"age": [31.0, 42.0], "city": ["Oslo", "Rome"]})
    columns = make_column_transformer((StandardScaler(), ["age"]), (OneHotEncoder(), ["city"]))
    features = maps.Transformer(columns.fit(frame))
    assert features({"city": "Rome", "age": 42.0}).tolist() == [1, 0, 1]
    assert features.names(2) == ["standardscaler__age", "onehotencoder__city_Oslo", "onehotencoder__city_Rome"]


def test_a_transformer_that_skops_does_not_trust_is_not_saved(rng):
    features = maps.Transformer(FunctionTransformer(rng.permutation).fit(np.eye(3)))
    with pytest.raises(
        FileError, match=r"this transformer: it contains types that skops does not trust: .* StandardScaler\(\)"
    ):
        maps.describe(features)


@pytest.mark.parametrize("unfit", [StandardScaler(), object(), np.eye(3)])
def test_only_a_fitted_transformer_will_do(unfit):
    with pytest.raises(ParameterError, match=r"^fitted must .*, got .*\. "):
        maps.Transformer(unfit)


def test_a_function_works_but_is_not_saved():
    with pytest.raises(
        FileError, match="feature maps Columns, Crosses, Features, Fourier and Transformer can be saved, got <"
    ):
        maps.describe(lambda context: context)


@pytest.mark.parametrize("parameters", [{"name": "Splines"}, {"name": "Transformer"}, {"name": "Crosses", "x": 1}, {}])
def test_an_unknown_map_in_a_file_is_refused(parameters):
    with pytest.raises(FileError, match="The file has an unknown feature map"):
        maps.from_description(parameters, {})
