"""Any agent in any world: the loop in the core and the loop in Python give the same bytes."""

import numpy as np
import pytest

import manul
from manul import worlds
from manul.agents.player_host import host_of
from manul.errors import InputError
from tests.worlds.test_known import MAKERS

ROUNDS = 600


class Spoken:
    """Hides what the core could use: the loop has to ask round by round."""

    def __init__(self, agent):
        self.agent = agent
        self.actions = agent.actions

    def __getattr__(self, name):
        return getattr(self.agent, name)


class Countdown:
    """A world of the user's own: one context, fewer actions every round."""

    contexts = np.zeros((20, 1), np.float32)
    lows = np.zeros(20)
    highs = np.linspace(10.0, 5.0, 20)

    def __len__(self):
        return 20

    def loss(self, number, action):
        return abs(action - 2.0) / 10.0


def both_ways(world, **settings):
    agents = [manul.Cats(leaves=64, seed=3, **settings) for _ in range(2)]
    native, spoken = (manul.simulate(agent, world).log for agent in (agents[0], Spoken(agents[1])))
    return agents, native, spoken


@pytest.mark.parametrize("settings", [{}, {"actions": (-2.0, 5.7), "losses": (-1.0, 3.0)}], ids=["unit", "scaled"])
@pytest.mark.parametrize("name", MAKERS)
def test_both_loops_give_the_same_bytes(name, settings):
    agents, native, spoken = both_ways(MAKERS[name](rounds=ROUNDS), bandwidth=0.1, **settings)
    for column in ("actions", "densities", "losses"):
        assert getattr(native, column).tobytes() == getattr(spoken, column).tobytes()
    states = [host_of(agent).state() for agent in agents]
    assert all(states[0][key].tobytes() == states[1][key].tobytes() for key in states[0])


def test_narrowed_rounds_are_kept_and_logged():
    log = manul.simulate(manul.Cats(actions=(0, 32), leaves=64, bandwidth=2.0), worlds.ranges(rounds=ROUNDS)).log
    assert (log.lows <= log.actions).all()
    assert (log.actions <= log.highs).all()
    assert (log.highs - log.lows).min() >= 0.3 * 32
    assert log.split(0.25)[1].lows.tobytes() == log.lows[ROUNDS // 4 :].tobytes()


def test_a_world_of_the_users_own_is_played():
    agent = manul.Cats(actions=(0.0, 10.0), leaves=16, bandwidth=1.0)
    log = manul.simulate(agent, Countdown()).log
    assert (log.actions <= Countdown.highs).all()
    assert np.array_equal(log.losses, np.abs(log.actions - 2.0) / 10.0)


def test_native_and_other_agents_play_side_by_side():
    world = worlds.cliff(rounds=ROUNDS)
    alone = manul.simulate(manul.Cats(leaves=16, bandwidth=0.1), world).log.losses
    agents = [manul.Cats(leaves=16, bandwidth=0.1), Spoken(manul.Cats(leaves=16, bandwidth=0.1))]
    assert all(np.array_equal(alone, run.log.losses) for run in manul.worlds.simulate_many(agents, world))


def test_agents_with_different_ranges_meet_the_same_world():
    agents = [manul.Cats(actions=(0, span), leaves=16, bandwidth=span / 8) for span in (1.0, 32.0)]
    unit, wide = (run.log for run in manul.worlds.simulate_many(agents, worlds.valleys(rounds=ROUNDS)))
    assert np.array_equal(32 * unit.actions, wide.actions)
    assert np.allclose(unit.losses, wide.losses)


def test_progress_is_shown_when_asked_for(capsys):
    manul.simulate(Spoken(manul.Cats(leaves=16, bandwidth=0.1)), worlds.cliff(rounds=ROUNDS), progress=True)
    assert "600/600" in capsys.readouterr().err


def test_losses_that_the_agent_was_not_told_of_are_refused():
    agent = manul.Cats(leaves=16, bandwidth=0.1, losses=(0.0, 0.5))
    with pytest.raises(InputError, match=r"losses must include the world's range, \[0, 1\], got \(0, 0.5\)"):
        manul.simulate(agent, worlds.linear(rounds=10))
    assert host_of(agent).decisions == 0


def test_a_bandwidth_wider_than_a_narrowed_round_is_refused():
    agent = manul.Cats(leaves=16, bandwidth=0.4)
    with pytest.raises(InputError, match=r"within must be at least two bandwidths \(.*\) wide"):
        manul.simulate(agent, worlds.ranges(rounds=100))
