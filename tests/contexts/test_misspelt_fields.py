"""New fields that look misspelt are reported once."""

import warnings

import numpy as np
import pytest

import manul
from manul.errors import ContextWarning

CONTEXT = {"mileage": 7.0, "device": {"os": "linux"}, "room 1": "x"}


@pytest.fixture
def agent():
    agent = manul.Cats(leaves=8, bandwidth=1 / 8, table_bits=10)
    learn(agent, [CONTEXT] * 100)
    return agent


def learn(agent, contexts):
    count = len(contexts)
    agent.learn_many(contexts, manul.Decisions(np.full(count, 0.5), np.ones(count)), [0.5] * count)


def sentences(agent, contexts):
    """The warnings of a batch and, in the same order, of single calls."""
    other = manul.loads(manul.dumps(agent))
    with warnings.catch_warnings(record=True) as batch:
        warnings.simplefilter("always")
        learn(agent, contexts)
    with warnings.catch_warnings(record=True) as single:
        warnings.simplefilter("always")
        for context in contexts:
            other.learn(context, manul.Decision(0.5, 1.0), 0.5)
    assert manul.dumps(agent) == manul.dumps(other)
    assert [str(each.message) for each in batch] == [str(each.message) for each in single]
    assert all(each.filename == __file__ and each.category is ContextWarning for each in [*batch, *single])
    return [str(each.message) for each in batch]


def test_a_misspelt_field_is_reported_once(agent):
    misspelt = {"milage": 7.0, "device": {"os": "linux"}}
    message = "field 'milage' is new. Did you mean 'mileage'? The agent learns it as a field of its own."
    assert sentences(agent, [CONTEXT, misspelt, misspelt]) == [message]
    assert sentences(agent, [misspelt]) == []


@pytest.mark.parametrize(
    "context",
    [{**CONTEXT, "milage": 7.0}, {"price": 3.0}, {"room 2": "x"}, {"device": {"os": "linux", "oss": "linux"}}, {}],
)
def test_other_new_fields_are_not_reported(agent, context):
    assert sentences(agent, [context]) == []


def test_nested_fields_are_compared_too(agent):
    agent.learn({"screen": {"width": 1.0}}, manul.Decision(0.5, 1.0), 0.5)
    assert "Did you mean 'screen.width'?" in sentences(agent, [{"screen": {"widht": 1.0}}])[0]


def test_the_first_contexts_may_bring_any_fields():
    agent = manul.Cats(leaves=8, bandwidth=1 / 8, table_bits=10)
    learn(agent, [{"mileage": 7.0}] * 50 + [{"milage": 7.0}] * 50)


def test_a_refused_batch_is_not_reported(agent):
    with pytest.raises(manul.ManulError):
        learn(agent, [{"milage": 7.0}, {"mileage": "text"}])
