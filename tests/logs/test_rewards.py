"""Logs of rewards."""

import numpy as np
import pytest
from click.testing import CliRunner

import manul
from manul.cli import main
from manul.errors import FileError, InputError
from manul.logs.log import Log
from manul.offpolicy import doctor
from tests.logs.formats.logs import rows

COLUMNS = {"age": [30.0, None], "from": ["Bath", None], "action": [0.1, 0.2], "density": [1.0, 2.0]}


def numbers(**more):
    return Log(np.ones((2, 3), np.float32), np.ones(2), np.ones(2), np.array([-0.25, 0.0]), rewards=True, **more)


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".jsonl", ".csv.gz"])
@pytest.mark.parametrize(
    "log", [numbers(), Log.from_table({**COLUMNS, "reward": [40, 0.5]})], ids=["numbers", "fields"]
)
def test_a_log_of_rewards_is_read_as_it_was_written(tmp_path, suffix, log):
    log.write(tmp_path / f"log{suffix}")
    again = Log.read(tmp_path / f"log{suffix}")
    assert rows(again) == rows(log)
    assert again.rewards.tolist() == log.rewards.tolist() == (0.0 - log.losses).tolist()


def test_text_formats_write_a_column_of_rewards(tmp_path):
    log = numbers()
    log.write(tmp_path / "log.csv")
    log.write(tmp_path / "log.jsonl")
    header, first, _ = (tmp_path / "log.csv").read_text().splitlines()
    assert header.startswith("action,density,reward,context_0")
    assert first.startswith("1,1,0.25,")
    assert '"reward": 0.25' in (tmp_path / "log.jsonl").read_text()


@pytest.mark.parametrize("suffix", [".vw", ".json"])
def test_vowpal_wabbit_has_costs_only(tmp_path, suffix):
    numbers().write(tmp_path / f"log{suffix}")
    again = Log.read(tmp_path / f"log{suffix}")
    assert (again.losses.tolist(), again.rewards) == ([-0.25, 0.0], None)


def test_beside_a_loss_reward_is_a_column_of_the_context(tmp_path):
    (tmp_path / "log.csv").write_text("action,density,loss,reward\n0.5,1,0.25,7\n")
    log = Log.read(tmp_path / "log.csv")
    assert (log.rewards, list(log.context_rows())) == (None, [{"reward": 7.0}])


def test_a_log_of_losses_has_no_rewards():
    assert Log.from_table({**COLUMNS, "loss": [0, 1]}).rewards is None


def test_slices_and_concatenations_keep_rewards():
    log = numbers()
    assert Log.concat([log, log.rows(slice(1))]).rewards.tolist() == [0.25, 0.0, 0.25]


