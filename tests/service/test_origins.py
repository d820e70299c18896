"""Without tokens, no other site can make a browser use the service; with tokens, names do not matter."""

import subprocess

import pytest

from manul.service.errors import Forbidden
from manul.service.http.origins import Origins
from tests.service.processes import MANUL, Process
from tests.service.wire import exchanged

pytestmark = pytest.mark.whole

LOOPS = "/v1/loops"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = Process(tmp_path_factory.mktemp("origins"), "decisions.db", "--allowed-host", "manul.example")
    yield server
    assert server.stop() == 0


def asked(server, method, path, *headers):
    lines = [f"{method} {path} HTTP/1.1", "Content-Length: 2", *headers]
    (found,) = exchanged(server.port, "\r\n".join(lines).encode() + b"\r\n\r\n{}", count=1)
    return found


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "192.0.2.1", "a b", "[::2]"]
)
def test_a_foreign_host_is_refused(server, host):
    found = asked(server, "GET", LOOPS, f"Host: {host}")
    assert (found.status, found.error["code"]) == (403, "forbidden")
    assert "--allowed-host" in found.error["message"]


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.1:8000", "localhost:1", "LOCALHOST", "[::1]:8000", "manul.example"]
)
def test_a_loopback_or_allowed_host_is_served(server, host):
    assert asked(server, "GET", LOOPS, f"Host: {host}").status == 200


def test_probes_may_use_any_name(server):
    assert asked(server, "GET", "/healthz", "Host: pod.example").status == 200


@pytest.mark.parametrize(
    "header",
    ["Origin: http://evil.example", "Origin: null", "Origin: http://127.0.0.1:9",
     "Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site"],
)  # fmt: skip
@pytest.mark.parametrize("path", [LOOPS, "/v1/loops/heat/decisions"])
def test_a_request_of_another_site_that_changes_something_is_refused(server, path, header):
    found = asked(server, "POST", path, "Host: 127.0.0.1:8000", header)
    assert (found.status, found.error["code"]) == (403, "forbidden")


@pytest.mark.parametrize(
    "header", ["Origin: http://127.0.0.1:8000", "Sec-Fetch-Site: same-origin", "Sec-Fetch-Site: none", "Origin: https://manul.example"]
)  # fmt: skip
def test_a_request_of_the_own_pages_is_taken(server, header):
    assert asked(server, "POST", LOOPS, "Host: 127.0.0.1:8000", header).status == 422


def test_with_tokens_names_do_not_matter(tmp_path):
    token = subprocess.run(
        [MANUL, "token", "admin", "--file", "tokens"], cwd=tmp_path, check=True, capture_output=True, text=True
    ).stdout.strip()
    server = Process(tmp_path, "decisions.db", "--token-file", "tokens")
    headers = ("Host: evil.example", "Origin: http://evil.example", f"Authorization: Bearer {token}")
    assert asked(server, "POST", LOOPS, *headers).status == 422
    server.stop()


def test_the_host_that_the_service_listens_on_is_served():
    Origins("box.local").check("GET", "/", {b"host": b"Box.local:8000"})
    with pytest.raises(Forbidden):
        Origins("box.local").check("GET", "/", {b"host": b"other.local:8000"})
