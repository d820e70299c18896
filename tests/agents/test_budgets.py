"""A budget is never exceeded if costs are known at once, is spent by the price that it has, and survives files, copies and batches."""

import copy
import pickle
import re
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

import manul
from manul.agents.budget_account import Account, Booking
from manul.agents.pacing import SLOTS, Expectation, Pacing
from manul.errors import InputError, ParameterError
from manul.outcomes.budgets import Budget, Moment
from manul.utils import model_files
from tests.twins.budget_account import SlowAccount

BID = {"actions": (0.0, 40.0), "outcome": manul.Bid()}
BUDGET = ("won * action", 60.0, 50)
ROUNDS = 200


def auction(number):
    rng = np.random.default_rng([number, 7])
    return rng.standard_normal(2), float(rng.gamma(4, 1.5)), float(rng.gamma(4, 2.5))


def parts_of(number, bid):
    _, other, value = auction(number)
    return {"won": True, "value": value} if bid >= other else {"won": False}


def play(agent, rounds=ROUNDS, first=0):
    decisions = []
    for number in range(first, first + rounds):
        decisions.append(agent.decide(auction(number)[0]))
        agent.learn(auction(number)[0], decisions[-1], parts=parts_of(number, decisions[-1].action))
    return decisions


def spent_by_period(decisions, length):
    spent = [each.action * parts_of(number, each.action)["won"] for number, each in enumerate(decisions)]
    return np.array(spent).reshape(-1, length).sum(axis=1)


def bytes_of(agent):
    return {name: array.tobytes() for name, array in model_files.contents(agent)[2].items()}


@pytest.mark.parametrize("amount", [0.5, 3.0, 20.0, 60.0, 1000.0])
def test_no_period_spends_more_than_the_budget(amount):
    agent = manul.Auto(**BID, spend_at_most=("won * action", amount, 50))
    assert (spent_by_period(play(agent), 50) <= amount + 1e-9).all()


def test_what_is_left_cuts_the_range_before_the_draw_so_that_the_density_is_that_of_the_range():
    agent = manul.Auto(**BID, spend_at_most=("won * action", 30.0, 50))
    decision = agent.decide([0.0, 0.0])
    assert decision.within == (0.0, 30.0)
    assert decision.density == pytest.approx(1 / 30)


def test_the_density_of_a_decision_is_that_of_the_distribution_in_its_range():
    agent = manul.Auto(**BID, spend_at_most=BUDGET)
    play(agent, 120)
    decision = agent.decide([0.3, -0.2])
    price = agent.report().budget.price
    agent = manul.Auto(**BID, spend_at_most=BUDGET)
    play(agent, 120)
    assert agent.report().budget.price != price or price == 0
    distribution = agent.distribution([0.3, -0.2], decision.within)
    assert distribution.density(decision.action) == pytest.approx(decision.density)


def test_a_budget_that_is_gone_declines_and_what_is_declined_is_not_learned():
    agent = manul.Auto(**BID, spend_at_most=("won * action", 1e-9, 50), decline=0.0)
    decision = agent.decide([0.0, 0.0])
    assert decision.action == 0.0
    agent.learn([0.0, 0.0], decision, parts={"won": False})
    assert agent.report().rounds == 0


def test_the_decision_with_a_price_is_that_of_an_agent_whose_formula_has_the_price():
    priced = manul.Outcome(
        "profit",
        better="high",
        range="auto",
        formula="(value - 1.7 * action) * won",
        parts={"won": "yes/no", "value": "amount"},
        hints={"won": "rises"},
    )
    one = manul.Auto(**BID, spend_at_most=("won * action", 1e6, 50), bandwidth=0.5)
    other = manul.Auto(actions=(0.0, 40.0), outcome=priced, bandwidth=0.5)
    for number in range(6):  # later, models of two different outcomes are mixed into them
        context, decision = auction(number)[0], manul.Decision(7.0 * number, 1 / 40)
        for agent in (one, other):
            agent.learn(context, decision, parts=parts_of(number, decision.action))
    assert any(parts_of(number, 7.0 * number)["won"] for number in range(6))
    one._host.player.prices = (0.7, 0.0, 0.0)
    assert [one.best([x, 0.5]) for x in (-1.0, 0.0, 1.0)] == pytest.approx(
        [other.best([x, 0.5]) for x in (-1.0, 0.0, 1.0)]
    )


def test_a_tight_budget_has_a_price_and_a_wide_one_has_none():
    tight, wide = (manul.Auto(**BID, spend_at_most=("won * action", amount, 50)) for amount in (40.0, 1e6))
    for agent in (tight, wide):
        play(agent, 400)
    assert tight.report().budget.price > 0.05
    assert wide.report().budget.price == 0


