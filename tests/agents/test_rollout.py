"""Rollouts as agents: arms, densities, late losses, files, settings."""

import hashlib
import math
from dataclasses import fields, replace

import numpy as np
import pytest

import manul
from manul.actions.kinds.span import Span
from manul.agents.rollout import Rollout
from manul.agents.rollout.rollout_plan import PlanSettings, RolloutPlan
from manul.agents.rollout.rollout_progress import COHORT
from manul.cli.rollout import plan_options
from manul.errors import FileError, InputError, ParameterError
from manul.offpolicy import doctor
from manul.service.rollout_schema import NewRollout
from manul.service.rollout_schema import Rollout as RolloutResponse
from manul.utils import model_files


def make(**settings):
    return Rollout(manul.Cats(leaves=16, bandwidth=1 / 8, seed=3), **{"baseline": 0.5, "seed": 3} | settings)


def test_the_density_is_that_of_the_mixture_of_both_arms():
    rollout = make(steps=(0.5,))
    for _ in range(100):
        expected = rollout.distribution([0.3])
        decision = rollout.decide([0.3])
        assert decision.density == pytest.approx(expected.density(decision.action))
        assert decision.floor == pytest.approx(float(expected.densities.min()))
        assert decision.arm == "learner" or decision.action == 0.5


@pytest.mark.whole
def test_inverse_densities_average_to_the_range_while_the_learner_learns():
    log = manul.simulate(make(steps=(0.2, 0.5), tolerance=0.5), manul.worlds.linear(rounds=5000)).log
    inverse = 1 / log.densities
    assert abs(inverse.mean() - 1) <= 4 * inverse.std() / np.sqrt(len(inverse))


@pytest.mark.whole
def test_the_log_of_a_rollout_evaluates_other_policies():
    world = manul.worlds.linear(rounds=5000)
    log = manul.simulate(make(steps=(0.5,)), world).log
    estimate = manul.evaluate(lambda _: 0.5, log, bandwidth=0.1)
    truth = np.mean([np.abs(0.5 + step - world.targets).mean() for step in np.linspace(-0.1, 0.1, 41)])
    assert estimate.low <= truth <= estimate.high


def test_about_the_share_of_the_traffic_goes_to_the_learner():
    arms = make(budget=1e9).decide_many(np.zeros((5000, 1))).arms
    assert abs((arms == "learner").sum() - 250) < 4 * np.sqrt(250)


def test_a_saved_rollout_goes_on_to_the_same_bytes():
    rollout = make(steps=(0.3, 1.0))
    contexts = np.random.default_rng(0).random((3 * COHORT + 7, 2))
    for row in contexts:
        decision = rollout.decide(row)
        if decision.id % 5:
            rollout.learn(row, decision, loss=abs(decision.action - row[0]))
    copy = manul.loads(manul.dumps(rollout))
    for each in (rollout, copy):
        for row in contexts:
            decision = each.decide(row)
            each.learn(row, decision, loss=abs(decision.action - row[0]))
    assert manul.dumps(rollout) == manul.dumps(copy)


def test_decisions_are_judged_in_their_order_whatever_the_order_of_their_losses():
    early, late = make(), make()
    for rollout, order in ((early, 1), (late, -1)):
        decisions = [rollout.decide([0.2]) for _ in range(2 * COHORT)]
        for decision in decisions[::order]:
            rollout.learn([0.2], decision, loss=abs(decision.action - 0.2))
    assert early.progress == late.progress


def test_a_missing_loss_holds_up_the_others_until_patience_ends():
    rollout = make(patience=2 * COHORT)
    rollout.decide([0.2])
    for _ in range(2 * COHORT - 1):
        rollout.learn([0.2], rollout.decide([0.2]), loss=0.5)
    assert rollout.progress.judged == 0
    assert "Held up: decision number 0 has no loss, and 99 later losses wait for it." in str(rollout.evidence)
    rollout.learn([0.2], rollout.decide([0.2]), loss=0.5)
    assert rollout.progress.judged == 2 * COHORT


