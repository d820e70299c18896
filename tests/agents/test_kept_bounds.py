"""The mean of a second outcome is kept by its price; if it cannot be kept, the report and a warning say so."""

import copy
import re
import warnings

import numpy as np
import pytest

import manul
from manul.agents.kept_bound import KeptBound
from manul.agents.pacing import Expectation
from manul.errors import InputError, LimitWarning, ParameterError
from manul.outcomes.budgets import Kept
from manul.utils import model_files

SALE = {"actions": (10.0, 80.0), "outcome": manul.Sale(cost=10.0)}
ROUNDS = 900


def chance(price, x):
    return 1 / (1 + np.exp(0.1 * (price - 30 - 5 * x)))


def play(agent, rounds=ROUNDS, first=0):
    prices, kept = np.zeros(rounds), np.zeros(rounds)
    for row in range(rounds):
        rng = np.random.default_rng([first + row, 3])
        context = [float(rng.standard_normal())]
        decision = agent.decide(context)
        bought = bool(rng.random() < chance(decision.action, context[0]))
        agent.learn(context, decision, parts={"bought": bought})
        prices[row], kept[row] = decision.action, chance(decision.action, context[0])
    return prices, kept


def bytes_of(agent):
    return {name: array.tobytes() for name, array in model_files.contents(agent)[2].items()}


@pytest.fixture(scope="module")
def free():
    return play(manul.Auto(**SALE))[1][300:].mean()


def test_a_floor_of_the_conversion_is_kept(free):
    kept = play(manul.Auto(**SALE, keep=("bought", ">=", 1.3 * free)))[1][300:].mean()
    assert kept > 0.97 * 1.3 * free


def test_a_ceiling_is_kept(free):
    kept = play(manul.Auto(**SALE, keep=("bought", "<=", 0.7 * free)))[1][300:].mean()
    assert kept < 1.05 * 0.7 * free


def test_a_bound_that_holds_anyway_has_no_price(free):
    agent = manul.Auto(**SALE, keep=("bought", ">=", 0.3 * free))
    play(agent, 400)
    assert agent.report().kept.price < 3.0  # a tenth of the margin: the latest customers did not buy


def test_a_formula_of_parts_can_be_kept():
    agent = manul.Auto(**SALE, keep=("(action - 20) * bought", ">=", 5.0))
    play(agent, 300)
    assert agent.report().kept.formula == "(action - 20) * bought"
    assert agent.kept.better == "high"


def test_what_cannot_be_kept_is_reported_and_warned_of_once():
    agent = manul.Auto(**SALE, keep=("bought", ">=", 0.99))
    with pytest.warns(LimitWarning, match=re.escape("bought >= 0.99 cannot be kept: the mean is")) as caught:
        play(agent, 600)
    assert len(caught) == 1
    assert agent.report().kept.doubt in str(agent.report().kept)


def test_what_can_be_kept_is_not_doubted(free):
    agent = manul.Auto(**SALE, keep=("bought", ">=", 1.3 * free))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        play(agent, 600)
    assert agent.report().kept.doubt is None


def test_a_copy_goes_on_to_the_same_bytes():
    agent = manul.Auto(**SALE, keep=("bought", ">=", 0.6))
    play(agent, 60)
    others = [copy.deepcopy(agent), manul.loads(manul.dumps(agent))]
    for each in (agent, *others):
        play(each, 60, first=60)
    assert bytes_of(agent) == bytes_of(others[0]) == bytes_of(others[1])


def test_batches_learn_as_single_calls_do():
    agents = [manul.Auto(**SALE, keep=("bought", ">=", 0.6)) for _ in range(2)]
    contexts = np.linspace(-1, 1, 60)[:, np.newaxis]
    many, single = agents[0].decide_many(contexts), [agents[1].decide(context) for context in contexts]
    bought = [bool(row % 3) for row in range(60)]
    agents[0].learn_many(contexts, many, parts={"bought": bought})
    for context, decision, each in zip(contexts, single, bought, strict=True):
        agents[1].learn(context, decision, parts={"bought": each})
    assert bytes_of(agents[0]) == bytes_of(agents[1])


def test_the_price_is_that_of_the_recipe():
    bound, price = KeptBound(Kept.of(manul.Sale(), ("bought", ">=", 0.2))), 0.0
    for number in range(50):
        kept = float(number % 7 == 0)
        bound.decide(Expectation(value=6.0, kept=0.3, most_kept=0.9))
        price = min(max(price + 0.05 / np.sqrt(1 + number / 500) * (0.2 - kept) / 0.2, 0.0), 10.0)
        bound.learn(kept)
        assert bound.price == pytest.approx(price * 6.0 / 0.3)


def test_a_budget_and_a_bound_work_together():
    outcome = manul.Bid()
    settings = {"spend_at_most": ("won * action", 200.0, 50), "keep": ("won", ">=", 0.3)}
    agent = manul.Auto(actions=(0.0, 40.0), outcome=outcome, **settings)
    rng = np.random.default_rng(0)
    for _ in range(120):
        decision = agent.decide([0.0])
        won = bool(decision.action > rng.gamma(4, 1.5))
        agent.learn([0.0], decision, parts={"won": won, "value": 12.0 if won else None})
    report = agent.report()
    assert report.budget.spent <= 200.0
    assert 0 < report.kept.mean < 1


def test_decisions_of_a_baseline_do_not_move_the_price():
    rollout = manul.Rollout(
        manul.Auto(**SALE, keep=("bought", ">=", 0.6)), baseline=30.0, steps=(0.5,), outcome_range=(0, 70), budget=1e9
    )
    for number in range(80):
        decision = rollout.decide([0.1])
        rollout.learn([0.1], decision, parts={"bought": number % 2 == 0})
    learned = rollout.agent.report().kept.outcomes
    assert 0 < learned < 80


@pytest.mark.parametrize(
    ("keep", "sentence"),
    [
        ("bought", "keep must be a part or a formula, '>=' or '<=', and a number"),
        (("bought", ">", 0.05), "keep must have the sign '>=' or '<=' as its second value, got '>'."),
        (("bought", ">=", float("nan")), "keep must have a finite number as its third value, got nan."),
        (("boght", ">=", 0.05), "keep must use a part of the outcome, got 'boght'. Did you mean bought?"),
        (("bought *", ">=", 0.05), "keep 'bought *' is incomplete at character 9"),
    ],
)
def test_a_wrong_bound_is_refused_in_one_sentence(keep, sentence):
    with pytest.raises(ParameterError, match=re.escape(sentence)):
        manul.Auto(**SALE, keep=keep)


def test_a_report_without_parts_is_refused():
    agent = manul.Auto(**SALE, keep=("bought", ">=", 0.05))
    decision = agent.decide([0.0])
    with pytest.raises(InputError, match="pass parts= to learn"):
        agent.learn([0.0], decision, reward=3.0)


def test_a_part_that_is_only_recorded_cannot_be_kept():
    outcome = manul.Outcome(
        better="high", range="auto", formula="action * bought", parts={"bought": "yes/no", "returned": "yes/no"}
    )
    with pytest.raises(ParameterError, match="keep uses the part 'returned', which is only recorded"):
        manul.Auto(actions=(0, 9), outcome=outcome, keep=("returned", "<=", 0.1))