def test_batches_decide_and_learn_as_single_calls_do():
    agents = [manul.Auto(**BID, spend_at_most=BUDGET, late="carry") for _ in range(2)]
    for first in range(0, 120, 40):
        contexts = np.array([auction(number)[0] for number in range(first, first + 40)])
        many = agents[0].decide_many(contexts)
        single = [agents[1].decide(context) for context in contexts]
        assert [(each.action, each.density, each.floor, each.id) for each in many] == [
            (each.action, each.density, each.floor, each.id) for each in single
        ]
        parts = [parts_of(first + row, each.action) for row, each in enumerate(single)]
        columns = {"won": [each["won"] for each in parts], "value": [each.get("value") for each in parts]}
        agents[0].learn_many(contexts, many, parts=columns)
        for context, decision, told in zip(contexts, single, parts, strict=True):
            agents[1].learn(context, decision, parts=told)
        assert bytes_of(agents[0]) == bytes_of(agents[1])


@pytest.mark.parametrize(
    "copied",
    [copy.deepcopy, lambda agent: pickle.loads(pickle.dumps(agent)), lambda agent: manul.loads(manul.dumps(agent))],
    ids=["deepcopy", "pickle", "file"],
)
@pytest.mark.parametrize("late", [None, "reserve", "carry"])
def test_a_copy_goes_on_with_the_same_account_and_bytes(copied, late):
    agent = manul.Auto(**BID, spend_at_most=BUDGET, late=late, carry=True)
    play(agent, 70)
    waiting = agent.decide([0.1, 0.2])
    other = copied(agent)
    for each in (agent, other):
        each.learn([0.1, 0.2], waiting, parts={"won": True, "value": 9.0})
        play(each, 60, first=71)
    assert other.report().budget.spent == agent.report().budget.spent
    assert bytes_of(other) == bytes_of(agent)


def test_the_amount_can_be_changed_at_any_time():
    agent = manul.Auto(**BID, spend_at_most=("won * action", 20.0, 50))
    play(agent, 25)
    agent.spend_at_most = ("won * action", 50.0, 50)
    decisions = play(agent, 25, first=25)
    assert agent.report().budget.available == 50
    assert manul.loads(manul.dumps(agent)).spend_at_most == ("won * action", 50.0, 50)
    assert len(decisions) == 25
    with pytest.raises(ParameterError, match="only the amount of spend_at_most can be changed"):
        agent.spend_at_most = ("won * action", 50.0, "day")


def test_a_refused_context_changes_nothing():
    agent = manul.Auto(**BID, spend_at_most=BUDGET)
    play(agent, 49)
    before = bytes_of(agent)
    for bad in ([0.0], [float("nan"), 0.0], "text"):
        with pytest.raises(InputError):
            agent.decide(bad)
    with pytest.raises(InputError):
        agent.decide_many([[0.0, 0.0], [float("nan"), 0.0]])
    assert bytes_of(agent) == before


def test_a_report_without_what_was_spent_changes_nothing():
    agent = manul.Auto(**BID, spend_at_most=BUDGET)
    decision = agent.decide([0.0, 0.0])
    before = bytes_of(agent)
    with pytest.raises(InputError, match="pass parts= to learn"):
        agent.learn([0.0, 0.0], decision, reward=3.0)
    with pytest.raises(InputError, match="parts must say 'won'"):
        agent.learn([0.0, 0.0], decision, parts={"value": 3.0})
    assert bytes_of(agent) == before


def test_decisions_of_somebody_else_teach_but_are_not_paid_from_the_budget():
    agent = manul.Auto(**BID, spend_at_most=BUDGET)
    agent.learn([0.0, 0.0], manul.Decision(20.0, 1 / 40), parts={"won": True, "value": 30.0})
    assert agent.report().rounds == 1
    assert agent.report().budget.spent == 0


def test_many_decisions_without_costs_ask_how_to_count_them():
    agent = manul.Auto(**BID, spend_at_most=("won * action", 1e6, 500))
    with pytest.raises(InputError, match=r"16 decisions wait for their cost, so late must be given.*reserve.*carry"):
        agent.decide_many(np.zeros((17, 2)))
    assert agent.report().budget.waiting == 0


def test_an_outcome_that_waits_asks_how_to_count_costs():
    outcome = manul.Bid(wait=manul.Wait(3600, default={"won": False}))
    with pytest.raises(ParameterError, match=r"late must be given, because costs wait for the outcome. late='reserve'"):
        manul.Auto(actions=(0, 40), outcome=outcome, spend_at_most=("won * action", 2000.0, "day"))