def test_logs_of_losses_and_of_rewards_are_not_mixed():
    other = Log(np.ones((2, 3), np.float32), np.ones(2), np.ones(2), np.ones(2))
    with pytest.raises(InputError, match=r"^logs must all have losses or all have rewards, got both\.$"):
        Log.concat([numbers(), other])


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("log.csv", "action,density,reward\n0.5,1,much\n", "reward must be a number, got 'much'"),
        ("log.csv", "action,density,reward\n0.5,1,inf\n", "reward must be a finite number, got inf"),
        ("log.csv", "action,density,reward\n0.5,1,\n", "reward must be a finite number, got no value"),
        ("log.jsonl", '{"action": 0.5, "density": 1, "reward": "much"}\n', "reward must be a number, got 'much'"),
        (
            "log.jsonl",
            '{"action": 0.5, "density": 1, "reward": 1}\n{"action": 0.5, "density": 1, "loss": 1}\n',
            "reward must be a member of the object, like in the first row",
        ),
    ],
)
def test_a_bad_reward_is_named(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(FileError) as error:
        Log.read(tmp_path / name)
    assert message in str(error.value)


def test_a_reward_outside_its_range_is_named(tmp_path):
    (tmp_path / "log.csv").write_text("action,density,reward\n0.5,1,7\n")
    with pytest.raises(FileError, match=r"reward must be in \[0, 1\], got 7"):
        Log.read(tmp_path / "log.csv", loss_range=(-1, 0))


def test_a_context_named_reward_needs_parquet(tmp_path):
    table = Log.from_table({"reward": [1.0], "action": [0.5], "density": [1], "loss": [-1]}).table
    metadata = {b"manul": b'{"format": 1, "rewards": true}'}
    log = Log.from_table(table.replace_schema_metadata(metadata))
    with pytest.raises(FileError, match="a log of rewards cannot have a context named 'reward' in this format"):
        log.write(tmp_path / "log.csv")
    log.write(tmp_path / "log.parquet")
    assert Log.read(tmp_path / "log.parquet").rewards.tolist() == [1.0]


def test_losses_without_a_range_are_evaluated_on_their_own_range():
    log = manul.simulate(manul.Auto(epsilon=0.05), manul.worlds.linear(rounds=2000)).log
    large = Log(log.contexts, log.actions, log.densities, 1000 * log.losses, action_range=(0, 1))
    known = manul.evaluate(lambda _: 0.5, log, bandwidth=0.1)
    unknown = manul.evaluate(lambda _: 0.5, large, bandwidth=0.1, losses="auto")
    assert unknown.value == pytest.approx(1000 * known.value)
    assert doctor(large, losses="auto") == []


@pytest.mark.parametrize("values", [["0.5", "1"], [0.5, "1"], np.array(["0", "1"])], ids=repr)
def test_a_log_refuses_losses_that_are_text(values):
    with pytest.raises(manul.errors.InputError, match=r"^losses must be numbers, got .* in row [01]\.$"):
        manul.Log(np.zeros((2, 1), np.float32), np.ones(2), np.ones(2), values)


@pytest.mark.parametrize("name", ["loss", "reward"])
def test_a_table_with_outcomes_of_text_is_refused_by_the_name_of_its_column(name):
    with pytest.raises(manul.errors.FileError) as error:
        manul.Log.from_table({"age": [30, 41], "action": [1, 2], "density": [1, 1], name: ["0.5", "1"]})
    assert (str(error.value), error.value.field) == (f"table: column {name} must be numbers, got text.", name)


def test_booleans_are_outcomes_of_0_and_1():
    bought = [True, False]
    table = Log.from_table({"age": [30, 41], "action": [1, 2], "density": [1, 1], "reward": bought})
    arrays = Log(np.zeros((2, 1), np.float32), np.ones(2), np.ones(2), bought)
    assert (table.rewards.tolist(), arrays.losses.tolist()) == ([1.0, 0.0], [1.0, 0.0])


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".jsonl"])
def test_a_log_of_rewards_declares_the_range_of_its_rewards(tmp_path, suffix):
    table = {**COLUMNS, "reward": [40, 0.5]}
    log = Log.from_table(table, reward_range=(0, 100))
    assert (log.reward_range, log.loss_range) == ((0.0, 100.0), (-100.0, 0.0))
    log.write(tmp_path / f"log{suffix}")
    assert Log.read(tmp_path / f"log{suffix}", reward_range=(-5, 50)).loss_range == (-50.0, 5.0)
    assert next(iter(Log.batches(tmp_path / f"log{suffix}", reward_range=(-5, 50)))).reward_range == (-5.0, 50.0)
    assert numbers(reward_range=(0, 1)).loss_range == (-1.0, 0.0)


def test_a_range_of_rewards_is_for_logs_of_rewards_only():
    table = {**COLUMNS, "loss": [0.4, 0.5]}
    with pytest.raises(manul.errors.ParameterError) as error:
        Log.from_table(table, reward_range=(0, 1))
    assert str(error.value) == "reward_range is for logs of rewards; this one has losses. Use loss_range=(low, high)."
    with pytest.raises(manul.errors.ParameterError, match=r"^loss_range and reward_range exclude each other, got \(0"):
        Log.from_table(table, loss_range=(0, 1), reward_range=(0, 1))
    with pytest.raises(manul.errors.ParameterError, match=r"^reward_range "):
        Log.from_table({**COLUMNS, "reward": [40, 0.5]}, reward_range=(1, 0))
    assert (Log.from_table(table, loss_range=(0, 1)).reward_range, numbers().reward_range) == (None, None)


def test_a_reward_outside_the_range_of_a_file_names_the_option_for_rewards(tmp_path):
    Log.from_table({**COLUMNS, "reward": [40, 0.5]}).write(tmp_path / "log.csv")
    with pytest.raises(FileError, match=r"reward must be in \[0, 10\], got 40\..*reward_range=\(low, high\), or skip"):
        Log.read(tmp_path / "log.csv", reward_range=(0, 10))


def test_convert_takes_a_range_of_rewards(tmp_path):
    Log.from_table({**COLUMNS, "reward": [40, 0.5]}).write(tmp_path / "log.csv")
    names = [str(tmp_path / name) for name in ("log.csv", "log.parquet")]
    assert CliRunner().invoke(main, ["convert", *names, "--rewards", "0", "100"]).exit_code == 0
    assert Log.read(names[1]).reward_range == (0.0, 100.0)
    refused = CliRunner().invoke(main, ["convert", *names, "--rewards", "0", "100", "--losses", "0", "1"])
    assert refused.exit_code == 2


def test_rewards_in_place_of_losses_are_refused_with_what_to_pass():
    for losses, rewards in ((None, [0.5]), ([0.5], [0.5])):
        with pytest.raises(manul.errors.ParameterError, match="they are the negative rewards, and rewards=True"):
            manul.Log([[1.0]], [0.5], [1.0], losses, rewards=rewards)
