"""Writes what a version of manul writes, and what it says about it: the archives beside this file.

The archive of a commit was written by that commit, in its own worktree with its own build:

    git worktree add --detach ../old 1083949 && cd ../old
    python -m venv .venv && .venv/bin/pip install -e '.[dev]'
    PYTHONPATH=. .venv/bin/python <this file> 1083949 <folder of the archive>

An archive is never written again: later versions must read it as it is. `tests/test_old_versions.py` unpacks it, and asks
today's version what `said.json` answers.
"""

import asyncio
import json
import shutil
import sys
import tarfile
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

import manul
from tests.service.conftest import Service

ROUNDS = 60
LOOP_ROUNDS, AFTER = 30, 45.0  # decisions of a loop, one each second, and the seconds after them
KNOBS = {"price": [10, 50], "days": {"low": 1, "high": 14, "step": 1}, "template": {"options": ["plain", "bold"]}}
WAITING = {"name": "heat", "actions": [20, 70], "wait": 60, "default_loss": 1.0}
OFFERS = {"name": "offers", "actions": KNOBS}
TREES = {"name": "trees", "actions": [0, 1], "agent": {"kind": "cats", "leaves": 8, "bandwidth": 0.125}}
BEFORE_KNOBS = "2728813"  # no knobs, dates, rewards, rollouts and backups yet


def row(number):
    return [number % 7 / 7, number % 5 / 5 - 0.4, float(number % 2)]


def named(number, date):
    """A context with a text, a number, a flag and a date, some of them missing."""
    fields = {"city": ["Bath", "York"][number % 2], "size": number % 8 / 4, "new": number % 4 == 0}
    if date is not None:
        fields["day"] = date(datetime(2026, 1, 1, 9, 30, tzinfo=UTC) + timedelta(hours=31 * (number % 3)))
    if number % 6 == 5:
        fields["size"] = None
    if number % 9 == 4:
        del fields["city"]
    return fields


def loss_of(action, number):
    """In [0, 1]; for actions in [0, 1]."""
    return min(1.0, abs(action - 0.2 - number % 7 / 10))


def loss_of_knobs(action, number):
    away = abs(action["price"] - 20 - number % 7) / 40 + abs(action["days"] - 5) / 30
    return min(1.0, away + 0.3 * (action["template"] == "plain"))


def learned(agent, contexts, loss=loss_of, sign=1):
    """The agent after a round in each context, and its log."""
    decided = []
    for number, context in enumerate(contexts):
        decision = agent.decide(context)
        outcome = sign * loss(decision.action, number)
        agent.learn(context, decision, **{"loss" if sign == 1 else "reward": outcome})
        decided.append((decision, outcome))
    return agent, decided


def contexts_of(name, commit):
    """The contexts of a file; dates are texts where that version knew no dates."""
    if "named" not in name:
        return row
    date = datetime.isoformat if commit == BEFORE_KNOBS else lambda day: day
    return lambda number: named(number, date)


def decisions_of(agent, name, commit):
    """The next five decisions; a policy that only has densities gives those of five actions."""
    contexts = [contexts_of(name, commit)(number) for number in range(100, 105)]
    if name == "tree":
        actions = np.linspace(0.1, 0.9, 5)
        return [agent.actions_many(contexts).tolist(), agent.distributions(contexts).density(actions).tolist()]
    if name.startswith("rollout"):
        made = [agent.decide(context) for context in contexts]
        return [[each.action, each.density, each.arm] for each in made]
    made = [agent.decide_again(1000 + number, context) for number, context in enumerate(contexts)]
    return [[each.action, each.density] for each in made]


ESTIMATES = [("snips", "bootstrap"), ("snips", "normal"), ("ips", "normal"), ("ips", "sequence"), ("dr", "normal")]
LARGEST_WEIGHT = 200.0


def log_in(file, policy):
    """The log of a file; lines of text do not say the ranges of knobs."""
    given = {"knobs": policy.actions} if "knobs" in file.name and file.suffix != ".parquet" else {}
    return manul.Log.read(file, **given)


def estimates_of(log, policy, name):
    """What the estimators say of a policy, and of a constant on a log of one number; on all rows, and on complete ones."""
    logs = {"all": log}
    if "named" in name:
        logs["complete"] = log.rows(np.array([None not in fields.values() for fields in log.context_rows()]))
    said = {}
    for rows, part in logs.items():
        for estimator, interval in ESTIMATES:
            bound = {"largest_weight": LARGEST_WEIGHT} if interval == "sequence" else {}
            made = manul.evaluate(policy, part, estimator, interval, seed=3, **bound)
            said[f"{rows} {estimator} {interval}"] = [made.value, made.low, made.high]
        if "knobs" not in name:
            made = manul.evaluate(constant, part, "snips", "bootstrap", bandwidth=1 / 8, seed=3)
            said[f"{rows} constant"] = [made.value, made.low, made.high]
    return said


