"""Laws of logs for every space of actions: what a format keeps, and what `like=` says of a file that does not."""

import functools

import numpy as np
import pytest

import manul
from manul.logs.sample import Sample
from manul.offpolicy.evaluation.policy_densities import PolicyOnLog
from tests.laws.spaces import CONTEXTS, SPACES, loss_of, narrower, trained

WAYS = (".parquet", ".csv", ".jsonl", ".csv.gz", "arrow", "pandas", "polars", "appended", "batches")


@functools.cache
def logged(name):
    """An agent that has learned, and the log of its next decisions, of which every other one is narrowed."""
    agent = trained(SPACES[name])
    within = [None, narrower(agent.space)] * (len(CONTEXTS) // 2)
    decisions = agent.decide_many(CONTEXTS, within)
    losses = [loss_of(agent.space, decision.action) for decision in decisions]
    rest = {"floors": decisions.floors, "densities_by_knob": decisions.densities_by_knob}
    if agent.space.is_number:
        rest = {"floors": decisions.floors, "lows": decisions.lows, "highs": decisions.highs}
    else:
        rest["within"] = within
    return agent, manul.Log(CONTEXTS, decisions.actions, decisions.densities, losses, knobs=agent.space, **rest)


def through(log, way, agent, folder):
    """The log after it was written and read, or converted and converted back."""
    if way in ("arrow", "pandas"):
        return {"arrow": manul.Log.from_arrow, "pandas": manul.Log.from_pandas}[way](
            {"arrow": log.to_arrow, "pandas": log.to_pandas}[way]()
        )
    if way == "polars":
        return manul.Log.from_polars(log.to_polars(), like=agent)
    path = folder / ("log.csv" if way in ("appended", "batches") else f"log{way}")
    if way == "appended":
        log.rows(slice(10)).write(path)
        with manul.LogWriter(path, append=True, like=agent) as writer:
            writer.write(log.rows(slice(10, None)))
    else:
        log.write(path)
    if way == "batches":
        return manul.Log.concat([*manul.Log.batches(path, 7, like=agent)])
    return manul.Log.read(path, like=None if way == ".parquet" else agent)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", SPACES)
def test_a_log_keeps_actions_densities_and_ranges(name, way, tmp_path):
    agent, log = logged(name)
    back = through(log, way, agent, tmp_path)
    assert back.space == log.space == agent.space
    for one, other in zip(columns(back), columns(log), strict=True):
        assert one == other
    assert back.within == log.within


def columns(log):
    """The columns of a log as lists, in which True is not 1."""
    by_knob = log.actions if isinstance(log.actions, dict) else {"": log.actions}
    yield from ([(type(value), value) for value in column.tolist()] for column in by_knob.values())
    views = (log.densities, log.losses, log.lows, log.highs, log.floors, *(log.densities_by_knob or {}).values())
    yield from (None if view is None else view.tolist() for view in views)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", SPACES)
def test_an_agent_on_its_own_log_states_the_densities_that_it_logged(name, way, tmp_path):
    agent, log = logged(name)
    (rows,) = Sample.of(through(log, way, agent, tmp_path)).pieces()
    np.testing.assert_allclose(PolicyOnLog(agent).densities(rows), log.densities, rtol=1e-9)


@pytest.mark.parametrize("name", SPACES)
def test_what_a_log_declares_is_not_replaced_by_that_of_an_agent_that_it_is_like(name, tmp_path):
    log = logged(name)[1]
    steps = {each: manul.Stepped(-9, 9999, 1) for each in log.space.names}
    other = manul.Auto(actions=log.space.unwrap(steps))
    log.write(tmp_path / "log.parquet")
    for back in (
        manul.Log.read(tmp_path / "log.parquet", like=other),
        manul.Log.from_arrow(log.to_arrow(), like=other),
        manul.Log.from_pandas(log.to_pandas(), like=other),
    ):
        assert (back.space, back.space.limits) == (log.space, log.space.limits)


@pytest.mark.parametrize("name", SPACES)
def test_an_action_that_the_space_does_not_have_is_refused(name, tmp_path):
    agent, log = logged(name)
    log.write(tmp_path / "log.csv")
    lines = (tmp_path / "log.csv").read_text().splitlines()
    (tmp_path / "log.csv").write_text("\n".join([lines[0], lines[1], "-7" + lines[2][lines[2].index(",") :]]))
    with pytest.raises(manul.errors.FileError, match=r"row 3: action.* must be (in|one of|between)"):
        manul.Log.read(tmp_path / "log.csv", like=agent)
    assert len(manul.Log.read(tmp_path / "log.csv", like=agent, skip_bad=True)) == 1
