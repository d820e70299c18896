"""The picture of the card of a rollout: python -m tests.service.picture_of_rollout docs/images/dashboard-rollout.png."""

import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from tests.service.browser import browsing
from tests.service.processes import Process

MOST_ROUNDS, MORE_ROUNDS, TOGETHER = 260, 6, 25
LOOP = {"name": "heating", "actions": [20, 70]}
PLAN = {"baseline": 42, "steps": [0.1, 0.5, 1]}


def loss_of(action, context, rng):
    wanted = 50 - 1.2 * context["outdoor"] + (6 if context["sky"] == "grey" else 0)
    return float(min(1, abs(action - wanted) / 40 + 0.1 * rng.random()))


def live(service, rounds, ends=lambda _: False):
    """A house with a constant temperature, from which an agent takes over."""
    rng = np.random.default_rng(1)
    for _ in range(rounds):
        outdoors, skies = rng.normal(8, 6, TOGETHER).round(2).tolist(), rng.choice(["grey", "blue"], TOGETHER).tolist()
        contexts = [{"outdoor": outdoor, "sky": sky} for outdoor, sky in zip(outdoors, skies, strict=True)]
        asked = {"decisions": [{"context": context} for context in contexts]}
        made = service.ask("POST", "/v1/loops/heating/decisions/batch", asked)[1]["decisions"]
        losses = [
            {"id": each["id"], "loss": loss_of(each["action"], context, rng)}
            for each, context in zip(made, contexts, strict=True)
        ]
        service.ask("POST", "/v1/loops/heating/losses", {"losses": losses})
        time.sleep(0.15)
        if ends(service.ask("GET", "/v1/loops/heating/rollout")[1]):
            return


def main(path):
    with tempfile.TemporaryDirectory() as folder, browsing() as browser:
        service = Process(folder)
        service.ask("POST", "/v1/loops", LOOP)
        service.ask("PUT", "/v1/loops/heating/rollout", PLAN)
        live(service, MOST_ROUNDS, lambda rollout: rollout["step"] == 2)
        live(service, MORE_ROUNDS)
        browser.open(f"http://127.0.0.1:{service.port}/#heating")
        browser.until(lambda: browser.text("[data-is=rollout-state]") == "stepping up", 60)
        browser.settle()
        card = browser.find("[data-is=rollout]")
        assert card.screenshot(str(path))
        print(service.ask("GET", "/v1/loops/heating/rollout")[1]["sentence"], browser.complaints(), sep="\n")
        service.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
