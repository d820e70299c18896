"""The picture of the card of a budget: python -m tests.service.picture_of_budget docs/images/dashboard-budget.png."""

import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from tests.service.browser import browsing
from tests.service.processes import Process
from tests.service.test_budgets import ADS

DAY, DAYS, UNTIL = 400, 4, 260
LOOP = {"name": "ads", **ADS, "spend_at_most": ["won * action", 600.0, DAY], "keep": ["won", ">=", 0.25]}


def live(service):
    """A broker whose rivals bid less in the last third of each period."""
    rng = np.random.default_rng(1)
    for number in range(DAYS * DAY + UNTIL):
        worth = 10 * float(np.exp(rng.normal(0, 0.3)))
        evening = number % DAY > 0.7 * DAY
        context = {"insured": round(worth, 1), "evening": evening}
        made = service.ask("POST", "/v1/loops/ads/decisions", {"context": context})[1]
        rival = 0.6 * worth * (0.6 if evening else 1.0) * float(np.exp(rng.logistic() / 5))
        parts = {"won": True, "value": worth * float(rng.gamma(4, 0.25))} if made["action"] > rival else {"won": False}
        service.ask("POST", f"/v1/loops/ads/decisions/{made['id']}/loss", {"parts": parts})


def main(path):
    with tempfile.TemporaryDirectory() as folder, browsing() as browser:
        service = Process(folder)
        assert service.ask("POST", "/v1/loops", LOOP)[0] == 201
        live(service)
        time.sleep(1)
        browser.open(f"http://127.0.0.1:{service.port}/#ads")
        browser.until(lambda: "won * action" in browser.text("[data-is=budget-about]"), 60)
        browser.settle()
        card = browser.find("[data-is=limits]")
        assert card.screenshot(str(path))
        print(service.ask("GET", "/v1/loops/ads")[1]["budget"], browser.complaints(), sep="\n")
        service.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
