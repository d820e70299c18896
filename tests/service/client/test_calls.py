"""What a call sends, without any connection."""

import datetime
import json

import httpx
import numpy as np
import pandas
import pytest

import manul
from manul.errors import InputError
from manul.service.client.calls import Calls

AT = datetime.datetime(2024, 2, 29, 12, 30, tzinfo=datetime.timezone(datetime.timedelta(hours=1)))
ANSWER = {"id": "a", "action": 21.0, "density": 0.1, "model": 0}


class Recorder(Calls):
    """A client whose calls return the bodies that they send."""

    def run(self, exchange):
        bodies, outcome = [], None
        try:
            while True:
                bodies.append(json.loads(exchange.send(outcome).body))
                count = len(bodies[-1].get("decisions", []))
                outcome = httpx.Response(200, json={"decisions": [ANSWER] * count} if count else ANSWER)
        except StopIteration:
            return bodies


@pytest.fixture
def client():
    return Recorder("http://localhost", None, 10.0, 0)


@pytest.mark.parametrize(
    ("value", "sent"),
    [
        (AT, {"$date": "2024-02-29T12:30:00+01:00"}),
        (AT.date(), {"$date": "2024-02-29"}),
        (pandas.Timestamp(AT), {"$date": "2024-02-29T12:30:00+01:00"}),
        (np.datetime64("2024-02-29"), {"$date": "2024-02-29"}),
        (np.datetime64("2024-02-29T12:30:00.5", "ns"), {"$date": "2024-02-29T12:30:00.500000"}),
        (np.array(["2024-02-29"], "datetime64[D]"), [{"$date": "2024-02-29"}]),
        (pandas.NaT, None),
        ({"in": [AT.date(), "2024-02-29"]}, {"in": [{"$date": "2024-02-29"}, "2024-02-29"]}),
        ("2024-02-29", "2024-02-29"),
        (np.float32(0.5), 0.5),
    ],
)
def test_every_call_sends_dates_in_the_form_of_json(client, value, sent):
    context = {"at": value}
    (decided,), (several,) = client.decide("hotel", context), client.decide_many("hotel", [context, [1.0]])
    (observed,) = client.observe("hotel", context, action=21.0)
    assert decided["context"] == observed["context"] == {"at": sent}
    assert [each["context"] for each in several["decisions"]] == [{"at": sent}, [1.0]]


def test_a_context_is_not_changed_by_sending_it(client):
    context = {"at": AT, "nights": [AT.date()]}
    client.decide("hotel", context)
    assert context == {"at": AT, "nights": [AT.date()]}


def test_a_date_beyond_the_calendar_is_refused_before_it_is_sent(client):
    with pytest.raises(manul.errors.InputError, match="date from the year 1 to 9999, got 20000-01-01"):
        client.decide("hotel", {"at": np.datetime64("20000-01-01")})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), np.float32("nan")])
def test_numbers_that_json_cannot_have_are_refused_instead_of_left_out(client, value):
    """They would be null, and an observation has its density or loss not known then."""
    for name in ("density", "floor", "loss", "reward"):
        with pytest.raises(InputError, match=f"{name} must be a finite number, got (nan|inf)"):
            client.observe("hotel", [1.0], action=21.0, **{name: value})
        with pytest.raises(InputError) as caught:
            client.observe_many("hotel", [{"action": 21.0}, {"action": 21.0, name: value}])
        assert caught.value.field == f"observations[1].{name}"
    with pytest.raises(InputError, match=r"densities\.price must"):
        client.observe("hotel", [1.0], action={"price": 1.0}, densities={"price": value})
    with pytest.raises(InputError, match="loss must"):
        client.report_loss("hotel", "a", value)
    with pytest.raises(InputError) as caught:
        client.report_losses("hotel", [("a", 0.5), ("b", value)])
    assert caught.value.field == "losses[1].loss"
    with pytest.raises(InputError, match="amount must"):
        client.change_budget("hotel", value)
