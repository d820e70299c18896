"""`manul run`: a table of one's own, played online."""

import gzip
import json
import re

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner
from pyarrow import parquet

import manul
from manul.cli import main
from manul.contexts.table_encoding import Columns
from manul.worlds.table_run import TargetTable

HOUSES = [(size, kind) for size in (1.0, 2.0, 3.0, None) for kind in ("flat", "hut", None)] * 40


def rent(size, kind):
    return 100 * (size or 2.0) + 50 * (kind == "flat")


def manul_run(*arguments):
    result = CliRunner().invoke(main, ["run", *map(str, arguments)])
    assert not result.exception or isinstance(result.exception, SystemExit), result.exception
    return result


def played(*arguments):
    result = manul_run(*arguments, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


@pytest.fixture
def houses(tmp_path):
    lines = [f"{'' if size is None else size},{kind or 'NA'},{rent(size, kind)}" for size, kind in HOUSES]
    path = tmp_path / "houses.csv"
    path.write_text("\n".join(["size,kind,rent", *lines]) + "\n")
    return path


def test_text_columns_and_missing_values_are_supported(houses):
    found = played(houses, "--target", "rent", "--leaves", 32, "--bandwidth", "1/16")
    assert (found["agent"], found["rows"], found["actions"]) == ("cats", len(HOUSES), [100, 350])
    assert found["bandwidth"] == 250 / 16
    assert found["recent_loss"] < found["best_constant"]


@pytest.mark.parametrize("agent", ["auto", "cats", "paper", "adaptive", "linear", "discrete-tree", "discrete-linear"])
def test_every_agent_plays(houses, agent):
    assert played(houses, "--target", "rent", "--agent", agent)["agent"] == agent


def test_auto_plays_where_nothing_is_said(houses):
    assert played(houses, "--target", "rent")["agent"] == "auto"


def test_the_bandwidth_is_in_units_of_the_target_unless_it_is_a_fraction(houses):
    assert played(houses, "--target", "rent", "--leaves", 32, "--bandwidth", 20)["bandwidth"] == 20
    assert played(houses, "--target", "rent", "--leaves", 32, "--bandwidth", "1/10")["bandwidth"] == 25


def test_the_policy_takes_the_fields_of_the_table(houses, tmp_path):
    manul_run(houses, "--target", "rent", "--leaves", 32, "--bandwidth", "1/16", "--out", tmp_path / "rent.manul")
    policy = manul.load(tmp_path / "rent.manul")
    small, large = (policy.distribution({"size": size, "kind": "flat"}).mean() for size in (1.0, 3.0))
    assert small < large
    assert policy.distribution({"kind": "castle"}).mean() > 0
    with pytest.raises(manul.errors.InputError, match=r"field 'sise' .*\. Did you mean size\?"):
        policy.decide({"sise": 3.0})


def test_the_log_keeps_the_fields_and_the_ranges(houses, tmp_path):
    manul_run(houses, "--target", "rent", "--log", tmp_path / "run.parquet")
    log = manul.Log.read(tmp_path / "run.parquet")
    assert (log.action_range, log.loss_range) == ((100, 350), (0, 1))
    assert [(row["size"], row["kind"]) for row in log.context_rows()] == HOUSES


def test_the_log_optimises_and_evaluates(houses, tmp_path):
    manul_run(houses, "--target", "rent", "--epsilon", "1/2", "--log", tmp_path / "run.parquet")
    train, held_out = manul.Log.read(tmp_path / "run.parquet").split(0.5)
    best = manul.optimize(train, grid=manul.offpolicy.Grid(bandwidths=[1 / 8], leaves=[16]))
    estimate = manul.evaluate(best.policy, held_out)
    assert best.policy.actions == (100, 350)
    assert estimate.low < estimate.value < estimate.high
    best.save(tmp_path / "best.manul")
    assert manul.evaluate(manul.load(tmp_path / "best.manul"), held_out) == estimate


def test_the_same_table_in_every_format_gives_the_same(houses, tmp_path):
    lines = houses.read_text().splitlines()
    (tmp_path / "houses.tsv").write_text("\n".join(lines).replace(",", "\t"))
    (tmp_path / "houses.csv.gz").write_bytes(gzip.compress(houses.read_bytes()))
    sizes, kinds = zip(*HOUSES, strict=True)
    table = pa.table({"size": sizes, "kind": kinds, "rent": [rent(*house) for house in HOUSES]})
    parquet.write_table(table, tmp_path / "houses.parquet")
    head = "@relation houses\n@attribute size numeric\n@attribute kind {flat,hut}\n@attribute 'rent' real\n@data\n% rents\n"
    (tmp_path / "houses.arff").write_text(head + "\n".join(lines[1:]).replace("NA", "?").replace("\n,", "\n?,"))
    found = [
        played(tmp_path / f"houses{suffix}", "--target", "rent")["mean_loss"]
        for suffix in (".csv", ".tsv", ".csv.gz", ".parquet", ".arff")
    ]
    assert len(set(found)) == 1


def test_a_vw_table_has_its_label_as_target(tmp_path):
    (tmp_path / "data.vw").write_text("".join(f"{x / 10} |house size:{x} cold\n" for x in range(10)))
    assert played(tmp_path / "data.vw")["actions"] == [0.0, 0.9]


def test_rows_without_a_target_are_left_out_and_counted(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n2,\n3,4\n")
    result = manul_run(tmp_path / "t.csv", "--target", "b")
    assert "skipped 1 row whose target is missing or infinite." in result.stderr
    assert "skipped rows   1" in result.stdout


def test_targets_outside_the_actions_are_moved_and_counted(houses):
    result = manul_run(houses, "--target", "rent", "--actions", 150, 300)
    assert "targets are outside the range of actions and were clipped to it." in result.stderr


def test_an_outlier_is_pointed_out(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n" + "".join(f"{n},{n % 100}\n" for n in range(999)) + "1,100000\n")
    sentence = (
        "99.9 % of the targets are between 0 and 99, less than half of the range of actions. Consider --actions 0 99;"
    )
    assert sentence in manul_run(tmp_path / "t.csv", "--target", "b").stderr


@pytest.mark.parametrize("scale", [0.001, 1.0, 12_345.678])
def test_the_share_of_the_targets_in_the_typical_range_is_true(scale):
    targets = scale * np.sort(np.append(np.round(np.random.default_rng(0).gamma(4, 5, 2000) * 2) / 2, 300.0))
    table = TargetTable({}, Columns(()), targets, 0, 0, (), (0.0, 300 * scale))
    low, high, share = table.typical_targets
    inside = np.mean((targets >= float(f"{low:.12g}")) & (targets <= float(f"{high:.12g}")))
    assert inside == share >= 0.99


def test_targets_that_were_clipped_have_no_typical_range(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n" + "".join(f"{n},{90 + n % 30}\n" for n in range(999)))
    assert TargetTable.read(tmp_path / "t.csv", target="b", actions=(0, 100)).typical_targets is None


def losing_table(path, rows=400):
    """Targets that have nothing to do with the other column."""
    draws = np.random.default_rng(0).uniform(0, 10, (rows, 2))
    path.write_text("a,b\n" + "".join(f"{a},{b}\n" for a, b in draws))
    return path


@pytest.mark.parametrize(("option", "names"), [("--losses", ("loss", "higher")), ("--rewards", ("reward", "lower"))])
def test_an_agent_that_loses_to_the_best_constant_says_so(tmp_path, option, names):
    result = manul_run(losing_table(tmp_path / "t.csv"), "--target", "b", option, "known", "--agent", "cats")
    sentence = result.stdout.strip().splitlines()[-1]
    assert re.match(
        rf"The agent did worse than the best constant: its mean {names[0]} is 0\.\d+ ± 0\.\d+ {names[1]}\. "
        "That constant is known only after all 400 rows. A regression that knows the targets of other rows is hardly better",
        sentence,
    )


@pytest.mark.parametrize("rows", [20, 24, 28, 32])
def test_only_a_difference_of_more_than_two_standard_errors_is_called_worse(tmp_path, rows):
    table = losing_table(tmp_path / "t.csv", rows)
    result = manul_run(table, "--target", "b", "--json", "--log", tmp_path / "log.parquet")
    targets = np.loadtxt(table, delimiter=",", skiprows=1)[:, 1]
    constant = np.abs(targets - np.median(targets)) / np.ptp(targets)
    gaps = manul.Log.read(tmp_path / "log.parquet").losses - constant
    worse = gaps.mean() > 2 * gaps.std(ddof=1) / np.sqrt(rows)
    verdict = "The agent did worse than" if worse else "The agent did not do clearly better than"
    assert json.loads(result.stdout)["warnings"][-1].startswith(verdict)


def test_an_agent_that_beats_the_best_constant_gets_no_objection(houses):
    assert "constant:" not in manul_run(houses, "--target", "rent").stdout


def test_a_few_rows_are_not_compared_with_the_best_constant(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n2,3\n3,4\n")
    result = manul_run(tmp_path / "t.csv", "--target", "b")
    assert result.stdout.endswith("3 rows are too few to compare the agent with the best constant.\n")


def test_a_column_with_the_name_of_a_logs_own_is_renamed(tmp_path):
    (tmp_path / "t.csv").write_text("id,loss,b\nx,1,2\ny,2,3\n")
    result = manul_run(tmp_path / "t.csv", "--target", "b", "--log", tmp_path / "run.parquet")
    assert "Column 'id' was renamed to 'id_'" in result.stderr
    assert next(manul.Log.read(tmp_path / "run.parquet").context_rows()) == {"id_": "x", "loss_": 1.0}


def test_shuffling_is_by_the_seed(houses):
    orders = [
        played(houses, "--target", "rent", *shuffled)["mean_loss"] for shuffled in ([], ["--shuffle"], ["--shuffle"])
    ]
    assert orders[0] != orders[1] == orders[2]


@pytest.mark.parametrize(
    ("text", "arguments", "sentence"),
    [
        ("a,b\n1,2\n2,3\n", ["--target", "c"], "target must be a column of t.csv, got 'c'. It has a, b."),
        ("age,price\n1,2\n2,3\n", ["--target", "prise"], "got 'prise'. Did you mean price?"),
        ("a,b\n1,2\n2,3\n", [], "target must be a column of t.csv, got none. It has a, b."),
        ("a,b\n1,x\n2,3\n", ["--target", "b"], "target 'b' of t.csv must be numeric, got 'x' in row 1."),
        ("a,b\n1,2\n2,2\n", ["--target", "b"], "target 'b' of t.csv must vary, got 2 in every row."),
        ("a,b\n1,\n2,\n", ["--target", "b"], "target 'b' of t.csv has no values."),
        ("a,a\n1,2\n", ["--target", "a"], "columns must have different names, got 'a' twice."),
        ("a,b\n", ["--target", "b"], "t.csv has no rows."),
        ("", ["--target", "b"], "t.csv: not a valid .csv file: "),
        ("a,b\n1,2,3\n", ["--target", "b"], "t.csv: not a valid .csv file: "),
        ("a,b\n1,2\n2,3\n", ["--target", "b", "--leaves", "3"], "leaves must be a power of two"),
        ("a,b\n1,2\n2,3\n", ["--target", "b", "--agent", "auto", "--leaves", "4"], "agent auto has no setting leaves, got 4."),
        ("a,b\n1,2\n2,3\n", ["--target", "b", "--actions", "3", "1"], "actions must be finite with low < high"),
        ("a,b\n1,2\n2,3\n", ["--target", "b", "--log", "run.doc"], "run.doc has the unknown suffix '.doc'"),
        ("a,b\n1,2\n2,3\n", ["--target", "b", "--log", "none/run.csv"], "Cannot write none/run.csv: No such file or directory"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_one_sentence(tmp_path, monkeypatch, text, arguments, sentence):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text(text)
    result = manul_run("t.csv", *arguments)
    assert result.exit_code in (1, 2)
    assert sentence in result.stderr
    assert "Traceback" not in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


def test_a_table_that_is_cut_off_is_refused(tmp_path):
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"a,b\n" + bytes(str(np.arange(999)), "ascii"))[:-20])
    result = manul_run(tmp_path / "t.csv.gz", "--target", "b")
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)


def test_exploration_fades_unless_epsilon_is_a_number(houses, tmp_path):
    for given, expected in ((), "auto"), (("--epsilon", "0.1"), 0.1), (("--epsilon", "1/2:1/5:30"), (0.5, 0.2, 30)):
        manul_run(houses, "--target", "rent", *given, "--out", tmp_path / "rent.manul")
        epsilon = manul.load(tmp_path / "rent.manul").agent.epsilon
        assert epsilon == (manul.schedules.Fading(*expected) if isinstance(expected, tuple) else expected)


def test_trees_keep_their_own_default(houses, tmp_path):
    manul_run(houses, "--target", "rent", "--agent", "cats", "--out", tmp_path / "rent.manul")
    assert manul.load(tmp_path / "rent.manul").agent.epsilon == 0.05


@pytest.mark.parametrize(
    ("epsilon", "message"),
    [
        ("fading", "--epsilon must be a number, auto or FIRST:LAST:ROUNDS, got 'fading'."),
        ("0.1:0.01", "--epsilon must be a number, auto or FIRST:LAST:ROUNDS, got '0.1:0.01'."),
        ("1/0", "--epsilon must be a number, auto or FIRST:LAST:ROUNDS, got '1/0'."),
        ("0.01:0.1:100", "last must be at most first, 0.01, got 0.1."),
        ("0.1:0.01:-5", "rounds must be above 0 and finite, got -5.0. Try 1000."),
        ("1.5", "--epsilon must be in [0, 1], got 1.5. Try 0.05."),
    ],
)
def test_an_epsilon_that_cannot_be_is_one_sentence(houses, epsilon, message):
    result = manul_run(houses, "--target", "rent", "--epsilon", epsilon)
    assert result.exit_code == 2
    assert result.stderr.startswith(message)
    assert result.stderr.count("\n") == 1


def test_the_result_says_what_exploration_cost(houses):
    found = played(houses, "--target", "rent", "--epsilon", "1/2")["exploration"]
    assert found["explored"] > 100
    assert 0 < found["share"] < 1
    assert "% of the loss" in manul_run(houses, "--target", "rent").stdout
    assert played(houses, "--target", "rent", "--epsilon", "1")["exploration"] is None


def test_rewards_are_negative_losses(houses, tmp_path):
    losses = played(houses, "--target", "rent")
    rewards = played(houses, "--target", "rent", "--rewards", "known", "--log", tmp_path / "log.csv")
    assert rewards["mean_reward"] == -losses["mean_loss"]
    assert rewards["best_constant"] == -losses["best_constant"]
    assert manul.Log.read(tmp_path / "log.csv").rewards.mean() == pytest.approx(rewards["mean_reward"])


@pytest.mark.parametrize("option", ["--losses", "--rewards"])
def test_auto_runs_without_a_range(houses, option):
    assert played(houses, "--target", "rent", option, "auto")["agent"] == "auto"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--losses", "autom"], "--losses must be one of known, auto, got 'autom'. Did you mean auto?"),
        (
            ["--losses", "auto", "--rewards", "auto"],
            "--losses and --rewards exclude each other, got 'auto' and 'auto'.",
        ),
        (
            ["--agent", "cats", "--rewards", "auto"],
            "rewards must be two numbers (low, high) for Cats, got 'auto'. Only Auto learns without a range.",
        ),
    ],
)
def test_rewards_that_do_not_fit_are_one_sentence(houses, arguments, message):
    result = manul_run(houses, "--target", "rent", *arguments)
    assert result.exit_code != 0
    assert message in result.stderr


@pytest.fixture
def offers(tmp_path):
    lines = [f"{size or ''},{kind},{rent(size, kind)},{0.1 * (size or 2)}" for size, kind in HOUSES]
    path = tmp_path / "offers.csv"
    path.write_text("\n".join(["size,kind,rent,discount", *lines, "3,flat,,0.2", "3,flat,200,"]) + "\n")
    return path


def test_several_targets_are_the_best_values_of_several_knobs(offers, tmp_path):
    files = ["--log", tmp_path / "log.parquet", "--out", tmp_path / "policy.manul"]
    found = played(offers, "--target", "rent", "--target", "discount", *files)
    assert found["actions"] == {"rent": [100, 350], "discount": [pytest.approx(0.1), pytest.approx(0.3)]}
    assert (found["agent"], found["rows"], found["left_out"]) == ("auto", len(HOUSES), 2)
    assert found["recent_loss"] < found["best_constant"]
    log = manul.Log.read(tmp_path / "log.parquet")
    assert (log.knobs.names, len(log), [*log.fields]) == (["rent", "discount"], len(HOUSES), ["size", "kind"])
    policy = manul.load(tmp_path / "policy.manul")
    assert 100 <= policy.decide({"size": 1.0, "kind": "hut"}).action["rent"] <= 350


def test_the_loss_of_several_targets_is_the_mean_of_those_of_the_knobs(offers, tmp_path):
    for loss, power in (("absolute", 1), ("squared", 2)):
        played(offers, "--target", "rent", "--target", "discount", "--loss", loss, "--log", tmp_path / "log.parquet")
        log = manul.Log.read(tmp_path / "log.parquet")
        rents = np.array([rent(size, kind) for size, kind in HOUSES])
        discounts = np.array([0.1 * (size or 2) for size, _ in HOUSES])
        parts = np.abs(log.actions["rent"] - rents) / 250, np.abs(log.actions["discount"] - discounts) / 0.2
        assert log.losses == pytest.approx((parts[0] ** power + parts[1] ** power) / 2)


def test_a_run_with_several_targets_prints_what_one_with_one_prints(offers):
    several, one = (
        manul_run(offers, *targets).stdout
        for targets in (("--target", "rent", "--target", "discount"), ("--target", "rent"))
    )
    assert [line[:14] for line in several.splitlines()] == [line[:14] for line in one.splitlines()]
    assert "rent 100 to 350, discount 0.1 to 0.3" in several


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--agent", "cats"], "agent must be auto for several targets; cats sets one knob."),
        (["--leaves", "8"], "agent must be auto for several targets; cats sets one knob."),
        (["--actions", "0", "1"], "actions is for one target. With several, the ranges are those of the targets."),
        (["--target", "rent"], "target must name different columns, got 'rent' twice."),
        (["--log", "run.vw"], "Vowpal Wabbit has one number per action and cannot store the knobs rent, discount."),
    ],
)
def test_what_several_targets_do_not_take_is_refused_in_a_sentence(offers, tmp_path, monkeypatch, options, sentence):
    monkeypatch.chdir(tmp_path)
    result = manul_run(offers, "--target", "rent", "--target", "discount", *options)
    assert result.exit_code != 0
    assert sentence in result.stderr
    assert not (tmp_path / "run.vw").exists()


def test_rewards_of_several_targets_are_negative_losses(offers, tmp_path):
    played(offers, "--target", "rent", "--target", "discount", "--rewards", "known", "--log", tmp_path / "log.jsonl")
    log = manul.Log.read(tmp_path / "log.jsonl", knobs={"rent": (100, 350), "discount": (0, 1)})
    assert -1 <= log.rewards.min() <= log.rewards.max() <= 0
