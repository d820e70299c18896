"""Each page runs in its own temporary folder; processes that it starts are killed at the end."""

import subprocess

import pytest


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True)
def _processes(monkeypatch):
    started = []

    class Remembered(subprocess.Popen):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            started.append(self)

    monkeypatch.setattr(subprocess, "Popen", Remembered)
    yield
    for process in started:
        if process.poll() is None:
            process.kill()
            process.communicate()
