"""Off-policy work on logs of named features, such as Vowpal Wabbit's: features are bound by name."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import manul
from manul.errors import FileError, InputError
from manul.logs.log import Log

GRID = manul.offpolicy.Grid(bandwidths=[1 / 8], leaves=[16])


@pytest.fixture(scope="module")
def lines():
    """Rome wants large actions; `rare` is in few rows, and `id` says which row it is."""
    rng = np.random.default_rng(0)
    texts = []
    for row in range(600):
        rome, age, action = rng.random() < 0.5, rng.random(), rng.random()
        features = [f"|user age:{age:.4f}", "|city Rome" if rome else "|city Oslo", *(["|x rare:2"] * (row % 50 == 7))]
        loss = abs(action - (0.8 if rome else 0.2))
        texts.append((f"ca {action:.6f}:{loss:.6f}:1 'n{row}", features))
    return texts


def write(path, lines, order=None, *, permute=False):
    rows = [lines[place] for place in (range(len(lines)) if order is None else order)]
    path.write_text("".join(f"{head}{' '.join(spaces[::-1] if permute else spaces)}\n" for head, spaces in rows))
    return Log.read(path)


@pytest.fixture(scope="module")
def best(lines, tmp_path_factory):
    return manul.optimize(write(tmp_path_factory.mktemp("logs") / "train.vw", lines), grid=GRID)


def test_the_order_of_rows_and_features_changes_no_estimate(lines, best, tmp_path):
    order = np.random.default_rng(1).permutation(len(lines))
    other = write(tmp_path / "b.vw", lines, order, permute=True).rows(np.argsort(order))
    assert manul.evaluate(best.policy, other) == manul.evaluate(best.policy, write(tmp_path / "a.vw", lines))


def test_a_log_without_a_feature_has_zeros_for_it(lines, best, tmp_path):
    common = [line for line in lines if len(line[1]) == 2]
    whole = write(tmp_path / "a.vw", lines)
    rows = np.flatnonzero([len(spaces) == 2 for _, spaces in lines])
    without = write(tmp_path / "b.vw", common)
    assert manul.evaluate(best.policy, without) == manul.evaluate(best.policy, whole.rows(rows))


def test_the_optimised_policy_is_the_same_for_every_order_of_features(lines, best, tmp_path):
    other = manul.optimize(write(tmp_path / "a.vw", lines, permute=True), grid=GRID)
    assert manul.dumps(other.policy) == manul.dumps(best.policy)


def test_the_policy_takes_named_contexts(best):
    assert best.policy.distribution({"city^Rome": 1, "user^age": 0.5}).mean() > 0.5
    assert best.policy.distribution({"city": {"Oslo": 1}, "user": {"age": 0.5}}).mean() < 0.5


def test_files_with_other_features_are_batches_of_one_log(lines, tmp_path):
    parts = [write(tmp_path / "a.vw", lines[:7]), write(tmp_path / "b.vw", lines[7:], permute=True)]
    whole = manul.optimize(write(tmp_path / "c.vw", lines), grid=GRID)
    assert manul.dumps(manul.optimize(parts, grid=GRID).policy) == manul.dumps(whole.policy)
    assert manul.evaluate(whole.policy, parts) == manul.evaluate(whole.policy, write(tmp_path / "c.vw", lines))


def test_logs_with_other_features_are_concatenated(lines, tmp_path):
    parts = [write(tmp_path / "a.vw", lines[:7]), write(tmp_path / "b.vw", lines[7:], permute=True)]
    whole = write(tmp_path / "c.vw", lines)
    assert [*Log.concat(parts).context_rows()] == [*whole.context_rows()]
    assert Log.concat(parts).contexts.tobytes() == whole.contexts.tobytes()


def test_an_agent_that_takes_names_itself_is_evaluated_by_names(lines, tmp_path):
    log = write(tmp_path / "a.vw", lines)
    agent = manul.Cats(leaves=16, bandwidth=1 / 8)
    for context, action, loss in zip(log.context_rows(), log.actions, log.losses, strict=True):
        agent.learn(context, manul.Decision(action, 1.0), loss)
    order = np.random.default_rng(1).permutation(len(lines))
    other = write(tmp_path / "b.vw", lines, order, permute=True).rows(np.argsort(order))
    assert manul.evaluate(agent, other) == manul.evaluate(agent, log)


def test_a_function_gets_the_features_by_name(lines, tmp_path):
    log = write(tmp_path / "a.vw", lines)
    estimate = manul.evaluate(lambda context: 0.8 if "city^Rome" in context else 0.2, log, bandwidth=1 / 16)
    assert estimate.value < 0.1


def test_a_policy_on_rows_of_numbers_is_refused(lines, tmp_path):
    log = write(tmp_path / "a.vw", lines)
    agent = manul.Cats(leaves=16, bandwidth=1 / 8)
    agent.learn_many(log.contexts, manul.Decisions(log.actions, log.densities), log.losses)
    with pytest.raises(InputError, match="contexts of the log are named, but the policy takes rows of 4 numbers"):
        manul.evaluate(agent, log)


def test_columns_of_numbers_are_in_the_order_of_names(lines, tmp_path):
    one, other = (write(tmp_path / name, lines, permute=name == "b.vw") for name in ("a.vw", "b.vw"))
    assert one.contexts.tobytes() == other.contexts.tobytes()
    assert one.contexts[7].tolist()[2:] == [np.float32(lines[7][1][0].split(":")[1]), 2.0]


@pytest.mark.parametrize(
    "context", [{"index": [9], "value": [1.0]}, {"index": [-1], "value": [1.0]}, {"index": [0], "value": []}]
)
def test_indices_that_are_no_features_are_refused(lines, tmp_path, context):
    table = write(tmp_path / "a.vw", lines[:1]).table
    contexts = pa.array([context], table["context"].type)
    broken = table.set_column(table.column_names.index("context"), "context", contexts)
    pq.write_table(broken, tmp_path / "b.parquet")
    with pytest.raises(FileError, match=r"context must be values with indices below 2"):
        Log.read(tmp_path / "b.parquet")
