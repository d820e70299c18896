"""Everything that must not change by a bit: saved agents and policies, logs in every format, estimates, optimised policies.

python -m tests.recorded_values > tests/recorded_values.json      # at a commit whose values are right
"""

import hashlib
import json
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

import manul
from manul.offpolicy.evaluation.intervals import INTERVALS, is_bounded
from manul.utils import model_files
from tests.saved_agents import KINDS, learned

# Their bytes hold the archive of a scikit-learn model, with the time it was made; the estimates below cover what it plays.
LEFT_OUT = {"mapped-transformer", "tree-policy"}
SUFFIXES = (".csv", ".jsonl", ".vw", ".csv.gz", ".jsonl.gz")


def digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()[:32]


def models() -> dict[str, str]:
    """The bytes of a file of every kind."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, make in KINDS.items():
            if name not in LEFT_OUT:
                agent, contexts = make()
                (agent if contexts is None else learned(agent, contexts)).save(Path(folder, "m.manul"))
                found[f"model {name}"] = digest(Path(folder, "m.manul").read_bytes())
    return found


def log() -> manul.Log:
    agent = manul.Cats(leaves=16, bandwidth=1 / 8, seed=3)
    return manul.simulate(agent, manul.worlds.linear(rounds=2000, width=4, seed=1)).log


def logs(made: manul.Log) -> dict[str, str]:
    """A log as it is written in text, and as it is read again from every format."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for suffix in (*SUFFIXES, ".parquet"):
            path = Path(folder, f"log{suffix}")
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", ".* omits floor")  # Vowpal Wabbit's text has no place for it
                made.write(path)
            if suffix in (".csv", ".jsonl", ".vw"):
                found[f"log {suffix} written"] = digest(path.read_bytes())
            again = manul.Log.read(path)
            columns = (again.contexts, again.actions, again.densities, again.losses)
            found[f"log {suffix} read"] = digest(b"".join(np.asarray(each).tobytes() for each in columns))
    return found


def estimates(made: manul.Log) -> dict[str, str]:
    """Every digit of every estimator with every interval."""
    tree = manul.policies.train_tree(made, leaves=16, bandwidth=1 / 8)
    largest = float(tree.distributions(made.contexts).density(made.actions).max() / made.densities.min())
    found = {}
    for estimator in ("ips", "snips", "dr"):
        for interval in INTERVALS.names():
            if estimator == "dr" and interval not in ("bootstrap", "normal"):
                continue
            bound = largest if is_bounded(interval) or interval == "empirical-likelihood" else None
            value = manul.evaluate(tree, made, estimator, interval, largest_weight=bound)
            numbers = (value.value, value.low, value.high, value.effective_size)
            found[f"estimate {estimator} {interval}"] = " ".join(float(each).hex() for each in numbers)
    return found


def optimized(made: manul.Log) -> dict[str, str]:
    """The table and the policy of an optimisation by each rule."""
    found = {}
    grid = manul.offpolicy.Grid(bandwidths=(1 / 4, 1 / 8), leaves=(8, 16))
    best = manul.optimize(made, grid=grid, penalty=1)
    # Without the sketch of the rows that it was trained on, which a file has besides.
    found["optimized policy"] = digest(model_files.encode(*model_files.contents(best.policy)))
    return found


def recorded() -> dict[str, str]:
    made = log()
    return {**models(), **logs(made), **estimates(made), **optimized(made)}


if __name__ == "__main__":
    json.dump(recorded(), sys.stdout, indent=2)
