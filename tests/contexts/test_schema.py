"""The schema of contexts: kinds, merging, descriptions, and the schemas of agents and logs."""

import datetime
from zoneinfo import ZoneInfo

import pytest

import manul
from manul import ContextSchema
from manul.contexts.schema import Field
from manul.errors import InputError, ParameterError
from tests.laws.fields import FIELDS, contexts, title

NOON = datetime.datetime(2024, 2, 29, 12)


@pytest.mark.parametrize("kind", FIELDS, ids=title)
def test_a_schema_survives_json_and_arrow(kind):
    schema = ContextSchema.of(contexts(kind, range(60)))
    assert ContextSchema.of(schema.describe()) == schema
    assert ContextSchema.of(schema.to_arrow(contexts(kind, range(60))).schema) == schema


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, None], "number"),
        ([float("nan")], "missing"),
        (["a", float("nan")], "text"),
        ([NOON.date(), NOON], "any"),
        ([NOON, NOON.replace(tzinfo=datetime.UTC)], "any"),
        ([["a"], "a"], "any"),
        ([["a", 1]], "any"),
        ([{}, {"os": 1}], "object"),
        ([{str(number): 1 for number in range(257)}], "any"),
    ],
)
def test_the_kind_of_a_field_holds_all_of_its_values(values, kind):
    assert Field.of(values).kind == kind


@pytest.mark.parametrize(("one", "other"), [(1, "a"), (True, 1), ("a", NOON), (NOON.time(), False)])
def test_a_field_that_changes_its_kind_is_an_error_with_both_kinds(one, other):
    with pytest.raises(InputError, match=r"field 'x' must have one kind, got .* in one context and .* in another"):
        ContextSchema.of([{"x": one}, {"x": other}])
    assert ContextSchema.of([{"x": one}, {"x": other}], strict=False).fields["x"].kind == "any"


def test_times_of_several_zones_have_their_offsets():
    zones = [NOON.replace(tzinfo=ZoneInfo(name)) for name in ("Europe/Oslo", "Asia/Tokyo")]
    assert [Field.of([zone]).zone for zone in zones] == ["Europe/Oslo", "Asia/Tokyo"]
    assert Field.of(zones).zone == "offsets"


def test_plain_texts_of_json_are_dates_if_the_schema_says_so():
    schema = ContextSchema.of([{"at": NOON.date(), "city": "Oslo"}])
    assert schema.from_json({"at": "2024-02-29", "city": "2024-02-29"}) == {"at": NOON.date(), "city": "2024-02-29"}


def test_agents_know_the_fields_that_they_learned():
    agent = manul.Auto()
    context = {"age": 3, "vip": True, "at": NOON, "day": NOON.date(), "open": NOON.time(), "device": {"os": "x"}}
    agent.learn(context, agent.decide(context), 0.5)
    kinds = {name: field.kind for name, field in agent.schema.fields.items()}
    assert kinds == {"age": "number", "at": "time", "day": "date", "device.os": "text", "open": "clock", "vip": "flag"}


def test_rows_of_numbers_have_a_width():
    log = manul.Log([[1.0, 2.0]], [0.5], [1.0], [0.5])
    assert log.schema == ContextSchema.of([[1.0, 2.0]]) == ContextSchema(2)


def test_like_must_be_an_agent_a_log_or_a_schema(tmp_path):
    manul.Log([[1.0]], [0.5], [1.0], [0.5]).write(tmp_path / "log.csv")
    with pytest.raises(ParameterError, match="like must be an agent, a log or a ContextSchema, got 7"):
        manul.Log.read(tmp_path / "log.csv", like=7)


@pytest.mark.parametrize(("text", "rule"), [("29.2.2024", "a date such as 2024-02-29"), ("soon", "a date")])
def test_a_text_that_is_no_date_is_a_bad_row(tmp_path, text, rule):
    (tmp_path / "log.csv").write_text(f"at,action,density,loss\n2024-02-29,1,1,1\n{text},1,1,1\n")
    like = ContextSchema.of([{"at": NOON.date()}])
    with pytest.raises(manul.errors.FileError, match=f"row 3: at must be {rule}"):
        manul.Log.read(tmp_path / "log.csv", like=like)
    assert len(manul.Log.read(tmp_path / "log.csv", like=like, skip_bad=True)) == 1