def test_a_loss_counts_once():
    rollout = make()
    decision = rollout.decide([0.2])
    rollout.learn([0.2], decision, loss=0.5)
    other = rollout.decide([0.2])
    before = manul.dumps(rollout)
    for wrong in (decision, decision._replace(id=99), manul.Decision(0.5, 1.0)):
        with pytest.raises(InputError, match="decision must come from this rollout, have no loss yet"):
            rollout.learn([0.2], wrong, loss=0.5)
    with pytest.raises(InputError, match="loss"):
        rollout.learn([0.2], other, loss=7.0)
    assert manul.dumps(rollout) == before


def test_the_caller_can_be_the_baseline():
    rollout = make(baseline="caller")
    decision = rollout.decide([0.2], action=0.7)
    assert decision.action == 0.7 or decision.arm == "learner"
    with pytest.raises(
        InputError, match=r"action must be what you would choose, .*got None: action must be in \[0, 1\]"
    ):
        rollout.decide([0.2])
    with pytest.raises(InputError, match="action must only be given"):
        make().decide([0.2], action=0.7)


def test_a_policy_can_be_the_baseline():
    agent = manul.Cats(leaves=8, bandwidth=1 / 8)
    manul.simulate(agent, manul.worlds.linear(rounds=200))
    rollout = make(baseline=agent)
    width = manul.worlds.linear(rounds=1).contexts.shape[1]
    decisions = rollout.decide_many(np.zeros((50, width)))
    assert manul.loads(manul.dumps(rollout)).decide(np.zeros(width)) == rollout.decide(np.zeros(width))
    assert len(set(decisions.actions)) > 1


def test_rewards_may_be_less_by_the_tolerance():
    rollout = Rollout(manul.Auto(rewards=(0, 10), seed=1), baseline=0.5, steps=(0.5, 1))
    for _ in range(4000):
        decision = rollout.decide(None)
        rollout.learn(None, decision, reward=9.0 if decision.arm == "learner" else 5.0)
    assert rollout.evidence.status == "done"
    assert [(move.reason, move.high < 0) for move in rollout.evidence.moves] == [("not worse", True)]


def test_the_evidence_is_one_sentence_for_its_owner():
    rollout = make()
    assert str(rollout.evidence) == "Step 1 of 3: 5 % of the traffic. Not enough evidence for the next step yet."
    manul.simulate(rollout, manul.worlds.linear(rounds=COHORT * 4))
    assert "mean loss" in str(rollout.evidence)


def test_it_says_that_decisions_without_losses_use_up_the_budget():
    rollout = make(budget=5.0)
    rollout.decide_many(np.zeros((2000, 1)))
    assert rollout.evidence.limited
    assert "of the traffic, limited by the budget." in str(rollout.evidence)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"tolerance": -0.1}, r"tolerance must be in \[0, 1\), got -0.1"),
        ({"steps": (0.5, 0.2)}, "steps must be 1 to 20 increasing shares of traffic"),
        ({"steps": ()}, "steps must be 1 to 20 increasing shares of traffic"),
        ({"steps": 0.5}, "steps must be shares of traffic, got 0.5"),
        ({"holdout": 1}, r"holdout must be in \(0, 0.5\], got 1"),
        ({"confidence": 1}, r"confidence must be in \[0.5, 1\), got 1"),
        (
            {"baseline": 3},
            r"baseline must be an action, a policy or 'caller', got 3: action must be in \[0, 1\], got 3",
        ),
        ({"baseline": "x"}, "baseline must be an action, a policy or 'caller', got 'x'"),
        ({"baseline": "0.5"}, r"got '0.5': action must be in \[0, 1\], got '0.5'"),
        ({"baseline": True}, r"action must be in \[0, 1\], got True"),
        ({"baseline": {"price": 3}}, r"action must be in \[0, 1\], got a mapping"),
        ({"outcome_range": (1, 0)}, "outcome_range must be"),
        (
            {"baseline": manul.Cats(leaves=4, bandwidth=1, actions=(0, 8))},
            "baseline must have the actions of the agent",
        ),
        ({"budget": 0}, "budget must be above 0"),
        ({"patience": 0.5}, "patience must be a whole number"),
    ],
)
def test_a_bad_setting_gets_one_sentence(settings, sentence):
    with pytest.raises(ParameterError, match=sentence):
        make(**settings)


