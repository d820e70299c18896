"""What one file outside the package registers works everywhere, without an edit elsewhere."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import manul
from manul.agents.agent_registry import AGENTS
from manul.errors import ParameterError
from manul.logs.formats import FORMATS
from manul.offpolicy.evaluation.estimators import ESTIMATORS
from manul.offpolicy.evaluation.intervals import INTERVALS, Normal
from manul.service.store.store_registry import STORES
from manul.utils.model_files import KINDS
from manul.utils.registry import import_plugin
from tests.service.processes import MANUL, Process

EXAMPLE = Path(__file__).with_name("extension_example.py")
EXAMPLES = {
    "extension": EXAMPLE,
    "schedule": EXAMPLE.with_name("schedule_example.py"),
    "knob": EXAMPLE.parent / "laws" / "log_span.py",
    "answer": EXAMPLE.with_name("answer_example.py"),
}
IN_DOCSTRINGS = {"density_model", "outcome_model"}  # whose examples are executed too
LOOP = {"name": "heating", "actions": [0, 32], "agent": {"kind": "best-point", "bandwidth": 2.0}}


@pytest.fixture(autouse=True)
def extension():
    """Registered for one test: other tests go over all that is registered."""
    import_plugin(str(EXAMPLE))
    yield
    AGENTS.remove("best-point")
    KINDS.remove("BestPoint")
    ESTIMATORS.remove("clipped")
    INTERVALS.remove("hoeffding")
    FORMATS.remove(".rows")
    STORES.remove("folder")
    del sys.modules["manul_plugin_extension_example"]


@pytest.fixture
def table(tmp_path):
    rows = "".join(f"{size},{3 * (size % 7)}\n" for size in range(300))
    (tmp_path / "sizes.csv").write_text("size,price\n" + rows)
    return tmp_path / "sizes.csv"


@pytest.fixture
def log():
    return manul.simulate(manul.Cats(leaves=16, bandwidth=1 / 8), manul.worlds.linear(rounds=600, width=2)).log


def best_point(**settings):
    return AGENTS["best-point"].make(**settings)


def ran(*arguments, plugin=("--plugin", EXAMPLE)):
    done = subprocess.run([MANUL, *plugin, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_everything_that_can_be_registered_has_an_example_of_one_file():
    said = "".join(path.read_text() for path in EXAMPLES.values()).replace("register_knob", "register.knob")
    used = set(re.findall(r"register[.](\w+)", said))
    assert used | IN_DOCSTRINGS == {*manul.register.__all__}


def test_the_agent_is_simulated():
    assert manul.simulate(best_point(seed=3), manul.worlds.linear(rounds=2000)).mean_loss < 0.4


def test_the_agent_passes_every_check():
    makers = {name: make for name, make in manul.checks.discover() if name.startswith("BestPoint")}
    assert list(makers) == ["BestPoint 0"]
    manul.checks.check_agent(makers["BestPoint 0"])


def test_the_agent_is_saved_and_loaded(tmp_path):
    agent = best_point(bandwidth=0.1, seed=3)
    manul.simulate(agent, manul.worlds.linear(rounds=200))
    agent.save(tmp_path / "agent.manul")
    for loaded in (manul.load(tmp_path / "agent.manul"), manul.loads(manul.dumps(agent))):
        assert manul.dumps(loaded) == manul.dumps(agent)


def test_the_agent_is_a_candidate_of_optimize(log):
    best = manul.optimize(log, grid=manul.offpolicy.Grid(bandwidths=[1 / 4], leaves=[4], others=["best-point"]))
    assert [row.candidate for row in best.table] == ["Cats", "best-point"]
    assert best.table.rows[1].bandwidth == 1 / 32


@pytest.mark.whole
def test_the_agent_runs_from_the_command_line(table, tmp_path):
    options = ["--target", "price", "--agent", "best-point", "--out", tmp_path / "policy.manul", "--json"]
    assert json.loads(ran("run", table, *options))["agent"] == "best-point"
    assert manul.load(tmp_path / "policy.manul").agent.schema.width == 1


@pytest.mark.whole
def test_the_agent_is_a_candidate_from_the_command_line(log, tmp_path):
    log.write(tmp_path / "run.parquet")
    grid = ["--bandwidths", "1/4", "--leaves", "4", "--agent", "best-point"]
    rows = json.loads(ran("optimize", tmp_path / "run.parquet", *grid, "--json"))["table"]
    assert [row["candidate"] for row in rows] == ["Cats", "best-point"]


@pytest.mark.whole
def test_the_environment_names_plugins_too(monkeypatch):
    monkeypatch.setenv("MANUL_PLUGINS", f"json, {EXAMPLE}")
    assert "best-point" in ran("run", "--help", plugin=())


@pytest.mark.whole
def test_a_loop_of_the_service_has_the_agent_and_survives_a_restart(tmp_path):
    service = Process(tmp_path, program=(MANUL, "--plugin", EXAMPLE))
    assert service.ask("POST", "/v1/loops", LOOP)[0] == 201
    for number in range(20):
        _, decision = service.ask("POST", "/v1/loops/heating/decisions", {"context": [1.0, 2.0], "id": f"a{number}"})
        loss = {"loss": abs(decision["action"] - 8) / 32}
        assert service.ask("POST", f"/v1/loops/heating/decisions/a{number}/loss", loss)[0] in (200, 201, 202)
    _, before = service.ask("GET", "/v1/loops/heating")
    service.stop()
    service = Process(tmp_path, program=(MANUL, "--plugin", EXAMPLE))
    _, after = service.ask("GET", "/v1/loops/heating")
    service.stop()
    assert after["agent"] == {"kind": "best-point", "epsilon": 0.1, "seed": 0, "bandwidth": 2.0}
    assert after["decisions"] == before["decisions"] == after["learned"] == 20


@pytest.mark.whole
def test_a_loop_has_a_knob_a_schedule_and_a_store_from_outside_and_survives_a_restart(tmp_path):
    plugins = [part for name in ("extension", "schedule", "knob") for part in ("--plugin", EXAMPLES[name])]
    steps = {"kind": "steps", "levels": [0.5, 0.1], "until": [5]}
    agent = {"kind": "auto", "epsilon": steps}
    loop = {"name": "sale", "actions": {"price": {"low": 1, "high": 100, "scale": "log"}}, "agent": agent}
    service = Process(tmp_path, f"folder://{tmp_path}", program=(MANUL, *plugins))
    code, answer = service.ask("POST", "/v1/loops", loop)
    assert code == 201, answer
    for number in range(8):
        service.ask("POST", "/v1/loops/sale/decisions", {"id": f"a{number}"})
        service.ask("POST", f"/v1/loops/sale/decisions/a{number}/loss", {"loss": 0.5})
    assert service.ask("POST", "/v1/loops", loop | {"agent": agent | {"epsilon": {"kind": "stops"}}})[0] == 422
    service.stop()
    service = Process(tmp_path, f"folder://{tmp_path}", program=(MANUL, *plugins))
    _, status = service.ask("GET", "/v1/loops/sale")
    service.stop()
    assert (status["agent"]["epsilon"], status["epsilon"]) == (steps | {"until": [5.0]}, 0.1)
    assert (status["actions"], status["learned"]) == (loop["actions"], 8)


@pytest.mark.whole
def test_the_schedule_runs_from_the_command_line(table, tmp_path):
    options = ["--target", "price", "--epsilon", '{"kind": "steps"}', "--out", tmp_path / "policy.manul"]
    ran("run", table, *options, plugin=("--plugin", EXAMPLES["schedule"]))
    wrong = ["run", table, "--target", "price", "--epsilon", '{"kind": "steps"}']
    done = subprocess.run([MANUL, *map(str, wrong)], capture_output=True, text=True, check=False)
    assert (done.returncode, "schedule must be one of fading, got 'steps'" in done.stderr) == (2, True)


@pytest.mark.whole
def test_a_field_of_the_answer_is_added_in_one_place(tmp_path):
    service = Process(tmp_path, program=(MANUL, "--plugin", EXAMPLES["answer"]))
    service.ask("POST", "/v1/loops", LOOP | {"agent": "auto"})
    asked = {"context": [1.0, 2.0]}
    _, fast = service.ask("POST", "/v1/loops/heating/decisions", asked)
    _, routed = service.ask("POST", "/v1/loops/heating/decisions?", asked)
    _, batch = service.ask("POST", "/v1/loops/heating/decisions/batch", {"decisions": [asked, asked | {"id": "a"}]})
    service.ask("PUT", "/v1/loops/heating/rollout", {"baseline": 8.0})
    _, arms = service.ask("POST", "/v1/loops/heating/decisions/batch", {"decisions": [asked]})
    _, described = service.ask("GET", "/openapi.json")
    service.stop()
    assert all(each["made"] > 0 for each in (fast, routed, *batch["decisions"], *arms["decisions"]))
    assert "made" in described["components"]["schemas"]["Decision"]["required"]


def test_the_estimator_evaluates(log):
    estimate = manul.evaluate(lambda _: 0.5, log, "clipped", bandwidth=1 / 4)
    assert (estimate.estimator, estimate.low <= estimate.value <= estimate.high) == ("clipped", True)
    assert estimate.value <= manul.evaluate(lambda _: 0.5, log, "ips", bandwidth=1 / 4).value


@pytest.mark.whole
def test_the_estimator_evaluates_from_the_command_line(log, tmp_path):
    log.write(tmp_path / "run.parquet")
    manul.Cats(leaves=4, bandwidth=1 / 4).save(tmp_path / "policy.manul")
    found = ran("evaluate", tmp_path / "policy.manul", tmp_path / "run.parquet", "--estimator", "clipped", "--json")
    assert json.loads(found)["estimates"][0]["estimator"] == "clipped"


def test_the_interval_is_computed_and_needs_its_bound(log):
    wide, narrow = (
        manul.evaluate(lambda _: 0.5, log, "ips", name, bandwidth=1 / 4) for name in ("hoeffding", "normal")
    )
    assert (wide.interval, wide.low <= narrow.low < narrow.high <= wide.high) == ("hoeffding", True)
    without_floors = manul.Log(log.contexts, log.actions, log.densities, log.losses)
    with pytest.raises(ParameterError, match="interval hoeffding needs an upper bound of the weights"):
        manul.evaluate(lambda _: 0.5, without_floors, interval="hoeffding", bandwidth=1 / 4)


def test_an_approximate_interval_serves_estimators_with_a_model_and_gets_the_objections_of_its_kind(log):
    manul.register.interval("again", approximate=True)(lambda *_: Normal())
    try:
        assert manul.evaluate(lambda _: 0.5, log, "dr", "again", bandwidth=1 / 4).interval == "again"
        few = manul.evaluate(lambda _: 0.5, log.rows(slice(60)), "snips", "again", bandwidth=1 / 50)
        assert ("error", "small sample") in {(each.severity, each.title) for each in few.objections}
    finally:
        INTERVALS.remove("again")


@pytest.mark.whole
def test_the_interval_is_computed_from_the_command_line(log, tmp_path):
    log.write(tmp_path / "run.parquet")
    manul.Cats(leaves=4, bandwidth=1 / 4).save(tmp_path / "policy.manul")
    found = ran("evaluate", tmp_path / "policy.manul", tmp_path / "run.parquet", "--interval", "hoeffding", "--json")
    assert json.loads(found)["estimates"][0]["interval"] == "hoeffding"


@pytest.mark.parametrize("suffix", [".rows", ".rows.gz"])
def test_the_format_is_written_and_read(log, tmp_path, suffix):
    log.write(tmp_path / f"run{suffix}")
    again = manul.Log.read(tmp_path / f"run{suffix}")
    assert np.array_equal(again.actions, log.actions)
    assert np.array_equal(again.contexts, log.contexts)


@pytest.mark.whole
def test_the_format_is_converted(log, tmp_path):
    log.write(tmp_path / "run.rows")
    ran("convert", tmp_path / "run.rows", tmp_path / "run.parquet")
    assert np.array_equal(manul.Log.read(tmp_path / "run.parquet").losses, log.losses)


@pytest.mark.parametrize(
    ("register", "name"),
    [
        (lambda name: manul.register.agent(name)(best_point), "cats"),
        (lambda name: manul.register.estimator(name)(best_point), "dr"),
        (lambda name: manul.register.interval(name)(best_point), "normal"),
        (lambda name: manul.register.format(name, read=best_point, writer=best_point), ".csv"),
        (lambda name: manul.register.store(name, best_point), "postgresql"),
    ],
)
def test_a_name_that_is_taken_is_an_error(register, name):
    with pytest.raises(ParameterError, match=f"'{name}' is already registered; choose another name"):
        register(name)


@pytest.mark.parametrize(
    ("registry", "name", "advice"),
    [
        (AGENTS, "best-pint", "Did you mean best-point?"),
        (ESTIMATORS, "clip", "Did you mean clipped?"),
        (INTERVALS, "hoefding", "Did you mean hoeffding?"),
    ],
)
def test_an_unknown_name_is_one_sentence_with_the_closest(registry, name, advice):
    with pytest.raises(ParameterError, match=r"must be one of .*, got") as refused:
        registry[name]
    assert str(refused.value).endswith(advice)


@pytest.mark.whole
def test_a_plugin_that_cannot_be_imported_is_one_sentence(tmp_path):
    (tmp_path / "broken.py").write_text("import nothing_of_that_name")
    done = subprocess.run(
        [MANUL, "--plugin", tmp_path / "broken.py", "demo"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert (
        done.stderr
        == f"plugin {tmp_path / 'broken.py'} cannot be imported: ModuleNotFoundError: No module named 'nothing_of_that_name'.\n"
    )
