"""Agents and policies as models of MLflow: saved, logged, registered and served as any other, without pickle.

The model is the `.manul` file; `predict` gives the best action for each row. Decisions that explore, with densities to learn from, are
those of the agent that `load_model` returns, or of the service.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol, runtime_checkable

import numpy as np

from manul import __version__
from manul.contexts import data_frames
from manul.errors import MissingDependency, ParameterError
from manul.utils import model_files

try:
    import mlflow.artifacts
    import mlflow.pyfunc
    import pandas
except ImportError:
    raise MissingDependency(
        "manul.mlflow requires MLflow and pandas. Install them: pip install 'manul[mlflow]'."
    ) from None

__all__ = ["load_model", "log_model", "save_model"]

FILE = "model.manul"


@runtime_checkable
class HasBest(model_files.Saveable, Protocol):
    """An agent or policy that can be saved and knows its best action."""

    def best(self, context: Any) -> Any:
        """The greedy action."""


def save_model(agent: HasBest, path: str | Path, **settings: Any) -> None:
    """Write an `agent` or policy as a model of MLflow to a new folder at a `path`.

    `settings` are those of `mlflow.pyfunc.save_model`, such as `signature`, `input_example` and `metadata`.
    """
    with TemporaryDirectory() as folder:
        mlflow.pyfunc.save_model(str(path), **_model(agent, folder), **settings)


def log_model(agent: HasBest, name: str, **settings: Any) -> Any:
    """Log an `agent` or policy as a model with a `name` in the current run, and return MLflow's description of it.

    `settings` are those of `mlflow.pyfunc.log_model`, such as `registered_model_name`, `signature` and `input_example`.
    """
    with TemporaryDirectory() as folder:
        return mlflow.pyfunc.log_model(name=name, **_model(agent, folder), **settings)


def load_model(model_uri: str) -> Any:
    """The agent or policy itself from the `model_uri` of a saved, logged or registered model; it can decide and learn."""
    folder = Path(mlflow.artifacts.download_artifacts(model_uri))
    return model_files.load(folder / "data" / FILE)


def _model(agent: HasBest, folder: str) -> dict[str, Any]:
    if not isinstance(agent, HasBest):
        rule = "agent must be an agent or policy that can be saved and has a method best"
        raise ParameterError(f"{rule}, got {type(agent).__name__}.", "agent")
    path = Path(folder, FILE)
    agent.save(path)
    return {"loader_module": __name__, "data_path": str(path), "pip_requirements": [f"manul[mlflow]=={__version__}"]}


class _Scorer:
    """What MLflow calls: the best action for each row of a data frame or array."""

    def __init__(self, agent: Any) -> None:
        self.agent = agent

    def predict(self, model_input: Any, params: Mapping[str, Any] | None = None) -> Any:  # noqa: ARG002 - MLflow's signature
        frame = data_frames.is_table(model_input)
        columns = (data_frames.lists(model_input) or {}) if frame else {}
        named = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        # An agent that knows rows of numbers takes the columns of a frame as such, in their order.
        by_row = frame and self.agent.schema.width
        rows = [[*row.values()] for row in named] if by_row else named if frame else np.asarray(model_input)
        actions = [self.agent.best(row) for row in rows]
        values = [action if isinstance(action, dict) else {"action": action} for action in actions]
        return pandas.DataFrame(values, index=model_input.index if isinstance(model_input, pandas.DataFrame) else None)


def _load_pyfunc(path: str) -> _Scorer:
    """Called by MLflow with the path of the file."""
    return _Scorer(model_files.load(path))