def test_costs_in_flight_are_held_back_in_full_without_a_choice():
    agent = manul.Auto(**BID, spend_at_most=("won * action", 45.0, 50))
    one = agent.decide([0.0, 0.0])
    other = agent.decide([0.0, 0.0])
    assert (other.within or (0, 40))[1] <= 45.0 - one.action + 1e-9
    assert agent.report().budget.held == pytest.approx(one.action + other.action)


def test_a_day_follows_the_time_zone():
    agent = manul.Auto(**BID, spend_at_most=("won * action", 30.0, "day"), zone="Europe/Oslo")
    evening = datetime(2024, 6, 1, 21, 30, tzinfo=UTC)  # 23:30 in Oslo
    decision = agent.decide([0.0, 0.0], at=evening)
    agent.learn([0.0, 0.0], decision, parts={"won": True, "value": 1.0})
    assert agent.decide([0.0, 0.0], at=evening + timedelta(minutes=20)).within[1] <= 30.0 - decision.action + 1e-9
    assert agent.decide([0.0, 0.0], at=evening + timedelta(hours=1)).within == (0.0, 30.0)


def test_a_time_before_the_current_period_is_refused():
    agent = manul.Auto(**BID, spend_at_most=("won * action", 30.0, "day"))
    agent.decide([0.0, 0.0], at=datetime(2024, 6, 2, 1))
    with pytest.raises(InputError, match="at must not be before the current period of the budget"):
        agent.decide([0.0, 0.0], at=datetime(2024, 6, 1, 23))


@pytest.mark.parametrize(("carry", "second"), [(False, 30.0), (True, 40.0)])
def test_what_a_period_leaves_is_carried_if_that_is_wanted(carry, second):
    agent = manul.Auto(**BID, spend_at_most=("won * action", 30.0, 2), carry=carry)
    for number in range(2):
        decision = agent.decide([0.0, 0.0], within=(9.9, 10.0))
        agent.learn([0.0, 0.0], decision, parts={"won": number == 0, "value": 1.0})
    assert agent.decide([0.0, 0.0]).within == pytest.approx((0.0, second), abs=0.2) or second == 40.0
    assert agent.report().budget.available == pytest.approx(second + 10 * carry, abs=0.2)


def test_with_carry_what_was_expected_too_low_is_taken_from_the_next_period():
    account = Account(Budget.of(manul.Bid(), ("won * action", 100, 2), late="carry"))
    first = account.book(account.moment(None), Expectation(), Booking(0.0, 0, 10.0, 0.0))
    account.book(account.moment(None), Expectation(), Booking(0.0, 0, 10.0, 0.0))
    account.book(account.moment(None), Expectation(), Booking(2.0, 0, 10.0, 0.0))
    account.settle(first, 25.0)
    assert account.left(account.moment(None)) == 100 - 10 - 15


def test_what_is_reserved_has_a_margin():
    account = Account(Budget.of(manul.Bid(), ("won * action", 100, 10), late="reserve"))
    for _ in range(4):
        account.book(account.moment(None), Expectation(), Booking(0.0, 0, 5.0, 25.0))
    assert account.left(account.moment(None)) == pytest.approx(100 - 20 - 3 * 10)