@pytest.mark.parametrize("kind", ["losses", "rewards"])
def test_an_agent_without_a_range_needs_one_for_its_rollout(kind):
    agent = manul.Auto(**{kind: "auto"})
    sentence = (
        rf"with {kind}='auto', because its guarantee needs a range: pass outcome_range=\(low, high\); {kind} beyond it"
    )
    with pytest.raises(ParameterError, match=sentence):
        Rollout(agent, baseline=0.5)
    assert Rollout(agent, baseline=0.5, outcome_range=(0, 10)).evidence.budget == 1000.0


def test_an_agent_with_single_actions_is_refused_before_anything_changes():
    rollout = Rollout(manul.agents.DiscreteTree(leaves=4), baseline=0.5, steps=(0.98,))
    rollout.agent.decide([0.2])
    before = manul.dumps(rollout)
    for _ in range(20):
        with pytest.raises(InputError, match="agent must draw from a density"):
            rollout.decide([0.2])
    assert manul.dumps(rollout) == before


def test_a_batch_with_an_invalid_row_changes_nothing():
    rollout = make(baseline="caller")
    before = manul.dumps(rollout)
    for settings in (
        {"actions": [0.5, 7.0]},
        {"actions": [0.5]},
        {"actions": ["a", "b"]},
        {"actions": [0.5, None]},
        {},
    ):
        with pytest.raises(InputError, match="action"):
            rollout.decide_many(np.zeros((2, 1)), **settings)
    for within in ([(0, 1)], [(0, 1), (0.5, 0.2)], [(0, 1), "x"]):
        with pytest.raises(InputError, match="within"):
            rollout.decide_many(np.zeros((2, 1)), within, actions=[0.5, 0.5])
    assert manul.dumps(rollout) == before


def test_a_batch_of_the_caller_equals_single_decisions():
    batch, single = (
        make(baseline="caller", steps=(0.5,), patience=30),
        make(baseline="caller", steps=(0.5,), patience=30),
    )
    actions, within = np.linspace(0.2, 0.8, 100), np.tile((0.1, 0.9), (100, 1))
    drawn = batch.decide_many(np.zeros((100, 1)), within, actions=actions)
    expected = [single.decide([0.0], (0.1, 0.9), action=action) for action in actions]
    assert drawn.actions.tolist() == [each.action for each in expected]
    assert drawn.densities.tolist() == [each.density for each in expected]
    assert manul.dumps(batch) == manul.dumps(single)


def test_a_learn_that_fails_changes_nothing():
    rollout = make()
    decisions = rollout.decide_many(np.zeros((3, 1)))
    before = manul.dumps(rollout)
    for numbers in ([0, 1], [0, 1, 1], [0, 1, 5], [0, 1, [2]], [0, 1, "2"]):
        with pytest.raises(InputError):
            rollout.learn_many(
                np.zeros((3, 1)), replace(decisions, ids=np.array(numbers, dtype=object)), [0.5, 0.5, 0.5]
            )
    for losses in ([0.5, 0.5], [0.5, 0.5, np.nan], [0.5, 0.5, 2.0], "x"):
        with pytest.raises(InputError):
            rollout.learn_many(np.zeros((3, 1)), decisions, losses)
    assert manul.dumps(rollout) == before


def test_a_policy_with_single_actions_plays_them_as_the_baseline():
    rollout = make(baseline=manul.agents.DiscreteTree(leaves=4, epsilon=0.5), steps=(0.05,))
    drawn = rollout.decide_many(np.zeros((300, 1)))
    inverse = 1 / drawn.densities
    played = {action for action, arm in zip(drawn.actions, drawn.arms, strict=True) if arm == "baseline"}
    assert played == set(rollout.baseline.policy.distribution([0.0]).positions)
    assert rollout.distribution([0.0]).integral() == pytest.approx(1)
    assert inverse.min() > 0


