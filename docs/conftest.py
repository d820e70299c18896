"""The blocks of a page run in a folder of their own."""

import pytest


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