def test_the_plan_follows_the_profile_of_earlier_periods():
    pacing = Pacing()
    for day in range(2):
        for number in range(100):
            moment = Moment(day * 100.0, 100.0, number / 100)
            usual = 3.0 if number >= 50 else 1.0
            pacing.learn(moment, Expectation(1.0, 1.0, 0.0, usual), left=100.0 - number, amount=100.0)
        pacing.end_period()
    assert pacing.plan()[SLOTS // 2 - 1] == pytest.approx(0.25)
    assert pacing.planned(Moment(200.0, 100.0, 0.0), 100.0) == pytest.approx(0.5)


def test_what_is_spent_is_an_outcome_of_logs_that_evaluate_judges():
    agent = manul.Auto(**BID, spend_at_most=BUDGET)
    decisions, contexts = play(agent, 150), np.array([auction(number)[0] for number in range(150)])
    told = [parts_of(number, each.action) for number, each in enumerate(decisions)]
    parts = {"won": [each["won"] for each in told], "value": [each.get("value") for each in told]}
    ends = np.array([each.within or (0.0, 40.0) for each in decisions]).T
    columns = [np.array([each[column] for each in decisions]) for column in (0, 1)]
    log = manul.Log(contexts, *columns, lows=ends[0], highs=ends[1], outcome=manul.Bid(), parts=parts)
    spent = spent_by_period(decisions, 150)[0]
    assert log.with_outcome(agent.spending).losses.sum() == pytest.approx(spent)
    assert manul.evaluate(agent, log, outcome=agent.spending).value >= 0
    assert manul.compare({"now": agent}, log, outcome=agent.spending).rows[0].outcome.name == "spent"


def test_a_cost_without_an_upper_bound_stops_when_nothing_is_left():
    agent = manul.Auto(**BID, spend_at_most=("won * value", 20.0, 100), decline=0.0)
    decision = agent.decide([0.0, 0.0])
    assert decision.within is None
    agent.learn([0.0, 0.0], decision, parts={"won": True, "value": 25.0})
    assert agent.decide([0.0, 0.0]).action == 0.0


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"spend_at_most": 3}, "spend_at_most must be a formula, an amount and a period"),
        ({"spend_at_most": ("won * action", 0, "day")}, "must have an amount above 0 as its second value, got 0."),
        (
            {"spend_at_most": ("won * action", "much", "day")},
            "must have an amount above 0 as its second value, got 'much'",
        ),
        ({"spend_at_most": ("won * action", 5, "month")}, "the period 'hour', 'day' or 'week'"),
        ({"spend_at_most": ("won * action", 5, 0)}, "the period 'hour', 'day' or 'week'"),
        ({"spend_at_most": ("won * action", 5, True)}, "the period 'hour', 'day' or 'week'"),
        ({"spend_at_most": ("won * actoin", 5, "day")}, "decline"),
        ({"spend_at_most": ("won *", 5, "day")}, "spend_at_most 'won *' is incomplete at character 6"),
        ({"spend_at_most": ("action", 5, "day")}, "spend_at_most must use a part of the outcome, got 'action'."),
        ({"spend_at_most": BUDGET, "late": "later"}, "late"),
        ({"spend_at_most": BUDGET, "carry": 1}, "carry must be True or False, got 1."),
        ({"spend_at_most": BUDGET, "decline": 3.0}, "decline must spend nothing, but 'won * action' may be 3 at 3."),
        ({"spend_at_most": BUDGET, "decline": 50.0}, "decline must be in [0, 40], got 50.0."),
        ({"spend_at_most": BUDGET, "zone": "Oslo"}, "zone must be a time zone such as 'Europe/Oslo', got 'Oslo'."),
        (
            {"spend_at_most": ("value", 5, 50), "late": "reserve", "decline": 0.0},
            "late='reserve' needs a cost with an upper bound",
        ),
        ({"spend_at_most": ("won * value ** 2", 5, 50), "decline": 0.0}, "must be linear in counts and amounts"),
        ({"spend_at_most": ("won * value", 5, 50)}, "decline must be given, an action that spends nothing"),
        ({"late": "carry"}, "late is for a budget"),
        ({"decline": 0.0}, "decline is for a budget"),
    ],
)
def test_a_wrong_budget_is_refused_in_one_sentence(settings, sentence):
    with pytest.raises(ParameterError, match=re.escape(sentence)):
        manul.Auto(**BID, **settings)


@pytest.mark.parametrize("actions", [manul.Stepped(0, 40, 1), manul.Choice([0, 10]), {"bid": (0, 40)}])
def test_a_budget_is_for_a_range_of_numbers(actions):
    outcome = manul.Bid(bid="bid" if isinstance(actions, dict) else "action")
    with pytest.raises(ParameterError, match=re.escape("spend_at_most is for a range of numbers (low, high)")):
        manul.Auto(actions=actions, outcome=outcome, spend_at_most=BUDGET)


def test_an_outcome_without_parts_has_nothing_to_spend():
    with pytest.raises(ParameterError, match="spend_at_most needs an outcome with parts"):
        manul.Auto(actions=(0, 40), rewards="auto", spend_at_most=BUDGET)


@pytest.mark.parametrize("carry", [False, True])
@pytest.mark.parametrize("late", [None, "reserve", "carry"])
@pytest.mark.parametrize("seed", range(5))
def test_the_account_is_that_of_the_twin_after_any_bookings_and_costs(late, carry, seed):
    rng = np.random.default_rng(seed)
    account = Account(Budget.of(manul.Bid(), ("won * action", 50.0, 10), late=late, carry=carry))
    twin, waiting = SlowAccount(50.0, 10, late=late, carry=carry), []
    for _ in range(80):
        moment = account.moment(None)
        assert account.left(moment) == pytest.approx(twin.left())
        held, variance = rng.uniform(0, 8), rng.uniform(0, 20)
        number = account.book(moment, Expectation(), Booking(moment.period, 0, held, variance))
        assert twin.book(held, variance) == number
        waiting.append(number)
        while waiting and (len(waiting) > 12 or rng.random() < 0.5):
            settled, cost = waiting.pop(int(rng.integers(len(waiting)))), rng.uniform(0, 8)
            account.settle(settled, cost)
            twin.settle(settled, cost)