def constant(_context):
    return 0.5


def agents(commit):
    """Agents and policies by the names of their files, and the logs of some."""
    few = 26 if commit == BEFORE_KNOBS else 15  # Auto has learned, and its file is still small
    rows, names = ([contexts_of(kind, commit)(number) for number in range(ROUNDS)] for kind in ("rows", "named"))
    tree = {"leaves": 8, "bandwidth": 1 / 8}
    made = {
        "auto-rows": learned(manul.Auto(seed=1), rows[:few]),
        "auto-named": learned(manul.Auto(epsilon=0.05, seed=2), names[:few]),
        "cats-rows": learned(manul.Cats(**tree, half_life=50, seed=3), rows),
        "cats-named": learned(manul.Cats(**tree, epsilon=0.1, seed=4, table_bits=10), names),
        "adaptive-rows": learned(manul.AdaptiveCats(leaves=8, bandwidths=(1 / 4, 1 / 8), seed=5), rows),
        "mapped-rows": learned(manul.Mapped(agent=manul.Cats(**tree, seed=6), features=manul.maps.Crosses()), rows),
        "mapped-named": learned(
            manul.Mapped(agent=manul.Cats(**tree, seed=7, table_bits=10), features=manul.maps.Crosses()), names
        ),
    }
    if commit == BEFORE_KNOBS:
        return made
    knobs = {"price": (10, 50), "days": manul.Stepped(1, 14, 1), "template": manul.Choice(["plain", "bold"])}
    rollout = manul.Rollout(
        manul.Cats(**tree, seed=8), baseline=0.5, steps=(0.5, 1.0), least_decisions=10, budget=1e9, seed=8
    )
    return made | {
        "auto-knobs": learned(manul.Auto(actions=knobs, epsilon=0.2, seed=10), rows, loss_of_knobs),
        "cats-rewards": learned(manul.Cats(**tree, rewards=(-1.0, 0.0), seed=12), rows, sign=-1),
        "rollout-rows": learned(rollout, rows),
    }


def log_of(decided, contexts, **settings):
    """A log of what was decided: in columns, as people write them."""
    columns = {name: [each.get(name) for each in contexts] for name in contexts[0]}
    return manul.Log.from_table(
        columns
        | {
            "action": [decision.action for decision, _ in decided],
            "density": [decision.density for decision, _ in decided],
            "loss": [loss for _, loss in decided],
            "time": [1000.0 + number for number in range(len(decided))],
            "id": [f"n{number}" for number in range(len(decided))],
        },
        **settings,
    )


def logs(made, commit):
    """Logs by name; the policy of `judged_on` is judged on it."""
    ranges = {"action_range": (0.0, 1.0), "loss_range": (0.0, 1.0)}
    contexts = [contexts_of("named", commit)(number) for number in range(ROUNDS)]
    found = {
        "cats-rows": arrays(made["cats-rows"][1], **ranges),
        "cats-named": log_of(made["cats-named"][1], contexts, **ranges),
    }
    if commit == BEFORE_KNOBS:
        return found
    agent, decided = made["auto-knobs"]
    actions = {name: [decision.action[name] for decision, _ in decided] for name in KNOBS}
    by_knob = {name: [decision.densities[name] for decision, _ in decided] for name in KNOBS}
    rewards = {"action_range": (0.0, 1.0), "reward_range": (-1.0, 0.0), "rewards": True}
    return found | {
        "auto-knobs": arrays(decided, actions, knobs=agent.actions, densities_by_knob=by_knob, loss_range=(0.0, 1.0)),
        "cats-rewards": arrays([(each, -reward) for each, reward in made["cats-rewards"][1]], **rewards),
    }


def judged_on(log):
    """The file of the policy that is judged on a log; logs had numbers in place of flags, which an agent with flags refused."""
    return "optimized-named" if log == "cats-named" else log


def arrays(decided, actions=None, **settings):
    return manul.Log(
        np.array([row(number) for number in range(ROUNDS)], np.float32),
        np.array([decision.action for decision, _ in decided]) if actions is None else actions,
        np.array([decision.density for decision, _ in decided]),
        np.array([loss for _, loss in decided]),
        times=np.arange(ROUNDS) + 1000.0,
        **settings,
    )


