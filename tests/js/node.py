"""Node with the package for JavaScript, and a server of files that counts requests."""

import os
import subprocess
import threading
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

from tests.c_library import ROOT

JS = ROOT / "js"


def node(*arguments, **environment):
    """What a program in Node prints."""
    assert (JS / "dist" / "manul.wasm").exists(), "no js/dist/manul.wasm; build it with make js"
    ran = subprocess.run(
        ["node", *map(str, arguments)], cwd=JS, capture_output=True, text=True, env={**os.environ, **environment}
    )
    assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-4000:]
    return ran.stdout


class _Handler(SimpleHTTPRequestHandler):
    def __init__(self, *arguments, requests, **others):
        self.requests = requests
        super().__init__(*arguments, **others)

    def log_message(self, *_):
        self.requests.append(self.path)


@contextmanager
def serving(folder):
    """The address of a server of the files in a folder, and the list of its requests."""
    requests = []
    handler = partial(_Handler, directory=str(folder), requests=requests)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", requests
        finally:
            server.shutdown()
            thread.join()
