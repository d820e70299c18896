"""Laws of every kind of field: an agent sees in its log what it decided on, and a log keeps types and values."""

import asyncio
import io

import numpy as np
import pyarrow.parquet as parquet
import pytest

import manul
from manul.actions.kinds.choice import Choice
from tests.laws.fields import FIELDS, VALUES, contexts, title
from tests.service.conftest import Service

LEARNED, LOGGED = range(90), range(90, 150)
KNOBS = {"price": (0.0, 1.0), "template": Choice(["plain", "bold"])}
AGENTS = {
    "one knob": lambda: manul.Auto(epsilon=0.2),
    "several knobs": lambda: manul.Auto(actions=KNOBS, epsilon=0.2),
    "tree": lambda: manul.Cats(leaves=8, bandwidth=1 / 8, epsilon=0.2),
}
FORMATS = [".parquet", ".csv", ".jsonl.gz", "pandas", "polars", "batches"]
kinds = pytest.mark.parametrize("kind", FIELDS, ids=title)


def best(kind, n):
    return 0.2 + 0.6 * kind.level(n)


def losses_of(kind, rounds, decisions):
    actions = decisions.actions["price"] if isinstance(decisions.actions, dict) else decisions.actions
    return np.abs(actions - [best(kind, n) for n in rounds])


def log_of(kind, agent, rounds):
    """A log of an agent, which does not learn from it."""
    given, decisions = contexts(kind, rounds), agent.decide_many(contexts(kind, rounds))
    losses = losses_of(kind, rounds, decisions)
    if not isinstance(decisions.actions, dict):
        return manul.Log(given, decisions.actions, decisions.densities, losses, action_range=agent.actions)
    by_knob = {"knobs": KNOBS, "densities_by_knob": decisions.densities_by_knob}
    return manul.Log(given, decisions.actions, decisions.densities, losses, **by_knob)


@pytest.fixture(scope="module")
def learned():
    """An agent of each sort that has learned each kind of field, with a log."""
    known = {}

    def make(kind, name):
        if (kind, name) not in known:
            agent, given = AGENTS[name](), contexts(kind, LEARNED)
            for part in (slice(0, 30), slice(30, None)):
                decisions = agent.decide_many(given[part])
                agent.learn_many(given[part], decisions, losses_of(kind, LEARNED[part], decisions))
            known[kind, name] = agent, log_of(kind, agent, LOGGED)
        return known[kind, name]

    return make


def through(log, agent, form, folder):
    """A log after a detour through a file or a data frame."""
    frames = {"pandas": (log.to_pandas, manul.Log.from_pandas), "polars": (log.to_polars, manul.Log.from_polars)}
    if form in frames:
        return frames[form][1](frames[form][0](), like=agent)
    if form == "batches":
        log.write(folder / "log.csv")
        return manul.Log.concat([*manul.Log.batches(folder / "log.csv", 25, like=agent)])
    suffix, _, like = form.partition(", ")
    log.write(folder / f"log{suffix}")
    return manul.Log.read(folder / f"log{suffix}", like=log if like else agent)


def states_its_densities(agent, log):
    estimate = manul.evaluate(agent, log, "ips")
    return (estimate.value, estimate.effective_size) == pytest.approx((log.losses.mean(), len(log)), rel=1e-9)


@kinds
@pytest.mark.parametrize("name", AGENTS)
def test_an_agent_on_its_own_log_states_the_densities_that_it_logged(learned, kind, name):
    assert states_its_densities(*learned(kind, name))


@kinds
@pytest.mark.parametrize("form", FORMATS)
def test_an_agent_on_its_own_file_states_the_densities_that_it_logged(learned, kind, form, tmp_path):
    name = "several knobs" if FIELDS.index(kind) % 2 else "one knob"
    agent, log = learned(kind, name)
    assert states_its_densities(agent, through(log, agent, form, tmp_path))


@kinds
def test_a_loaded_agent_states_the_same_densities(learned, kind):
    agent, log = learned(kind, "one knob")
    assert states_its_densities(manul.loads(manul.dumps(agent)), log)


@kinds
@pytest.mark.parametrize("form", [".parquet", ".csv.gz, a log", ".jsonl", "pandas", "polars"])
def test_a_log_has_the_same_types_and_values_after_a_detour(learned, kind, form, tmp_path):
    log = learned(kind, "one knob")[1]
    read = through(log, log, form, tmp_path)
    assert read.schema == log.schema
    assert [*read.context_rows()] == [*log.context_rows()]