def optimized(found, commit):
    """The best policy of a log, and a tree of classifiers."""
    grid = {} if commit == BEFORE_KNOBS else {"candidates": ["auto"]}
    if commit == BEFORE_KNOBS:
        grid["grid"] = manul.Grid(leaves=(4, 8), bandwidths=(1 / 4, 1 / 8))
    policy = manul.optimize(found["cats-named"], **grid).policy
    return {"optimized-named": policy, "tree": manul.train_tree(found["cats-rows"], leaves=4, bandwidth=1 / 8, jobs=1)}


def context_of_loop(loop, number):
    return row(number) if loop == "trees" else named(number, datetime.isoformat)


async def play(service, loops):
    """Decisions with ids of the caller; each third has no loss, and in the first loop gets its default after the wait."""
    for settings in loops:
        await service.post("", 201, **settings)
    for number in range(LOOP_ROUNDS):
        for loop in (each["name"] for each in loops):
            context = context_of_loop(loop, number)
            made = await service.post(f"/{loop}/decisions", context=context, id=f"d{number}")
            if number % 3:
                await service.post(f"/{loop}/decisions/d{number}/loss", loss=loss_of_loop(loop, made["action"], number))
        service.clock.time += 1
    service.clock.time += AFTER  # the waits of the first decisions are over
    service.engine.end_waits()
    async with asyncio.timeout(60):
        while not (await service.get("/heat"))["defaulted"]:
            await asyncio.sleep(0.01)
    await settled(service, loops)


async def settled(service, loops):
    """Waits until the models contain everything."""
    async with asyncio.timeout(60):
        for loop in (each["name"] for each in loops):
            while (status := await service.get(f"/{loop}"))["events"] > status["model"]:
                await asyncio.sleep(0.01)


def loss_of_loop(loop, action, number):
    if loop == "offers":
        return loss_of_knobs(action, number)
    return loss_of((action - 20) / 50 if loop == "heat" else action, number)


async def answers_of(service, loops):
    """What a service on the store says: the loops as they are, old decisions again, and new ones."""
    said = {}
    for loop in (each["name"] for each in loops):
        said[loop] = {"status": await service.get(f"/{loop}"), "report": await service.get(f"/{loop}/report")}
        for kind in "dn":
            said[loop][kind] = [
                await service.post(f"/{loop}/decisions", context=context_of_loop(loop, number), id=f"{kind}{number}")
                for number in range(5)
            ]
    return said


def loops_of(commit):
    """Two loops; the models of Auto are large, so one of them has a tree."""
    if commit == BEFORE_KNOBS:
        return [WAITING, TREES]
    return [WAITING | {"agent": {"kind": "cats", "leaves": 8, "bandwidth": 6.25}}, OFFERS]


async def served(store, loops):
    service = Service(store)
    service.clock.time += LOOP_ROUNDS + AFTER  # as at the end of `play`
    async with service.running():
        await settled(service, loops)
        said = await answers_of(service, loops)
        exported = {each["name"]: (await service.client.get(f"/v1/loops/{each['name']}/log")).content for each in loops}
    return said, exported


async def write_store(folder, commit):
    service, loops = Service(folder / "decisions.db"), loops_of(commit)
    async with service.running(snapshot_events=10**6):
        await play(service, loops)
    if commit != BEFORE_KNOBS:
        from manul.service.store.backup import backup

        backup(service.store, folder / "backup.zip")
    with tempfile.TemporaryDirectory() as copy:
        shutil.copy(folder / "decisions.db", copy)
        said, exported = await served(Path(copy, "decisions.db"), loops)
    for loop, content in exported.items():
        Path(folder, f"{loop}.parquet").write_bytes(content)
    return said


def write(folder, commit):
    made = agents(commit)
    found = logs(made, commit)
    saved = {name: agent for name, (agent, _) in made.items()} | optimized(found, commit)
    for name, agent in saved.items():
        agent.save(folder / f"{name}.manul")
    said = {"decisions": {}, "estimates": {}}
    for name in saved:
        said["decisions"][name] = decisions_of(manul.load(folder / f"{name}.manul"), name, commit)
    for name, log in found.items():
        for suffix in (".parquet", ".csv", ".jsonl"):
            log.write(folder / f"{name}{suffix}")
            policy = manul.load(folder / f"{judged_on(name)}.manul")
            read = log_in(folder / f"{name}{suffix}", policy)
            said["estimates"][f"{name}{suffix}"] = estimates_of(read, policy, name)
    said["loops"] = asyncio.run(write_store(folder, commit))
    (folder / "said.json").write_text(json.dumps(said))


def main(commit, target):
    with tempfile.TemporaryDirectory() as made, tarfile.open(target / f"{commit}.tar.xz", "w:xz", preset=9) as archive:
        write(Path(made), commit)
        for file in sorted(Path(made).iterdir()):
            if file.stat().st_size:  # not the lock of the store
                archive.add(file, file.name)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
