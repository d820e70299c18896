"""Dates of JSON in contexts, such as {"$date": "2024-02-29"}: the same features as the dates of Python."""

import datetime
import random
import re

import numpy as np
import pandas
import pytest
from sklearn.preprocessing import FunctionTransformer

import manul
from manul.contexts import dates, misspelt_fields, typical
from manul.contexts.sparse_features import Features
from manul.errors import InputError
from manul.utils import model_files
from tests.saved_agents import AGENTS, NATIVE_NAMES, learned

ALPHABET = "0123456789-:. TZ+Wtz,/"
GRAMMAR = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?)?", re.ASCII)
HALF_PAST = "2024-02-29T12:30:00+01:00"
OSLO = datetime.timezone(datetime.timedelta(hours=1))


def random_text(rng):
    """A date, or a date and time, of the calendar or just beyond it."""
    day = f"{rng.randint(0, 9999):04}-{rng.randint(0, 13):02}-{rng.randint(0, 32):02}"
    if rng.random() < 0.2:
        return day
    day = rng.choice([day, "1970-01-01"])  # near 1970, the number of days shows microseconds
    clock = f"{rng.randint(0, 24):02}:{rng.randint(0, 60):02}"
    second = rng.choice(
        ["", f":{rng.randint(0, 60):02}", f":{rng.randint(0, 59):02}.{rng.randint(0, 10 ** rng.randint(1, 9))}"]
    )
    zone = rng.choice(["", "Z", f"{rng.choice('+-')}{rng.randint(0, 24):02}:{rng.randint(0, 60):02}"])
    return f"{day}{rng.choice('T ')}{clock}{second}{zone}"


def mutated(text, rng):
    place = rng.randrange(len(text) + 1)
    return rng.choice(
        [text[:place] + text[place + 1 :], text[:place] + rng.choice(ALPHABET) + text[place:], text + text[place:]]
    )


def expected(text):
    """The date of Python, or None if the text is none."""
    if not GRAMMAR.fullmatch(text) or text[11:13] == "24" or re.search(r"[+-]\d\d:[6-9]\d$", text[10:]):
        return None
    try:
        return (datetime.date if len(text) == 10 else datetime.datetime).fromisoformat(text)
    except ValueError:
        return None


def bytes_after(value):
    """What an agent has learned from one value of a field; None if it is refused."""
    agent = manul.Cats(leaves=2, bandwidth=1 / 2, table_bits=10)
    try:
        agent.learn({"at": value}, manul.Decision(0.5, 0.5), 0.5)
    except InputError:
        return None
    return model_files.dumps(agent)


def test_the_core_reads_the_texts_that_python_reads():
    rng = random.Random(7)
    texts = [random_text(rng) for _ in range(600)]
    texts += [mutated(rng.choice([text, HALF_PAST]), rng) for text in texts]
    known = [text for text in texts if expected(text) is not None]
    assert len(texts) / 5 < len(known) < len(texts) * 4 / 5
    for text in texts:
        date = expected(text)
        assert bytes_after({"$date": text}) == (None if date is None else bytes_after(date)), text


def test_python_reads_the_texts_that_the_core_reads():
    rng = random.Random(11)
    for text in [mutated(random_text(rng), rng) for _ in range(1000)] + [random_text(rng) for _ in range(1000)]:
        date = expected(text)
        if date is None:
            with pytest.raises(InputError, match="field 'at' must have a "):
                dates.from_json({"$date": text}, "at")
        else:
            assert dates.from_json({"$date": text}, "at") == date


@pytest.mark.parametrize("name", NATIVE_NAMES)
def test_every_agent_learns_the_same_from_both_forms(name):
    moments = [datetime.datetime(2024, 2, 28, 23, 30, tzinfo=OSLO) + datetime.timedelta(hours=7 * n) for n in range(20)]
    both = [(moment, moment.date()) for moment in moments]
    contexts = [{"at": at, "x": {"day": day}, "all": [day, at]} for at, day in both]
    agent, other = AGENTS[name](), AGENTS[name]()
    learned(agent, contexts)
    learned(other, [dates.to_json(context) for context in contexts])
    assert model_files.dumps(agent) == model_files.dumps(other)


def test_batches_and_columns_of_json_dates_are_read():
    day, other = datetime.date(2024, 2, 29), datetime.date(2024, 3, 1)
    values = [{"$date": "2024-02-29"}, {"$date": "2024-03-01"}]
    asked = manul.Cats(leaves=8, bandwidth=1 / 8).decide_many([{"at": day}, {"at": other}]).actions
    for batch in ([{"at": value} for value in values], {"at": values}, pandas.DataFrame({"at": values})):
        np.testing.assert_array_equal(manul.Cats(leaves=8, bandwidth=1 / 8).decide_many(batch).actions, asked)


