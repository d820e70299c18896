"""Dates and times as fields of contexts."""

import datetime

import numpy as np
import pandas
import pytest

import manul
from manul.agents.player_host import host_of
from manul.errors import InputError
from manul.utils import model_files

UTC = datetime.UTC
OSLO = datetime.timezone(datetime.timedelta(hours=1))
NOON = datetime.datetime(2024, 2, 29, 12, 30)


def agent_that_learned(*values):
    agent = manul.Cats(leaves=8, bandwidth=1 / 8, table_bits=10)
    agent.learn_many(
        [{"at": value} for value in values], manul.Decisions(*np.full((2, len(values)), 0.5)), [0.5] * len(values)
    )
    return agent


def names(agent):
    return set(model_files.decode(model_files.dumps(agent))[1]["names"]["features"].values())


def days(value):
    """The number that an agent learns for a value."""
    agent = agent_that_learned(value)
    (mean,) = [number for number in host_of(agent).state()["mean"] if number] or [0.0]
    return mean


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (NOON, {"at.days", "at.month=Feb", "at.weekday=Thu", "at.hour=12"}),
        (NOON.date(), {"at.days", "at.month=Feb", "at.weekday=Thu"}),
        (NOON.time(), {"at.days", "at.hour=12"}),
        (pandas.Timestamp(NOON), {"at.days", "at.month=Feb", "at.weekday=Thu", "at.hour=12"}),
        (np.datetime64("2024-02-29T12:30:00.123456789"), {"at.days", "at.month=Feb", "at.weekday=Thu", "at.hour=12"}),
        (np.datetime64("2024-02-29"), {"at.days", "at.month=Feb", "at.weekday=Thu"}),
        (None, {"at=?"}),
        (pandas.NaT, {"at=?"}),
        (pandas.NA, {"at=?"}),
        (np.datetime64("NaT"), {"at=?"}),
    ],
)
def test_a_time_becomes_a_number_of_days_and_texts(value, expected):
    assert names(agent_that_learned(value)) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (datetime.date(1970, 1, 2), 1.0),
        (datetime.date(1969, 12, 31), -1.0),
        (datetime.date(2024, 2, 29), 19782.0),
        (datetime.datetime(1970, 1, 1, 18), 0.75),
        (datetime.datetime(1970, 1, 2, 6, tzinfo=datetime.timezone(datetime.timedelta(hours=-6))), 1.5),
        (datetime.time(6), 0.25),
    ],
)
def test_days_are_counted_from_1970_in_utc(value, expected):
    assert days(value) == expected


def test_the_hour_and_the_weekday_are_those_of_the_time_zone():
    late = datetime.datetime(2024, 2, 29, 23, 30, tzinfo=UTC)
    assert {"at.hour=00", "at.weekday=Fri", "at.month=Mar"} < names(agent_that_learned(late.astimezone(OSLO)))
    assert days(late) == days(late.astimezone(OSLO)) == days(pandas.Timestamp(late).tz_convert("UTC"))


@pytest.mark.parametrize(
    ("first", "second", "kind"),
    [("today", NOON, "text"), (NOON, 3.5, "a date or time"), (NOON, "today", "a date or time")],
)
def test_a_field_of_times_stays_one(first, second, kind):
    agent = agent_that_learned(first)
    before = model_files.dumps(agent)
    with pytest.raises(InputError, match=f"field 'at' must be {kind}, like the first time, got another type"):
        agent.learn({"at": second}, manul.Decision(0.5, 0.5), 0.5)
    assert model_files.dumps(agent) == before


def test_times_beyond_the_calendar_are_refused():
    with pytest.raises(InputError, match="'at' must be a number, text, boolean, date"):
        agent_that_learned(np.datetime64("20000-01-01"))


def test_what_a_time_zone_raises_reaches_the_caller():
    class Broken(datetime.tzinfo):
        def utcoffset(self, _):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        agent_that_learned(NOON.replace(tzinfo=Broken()))


def test_a_saved_agent_still_knows_its_times(tmp_path):
    agent = agent_that_learned(NOON)
    agent.save(tmp_path / "agent.manul")
    loaded = manul.load(tmp_path / "agent.manul")
    for each in (agent, loaded):
        each.learn({"at": NOON, "new": NOON.date()}, manul.Decision(0.5, 0.5), 0.5)
    assert model_files.dumps(agent) == model_files.dumps(loaded)


def test_a_field_that_was_a_number_of_seconds_may_be_a_time():
    agent, other = (manul.Cats(leaves=8, bandwidth=1 / 8) for _ in range(2))
    for each in (agent, other):
        each.learn({"at": 1.7e9, "age": 3}, each.decide({"at": 1.7e9, "age": 3}), loss=0.5)
    moment = datetime.datetime(2024, 3, 1, tzinfo=datetime.UTC)
    assert agent.decide({"at": moment, "age": 4}) == other.decide({"at": moment.timestamp(), "age": 4})
