"""The picture of the dashboard in the documentation: python -m tests.service.picture docs/images/dashboard.png."""

import re
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

from tests.service.browser import browsing
from tests.service.processes import Process

ROUNDS, TOGETHER = 170, 20


def loss_of(action, context, rng):
    wanted = 50 - 1.2 * context["outdoor"] + (6 if context["sky"] == "grey" else 0)
    return float(min(1, abs(action - wanted) / 40 + 0.1 * rng.random()))


def live(service):
    """A house that is heated: some losses are reported too late, and some never."""
    rng, unreported = np.random.default_rng(1), []
    for _ in range(ROUNDS):
        outdoors, winds = rng.normal(8, 6, TOGETHER).round(2), rng.exponential(3, TOGETHER).round(2)
        skies = rng.choice(["grey", "blue", "rain"], TOGETHER)
        contexts = [
            {"outdoor": float(outdoor), "wind": float(wind), "sky": str(sky)}
            for outdoor, wind, sky in zip(outdoors, winds, skies, strict=True)
        ]
        asked = {"decisions": [{"context": context} for context in contexts]}
        made = service.ask("POST", "/v1/loops/heating/decisions/batch", asked)[1]["decisions"]
        losses = [
            {"id": each["id"], "loss": loss_of(each["action"], context, rng)}
            for each, context in zip(made, contexts, strict=True)
        ]
        first = int(rng.integers(0, 3)) if rng.random() < 0.4 else 0
        unreported += losses[:first]
        service.ask("POST", "/v1/loops/heating/losses", {"losses": losses[first:]})
        if len(unreported) > 20 and rng.random() < 0.4:
            service.ask("POST", "/v1/loops/heating/losses", {"losses": [unreported.pop(0)]})
        time.sleep(0.25)


def main(path):
    with tempfile.TemporaryDirectory() as folder, browsing() as browser:
        service = Process(folder)
        settings = {"name": "heating", "actions": [20, 70], "wait": 3, "default_loss": 0.5}
        service.ask("POST", "/v1/loops", settings)
        browser.open(f"http://127.0.0.1:{service.port}/#heating")
        caller = threading.Thread(target=live, args=[service])
        caller.start()
        browser.until(lambda: browser.text("[data-is=findings]").endswith("."), 60)
        browser.until(lambda: re.search(r"Learned\n(1,9|2,)", browser.text("[data-is=tiles]")), 60)
        browser.picture(path)
        caller.join()
        service.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
