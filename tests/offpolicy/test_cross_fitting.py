"""Critics are trained on the rows outside of their fold, in an order that does not depend on how the log is cut."""

import numpy as np
import pytest

import manul
from manul.actions.space import ActionSpace
from manul.logs.sample import Sample
from manul.offpolicy import cross_fitting
from manul.offpolicy.cross_fitting import CriticSettings, Position, Schedule

SHUFFLED = Schedule("shuffled", passes=2, shuffled=True)


@pytest.fixture(autouse=True)
def small_windows(monkeypatch):
    monkeypatch.setattr(cross_fitting, "WINDOW", 700)
    monkeypatch.setattr(cross_fitting, "CHUNK", 300)


@pytest.fixture
def settings(log):
    return CriticSettings(total=len(log), space=ActionSpace((0.0, 1.0)), losses=(0.0, 1.0), seed=3)


def trained(log, settings, fold=1, schedule=SHUFFLED, **options):
    critic = settings.critic()
    cross_fitting.train(Sample.of(log), [critic], [fold], schedule, settings, **options)
    return manul.dumps(critic)


def test_a_fold_is_every_third_of_fifty_blocks(log):
    folds = cross_fitting.fold_numbers(next(Sample.of(log).pieces(len(log))), len(log))
    assert folds.tolist() == [(row * 50 // 3000) % 3 for row in range(3000)]


def test_a_critic_never_sees_the_rows_that_it_predicts(log, settings):
    folds = cross_fitting.fold_numbers(next(Sample.of(log).pieces(len(log))), len(log))
    changed = manul.Log(log.contexts, log.actions, log.densities, np.where(folds == 1, 1.0, log.losses))
    assert trained(log, settings) == trained(changed, settings)
    assert trained(log, settings, fold=0) != trained(changed, settings, fold=0)


def test_the_cuts_of_the_log_change_nothing(log, settings):
    batches = [log.rows(slice(first, first + 77)) for first in range(0, len(log), 77)]
    assert trained(batches, settings) == trained(log, settings)


def test_every_row_is_learned_once_per_pass(log, settings):
    critic = settings.critic()
    cross_fitting.train(Sample.of(log), [critic], [None], SHUFFLED, settings)
    assert critic.report().rounds == 2 * len(log)


@pytest.mark.parametrize("stop", [1, 4, 7])
def test_training_goes_on_at_any_position(log, settings, stop):
    positions, critic = [], settings.critic()

    def learned(position, _):
        positions.append(position)
        if len(positions) == stop:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        cross_fitting.train(Sample.of(log), [critic], [1], SHUFFLED, settings, learned=learned)
    resumed = manul.loads(manul.dumps(critic))
    cross_fitting.train(Sample.of(log), [resumed], [1], SHUFFLED, settings, start=positions[-1])
    assert manul.dumps(resumed) == trained(log, settings)


def test_a_finished_training_has_nothing_left(log, settings):
    assert trained(log, settings, start=Position(2)) == manul.dumps(settings.critic())


def test_named_fields_are_learned_by_name(settings):
    kinds = np.array(["left", "right"] * 300)
    actions = np.random.default_rng(0).random(600)
    columns = {"kind": kinds, "action": actions, "density": np.ones(600), "loss": abs(actions - (kinds == "right"))}
    settings = CriticSettings(total=600, space=ActionSpace((0.0, 1.0)), losses=(0.0, 1.0), seed=0)
    critic = settings.critic()
    cross_fitting.train(Sample.of(manul.Log.from_table(columns)), [critic], [None], SHUFFLED, settings)
    assert critic.best({"kind": "left"}) < 0.3
    assert critic.best({"kind": "right"}) > 0.7
