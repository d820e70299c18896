"""The service as a process of its own, to be spoken to over a socket and killed."""

import http.client
import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

MANUL = Path(sys.executable).with_name("manul")


class Process:
    """`manul serve` on a free port of loopback."""

    def __init__(self, folder, store="decisions.db", *options, program=(MANUL,)):
        self.folder, self.store = Path(folder), str(Path(folder, store)) if "://" not in store else store
        command = [*program, "serve", "--store", self.store, "--port", "0", *map(str, options)]
        with Path(folder, "service.log").open("ab") as log:
            began, self.killed = log.tell(), False
            self.process = subprocess.Popen(command, stderr=log, cwd=folder)
        self.port, self.token = self._listening(began), None

    def _listening(self, began):
        while True:
            said = Path(self.folder, "service.log").read_bytes()[began:].decode()
            found = re.search(r'"listening".*"port": (\d+)', said)
            if found:
                return int(found[1])
            assert self.process.poll() is None, said
            time.sleep(0.01)

    def connection(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)

    def ask(self, method, path, body=None, connection=None):
        """The status and what was answered."""
        speaking = connection or self.connection()
        try:
            headers = {} if self.token is None else {"Authorization": f"Bearer {self.token}"}
            speaking.request(method, path, None if body is None else json.dumps(body), headers)
            answer = speaking.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            if connection is None:
                speaking.close()

    def kill(self):
        self.killed = True
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(120)
