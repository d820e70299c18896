"""Loops with rollouts in each state, reached within a few hundred decisions by losses that depend on the arm alone."""

import time

LOOP = {"actions": [0, 1], "agent": {"kind": "cats", "leaves": 8, "bandwidth": 0.1}}
PLAN = {"baseline": 0.5, "steps": [0.25, 0.5, 1], "least_decisions": 50}
STAYS = {"least_decisions": 1000}  # in its first step, whatever is proven
BETTER, WORSE = {"learner": 0, "baseline": 1}, {"learner": 1, "baseline": 0}


def start(service, name, plan=None, **loop):
    """A loop with a rollout."""
    assert service.ask("POST", "/v1/loops", {"name": name, **LOOP, **loop})[0] == 201
    status, answer = service.ask("PUT", f"/v1/loops/{name}/rollout", {**PLAN, **(plan or {})})
    assert status == 200, answer


def live(service, name, losses, count, *, together=50, kind="loss", report=True):
    """Decisions, and their losses by arm. Each batch is learned before the next, whose arms depend on it; the decisions of a step
    that is left say nothing about the next one."""
    for _ in range(0, count, together):
        asked = {"decisions": [{}] * together}
        made = service.ask("POST", f"/v1/loops/{name}/decisions/batch", asked)[1]["decisions"]
        reports = [{"id": each["id"], kind: losses[each["arm"]]} for each in made]
        if report:
            assert service.ask("POST", f"/v1/loops/{name}/losses", {"losses": reports})[0] == 200
            wait_until_learned(service, name)


def live_until(service, name, losses, holds, kind="loss"):
    """Decisions and losses until something holds of the rollout; all of them are learned, so that it does not move any more."""
    for _ in range(60):
        live(service, name, losses, 50, kind=kind)
        if holds(service.ask("GET", f"/v1/loops/{name}/rollout")[1]):
            return
    raise AssertionError(service.ask("GET", f"/v1/loops/{name}/rollout"))


def wait_until_learned(service, name):
    until = time.monotonic() + 120
    while (status := service.ask("GET", f"/v1/loops/{name}")[1])["model"] < status["events"]:
        assert time.monotonic() < until, status


def act(service, name, verb):
    assert service.ask("POST", f"/v1/loops/{name}/rollout/{verb}")[0] == 200


def waiting(service, name):
    start(service, name, STAYS)
    live(service, name, {"learner": 0.4, "baseline": 0.6}, 150)
    live(service, name, BETTER, 50, report=False)


def start_and_live(service, name, losses, reached, then=50):
    """A rollout that has reached a state, and some decisions after it."""
    start(service, name)
    live_until(service, name, losses, reached)
    live(service, name, losses, then)


def stepping_up(service, name):
    start_and_live(service, name, BETTER, lambda rollout: rollout["step"] == 2)


def paused(service, name):
    stepping_up(service, name)
    act(service, name, "pause")


def rolled_back(service, name):
    start_and_live(service, name, WORSE, lambda rollout: rollout["step"] == 0)


def aborted(service, name):
    stepping_up(service, name)
    act(service, name, "abort")


def done(service, name):
    start_and_live(service, name, BETTER, lambda rollout: rollout["status"] == "done", then=200)


def limited(service, name):
    start(service, name, {"budget": 5})
    live(service, name, BETTER, 100)
    live(service, name, BETTER, 200, report=False)


def rewarded(service, name):
    start(service, name, STAYS, losses=None, rewards=[0, 10])
    live(service, name, {"learner": 8, "baseline": 6}, 150, kind="reward")


STATES = {
    "waiting": waiting,
    "stepping up": stepping_up,
    "paused": paused,
    "rolled back": rolled_back,
    "aborted": aborted,
    "done": done,
}
