"""Agents as models of MLflow: saved, logged, registered, loaded and scored by MLflow itself."""

import warnings

import numpy as np
import pandas
import pytest

import manul
from manul.errors import ParameterError

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of the packages that MLflow imports
    import mlflow

    from manul.mlflow import load_model, log_model, save_model

pytestmark = [pytest.mark.whole, pytest.mark.filterwarnings("ignore:::(?!manul)")]
KNOBS = {"price": (10, 50), "template": manul.Choice(["plain", "bold"])}
FRAME = pandas.DataFrame({"city": ["Oslo", None, "Rome"], "age": [31.0, 7.0, None]}, index=[7, 8, 9])


def learned(contexts, **settings):
    agent = manul.Auto(seed=3, **settings)
    for _ in range(20):
        decisions = agent.decide_many(contexts)
        agent.learn_many(contexts, decisions, np.linspace(0, 1, len(contexts)))
    return agent


AGENTS = {
    "number": lambda: learned(FRAME, actions=(0.0, 32.0)),
    "knobs": lambda: learned(FRAME, actions=KNOBS),
    "cats": lambda: manul.Cats(leaves=8, bandwidth=1 / 8, seed=3),
}


@pytest.mark.parametrize("name", AGENTS)
def test_mlflow_scores_what_the_agent_says_is_best(name, tmp_path):
    agent = AGENTS[name]()
    save_model(agent, tmp_path / "model")
    scored = mlflow.pyfunc.load_model(str(tmp_path / "model")).predict(FRAME)
    rows = [{"city": row.city, "age": row.age} for row in FRAME.itertuples()]
    best = [agent.best(row) for row in rows]
    assert scored.index.tolist() == FRAME.index.tolist()
    assert scored.to_dict("records") == [each if isinstance(each, dict) else {"action": each} for each in best]


def test_rows_of_numbers_may_be_an_array_or_a_frame(tmp_path):
    rows = np.random.default_rng(0).random((5, 2)).astype(np.float32)
    agent = learned(rows)
    save_model(agent, tmp_path / "model")
    model = mlflow.pyfunc.load_model(str(tmp_path / "model"))
    expected = [agent.best(row) for row in rows]
    assert model.predict(rows)["action"].tolist() == expected
    assert model.predict(pandas.DataFrame(rows, columns=["a", "b"]))["action"].tolist() == expected


def test_a_loaded_model_is_the_agent_and_goes_on_learning(tmp_path):
    agent = AGENTS["knobs"]()
    save_model(agent, tmp_path / "model")
    again = load_model(str(tmp_path / "model"))
    assert manul.dumps(again) == manul.dumps(agent)
    assert again.decide_many(FRAME).densities.tolist() == agent.decide_many(FRAME).densities.tolist()


def test_a_model_is_logged_in_a_run_and_loaded_by_its_address(tmp_path):
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path / 'runs.db'}")
    mlflow.set_registry_uri(f"sqlite:///{tmp_path / 'runs.db'}")
    agent = AGENTS["number"]()
    experiment = mlflow.create_experiment("prices", artifact_location=(tmp_path / "artifacts").as_uri())
    with mlflow.start_run(experiment_id=experiment):
        logged = log_model(agent, "agent", registered_model_name="prices")
    for address in (logged.model_uri, "models:/prices/1"):
        assert manul.dumps(load_model(address)) == manul.dumps(agent)


def test_the_model_has_no_pickle_and_names_its_requirement(tmp_path):
    save_model(AGENTS["cats"](), tmp_path / "model")
    names = {path.name for path in (tmp_path / "model").rglob("*") if path.is_file()}
    assert "model.manul" in names
    assert not [name for name in names if name.endswith(".pkl")]
    assert (tmp_path / "model/requirements.txt").read_text().split()[-1] == f"manul[mlflow]=={manul.__version__}"


def test_what_has_no_best_action_is_refused(tmp_path):
    with pytest.raises(ParameterError, match="has a method best, got Rollout"):
        save_model(manul.Rollout(manul.Auto(), baseline=0.5), tmp_path / "model")