@pytest.mark.parametrize(
    ("value", "got"),
    [("2023-02-29", "'2023-02-29'"), ("2024-13-01", "'2024-13-01'"), ("2024-02-29T24:00", "'2024-02-29T24:00'"), ("", "''"),
     ("today", "'today'"), (1709164800, "1709164800"), (None, "None"), ({"$numberLong": "1"}, r"\{'\$numberLong': '1'\}"),
     ("2" * 100, "'2{59}"), ("0000-01-01", "'0000-01-01'"), ("2024-02-29\0", r"'2024-02-29\\x00'")],
)  # fmt: skip
def test_a_bad_date_is_refused_with_its_field_and_nothing_changes(value, got):
    agent = learned(AGENTS["cats"](), [{"x": {"at": {"$date": "2024-02-29"}}}])
    before = model_files.dumps(agent)
    rule = r"a \$date such as '2024-02-29' or '2024-02-29T12:30:00\+01:00'"
    decisions = manul.Decisions(*np.full((2, 2), 0.5))
    for call in (agent.decide, lambda context: agent.learn_many([{"y": 1}, context], decisions, [0.5, 0.5])):
        with pytest.raises(InputError, match=rf"^field 'x.at' must have {rule}, got {got}\.$"):
            call({"x": {"at": {"$date": value}}})
    assert model_files.dumps(agent) == before


def test_texts_that_look_like_dates_and_other_mappings_stay_as_they_are():
    agent = manul.Cats(leaves=8, bandwidth=1 / 8)
    context = {"a": "2024-02-29", "b": {"$date": "2024-02-29", "c": 1}, "$date": "2024-02-29", "d": ["2024-02-29"]}
    agent.learn(context, agent.decide(context), 0.5)
    names = set(model_files.decode(model_files.dumps(agent))[1]["names"]["features"].values())
    assert names == {"a=2024-02-29", "b.$date=2024-02-29", "b.c", "$date=2024-02-29", "d=2024-02-29"}


def test_a_json_date_may_be_as_deep_as_a_date_of_python():
    deep = [datetime.date(2024, 2, 29), {"$date": "2024-02-29"}]
    for _ in range(32):
        deep = [{"a": value} for value in deep]
    assert bytes_after(deep[0]) == bytes_after(deep[1]) is not None


def test_a_field_that_was_a_number_of_seconds_may_be_a_json_date():
    before = model_files.dumps(learned(AGENTS["cats"](), [{"at": 1.7e9}]))
    values = {"$date": "2024-03-01T01:00+01:00"}, 1709251200.0
    first, second = (model_files.dumps(learned(model_files.loads(before), [{"at": value}])) for value in values)
    assert first == second


def test_columns_encode_json_dates_and_numbers_that_are_seconds():
    days = [datetime.date(2024, 2, 29), datetime.datetime(2024, 3, 1, 12, 30)]
    values = [dates.to_json({"at": day})["at"] for day in days]
    columns = manul.maps.Columns.fit({"at": days})
    assert manul.maps.Columns.fit({"at": values}) == columns
    assert columns({"at": values[1]}).tolist() == columns({"at": days[1]}).tolist()
    numbers = manul.maps.Columns.fit({"at": [1.0, 2.0]})
    assert numbers({"at": values[0]}).tolist() == numbers({"at": days[0]}).tolist() == [1709164800.0]


def test_features_of_a_log_refuse_both_forms_of_dates():
    features = Features(("at",))
    for value in (datetime.date(2024, 2, 29), {"$date": "2024-02-29"}):
        with pytest.raises(InputError, match=r"field 'at' must be a number or text, got datetime.date\(2024, 2, 29\)"):
            features({"at": value})


def test_transformers_get_the_dates_of_json_as_dates_of_python():
    frame = pandas.DataFrame({"at": [datetime.date(2024, 2, 29), datetime.date(2024, 3, 1)]})
    days = FunctionTransformer(lambda table: [[value.day for value in row] for row in table.to_numpy()]).fit(frame)
    assert manul.maps.Transformer(days)({"at": {"$date": "2024-02-29"}}).tolist() == [29.0]


def test_plots_vary_json_dates_as_dates():
    contexts = [{"at": {"$date": f"2024-02-{day:02}"}, "x": 1.0} for day in range(1, 29)]
    swept = typical.sweep(contexts, "at")
    assert swept.dates
    assert swept.contexts[0] == {"at": datetime.date(2024, 2, 1), "x": 1.0}


def test_a_late_field_is_not_compared_with_a_date_that_is_present(recwarn):
    context = {"arrival": {"$date": "2024-02-29"}, "arrivals": 2}
    misspelt_fields.warn_of_misspelt_fields([(0, "arrivals")], ["arrival", "arrival.days"], lambda _: context, 2)
    assert not recwarn.list


@pytest.mark.parametrize(
    "value",
    [datetime.datetime(2024, 2, 29, 12, 30, 5, 120, OSLO), datetime.datetime(2024, 2, 29), datetime.date(1, 1, 1),
     pandas.Timestamp("2024-02-29T12:30:00.123456789", tz="Europe/Oslo"), pandas.Timestamp("2024-02-29"), pandas.NaT,
     np.datetime64("2024-02-29"), np.datetime64("2024-02-29T12:30:00.123456789"), np.datetime64("2024-02"), np.datetime64("NaT"),
     np.datetime64("NaT", "ns"), [datetime.date(2024, 2, 29), {"deep": datetime.date(2024, 3, 1)}]],
)  # fmt: skip
def test_the_json_of_a_date_has_the_features_of_the_date(value):
    assert bytes_after(dates.to_json({"at": value})["at"]) == bytes_after(value) is not None
