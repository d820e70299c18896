"""Every function of the theory names the parameter that it refuses."""

import inspect
import math
from collections.abc import Callable

import numpy as np
import pytest

from manul.errors import ParameterError
from manul.policies import theory

GOOD = {
    "horizon": 1000, "rounds": 500, "leaves": 8, "bandwidth": 0.25, "epsilon": 0.05, "minimum_density": 0.05,
    "failure": 0.1, "log_class_size": 3.0, "cells": 100, "mean_loss": 0.3, "true_loss": 0.3, "variance": 7.0,
    "magnitude": 3.0, "constant": 1.0, "any_depth": True,
}  # fmt: skip
BAD = {
    "horizon": (0, -1, 10.5, math.inf), "rounds": (0, -1, 10.5), "leaves": (0, 1, 3, 100, 8.5),
    "bandwidth": (0, -0.1, 1.5), "epsilon": (0, 1.1), "minimum_density": (0, 2), "failure": (0, 1, -0.1),
    "log_class_size": (-1, math.inf), "cells": (0, 1.5), "mean_loss": (-0.1, math.inf), "true_loss": (-0.1, 1.1),
    "variance": (-1, math.inf), "magnitude": (-1, math.inf), "constant": (-1, math.inf),
}  # fmt: skip
FUNCTIONS = [
    thing
    for name, thing in vars(theory).items()
    if getattr(thing, "__module__", "") == theory.__name__ and not name.startswith("_")
]
CASES = [
    (function, name, value)
    for function in FUNCTIONS
    for name in inspect.signature(function).parameters
    for value in (*BAD.get(name, ()), math.nan)
    if name in BAD
]


def arguments(function: Callable[..., object]) -> dict[str, float]:
    return {name: GOOD[name] for name in inspect.signature(function).parameters}


@pytest.mark.parametrize(("function", "name", "value"), CASES)
def test_a_bad_parameter_is_refused_by_name_rule_value_and_remedy(
    function: Callable[..., object], name: str, value: float
) -> None:
    with pytest.raises(ParameterError, match=rf"^{name} must be .+, got {value}\. [A-Z].+\.$"):
        function(**(arguments(function) | {name: value}))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_function_takes_keywords_only_and_accepts_good_ones(function: Callable[..., object]) -> None:
    kinds = {parameter.kind for parameter in inspect.signature(function).parameters.values()}
    assert kinds == {inspect.Parameter.KEYWORD_ONLY}
    function(**arguments(function))


@pytest.mark.parametrize("penalty", [theory.adaptive_penalty, theory.pareto_penalty])
def test_a_penalty_beyond_its_horizon_is_refused(penalty: Callable[..., float]) -> None:
    with pytest.raises(ParameterError, match=r"^rounds must be at most horizon=1000, got 1001\.$"):
        penalty(**(arguments(penalty) | {"rounds": 1001}))


@pytest.mark.parametrize("function", [theory.regret_rate, theory.adaptive_regret_rate, theory.pareto_penalty])
def test_whole_numbers_of_numpy_do_not_overflow(function: Callable[..., float]) -> None:
    plain = arguments(function) | {"horizon": 10**6}
    assert function(**(plain | {"horizon": np.int64(10**6)})) == function(**plain)
