"""The same table from a Ray cluster of two nodes, also when one of them goes away midway.

Ray takes seconds to start, so these run where they are asked for: `make soak`, or MANUL_RAY=1 with pytest.
"""

import os
import pickle
import sys
import threading
import time
from functools import partial
from types import ModuleType, SimpleNamespace

import pytest

import manul
from manul.errors import MissingDependency, ParameterError

asked = pytest.mark.skipif(os.environ.get("MANUL_RAY") != "1", reason="starts a Ray cluster: set MANUL_RAY=1")


@pytest.fixture
def cluster():
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    made.second = made.add_node(num_cpus=1)
    ray.init(address=made.address, log_to_driver=False)
    yield made
    ray.shutdown()
    made.shutdown()


def outcome(best):
    return best.table, manul.dumps(best.policy), best.verdict


@asked
@pytest.mark.filterwarnings("default")
@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("draw", [False, True])
def test_the_table_of_a_cluster_is_the_local_one(log, grid, draw):
    there, here = (manul.optimize(log, grid=grid, draw=draw, engine=engine) for engine in ("ray", "local"))
    assert outcome(there) == outcome(here)


@asked
@pytest.mark.filterwarnings("default")
def test_a_node_that_goes_away_changes_nothing_but_the_time(cluster, tmp_path):
    world = manul.worlds.linear(rounds=400_000, width=20)
    log = manul.simulate(manul.Cats.paper(leaves=4, bandwidth=1 / 4), world).log
    cells = [(bandwidth, leaves) for bandwidth in (1 / 8, 1 / 16, 1 / 32) for leaves in (512, 1024, 2048)]
    grid = manul.offpolicy.Grid(others={str(cell): partial(spied, tmp_path, *cell) for cell in cells})
    watcher = threading.Thread(target=remove_once_busy, args=(cluster, tmp_path / cluster.second.node_id))
    watcher.start()
    there = manul.optimize(log, grid=grid, engine="ray")
    watcher.join()
    assert (tmp_path / cluster.second.node_id).exists(), "the node must have been busy when it was removed"
    assert len(cluster.list_all_nodes()) == 1
    assert outcome(there) == outcome(manul.optimize(log, grid=grid))


@asked
@pytest.mark.filterwarnings("default")
@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("in_files", [False, True])
def test_the_critics_of_a_cluster_are_the_local_ones(log, grid, tmp_path, monkeypatch, in_files):
    log.write(tmp_path / "log.parquet")
    source = manul.Log.batches(tmp_path / "log.parquet", 1000) if in_files else log
    if in_files:
        from manul.offpolicy.optimization.engines import ray as engine

        monkeypatch.setattr(engine, "StoredLog", None)  # the log is not put into the object store
    settings = {"candidates": ("auto", "cats"), "grid": grid}
    assert outcome(manul.optimize(source, engine="ray", **settings)) == outcome(manul.optimize(log, **settings))


@asked
@pytest.mark.filterwarnings("default")
def test_critics_survive_the_loss_of_a_node(cluster, tmp_path):
    world = manul.worlds.linear(rounds=60_000, width=20)
    log = manul.simulate(manul.Cats.paper(leaves=4, bandwidth=1 / 4), world).log
    log.write(tmp_path / "log.parquet")
    watcher = threading.Timer(8, cluster.remove_node, (cluster.second,), {"allow_graceful": False})
    watcher.start()
    there = manul.optimize(manul.Log.batches(tmp_path / "log.parquet"), candidates="auto", engine="ray")
    watcher.join()
    assert len(cluster.list_all_nodes()) == 1
    assert outcome(there) == outcome(manul.optimize(log, candidates="auto"))


class LocalRay(ModuleType):
    """Ray without a cluster: tasks run at once, and everything that they get and return is pickled."""

    def __init__(self):
        super().__init__("ray")
        self.stored = []

    def is_initialized(self):
        return True

    def put(self, value):
        self.stored.append(pickle.dumps(value))
        return len(self.stored) - 1

    def get(self, references):
        if isinstance(references, list):
            return [self.get(each) for each in references]
        return pickle.loads(self.stored[references])

    def wait(self, references):
        return references, []

    def remote(self, *, num_returns=1, **_):
        def prepare(function):
            def run(*arguments):
                results = function(*pickle.loads(pickle.dumps(arguments)))
                return self.put(results) if num_returns == 1 else [self.put(each) for each in results]

            return SimpleNamespace(remote=run)

        return prepare


@pytest.fixture
def local_ray(monkeypatch):
    made = LocalRay()
    monkeypatch.setitem(sys.modules, "ray", made)
    monkeypatch.delitem(sys.modules, "manul.offpolicy.optimization.engines.ray", raising=False)
    monkeypatch.delattr("manul.offpolicy.optimization.engines.ray", raising=False)
    yield made
    sys.modules.pop("manul.offpolicy.optimization.engines.ray", None)


def test_tasks_give_the_local_table(log, grid, local_ray):
    settings = {"candidates": ("auto", "cats"), "grid": grid}
    few = log.rows(slice(1000))
    assert outcome(manul.optimize(few, engine="ray", **settings)) == outcome(manul.optimize(few, **settings))
    assert local_ray.stored


def test_tasks_read_the_files_of_a_log(log, local_ray, tmp_path):
    log.rows(slice(1000)).write(tmp_path / "log.parquet")
    batches = manul.Log.batches(tmp_path / "log.parquet", 300)
    there = manul.optimize(batches, candidates="auto", engine="ray")
    assert outcome(there) == outcome(manul.optimize(batches, candidates="auto"))
    assert not any(isinstance(pickle.loads(each), manul.Log) for each in local_ray.stored)


def test_tasks_give_the_local_policy_of_several_knobs(local_ray):
    world = manul.worlds.several.templates(rounds=400)
    log = manul.simulate(manul.Auto(actions=world.actions, epsilon=0.5), world).log
    there, here = (manul.optimize(log, epsilon=0.1, engine=engine) for engine in ("ray", "local"))
    assert repr(outcome(there)) == repr(outcome(here))  # without an interval, its ends are NaN
    assert local_ray.stored


class SpiedCats(manul.Cats):
    """A tree that leaves a file with the name of the node that trains it; tasks train copies."""

    def __copy__(self):
        import ray

        if ray.is_initialized() and ray.get_runtime_context().get_task_id() is not None:
            (self.folder / ray.get_runtime_context().get_node_id()).touch()
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        return made


def spied(folder, bandwidth, leaves, **settings):
    agent = SpiedCats(bandwidth=bandwidth, leaves=leaves, **settings)
    agent.folder = folder
    return agent


def remove_once_busy(cluster, busy):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not busy.exists():
        time.sleep(0.01)
    cluster.remove_node(cluster.second, allow_graceful=False)


def test_a_folder_to_resume_from_is_refused_on_a_cluster(log, grid):
    with pytest.raises(ParameterError, match="resume must be None with engine='ray', got 'here'"):
        manul.optimize(log, grid=grid, engine="ray", resume="here")


def test_without_ray_the_error_says_how_to_install_it(log, grid, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delitem(sys.modules, "manul.offpolicy.optimization.engines.ray", raising=False)
    monkeypatch.delattr("manul.offpolicy.optimization.engines.ray", raising=False)
    with pytest.raises(MissingDependency, match=r"pip install 'manul\[ray\]'"):
        manul.optimize(log, grid=grid, engine="ray")
