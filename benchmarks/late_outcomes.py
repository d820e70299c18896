"""What it costs to wait for outcomes that come up to two weeks late, in the price and the bid tutorial.

    python -m benchmarks.late_outcomes [--seeds 3]

500 decisions a day for 40 days. `at once`: each outcome is known before the next decision. `all after two weeks`: as with a `wait`.
`each when it is known`: every outcome, good or bad, is known after its own delay, exponential with a mean of 4 days and at most two
weeks. Nobody can know the bad ones so early, so no correction for what is not known yet can do better. Shares are of the expected profit
`at once` in the same days.
"""

from __future__ import annotations

import argparse
import contextlib
import heapq
import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

import manul

mpl.use("agg")
SCRIPTS = Path(__file__).parent.parent / "examples" / "tutorials"
PER_DAY, WAIT, MEAN_DELAY = 500, 14.0, 4.0  # days
WINDOWS = ((0, 14), (14, 28), (30, 40))
Floats = Any


@dataclass(frozen=True)
class Market:
    """Contexts, what is learned of an action, and what actions are expected to earn."""

    contexts: list[Any]
    parts: Callable[[int, float], dict[str, Any]]
    profits: Callable[[Floats], Floats]
    settings: dict[str, Any]


def names_of(tutorial: str, name: str) -> dict[str, Any]:
    """What a tutorial defines up to the piece of code that defines a name."""
    from docs.tutorial_pages import read

    names: dict[str, Any] = {"__name__": "__main__"}
    code = [cell for cell in read((SCRIPTS / f"{tutorial}.py").read_text()) if cell.kind == "code"]
    with contextlib.redirect_stdout(io.StringIO()):
        for cell in code:
            exec(cell.source, names)
            if name in names:
                break
    return names


def prices() -> Market:
    shop = names_of("price", "visitors")

    def parts(number: int, price: float) -> dict[str, Any]:
        return {"bought": bool(shop["luck"][number] < shop["purchase_probability"](price, number))}

    outcome = manul.Sale(cost=shop["COST"])
    return Market(shop["visitors"], parts, shop["expected_profit"], {"actions": (20.0, 80.0), "outcome": outcome})


def bids() -> Market:
    broker = names_of("bids", "MODELLED")
    table = broker["market"]
    rivals = table.highest_rival.to_numpy()

    def parts(number: int, bid: float) -> dict[str, Any]:
        return {"won": bool(bid > rivals[number])}

    contexts = table[[*broker["KNOWN"], "predicted"]].assign(money=1.0).to_dict("records")

    def profits(played: Floats) -> Floats:
        return broker["expected_profit"](table, played).to_numpy()

    return Market(contexts, parts, profits, {"actions": (0.0, float(broker["HIGHEST"])), "outcome": broker["MODELLED"]})


MARKETS = {"prices": prices, "bids": bids}


def play(market: Market, delays: Floats, seed: int) -> Floats:
    """The expected profits of an agent that learns each outcome so many decisions later."""
    agent: Any = manul.Auto(**market.settings, seed=seed)
    actions, waiting = np.zeros(len(delays)), list[tuple[float, int, Any]]()
    for number, context in enumerate(market.contexts):
        decision = agent.decide(context)
        actions[number] = decision.action
        heapq.heappush(waiting, (number + delays[number], number, decision))
        while waiting and waiting[0][0] <= number:
            _, place, known = heapq.heappop(waiting)
            agent.learn(market.contexts[place], known, parts=market.parts(place, known.action))
    return market.profits(actions)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    seeds = range(1000, 1000 + parser.parse_args().seeds)
    print(f"{'':8} {'':22}", *(f"days {first + 1:2}-{last:2}" for first, last in WINDOWS))
    for name, make in MARKETS.items():
        market = make()
        count = len(market.contexts)
        own = np.minimum(np.random.default_rng(7).exponential(MEAN_DELAY, count), WAIT) * PER_DAY
        delays = {
            "at once": np.zeros(count),
            "all after two weeks": np.full(count, WAIT * PER_DAY),
            "each when it is known": own,
        }
        profits = {said: np.mean([play(market, each, seed) for seed in seeds], axis=0) for said, each in delays.items()}
        for said, each in profits.items():
            days = [slice(first * PER_DAY, last * PER_DAY) for first, last in WINDOWS]
            shares = [each[day].sum() / profits["at once"][day].sum() for day in days]
            print(f"{name:8} {said:22}", *(f"{share:10.3f}" for share in shares), flush=True)


if __name__ == "__main__":
    main()
