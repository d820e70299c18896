"""Formulas: the core and columns have, to the bit, the values of the slow evaluator, and hostile texts are refused."""

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from manul import _core
from manul.errors import ParameterError
from manul.utils.formulas import parse

VALUES = st.floats(-100, 100) | st.sampled_from([0.0, -0.0, 1.0, float("nan"), 1e308])
NUMBERS = st.sampled_from([0.0, 1.0, 2.0, -3.0, 0.5, 1e300, 1e-300]).map(repr)
NAMES = ("a", "b", "c")


def larger(parts):
    pairs = st.tuples(
        parts, st.sampled_from(["+", "-", "*", "/", "**", "<", "<=", ">", ">=", "==", "!=", "and", "or"]), parts
    )
    calls = st.tuples(st.sampled_from(["abs", "exp", "log", "-", "not "]), parts)
    both = st.tuples(st.sampled_from(["min", "max"]), parts, parts)
    return st.one_of(
        pairs.map(lambda each: f"({each[0]}) {each[1]} ({each[2]})"),
        calls.map(lambda each: f"{each[0]}({each[1]})"),
        both.map(lambda each: f"{each[0]}({each[1]}, {each[2]})"),
        st.tuples(parts, parts, parts).map(lambda each: f"({each[0]}) if ({each[1]}) else ({each[2]})"),
        st.tuples(parts, parts, parts).map(lambda each: f"({each[0]}) not in (({each[1]}), ({each[2]}))"),
    )


FORMULAS = st.recursive(NUMBERS | st.sampled_from(NAMES), larger, max_leaves=10)


@settings(max_examples=300, deadline=None)
@given(FORMULAS, st.lists(VALUES, min_size=3, max_size=3))
def test_the_core_computes_formulas_as_the_slow_evaluator(text, values):
    formula = parse(text)
    program = formula.program(lambda name, _: ("field", float(NAMES.index(name))), lambda *_: 0.0)
    slow, fast = formula.value(dict(zip(NAMES, values, strict=True))), _core.evaluate(program, np.array(values))
    assert fast == slow or (math.isnan(fast) and math.isnan(slow))
    assert parse(str(formula)) == formula


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="ab1.'\"`()[]+-*/<>=!, _\\\nifnotelse#;:{}%$", max_size=60))
def test_hostile_texts_are_formulas_or_one_sentence(text):
    try:
        formula = parse(text)
    except ParameterError as error:
        assert str(error).startswith("formula ")  # noqa: PT017 - both outcomes are fine
    else:
        assert parse(str(formula)) == formula


ROWS = st.lists(st.lists(VALUES, min_size=3, max_size=3), min_size=1, max_size=5)


@settings(max_examples=300, deadline=None)
@given(FORMULAS, ROWS)
def test_columns_have_the_values_of_their_rows(text, rows):
    formula = parse(text)
    fast = formula.values(dict(zip(NAMES, np.array(rows).T, strict=True)), len(rows))
    slow = np.array([formula.value(dict(zip(NAMES, row, strict=True))) for row in rows])
    assert fast.tobytes() == slow.tobytes() or np.array_equal(fast, slow, equal_nan=True)
    assert (np.signbit(fast) == np.signbit(slow))[~np.isnan(slow)].all()


def test_options_are_compared_as_texts():
    formula = parse("2 if kind == 'bold' else 3 * (kind != 'sale')")
    kinds = ["bold", "plain", "sale"]
    assert formula.values({"kind": np.array(kinds, dtype=object)}, 3).tolist() == [2, 3, 0]
    assert [formula.value({"kind": kind}) for kind in kinds] == [2, 3, 0]


def test_a_product_with_zero_does_not_need_the_other_factor():
    formula, nan = parse("(value - 2) * won"), float("nan")
    rows = [(nan, 0.0), (nan, 1.0), (5.0, 1.0)]
    assert np.array_equal([formula.value({"value": value, "won": won}) for value, won in rows], [0, nan, 3], True)
