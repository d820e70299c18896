"""The picture of the dashboard of several knobs: python -m tests.service.picture_of_knobs docs/images/dashboard-knobs.png."""

import re
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from tests.service.browser import browsing
from tests.service.processes import Process
from tests.service.several_knobs import OFFERS

ROUNDS, TOGETHER = 150, 20
TEMPLATES = {"SE": "bold", "NO": "bold", "DK": "long"}


def loss_of(action, context, rng):
    wanted = 18 + 2 * context["visits"] + (8 if context["country"] == "NO" else 0)
    price = action["price"] * (1 - action["discount"])
    wrong = 0.25 * (action["template"] != TEMPLATES[context["country"]])
    return float(min(1, abs(price - wanted) / 40 + 0.3 * action["discount"] + wrong + 0.1 * rng.random()))


def live(service):
    """A shop that sets a price, a discount and a template for each visitor."""
    rng = np.random.default_rng(1)
    for _ in range(ROUNDS):
        visits, countries = (
            rng.exponential(3, TOGETHER).round(2).tolist(),
            rng.choice(list(TEMPLATES), TOGETHER).tolist(),
        )
        contexts = [{"visits": each, "country": country} for each, country in zip(visits, countries, strict=True)]
        asked = {"decisions": [{"context": context} for context in contexts]}
        made = service.ask("POST", "/v1/loops/offers/decisions/batch", asked)[1]["decisions"]
        losses = [
            {"id": each["id"], "loss": loss_of(each["action"], context, rng)}
            for each, context in zip(made, contexts, strict=True)
        ]
        service.ask("POST", "/v1/loops/offers/losses", {"losses": losses})
        time.sleep(0.1)


def main(path):
    with tempfile.TemporaryDirectory() as folder, browsing() as browser:
        service = Process(folder)
        service.ask("POST", "/v1/loops", OFFERS)
        live(service)
        browser.open(f"http://127.0.0.1:{service.port}/#offers")
        browser.until(lambda: re.search(r"Learned\n3,000", browser.text("[data-is=tiles]")), 60)
        browser.until(lambda: "all decisions" in browser.text("[data-is=candidates]"), 60)
        browser.picture(path)
        print(browser.text("[data-is=candidates]"), browser.text("[data-is=findings]"), browser.complaints(), sep="\n")
        service.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
