"""Laws that hold for loops of every space of actions, over HTTP."""

import asyncio
import importlib
import sys

import numpy as np
import pytest

import manul
import tests
from manul.actions.decision import Decision
from manul.actions.limits import what_is_left
from manul.actions.pieces import is_product
from manul.actions.space import ActionSpace
from tests.laws import formulas
from tests.laws.piece_masses import densities, masses
from tests.laws.spaces import CONTEXTS, SPACES, baseline_of, loss_of, narrower

ROUNDS = 60
PLAN = {"steps": [0.6], "budget": 1e9}


@pytest.fixture(scope="module")
def modules(log_span):  # noqa: ARG001 - requests know the kinds that are registered when the service is imported
    """Imports modules as a program that imports the plug-in before the service, which `manul --plugin` is."""

    def remove():
        names = [name for name in sys.modules if name.startswith(("manul.service", "tests.service"))]
        return {name: sys.modules.pop(name) for name in names}

    before = remove()
    yield importlib.import_module
    remove()
    sys.modules.update(before)
    for package in (manul, tests):
        vars(package).pop("service", None)
        if f"{package.__name__}.service" in before:
            package.service = before[f"{package.__name__}.service"]


class Played:
    """What a loop answered in some rounds, with its model, its log and what it would answer while it is paused."""

    def __init__(self, name, path, modules):
        self.space = ActionSpace(SPACES[name])
        self.path = path
        self.recovery, self.calls = modules("tests.service.test_recovery"), modules("manul.service.client.calls")
        asyncio.run(self.play(modules("tests.service.conftest").Service(path / "a.db")))

    async def play(self, service):
        limits = {"limits": [*map(str, self.space.limits)]} if self.space.limits else {}
        agent = {"kind": "auto", "epsilon": 0.5, "seed": 7} | limits
        async with service.running(snapshot_events=10**9):
            actions = self.calls._described(self.space)
            self.status = await service.post("", 201, name="x", actions=actions, agent=agent)
            self.rows = []
            for first in range(0, ROUNDS, 20):
                self.rows += await self.batch(service, first)
            await service.learned("x", ROUNDS)
            await service.post("/x/pause")
            self.paused = await self.batch(service, ROUNDS)
            self.model = (await service.client.get("/v1/loops/x/model")).content
            self.logged = (await service.client.get("/v1/loops/x/log")).content
            self.summary, self.report = await service.get("/x/summary"), await service.get("/x/report")
        async with service.running():
            self.after = await service.get("/x")
            self.repeated = [await service.post("/x/decisions", **asked) for asked, _ in self.rows[:20]]
            await service.post("/x/resume")
            await service.learned("x", ROUNDS + 20)
            self.resumed = self.recovery.model_of(service.engine.loop("x"))
            self.replayed = self.recovery.replayed(service.engine, "x")[0]
            answer = await service.client.put("/v1/loops/x/rollout", json={"baseline": baseline_of(self.space), **PLAN})
            assert answer.status_code in (200, 201), answer.text
            self.model_of_rollout = (await service.client.get("/v1/loops/x/model")).content
            self.rolled = await self.batch(service, ROUNDS + 20)
            self.logged_rollout = (await service.client.get("/v1/loops/x/log")).content

    async def batch(self, service, first):
        narrow = narrower(self.space)
        stated = narrow if isinstance(narrow, dict) else list(narrow)
        asked = [
            {"context": CONTEXTS[n % 40].tolist(), "id": f"o{n}", "within": None if n % 3 else stated}
            for n in range(first, first + 20)
        ]
        made = (await service.post("/x/decisions/batch", decisions=asked))["decisions"]
        losses = [{"id": each["id"], "loss": loss_of(self.space, each["action"])} for each in made]
        await service.post("/x/losses", losses=losses)
        return list(zip(asked, made, strict=True))


@pytest.fixture(scope="module", params=SPACES)
def played(request, tmp_path_factory, modules):
    return Played(request.param, tmp_path_factory.mktemp("loop"), modules)


def test_a_space_survives_http(played):
    sent = ActionSpace.from_description(played.status["actions"])
    assert sent == played.space == manul.loads(played.model).space
    assert played.after["actions"] == played.status["actions"]


def test_the_same_events_give_the_same_model_in_library_and_service(played):
    agent = manul.Auto(actions=played.space, epsilon=0.5, seed=7)
    for asked, made in played.rows:
        within = played.space.stated(asked["within"])
        decision = Decision(made["action"], made["density"], within, None, made.get("densities"))
        agent.learn(np.array(asked["context"]), decision, loss_of(played.space, made["action"]))
    assert manul.dumps(agent) == played.model


def test_a_paused_loop_states_the_densities_that_it_logged(played):
    agent = manul.loads(played.model)
    for asked, made in played.paused:
        density = agent.distributions([asked["context"]], [asked["within"]]).density([made["action"]])[0]
        assert density == pytest.approx(made["density"])


def test_no_served_action_leaves_its_range_or_breaks_a_limit(played):
    for asked, made in played.rows + played.paused:
        assert all(played.space.contains(asked["within"], played.space.positions(made["action"])))
    columns = played.space.columns_of([made["action"] for _, made in played.rows])
    assert what_is_left(played.space, played.space.unwrap(columns)).inside.all()


