"""Everything that is shown for a log of rewards is the mirror image of what is shown for the log of their negatives."""

import csv
import json
import re

import numpy as np
import pytest
from click.testing import CliRunner

import manul
from manul.cli import main
from manul.errors import InputError, ParameterError
from manul.offpolicy import doctor, optimize_without_densities
from manul.offpolicy.evaluation import report
from manul.utils import model_files

NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*\.?\d*(?:e[+-]?\d+)?(?![\w.]*[A-Za-z])")
SPAN = (-20.0, 100.0)  # of the rewards, some of which are negative


def logs(kind, rows=1500, **more):
    """A log of losses and the same log as one of rewards."""
    rng = np.random.default_rng(len(kind))
    contexts = rng.random((rows, 2)).astype(np.float32)
    actions = rng.uniform(0, 10, rows)
    rewards = np.clip(90 - 4 * (actions - 10 * contexts[:, 0]) ** 2 + rng.normal(0, 5, rows), *SPAN)
    given = {"floors": np.full(rows, 0.1), "action_range": (0, 10), "loss_range": (-SPAN[1], -SPAN[0])} | more
    columns = {"size": contexts[:, 0].tolist(), "city": ["Oslo", "Rome", "Bath"] * (rows // 3)}
    contexts = columns if kind == "named" else contexts
    return [manul.Log(contexts, actions, np.full(rows, 0.1), -rewards, rewards=flag, **given) for flag in (False, True)]


@pytest.fixture(params=["numbers", "named"])
def pair(request):
    return logs(request.param)


def rule(context):
    return 10 * (context["size"] if isinstance(context, dict) else context[0])


POLICIES = {"rule": rule, "low": lambda _: 1.0}


def numbers(text):
    return [float(number.replace(",", "")) for number in NUMBER.findall(text)]


def read_csv(path):
    return [*csv.DictReader(path.read_text().splitlines())]


def mirrored(interval):
    value, low, high = interval
    return pytest.approx((-value, -high, -low))


@pytest.mark.parametrize("estimator", ["ips", "snips", "dr", "dm"])
def test_an_estimate_has_the_rewards_beside_its_losses(pair, estimator):
    losses, rewards = (manul.evaluate(rule, log, estimator, bandwidth=1.0) for log in pair)
    assert (losses.value, losses.objections) == (rewards.value, rewards.objections)
    assert (losses.reward, losses.outcome.better, rewards.outcome.better) == (None, "low", "high")
    ends = losses.value, losses.low, losses.high
    assert rewards.reward == (pytest.approx(mirrored(ends).expected, nan_ok=True))
    assert rewards.reward.value > 0


def test_an_estimate_is_printed_and_drawn_as_a_mean_reward(pair):
    losses, rewards = (manul.evaluate(rule, log, bandwidth=1.0) for log in pair)
    assert str(rewards).startswith("mean reward ")
    assert numbers(str(rewards))[:3] == mirrored(numbers(str(losses))[:3])
    assert numbers(str(rewards))[3:] == numbers(str(losses))[3:]
    shown, mirror = (each.plot().lines[0].get_xdata() for each in (rewards, losses))
    assert shown.tolist() == pytest.approx((-mirror[::-1]).tolist())
    assert (rewards.plot().get_xlabel(), losses.plot().get_xlabel()) == ("mean reward (higher is better)", "loss")


def cells(card):
    return dict(re.findall(r"<th[^>]*>([^<]*)</th><td[^>]*>([^<]*)</td>", card))


def test_the_card_of_an_estimate_has_the_mean_reward(pair):
    losses, rewards = (cells(manul.evaluate(rule, log, bandwidth=1.0)._repr_html_()) for log in pair)
    assert float(rewards["mean reward (higher is better)"]) == -float(losses["value"])
    (low, high), (least, most) = (numbers(each["95 % interval"])[:2] for each in (losses, rewards))
    assert (least, most) == (-high, -low)


def test_the_table_and_the_json_of_estimates_have_rewards(pair):
    losses, rewards = ([manul.evaluate(rule, log, bandwidth=1.0)] for log in pair)
    first, second, better = report.estimates_table(rewards).splitlines()
    assert (first.split()[1], better) == ("reward", "reward: the mean reward of the policy; higher is better")
    assert numbers(second)[:3] == mirrored(numbers(report.estimates_table(losses).splitlines()[1])[:3])
    (stored,), (plain,) = (json.loads(report.estimates_json(each))["estimates"] for each in (rewards, losses))
    assert stored["reward"] == rewards[0].reward._asdict()
    assert (stored["value"], "reward" in plain) == (plain["value"], False)


def test_a_comparison_is_printed_in_rewards_of_which_more_is_better(pair):
    losses, rewards = (manul.compare(POLICIES, log, bandwidth=1.0) for log in pair)
    assert [row.verdict for row in rewards] == [row.verdict for row in losses] == ["better", "worse"]
    for row, plain in zip(rewards, losses, strict=True):
        assert row[:9] == plain[:9]
        value, *difference = row.reward
        assert (value, plain.reward) == (-plain.loss, None)
        assert tuple(difference) == mirrored((plain.difference, plain.low, plain.high))
    header, *lines, last = str(rewards).splitlines()[: len(rewards) + 2]
    assert header.split()[2] == "reward"
    assert [numbers(line)[0] for line in lines] == [-numbers(line)[0] for line in str(losses).splitlines()[1:3]]
    assert last.endswith("; a higher reward is better")


def test_the_csv_and_the_json_of_a_comparison_have_rewards(pair, tmp_path):
    losses, rewards = (manul.compare(POLICIES, log, bandwidth=1.0) for log in pair)
    for name, comparison in (("losses", losses), ("rewards", rewards)):
        comparison.to_csv(tmp_path / name)
    plain, stated = (read_csv(tmp_path / name) for name in ("losses", "rewards"))
    assert [*stated[0]] == ["reward" if name == "loss" else name for name in plain[0]]
    for row, mirror in zip(stated, plain, strict=True):
        assert float(row["reward"]) == -float(mirror["loss"])
        assert float(row["low"]) == -float(mirror["high"])
    answer = json.loads(report.comparison_json(rewards))["comparisons"][0]
    assert answer["reward"] == rewards.rows[0].reward._asdict()


@pytest.fixture(scope="module")
def optimized():
    grid = manul.offpolicy.Grid(bandwidths=[1 / 4, 1 / 8], leaves=[4, 8])
    return [manul.optimize(log, candidates=["auto", "cats"], grid=grid) for log in logs("numbers", 900)]


def test_the_table_of_candidates_is_printed_in_rewards(optimized):
    losses, rewards = optimized
    lines, plain = str(rewards).splitlines(), str(losses).splitlines()
    assert lines[0].split()[3:] == ["reward", "penalty", "objective", "matching"]
    for line, mirror in zip(lines[1:10], plain[1:10], strict=True):
        cells, mirrored = (each.removesuffix("<- chosen").split()[-4:] for each in (line, mirror))
        if "?" in cells:
            assert cells == mirrored
        else:
            value, penalty, objective, size = map(float, cells)
            assert [-value, penalty, -objective, size] == [float(each) for each in mirrored]
    assert "Rewards are means; higher is better. The objective is the reward minus the penalty." in lines
    assert lines[-1] == plain[-1]


def test_the_result_and_its_verdict_have_the_rewards(optimized):
    losses, rewards = optimized
    assert (losses.reward, losses.verdict.reward, losses.outcome.better) == (None, None, "low")
    assert (rewards.chosen, rewards.reward) == (losses.chosen, -losses.chosen.estimate)
    assert rewards.verdict.gain == losses.verdict.gain > 0
    assert rewards.verdict.reward.value == (-losses.verdict.value[0], losses.verdict.value[1])
    assert rewards.verdict.reward.logged == (-losses.verdict.logged[0], losses.verdict.logged[1])
    assert rewards.verdict.reward.value[0] > rewards.verdict.reward.logged[0] > 0


def test_the_heat_map_and_the_csv_of_candidates_have_rewards(optimized, tmp_path):
    losses, rewards = optimized
    highest, lowest = (each.plot().get_title() for each in (rewards, losses))
    assert highest.startswith(
        f"chosen: auto, objective {-rewards.chosen.objective:.4f}\ntree with the highest objective"
    )
    assert numbers(highest)[-1] == -numbers(lowest)[-1]
    for name, best in (("losses", losses), ("rewards", rewards)):
        best.save(tmp_path / f"{name}.manul")
    plain, stated = (read_csv(tmp_path / f"{name}.csv") for name in ("losses", "rewards"))
    assert [float(row["reward"]) for row in stated] == [-float(row["estimate"]) for row in plain]
    assert [float(row["objective"]) for row in stated] == [-float(row["objective"]) for row in plain]


def test_a_policy_of_rewards_is_that_of_losses_and_keeps_its_rewards(optimized):
    (_, plain, arrays), (_, stated, mirror) = (model_files.contents(each.policy) for each in optimized)
    assert {name: each.tobytes() for name, each in arrays.items()} == {n: each.tobytes() for n, each in mirror.items()}
    assert (plain.pop("losses"), stated.pop("rewards"), plain) == ([-100.0, 20.0], list(SPAN), stated)
    policy = manul.loads(manul.dumps(optimized[1].policy))
    decision = policy.decide([0.5, 0.5])
    policy.learn([0.5, 0.5], decision, reward=40.0)
    assert policy.outcome == manul.Outcome.of(rewards=SPAN)


def test_the_best_of_trees_is_marked_as_the_highest():
    (_, log), grid = logs("numbers", 600), manul.offpolicy.Grid(bandwidths=[1 / 4], leaves=[4, 8])
    best = manul.optimize(log, grid=grid, penalty=1)
    (line,) = [line for line in str(best).splitlines() if line.endswith("<- highest")]
    assert numbers(line)[-1] == pytest.approx(-best.chosen.objective, abs=1e-5)


def test_a_policy_without_densities_is_valued_in_rewards():
    losses, rewards = (optimize_without_densities(log) for log in logs("numbers", 600))
    text = str(rewards)
    assert text.startswith(f"The log earned {-losses.logged:.4g} on average. ")
    assert "mean reward" in text
    assert rewards.estimate.reward == mirrored((losses.estimate.value, losses.estimate.low, losses.estimate.high))


def test_several_knobs_are_optimized_and_evaluated_in_rewards():
    knobs = {"price": (0.0, 1.0), "days": manul.Stepped(1, 3, 1)}
    rng = np.random.default_rng(3)
    actions = {"price": rng.random(400), "days": rng.integers(1, 4, 400).astype(float)}
    rewards, densities = 10 * (1 - (actions["price"] - 0.5) ** 2), np.full(400, 1 / 3)
    made = [
        manul.Log(np.zeros((400, 1)), actions, densities, -rewards, knobs=knobs, loss_range=(-10, 0), rewards=flag)
        for flag in (False, True)
    ]
    plain, stated = map(manul.optimize, made)
    assert stated.reward == -plain.chosen.estimate > 0
    assert stated.verdict.reward.value[0] == -plain.verdict.value[0]


DEFECTS = {
    "outside": {},
    "filled": {"end": 80},
    "leaked": {"leak": True},
    "ids": {"ids": ["a"] * 1500},
}


@pytest.mark.parametrize("defect", DEFECTS)
def test_the_doctor_speaks_of_rewards(defect):
    options = DEFECTS[defect]
    plain, stated = logs("numbers", **{name: value for name, value in options.items() if name == "ids"})
    made = []
    for log, flag in ((plain, False), (stated, True)):
        losses, contexts = log.losses.copy(), log.contexts.copy()
        losses[len(losses) - options.get("end", 0) :] = -7.5
        contexts[:, 1] = losses if "leak" in options else contexts[:, 1]
        columns = contexts, log.actions, log.densities, losses
        made.append(manul.Log(*columns, ids=log.ids, action_range=(0, 10), rewards=flag))
    span = (-50.0, -5.0) if defect == "outside" else (-100.0, 20.0)
    losses = doctor(made[0], losses=span)
    rewards = doctor(made[1], rewards=(-span[1], -span[0]))
    assert losses
    assert [each.severity for each in losses] == [each.severity for each in rewards]
    for one, other in zip(losses, rewards, strict=True):
        assert not re.search(r"\bloss(es)?\b", f"{other.title} {other.sentence}")
        assert sorted(map(abs, numbers(one.sentence))) == sorted(map(abs, numbers(other.sentence)))
    assert any("reward" in each.sentence for each in rewards)


def test_the_doctor_shows_the_reward_and_its_range():
    _, log = logs("numbers", loss_range=None)
    (finding,) = [each for each in doctor(log, rewards=(0, 50)) if "outside" in each.title]
    first = log.rewards[(log.rewards < 0) | (log.rewards > 50)][0]
    assert finding.title == "rewards outside the range"
    assert f"are not in [0, 50]; the first is {first:g} in row" in finding.sentence
    assert finding.sentence.endswith("Declare the range with rewards=(low, high).")


@pytest.mark.parametrize("filled", [1, 2], ids=["all of the end", "half of the end"])
def test_the_doctor_shows_the_reward_that_fills_the_end(filled):
    _, log = logs("numbers")
    losses = log.losses.copy()
    losses[-92::filled] = -7.5
    changed = manul.Log(log.contexts, log.actions, log.densities, losses, action_range=(0, 10), rewards=True)
    (finding,) = [each for each in doctor(changed, rewards=SPAN) if "filled" in each.title]
    assert re.search(r"rewards(,| are) .*\b7\.5,", finding.sentence)
    assert "-7.5" not in finding.sentence


FUNCTIONS = {
    "evaluate": lambda log, **ranges: manul.evaluate(rule, log, bandwidth=1.0, **ranges),
    "compare": lambda log, **ranges: manul.compare(POLICIES, log, bandwidth=1.0, **ranges),
    "optimize": lambda log, **ranges: manul.optimize(log, grid=GRID, penalty=1, **ranges).table,
    "doctor": lambda log, **ranges: doctor(log, **ranges),
    "without densities": lambda log, **ranges: str(optimize_without_densities(log.rows(slice(300)), **ranges)),
}
GRID = manul.offpolicy.Grid(bandwidths=[1 / 4], leaves=[4])


@pytest.fixture(params=FUNCTIONS)
def function(request):
    return FUNCTIONS[request.param]


def test_a_range_of_rewards_is_the_negated_range_of_losses(function):
    _, log = logs("numbers", 600, loss_range=None)
    assert function(log, rewards=SPAN) == function(log, losses=(-SPAN[1], -SPAN[0]))


def test_rewards_are_refused_for_a_log_of_losses(function):
    log, _ = logs("numbers", 600)
    with pytest.raises(ParameterError) as error:
        function(log, rewards=SPAN)
    assert str(error.value) == "rewards is for logs of rewards; this one has losses. Use losses=(low, high)."
    assert error.value.field == "rewards"


def test_losses_and_rewards_exclude_each_other(function):
    _, log = logs("numbers", 600)
    with pytest.raises(ParameterError, match=r"^losses and rewards exclude each other, got "):
        function(log, losses=(0, 1), rewards=SPAN)


@pytest.mark.parametrize("rewards", [(1, 0), (0, np.nan), "much", (0, 1, 2)], ids=repr)
def test_a_bad_range_of_rewards_is_refused_by_name(function, rewards):
    _, log = logs("numbers", 600)
    with pytest.raises(ParameterError, match=r"^rewards ") as error:
        function(log, rewards=rewards)
    assert error.value.field == "rewards"


@pytest.mark.parametrize("name", ["evaluate", "compare", "optimize", "without densities"])
def test_a_reward_outside_its_range_is_shown_as_a_reward(name):
    _, log = logs("numbers", 600, loss_range=None)
    with pytest.raises(InputError) as error:
        FUNCTIONS[name](log, rewards=(200, 300))
    first = f"reward must be in [200, 300], got {log.rewards[0]:g} in row 0. "
    assert str(error.value) == f"{first}Declare the range with rewards=(low, high)."


def test_the_range_of_rewards_may_be_that_of_the_log():
    plain, stated = logs("numbers", loss_range=None)
    estimate = manul.evaluate(rule, stated, bandwidth=1.0, rewards="auto")
    assert estimate.value == manul.evaluate(rule, plain, bandwidth=1.0, losses="auto").value
    with pytest.raises(ParameterError, match=r"^rewards must be two numbers \(low, high\) for optimize, got 'auto'\.$"):
        manul.optimize(stated, rewards="auto")


def test_batches_of_losses_and_rewards_do_not_mix(pair):
    for function in (lambda log: manul.evaluate(rule, log, bandwidth=1.0), doctor, manul.optimize):
        with pytest.raises(InputError, match=r"^logs must all have losses or all have rewards, got both\.$"):
            function(pair)


def test_batches_and_iterators_of_rewards_are_known_as_such():
    _, log = logs("numbers")
    halves = [log.rows(slice(750)), log.rows(slice(750, None))]
    assert manul.evaluate(rule, halves, bandwidth=1.0).reward == manul.evaluate(rule, log, bandwidth=1.0).reward
    policy = manul.Cats(leaves=4, bandwidth=1, actions=(0, 10))
    estimate = manul.evaluate(policy, iter(halves), actions=(0, 10), rewards=SPAN)
    assert estimate.reward == manul.evaluate(policy, log).reward
    assert doctor(iter(halves), actions=(0, 10), rewards=SPAN) == doctor(log)


@pytest.fixture
def files(tmp_path):
    plain, stated = logs("numbers", 600, loss_range=None, action_range=None)
    plain.write(tmp_path / "losses.csv")
    stated.write(tmp_path / "rewards.csv")
    manul.Cats(leaves=4, bandwidth=1, actions=(0, 10)).save(tmp_path / "policy.manul")
    return tmp_path


COMMANDS = {
    "evaluate": ("evaluate", "policy.manul", "{}", "--json"),
    "compare": ("evaluate", "policy.manul", "{}", "--against", "logged", "--json"),
    "optimize": ("optimize", "{}", "--bandwidths", "1/4", "--leaves", "4", "--penalty", "1", "--json"),
    "check": ("check", "{}", "--json"),
}


@pytest.fixture(params=COMMANDS)
def run(request, files, monkeypatch):
    monkeypatch.chdir(files)
    command = COMMANDS[request.param]

    def invoke(log, *options):
        return CliRunner().invoke(main, [*(each.format(log) for each in command), "--actions", "0", "10", *options])

    return invoke


def test_commands_take_a_range_of_rewards(run):
    stated = run("rewards.csv", "--rewards", "-20", "100")
    assert stated.exit_code in (0, 1), stated.output
    assert stated.stdout == run("rewards.csv", "--losses", "-100", "20").stdout
    assert '"reward"' in stated.stdout or "findings" in stated.stdout


def test_commands_refuse_two_ranges_and_rewards_of_a_log_of_losses(run):
    both = run("rewards.csv", "--rewards", "-20", "100", "--losses", "-100", "20")
    wrong = run("losses.csv", "--rewards", "-20", "100")
    assert (both.exit_code, both.stdout) == (wrong.exit_code, wrong.stdout) == (2, "")
    assert both.stderr.startswith("--losses and --rewards exclude each other")
    assert wrong.stderr == "--rewards is for logs of rewards; this one has losses. Use --losses LOW HIGH.\n"


def test_a_log_of_rewards_shows_its_rewards_in_a_notebook():
    plain, stated = logs("numbers", 600)
    assert "reward</th>" in stated._repr_html_()
    assert f"{stated.rewards[0]:.6g}</td>" in stated._repr_html_()
    assert f"{plain.losses[0]:.6g}</td>" in plain._repr_html_()
