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


@pytest.mark.parametrize("request_", [GET, RESET])
def test_a_caller_over_its_rate_limit_waits_as_long_as_the_service_asks(request_):
    too_many = httpx.Response(429, headers={"Retry-After": "3"})
    _, pause, again, _ = steps(request_, [too_many, None, httpx.Response(200)])
    assert again == request_
    assert 3.0 < pause.seconds <= 3.05


@pytest.mark.parametrize("given", ["", "Wed, 21 Oct 2026 07:28:00 GMT", "-1", "1e9", "\u0663".encode()])
def test_a_wait_that_is_not_a_number_of_seconds_is_that_of_other_failures(given):
    _, pause = steps(GET, [httpx.Response(429, headers={"Retry-After": given})])
    assert 0.025 <= pause.seconds <= 0.05


def test_a_wait_that_is_too_long_is_an_error_at_once():
    body = b'{"error": {"code": "too_many_requests", "message": "Retry in 500 seconds."}}'
    with pytest.raises(ServiceError, match="Retry in 500 seconds") as refused:
        steps(GET, [httpx.Response(429, headers={"Retry-After": "500"}, content=body)])
    assert (refused.value.status, refused.value.code) == (429, "too_many_requests")


def test_after_the_last_retry_the_error_is_raised():
    with pytest.raises(ServiceError, match="cannot be reached") as refused:
        steps(GET, [httpx.ConnectError("no"), None, httpx.ConnectError("no")], retries=1)
    assert refused.value.code == "unreachable"


def test_calls_have_signatures_and_descriptions_on_both_clients():
    for kind in (manul.Client, manul.AsyncClient):
        client = kind("http://127.0.0.1:1")
        assert list(inspect.signature(client.report_loss).parameters) == [
            *("loop", "decision", "loss", "reward", "parts", "key")
        ]
        assert client.report_loss.__doc__.startswith("Report the `loss` of a `decision` of a `loop`, its `reward`")
