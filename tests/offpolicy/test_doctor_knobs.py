"""The doctor on logs with several knobs."""

import numpy as np
import pytest

import manul
from manul import Choice, Log, Stepped
from manul.offpolicy import doctor

KNOBS = {"price": (10, 50), "days": Stepped(1, 14, 1), "template": Choice(["a", "b", "c"])}


def random_log(rows=3000, seed=0, **changes):
    """A log of uniform draws, with some columns replaced."""
    rng = np.random.default_rng(seed)
    actions = {
        "price": rng.uniform(10, 50, rows),
        "days": rng.integers(1, 15, rows),
        "template": rng.choice(["a", "b", "c"], rows),
    }
    by_knob = {"price": np.full(rows, 1 / 40), "days": np.full(rows, 1 / 14), "template": np.full(rows, 1 / 3)}
    columns = {"contexts": rng.normal(size=(rows, 2)).astype(np.float32), "actions": actions}
    columns |= {"densities": np.full(rows, 1 / (40 * 14 * 3)), "losses": rng.random(rows), "densities_by_knob": by_knob}
    columns |= {"floors": columns["densities"]}
    for name, change in changes.items():
        columns[name] = change(columns[name]) if callable(change) else change
    return Log(**columns, knobs=KNOBS)


def titles(log, **options):
    return [finding.title for finding in doctor(log, **options)]


def test_a_good_log_has_a_note_on_what_was_skipped():
    findings = doctor(random_log())
    assert [(finding.severity, finding.title) for finding in findings] == [("note", "several knobs")]
    assert "is a test for one knob and was skipped" in findings[0].sentence


@pytest.mark.whole
@pytest.mark.parametrize("world", ["separable", "bowl", "cliff"])
def test_logs_of_auto_raise_no_alarm(world):
    for seed in range(3):
        made = getattr(manul.worlds.several, world)(rounds=1500, knobs=3, width=4, seed=seed)
        assert titles(manul.simulate(manul.Auto(actions=made.actions, seed=seed), made).log) == ["several knobs"]


def test_whole_numbers_templates_and_narrower_ranges_raise_no_alarm():
    agent, rng = manul.Auto(actions=KNOBS, seed=3), np.random.default_rng(3)
    contexts = rng.normal(size=(1500, 3)).astype(np.float32)
    within = [{"price": (12, 30), "template": ["a", "c"]} if row % 2 else None for row in range(1500)]
    drawn = agent.decide_many(contexts, within)
    log = Log(
        contexts,
        drawn.actions,
        drawn.densities,
        rng.random(1500),
        knobs=KNOBS,
        densities_by_knob=drawn.densities_by_knob,
        within=within,
        floors=drawn.floors,
    )
    assert titles(log) == ["several knobs"]


def test_densities_that_do_not_multiply_are_found():
    def halve(densities):
        return np.where(np.arange(3000) == 7, densities / 2, densities)

    finding = doctor(random_log(densities=halve, floors=None))[0]
    assert (finding.severity, finding.title) == ("error", "densities do not multiply")
    assert "In 1 of 3,000 rows" in finding.sentence
    assert "the first is row 7." in finding.sentence


def test_a_probability_above_1_is_found():
    def scale(by_knob):
        return {**by_knob, "days": by_knob["days"] * 28, "price": by_knob["price"] / 28}

    assert "probabilities above 1" in titles(random_log(densities_by_knob=scale))


def test_a_wrong_density_of_one_knob_is_found_and_named():
    def halve(by_knob):
        return {**by_knob, "template": by_knob["template"] / 2}

    log = random_log(densities_by_knob=halve, densities=lambda d: d / 2, floors=None)
    wrong = [finding for finding in doctor(log) if finding.title == "wrong densities"]
    assert [finding.sentence.split(":")[0] for finding in wrong] == ["Knob template"]


def test_a_wrong_joint_density_is_found_without_densities_by_knob():
    log = random_log(densities_by_knob=None, densities=lambda d: d / 2, floors=None)
    assert titles(log) == ["wrong densities", "several knobs"]
    assert "no densities by knob" in doctor(log)[-1].sentence


def test_a_part_of_a_range_that_is_never_tried_is_a_warning_that_limits_may_explain():
    def cheap(actions):
        return {**actions, "price": 10 + (actions["price"] - 10) / 2}

    def double(by_knob):
        return {**by_knob, "price": by_knob["price"] * 2}

    finding = doctor(random_log(actions=cheap, densities=lambda d: d * 2, densities_by_knob=double))[0]
    assert (finding.severity, finding.title) == ("warning", "actions with no support")
    assert finding.sentence.startswith("Knob price: Actions 30 to 50 are much rarer")
    assert "If limits between the knobs exclude the rest" in finding.sentence


def test_a_leaked_knob_and_a_leaked_loss_are_found():
    log = random_log()
    leaked = np.column_stack([log.contexts[:, 0], log.actions["price"], log.losses]).astype(np.float32)
    found = {finding.title: finding.sentence for finding in doctor(random_log(contexts=leaked))}
    assert found["leaked action"].startswith("Knob price: ")
    assert "leaked loss" in found


def test_a_knob_that_never_changes_is_found():
    log = random_log(actions=lambda actions: {**actions, "template": ["b"] * 3000})
    assert "Every row has the same template" in next(f.sentence for f in doctor(log) if f.title == "one action")


def test_repeated_rows_are_found():
    log = random_log()
    assert "duplicated rows" in titles(Log.concat([log, log.rows(slice(100))]))


def test_losses_outside_the_range_are_found():
    assert "losses outside the range" in titles(random_log(losses=lambda losses: losses + 1))


def test_a_range_of_actions_is_refused():
    with pytest.raises(ValueError, match="actions applies to logs with one knob; this one has its own knobs"):
        doctor(random_log(), actions=(0, 1))


def test_batches_of_any_size_give_the_same_findings():
    log = random_log(densities=lambda d: d / 2, floors=None)
    parts = [log.rows(slice(start, start + 700)) for start in range(0, 3000, 700)]
    assert doctor(parts) == doctor(log)
