"""The sets of the paper come from where they are, and are what they were."""

import urllib.error
import urllib.request

import numpy as np
import pytest

from manul.errors import FileError, ParameterError
from manul.paper import datasets
from manul.paper.datasets import catalogue

CPU = "@relation cpu\n@attribute lread real\n@attribute usr real\n@data\n1,10\n2,20\n3,30\n"


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("MANUL_DATA", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def web(tmp_path, monkeypatch):
    """Files on disk in place of the network."""
    (tmp_path / "cpu.arff").write_text(CPU)
    opened = urllib.request.urlopen

    def served(address, timeout):
        assert address == "https://www.openml.org/data/download/150680/BNG_cpu_act.arff"
        return opened((tmp_path / "cpu.arff").as_uri(), timeout=timeout)

    monkeypatch.setattr(urllib.request, "urlopen", served)


@pytest.fixture
def no_network(monkeypatch):
    def refused(*_, **__):
        raise urllib.error.URLError("no route to host")

    monkeypatch.setattr(urllib.request, "urlopen", refused)


def test_ds_is_the_authors_recipe():
    table = datasets.load("ds", rows=2000, seed=3)
    assert table.contexts.mean(axis=0) == pytest.approx(np.full(5, 5.0), abs=0.1)
    assert (table.targets.min(), table.targets.max()) == (0.0, 1.0)


@pytest.mark.usefixtures("web")
def test_a_set_is_downloaded_once_and_its_last_column_is_the_target(home, monkeypatch):
    table = datasets.load("cpu_act")
    assert (table.columns, table.targets.tolist()) == (("lread",), [0.0, 0.5, 1.0])
    monkeypatch.setattr(urllib.request, "urlopen", None)
    assert datasets.load("cpu_act").contexts.tobytes() == table.contexts.tobytes()
    assert {path.name for path in home.iterdir()} == {"cpu_act.arff", "cpu_act.arff.sha256"}


@pytest.mark.usefixtures("web")
def test_a_file_that_changed_is_refused(home):
    datasets.load("cpu_act")
    (home / "cpu_act.arff").write_text(CPU + "4,40\n")
    with pytest.raises(FileError, match=r"cpu_act.arff: the file has changed since it was downloaded .* Delete it"):
        datasets.load("cpu_act")


@pytest.mark.usefixtures("no_network")
def test_without_a_network_one_sentence_says_which_file_to_put_where(home):
    with pytest.raises(FileError) as caught:
        datasets.load("wisconsin")
    assert str(caught.value) == (
        "cannot download wisconsin from https://www.openml.org/data/download/150677/BNG_wisconsin.arff: no route to host. "
        f"Save the file as {home / 'wisconsin.arff'}, or specify the folder that contains it with --data."
    )
    assert list(home.iterdir()) == []


@pytest.mark.usefixtures("no_network")
def test_a_folder_of_files_comes_first(tmp_path):
    (tmp_path / "zurich_delay.csv").write_text("delay,a,b,c,d,e,day\n1,2,3,4,5,6,mon\n3,2,3,4,5,6,tue\n")
    table = datasets.load("zurich_delay", data=tmp_path)
    assert (table.columns, table.targets.tolist()) == (("a", "b", "c", "d", "e"), [0.0, 1.0])


@pytest.mark.usefixtures("web")
def test_a_full_disk_while_downloading_leaves_nothing_behind(home, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(catalogue.shutil, "copyfileobj", full)
    with pytest.raises(FileError, match=": No space left on device"):
        datasets.load("cpu_act")
    assert list(home.iterdir()) == []


def test_an_unknown_name_offers_the_close_ones():
    with pytest.raises(ParameterError, match=r"got 'wisconson'. Did you mean wisconsin\?"):
        datasets.load("wisconson")
