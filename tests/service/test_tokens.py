"""Tokens are read again on SIGHUP, and a file without any never means that everybody may do everything."""

import signal
import subprocess
import time

import pytest

from manul.service.http import tokens
from tests.service.processes import MANUL, Process
from tests.service.wire import exchanged, request

pytestmark = pytest.mark.whole


def status(server, token):
    (found,) = exchanged(server.port, request("GET", "/v1/loops", b"", f"Authorization: Bearer {token}"), count=1)
    return found.status


def hung_up(server, says):
    """Sends SIGHUP, and waits for what the log says then."""
    log = server.folder / "service.log"
    began, until = log.stat().st_size, time.monotonic() + 60
    server.process.send_signal(signal.SIGHUP)
    while says not in log.read_bytes()[began:].decode():
        assert server.process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.mark.parametrize("text", ["", "\n\n", "# sha256:0 admin\n"])
def test_a_file_without_tokens_does_not_start(tmp_path, text):
    (tmp_path / "tokens").write_text(text)
    command = [MANUL, "serve", "--port", "0", "--token-file", "tokens"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr.endswith("tokens has no tokens. Create one with manul token.\n")


def test_sighup_reads_the_tokens_again(tmp_path):
    path = tmp_path / "tokens"
    old, new = (tokens.add(path, ["admin"]) for _ in range(2))
    first, second = path.read_text().splitlines(keepends=True)
    path.write_text(first)
    server = Process(tmp_path, "decisions.db", "--token-file", path)
    assert (status(server, old), status(server, new)) == (200, 401)
    path.write_text(second)
    hung_up(server, "reloaded the token file")
    assert (status(server, old), status(server, new)) == (401, 200)
    for broken in ("", "nonsense\n"):
        path.write_text(broken)
        hung_up(server, "keeping the current tokens")
        assert (status(server, old), status(server, new)) == (401, 200)
    assert server.stop() == 0


def test_sighup_without_a_token_file_changes_nothing(tmp_path):
    server = Process(tmp_path)
    hung_up(server, "no token file")
    assert status(server, "any") == 200
    assert server.stop() == 0