@kinds
@pytest.mark.parametrize("suffix", [".vw", ".dsjson"])
def test_formats_without_types_refuse_what_they_cannot_store(learned, kind, suffix, tmp_path):
    log = learned(kind, "one knob")[1]
    if kind.name in ("number", "text", "flag", "text that comes late"):
        log.write(tmp_path / f"log{suffix}")
    else:
        with pytest.raises(
            manul.errors.FileError, match=r"cannot store the .* of 'field'. Use .parquet, .jsonl or .csv"
        ):
            log.write(tmp_path / f"log{suffix}")


def uniform_log(kind, rounds, *, several):
    """A log of uniform actions."""
    rng = np.random.default_rng(1)
    given, ones, prices = contexts(kind, rounds), np.ones(len(rounds)), rng.random(len(rounds))
    losses = np.abs(prices - [best(kind, n) for n in rounds])
    if not several:
        return manul.Log(given, prices, ones, losses, action_range=(0, 1))
    templates = rng.choice(["plain", "bold"], len(rounds))
    by_knob = {"price": ones, "template": ones / 2}
    actions = {"price": prices, "template": templates}
    return manul.Log(given, actions, ones / 2, 0.9 * losses, knobs=KNOBS, densities_by_knob=by_knob)


@kinds
def test_a_policy_optimised_from_a_log_is_as_good_on_live_contexts(kind):
    several, live = FIELDS.index(kind) % 2 == 1, range(300, 345)
    log = uniform_log(kind, range(300), several=several)
    policy = manul.optimize(log, candidates=["auto"], seed=1).policy

    def error(context, n):
        action = policy.best(context)
        return abs((action["price"] if several else action) - best(kind, n))

    true = np.mean([error(kind.context(n), n) for n in live])
    logged = np.mean([error(row, n) for n, row in enumerate(log.rows(slice(45)).context_rows())])
    assert true == pytest.approx(logged, abs=0.03)
    assert true < 0.15


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """The model and the log of a paused loop for each kind of field, with missing and absent values, all in one service."""
    return asyncio.run(_serve(Service(f"sqlite:///{tmp_path_factory.mktemp('laws')}/store.db")))


async def _serve(service):
    async with service.running():
        return {name: await _play(service, f"loop{number}", name) for number, name in enumerate(VALUES)}


def _context(name, n):
    """A context with a field of a kind, one that is missing at times, and one that is absent at times."""
    given = {kind.lacking: kind.context(n) for kind in FIELDS if kind.name == name}
    return {lacking or "always": each["field"] for lacking, each in given.items() if "field" in each}


async def _play(service, loop, name):
    await service.post("", 201, name=loop, actions=[0, 1], agent={"kind": "auto", "epsilon": 0.2})
    await _decide_and_report(service, loop, name, LEARNED[:45])
    await service.learned(loop, 45)
    await service.post(f"/{loop}/pause")
    await _decide_and_report(service, loop, name, LOGGED[:45])
    model, log = [(await service.client.get(f"/v1/loops/{loop}/{part}")).content for part in ("model", "log")]
    return manul.loads(model), manul.Log.from_table(parquet.read_table(io.BytesIO(log)))


async def _decide_and_report(service, loop, name, rounds):
    given = [{"context": manul.ContextSchema().to_json(_context(name, n))} for n in rounds]
    decisions = (await service.post(f"/{loop}/decisions/batch", decisions=given))["decisions"]
    losses = [abs(each["action"] - 0.2 - 0.6 * (n % 2)) for each, n in zip(decisions, rounds, strict=True)]
    reports = [{"id": each["id"], "loss": loss} for each, loss in zip(decisions, losses, strict=True)]
    await service.post(f"/{loop}/losses", losses=reports)


@pytest.mark.parametrize("name", VALUES)
def test_a_model_on_the_log_of_its_loop_states_the_densities_that_were_logged(served, name):
    model, log = served[name]
    assert states_its_densities(model, log.rows(slice(45, None)))


@pytest.mark.parametrize("form", [".csv", ".jsonl"])
@pytest.mark.parametrize("name", VALUES)
def test_so_does_it_on_a_text_file_of_the_log(served, name, form, tmp_path):
    model, log = served[name]
    assert states_its_densities(model, through(log.rows(slice(45, None)), model, form, tmp_path))


@pytest.mark.parametrize("name", VALUES)
def test_a_policy_optimised_from_the_log_of_a_loop_sees_live_contexts_as_those_of_the_log(served, name):
    log = served[name][1]
    policy = manul.optimize(log, candidates=["auto"], seed=1, progress=False).policy
    live = [_context(name, n) for n in (*LEARNED[:45], *LOGGED[:45])]
    assert [policy.best(each) for each in live] == [policy.best(each) for each in log.context_rows()]
    assert len({policy.best(each) for each in live}) > 1