def test_a_restart_repeats_decisions_and_a_replay_gives_the_model(played):
    assert played.repeated == [made for _, made in played.rows[:20]]
    assert played.after["learned"] == ROUNDS
    assert played.resumed == played.replayed != played.model


def test_the_log_has_the_actions_and_densities_that_were_served(played):
    path = played.path / "log.parquet"
    path.write_bytes(played.logged)
    log = manul.Log.read(path)
    by_id = {made["id"]: made for _, made in played.rows + played.paused}
    assert log.space.knobs == played.space.knobs
    assert log.densities.tolist() == [by_id[each]["density"] for each in log.ids]
    served = played.space.unwrap(played.space.columns_of([by_id[each]["action"] for each in log.ids]))
    np.testing.assert_equal(log.actions, served)


def test_the_log_says_what_actions_were_drawn_from_also_in_a_rollout(played):
    path, space = played.path / "drawn.parquet", played.space
    path.write_bytes(played.logged_rollout)
    log = manul.Log.read(path)
    if not is_product(space):
        assert log.pieces is None
        return
    assert {*(log.arms or [])} == {None, "learner", "baseline"}
    np.testing.assert_allclose(masses(space, log.pieces), 1.0, rtol=1e-12)
    np.testing.assert_allclose(densities(space, log.pieces, log.actions), log.densities, rtol=1e-9)


def test_a_paused_loop_logs_what_its_agent_says_in_the_library(played):
    path, agent = played.path / "paused.parquet", manul.loads(played.model)
    path.write_bytes(played.logged)
    log = manul.Log.read(path)
    for asked, made in played.paused:
        row = log.ids.index(made["id"])
        own = agent.decide_again(0, np.array(asked["context"]), asked["within"], levels=True).levels
        for name, levels in (own or {}).items():
            assert log.levels[name].row(row) == levels.row(0)


def test_the_summary_and_the_report_show_every_knob(played):
    shown = [each["name"] for each in played.summary.get("knobs", [])]
    assert shown == ([] if played.space.is_number else played.space.titles)
    assert any(each["name"].startswith("constant") for each in played.report["candidates"])


def test_a_rollout_states_the_densities_of_its_mixture(played):
    agent = manul.loads(played.model_of_rollout)
    rollout = manul.Rollout(agent, baseline=baseline_of(played.space), **PLAN)
    assert {made["arm"] for _, made in played.rolled} == {"learner", "baseline"}
    for asked, made in played.rolled:
        assert made["arm"] == "learner" or made["action"] == baseline_of(played.space)
        density = rollout.distributions([asked["context"]], [asked["within"]]).density([made["action"]])[0]
        assert density == pytest.approx(made["density"])


def test_a_policy_optimised_from_the_log_of_a_loop_stays_inside(played):
    (played.path / "rollout.parquet").write_bytes(played.logged_rollout)
    log = manul.Log.read(played.path / "rollout.parquet")
    assert log.space.limits == played.space.limits
    policy = manul.optimize(log, candidates=["auto"], progress=False).policy
    assert policy.space == played.space
    columns = played.space.columns_of([policy.best(context) for context in CONTEXTS])
    assert what_is_left(played.space, played.space.unwrap(columns)).inside.all()


@pytest.mark.parametrize("name", SPACES)
def test_a_loop_with_a_formula_learns_logs_and_replays_what_the_library_learns(name, tmp_path, modules):
    recovery, calls = modules("tests.service.test_recovery"), modules("manul.service.client.calls")
    service, agent = modules("tests.service.conftest").Service(tmp_path / "a.db"), formulas.agent_of(name)
    limits = {"limits": [*map(str, agent.space.limits)]} if agent.space.limits else {}
    settings = {"actions": calls._described(agent.space), **calls._outcome_settings(agent.outcome)}
    settings["agent"] = {"kind": "auto", "epsilon": 0.5, "seed": 7} | limits

    async def play():
        async with service.running(snapshot_events=10**9):
            await service.post("", 201, name="x", **settings)
            asked = [{"context": context} for context in formulas.CONTEXTS]
            made = (await service.post("/x/decisions/batch", decisions=asked))["decisions"]
            reports = [{"id": each["id"], **formulas.told(name, row)} for row, each in enumerate(made)]
            await service.post("/x/losses", losses=reports)
            await service.learned("x", len(made))
            model, log = [(await service.client.get(f"/v1/loops/x/{what}")).content for what in ("model", "log")]
        async with service.running():
            restarted = recovery.model_of(service.engine.loop("x"))
            return made, model, log, restarted, recovery.replayed(service.engine, "x")[0]

    made, model, log, restarted, replayed = asyncio.run(play())
    for row, each in enumerate(made):
        decision = Decision(each["action"], each["density"], None, None, each.get("densities"))
        agent.learn(formulas.CONTEXTS[row], decision, **formulas.told(name, row))
    agent.outcome = manul.loads(model).outcome  # a loop has no name of its outcome
    assert manul.dumps(agent) == model
    assert restarted == replayed
    (tmp_path / "log.parquet").write_bytes(log)
    read = manul.Log.read(tmp_path / "log.parquet")
    assert (read.outcome.formula, read.parts.keys()) == (agent.outcome.formula, agent.outcome.parts.keys())
    np.testing.assert_array_equal(read.parts["bought"], np.array(formulas.BOUGHT, float))
    assert read.with_outcome(read.outcome).rewards.tolist() == read.rewards.tolist()