def test_an_agent_with_a_budget_can_be_the_prior_of_another():
    sister = manul.Auto(**BID, spend_at_most=BUDGET)
    play(sister, 60)
    agent = manul.Auto(**BID, spend_at_most=BUDGET, prior=sister)
    assert (spent_by_period(play(agent, 100), 50) <= 60.0 + 1e-9).all()
    assert agent.report().budget.spent <= 60.0


def test_a_formula_may_use_numbers_of_the_context():
    agent = manul.Auto(**BID, spend_at_most=("won * action * fee", 60.0, 50))
    assert agent.decide({"fee": 3.0}).within == pytest.approx((0.0, 20.0))
    with pytest.raises(InputError, match="The formula needs the number 'fee' in the context, which has none"):
        agent.decide({"age": 3.0})


def test_a_map_before_the_agent_keeps_its_budget():
    agent = manul.Mapped(agent=manul.Auto(**BID, spend_at_most=BUDGET), features=manul.maps.Crosses())
    assert (spent_by_period(play(agent, 100), 50) <= 60.0 + 1e-9).all()


def test_a_rollout_refuses_an_agent_with_a_budget():
    with pytest.raises(ParameterError, match="agent must have no budget in a rollout"):
        manul.Rollout(manul.Auto(**BID, spend_at_most=BUDGET), baseline=3.0, outcome_range=(-40, 40))


def test_a_negative_action_that_declines_is_saved():
    agent = manul.Auto(
        actions=(-5.0, 5.0), outcome=manul.Bid(), spend_at_most=("won * max(action, 0)", 9.0, 50), decline=0.0
    )
    assert manul.loads(manul.dumps(agent)).decline == 0.0


@pytest.mark.parametrize(
    ("name", "place", "value"), [("account", 0, -1.0), ("account", 4, np.nan), ("pacing", 0, np.inf)]
)
def test_a_file_with_an_impossible_account_is_refused(name, place, value):
    agent = manul.Auto(**BID, spend_at_most=BUDGET)
    play(agent, 60)
    kind, parameters, arrays = model_files.contents(agent)
    arrays[name][place] = value
    with pytest.raises(manul.errors.FileError):
        manul.loads(model_files.encode(kind, parameters, arrays))


def test_decisions_that_decline_need_no_report():
    agent = manul.Auto(**BID, spend_at_most=("won * action", 1e-9, 500))
    assert [agent.decide([0.0, 0.0]).action for _ in range(40)] == [0.0] * 40


def test_a_budget_cannot_be_added_later():
    with pytest.raises(ParameterError, match="spend_at_most cannot be added to an agent"):
        manul.Auto(**BID).spend_at_most = BUDGET


@pytest.mark.parametrize("budget", [None, ("won * action", 500.0, 50)], ids=["plain", "budget"])
def test_an_agent_with_a_budget_starts_from_another_one_with_an_account_of_its_own(budget):
    prior = manul.Auto(**BID, **({} if budget is None else {"spend_at_most": budget}))
    play(prior, 60)
    agent = manul.Auto(**BID, spend_at_most=BUDGET, prior=prior)
    assert (spent_by_period(play(agent, 100), 50) <= 60.0 + 1e-9).all()
    assert agent.report().budget.available == 60.0


@pytest.mark.parametrize("settings", [{}, {"spend_at_most": BUDGET}, {"keep": ("won", ">=", 0.2)}])
def test_an_outcome_that_is_too_large_is_refused_and_the_agent_can_be_saved(settings, tmp_path):
    agent = manul.Auto(**BID, **settings)
    context = auction(60)[0]
    for number in range(40):  # once is enough for squares to be infinite, often for the variance of squares
        decision = agent.decide(context)
        for value in (1e308, 1e71):
            with pytest.raises(InputError, match=r"must be in \[-1e\+70, 1e\+70\], got 1e\+"):
                agent.learn(context, decision, parts={"won": True, "value": value})
        agent.learn(context, decision, parts={"won": True, "value": 9e69 if number % 2 else 3.0})
    agent.save(tmp_path / "agent.manul")
    assert manul.load(tmp_path / "agent.manul").decide(context) == agent.decide(context)
