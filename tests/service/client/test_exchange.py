"""When a request is sent again, without any connection."""

import inspect

import httpx
import pytest

import manul
from manul.errors import ServiceError
from manul.service.client.exchange import Pause, Request, send

GET = Request(method="GET", path="/v1/loops")
RESET = Request(method="POST", path="/v1/loops/heat/reset", repeatable=False)


def steps(request, outcomes, retries=8):
    """What a request does after each of some outcomes."""
    exchange = send(request, retries)
    taken = [next(exchange)]
    try:
        for outcome in outcomes:
            taken.append(exchange.send(outcome))
    except StopIteration as end:
        taken.append(end.value)
    return taken


@pytest.mark.parametrize("failure", [httpx.Response(503), httpx.Response(502), httpx.ReadTimeout("late")])
def test_a_request_is_repeated_after_a_pause(failure):
    good = httpx.Response(200)
    first, pause, second, response = steps(GET, [failure, None, good])
    assert (first, second, response) == (GET, GET, good)
    assert isinstance(pause, Pause)


@pytest.mark.parametrize("failure", [httpx.Response(502), httpx.ReadTimeout("late")])
def test_what_may_have_happened_is_not_repeated_if_that_would_do_harm(failure):
    with pytest.raises(ServiceError):
        steps(RESET, [failure])


def test_after_the_last_retry_the_error_is_raised():
    with pytest.raises(ServiceError, match="cannot be reached") as refused:
        steps(GET, [httpx.ConnectError("no"), None, httpx.ConnectError("no")], retries=1)
    assert refused.value.code == "unreachable"


def test_calls_have_signatures_and_descriptions_on_both_clients():
    for kind in (manul.Client, manul.AsyncClient):
        client = kind("http://127.0.0.1:1")
        assert list(inspect.signature(client.report_loss).parameters) == ["loop", "decision", "loss", "reward", "key"]
        assert client.report_loss.__doc__.startswith("Report the loss of a decision, or its reward")