@pytest.mark.parametrize("seed", range(20))
def test_a_single_action_is_always_inside_its_cell(seed):
    rng = np.random.default_rng(seed)
    low = float(rng.normal() * 10 ** rng.uniform(-3, 6))
    high = low + float(10 ** rng.uniform(-2, 4))
    for action in (low, high, *rng.uniform(low, high, 20).tolist()):
        assert Span(low, high).spread(action, None).density(action) == pytest.approx(1024 / (high - low), rel=1e-4)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("decisions",), 1),
        (("decisions",), None),
        (("in_flight", "tickets", 0, 0), 7),
        (("in_flight", "tickets", 0, 2), 0.5),
        (("in_flight", "tickets", 0, 3), 1),
        (("in_flight", "total"), math.nan),
        (("in_flight", "total"), -5.0),
        (("progress", "arrived"), [[9, True, 0.05, 0, 0, 0.5]]),
        (("progress", "held"), 1),
        (("progress", "level"), 9),
        (("progress", "level"), -1),
        (("progress", "trials"), [-1]),
        (("progress", "centres"), [math.nan]),
        (("progress", "spent"), "0"),
        (("progress", "cohort"), [[True, 0.05, 0, 0, 0.5]] * COHORT),
        (("progress", "moves"), [[1, 2, 3, "luck", 0, 0]]),
        (("progress", "guarantee"), []),
        (("progress", "began"), 1),
        (("progress", "owed"), -1.0),
        (("progress", "proven"), 1),
        (("progress", "earlier"), [[0, 0.0, 0.0]]),
        (("progress", "left_out"), [[0, 0], [0, 0], [0.0]]),
        (("progress", "above"), [[0, 0.0, 0.0, 0.0, -1.0, 0.0, 0.0], 0.0]),
        (("in_flight", "times"), [[0, 1.0]]),
    ],
)
def test_a_forged_file_gets_one_sentence(path, value):
    rollout = make()
    rollout.decide_many(np.zeros((5, 1)))
    kind, parameters, arrays = model_files.contents(rollout)
    place = parameters
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(FileError, match="file is damaged"):
        model_files.restore(kind, parameters, arrays)


def test_an_agent_cannot_be_its_own_baseline_nor_a_rollout_the_agent():
    agent = manul.Auto()
    with pytest.raises(ParameterError, match="baseline must not be the agent that learns"):
        Rollout(agent, baseline=agent)
    with pytest.raises(ParameterError, match="agent must be an agent such as"):
        Rollout(make(), baseline=0.5)


@pytest.mark.parametrize("actions", [(1e13, 1e13 + 1), (0.0, 1e-306)])
def test_a_range_without_room_for_the_cells_of_a_baseline_is_refused(actions):
    with pytest.raises(ParameterError, match="numbers are closer than 1/4096 of it"):
        manul.Rollout(manul.Auto(actions=actions), baseline=actions[0])


def test_the_settings_of_a_plan_have_one_list():
    names = {each.name for each in fields(RolloutPlan)}
    assert set(PlanSettings.__annotations__) == names
    assert set(NewRollout.__struct_fields__) - names == {"baseline", "least_seconds", "webhook", "restart"}
    assert names <= set(RolloutResponse.__struct_fields__)
    assert {option.name for option in plan_options()} == names


KNOBS = {"price": (10, 50), "days": manul.Stepped(1, 14, 1), "template": manul.Choice(["a", "b", "c"])}


def several(**settings):
    baseline = {"price": 20, "days": 3, "template": "b"}
    return Rollout(manul.Auto(actions=KNOBS, seed=1), **{"baseline": baseline, "steps": (0.5, 1.0)} | settings)


def test_a_baseline_of_several_knobs_is_the_product_of_what_single_values_count_as():
    distribution = several().baseline.arm([0.5], None, None).distribution
    assert distribution.density({"price": 20.0, "days": 3.0, "template": "b"}) == 1024 / 40
    for other in ({"price": 20.1}, {"days": 4.0}, {"template": "a"}):
        assert distribution.density({"price": 20.0, "days": 3.0, "template": "b"} | other) == 0


def test_a_baseline_moves_to_the_nearest_values_of_narrower_ranges():
    within = {"price": (30, 40), "days": (5.5, 9)}
    assert several().baseline.arm([0.5], within, None).action == {"price": 30.0, "days": 6.0, "template": "b"}


