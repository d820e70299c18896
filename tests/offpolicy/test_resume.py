"""A run that was stopped goes on where it stopped, to the same bytes."""

import json

import pytest

import manul
from manul.agents.player_host import host_of
from manul.errors import ParameterError
from manul.offpolicy.optimization import checkpoint


class StoppedError(Exception):
    pass


@pytest.fixture(autouse=True)
def kept_after_every_batch(monkeypatch):
    monkeypatch.setattr(checkpoint, "SECONDS", 0.0)
    monkeypatch.setattr(checkpoint, "SHARE", float("inf"))


def batches(log, size, stop=None):
    for first in range(0, len(log), size):
        if first == stop:
            raise StoppedError
        yield log.rows(slice(first, first + size))


def bytes_of(best, folder):
    best.table.to_csv(folder / "table.csv")
    arrays = {name: array.tobytes() for name, array in host_of(best.policy).state().items()}
    return (folder / "table.csv").read_bytes(), repr(best.policy), arrays


@pytest.mark.parametrize("draw", [False, True])
def test_a_stopped_run_ends_as_one_that_ran_through(log, grid, tmp_path, draw):
    with pytest.raises(StoppedError):
        manul.optimize(batches(log, 500, stop=1500), grid=grid, draw=draw, resume=tmp_path / "run", penalty=1)
    assert json.loads((tmp_path / "run" / "progress.json").read_text())["rows"] == 1500
    resumed = manul.optimize(batches(log, 700), grid=grid, draw=draw, resume=tmp_path / "run", penalty=1)
    assert bytes_of(resumed, tmp_path) == bytes_of(manul.optimize(log, grid=grid, draw=draw, penalty=1), tmp_path)


def test_a_finished_run_is_not_run_again(log, grid, tmp_path, monkeypatch):
    first = manul.optimize(log, grid=grid, resume=tmp_path / "run", penalty=1)
    monkeypatch.setattr(checkpoint.Replay, "learn", None)
    assert bytes_of(manul.optimize(log, grid=grid, resume=tmp_path / "run", penalty=1), tmp_path) == bytes_of(
        first, tmp_path
    )


def test_one_state_is_kept_at_a_time(log, grid, tmp_path):
    manul.optimize(batches(log, 1000), grid=grid, resume=tmp_path / "run", penalty=1)
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["progress.json", "rows-3000"]


def test_a_stop_while_writing_leaves_the_state_before(log, grid, tmp_path, monkeypatch):
    with pytest.raises(StoppedError):
        manul.optimize(batches(log, 500, stop=1000), grid=grid, resume=tmp_path / "run", penalty=1)
    with monkeypatch.context() as patched:
        patched.setattr(checkpoint, "write_whole", _stop)
        with pytest.raises(StoppedError):
            manul.optimize(log, grid=grid, resume=tmp_path / "run", penalty=1)
    resumed = manul.optimize(log, grid=grid, resume=tmp_path / "run", penalty=1)
    assert bytes_of(resumed, tmp_path) == bytes_of(manul.optimize(log, grid=grid, penalty=1), tmp_path)


def test_another_log_or_grid_is_refused(log, grid, tmp_path):
    manul.optimize(log.rows(slice(1000)), grid=grid, resume=tmp_path, penalty=1)
    with pytest.raises(ParameterError, match="different log: its rows differ"):
        manul.optimize(log.rows(slice(1, None)), grid=grid, resume=tmp_path, penalty=1)
    with pytest.raises(ParameterError, match="different log: it has 500 rows, but the run had learned from 1000"):
        manul.optimize(log.rows(slice(500)), grid=grid, resume=tmp_path, penalty=1)
    with pytest.raises(ParameterError, match="different settings"):
        manul.optimize(log, grid=manul.offpolicy.Grid.paper(), resume=tmp_path, penalty=1)


@pytest.fixture(scope="module")
def several():
    world = manul.worlds.several.templates(rounds=400)
    return manul.simulate(manul.Auto(actions=world.actions, epsilon=0.5), world).log


@pytest.mark.parametrize("phase", ["in-order", "judges", "verdict-0", "all-rows"])
def test_a_stopped_run_of_several_knobs_ends_as_one_that_ran_through(several, tmp_path, monkeypatch, phase):
    with monkeypatch.context() as patched:
        write = checkpoint.write_whole
        patched.setattr(
            checkpoint, "write_whole", lambda path, text: _stop() if path.stem == phase else write(path, text)
        )
        with pytest.raises(StoppedError):
            manul.optimize(several, resume=tmp_path / "run", epsilon=0.1)
    resumed, whole = (manul.optimize(several, resume=folder, epsilon=0.1) for folder in (tmp_path / "run", None))
    assert bytes_of(resumed, tmp_path) == bytes_of(whole, tmp_path)
    assert repr(resumed.verdict) == repr(whole.verdict)


def test_a_finished_run_of_several_knobs_trains_nothing_again(several, tmp_path, monkeypatch):
    first = manul.optimize(several, resume=tmp_path / "run")
    monkeypatch.setattr("manul.offpolicy.cross_fitting.learn", _stop)
    assert str(manul.optimize(several, resume=tmp_path / "run")) == str(first)
    with pytest.raises(ParameterError, match="different log"):
        manul.optimize(several.rows(slice(1, None)), resume=tmp_path / "run")


def _stop(*_):
    raise StoppedError