def test_options_have_no_nearest_one_so_a_range_without_that_of_the_baseline_is_refused():
    rollout = several()
    before = manul.dumps(rollout)
    with pytest.raises(
        InputError, match=r"within of template must allow 'b', which has no nearest option, got \['a'\]"
    ):
        rollout.decide([0.5], {"template": ["a"]})
    assert manul.dumps(rollout) == before


def test_a_mixture_of_several_knobs_has_a_joint_density_only():
    assert {decision.densities is None for decision in several().decide_many(np.zeros((40, 1)))} == {True}
    one = Rollout(manul.Auto(actions={"price": (10, 50)}), baseline={"price": 20}, steps=(0.5,))
    for decision in one.decide_many(np.zeros((40, 1))):
        assert decision.densities == {"price": decision.density}


def test_a_knob_may_have_the_name_of_a_part_of_the_file():
    actions = {"kind": manul.Choice(["a", "b"]), "parameters": (0, 1)}
    rollout = Rollout(manul.Auto(actions=actions), baseline={"kind": "a", "parameters": 0.5})
    assert repr(manul.loads(manul.dumps(rollout)).baseline) == "{'kind': 'a', 'parameters': 0.5}"


def test_the_log_of_a_rollout_of_several_knobs_has_arms_and_passes_the_doctor(tmp_path):
    world = manul.worlds.several.templates(rounds=600, seed=1)
    agent = manul.Auto(actions=world.actions, epsilon=0.3, seed=1)
    log = manul.simulate(Rollout(agent, baseline=world.best_action(0), steps=(0.5,), budget=1e9), world).log
    log.write(tmp_path / "log.parquet")
    read = manul.Log.read(tmp_path / "log.parquet")
    assert (read.arms, read.densities.tolist()) == (log.arms, log.densities.tolist())
    assert (set(read.arms), read.densities_by_knob) == ({"learner", "baseline"}, None)
    (note,) = doctor(read)
    assert note.sentence.endswith("The log has no densities by knob, so single knobs and leaks were not tested.")


def test_two_fixed_policies_are_compared_without_learning():
    policy, rival = (manul.Auto(seed=seed) for seed in (1, 2))
    for agent, best in ((policy, 0.3), (rival, 0.9)):
        for _ in range(300):
            decision = agent.decide([1.0])
            agent.learn([1.0], decision, loss=abs(decision.action - best))
    rollout = Rollout(policy, baseline=rival, learns=False, steps=(0.5, 1), seed=3)
    before = manul.dumps(policy)
    for _ in range(600):
        decision = rollout.decide([1.0])
        rollout.learn([1.0], decision, loss=abs(decision.action - 0.3))
    assert [move.reason for move in rollout.evidence.moves] == ["not worse"]
    again = manul.loads(manul.dumps(rollout))
    again.learn_many([[1.0]], again.decide_many([[1.0]]), [0.5])
    assert (again.learns, again.agent.report().rounds) == (False, manul.loads(before).report().rounds)
    with pytest.raises(ParameterError, match="learns must be True or False, got 1"):
        Rollout(policy, baseline=0.5, learns=1)


def test_the_bytes_of_a_rollout_over_one_number_do_not_change():
    rollout = Rollout(manul.Auto(actions=(-2, 8), seed=3), baseline=1.0, steps=(0.3, 1.0), seed=3)
    for row in np.random.default_rng(1).random((120, 2)):
        decision = rollout.decide(row, None if rollout.decisions % 3 else (-1.0, 7.0))
        rollout.learn(row, decision, loss=abs((decision.action + 2) / 10 - row[0]))
    assert hashlib.sha256(manul.dumps(rollout)).hexdigest()[:16] == "539270172401919d"


def test_a_rollout_of_an_agent_of_rows_is_evaluated_on_a_log_with_named_columns():
    agent, rows = manul.Auto(), np.random.default_rng(0).random((50, 2))
    named = [dict(zip("ab", row, strict=True)) for row in rows.tolist()]
    decisions = manul.Auto(epsilon=1.0).decide_many(named)
    log = manul.Log(named, decisions.actions, decisions.densities, rows[:, 0])
    agent.learn_many(rows, agent.decide_many(rows), rows[:, 1])
    assert manul.evaluate(Rollout(agent, baseline=0.5), log, "ips").value >= 0
