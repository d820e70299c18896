"""Ready-made outcomes: what a sale earns at a price, and what an auction earns with a bid."""

from __future__ import annotations

from manul.errors import ParameterError
from manul.outcomes import AnyRange, Outcome, Wait
from manul.utils.formulas import Formula
from manul.utils.validation import check_number


def Sale(  # noqa: N802 - an outcome, made like one
    *,
    cost: float | str = 0.0,
    units: bool = False,
    price: str = "action",
    range: AnyRange = "auto",  # noqa: A002 - as in Outcome
    wait: Wait | None = None,
) -> Outcome:
    """The profit of an offer at a price: the price less the `cost` if it was bought; with `units`, for each unit that was.

    `learn` is told parts={"bought": True}, or parts={"units": 3}. `cost` is a number, or the name of a number in the context.
    `price` is the knob that is the price, if there are several. `range` and `wait` are those of `Outcome`.

    >>> Sale(cost=20.0).formula, Sale(cost="cost", units=True, price="price").formula
    ('(action - 20) * bought', '(price - cost) * units')
    """
    part = "units" if units else "bought"
    margin = _knob("price", price) if cost == 0 else f"({_knob('price', price)} - {_cost(cost)})"
    return Outcome(
        "profit",
        better="high",
        range=range,
        wait=wait,
        formula=f"{margin} * {part}",
        parts={part: "count" if units else "yes/no"},
        hints={part: "falls"},
    )


def Bid(  # noqa: N802 - an outcome, made like one
    *,
    bid: str = "action",
    range: AnyRange = "auto",  # noqa: A002 - as in Outcome
    wait: Wait | None = None,
) -> Outcome:
    """The profit of a bid in an auction whose winner pays the bid: the value less the bid if it won, and otherwise 0.

    `learn` is told parts={"won": True, "value": 12.3}, or parts={"won": False}. `bid` is the knob that is the bid, if there are
    several. `range` and `wait` are those of `Outcome`.

    >>> Bid().formula
    '(value - action) * won'
    """
    return Outcome(
        "profit",
        better="high",
        range=range,
        wait=wait,
        formula=f"(value - {_knob('bid', bid)}) * won",
        parts={"won": "yes/no", "value": "amount"},
        hints={"won": "rises"},
    )


def _knob(what: str, name: str) -> str:
    if not isinstance(name, str) or not name:
        raise ParameterError(f"{what} must be the name of a knob, got {name!r}.", what)
    return str(Formula("name", (), name))


def _cost(cost: float | str) -> str:
    if isinstance(cost, str):
        if not cost:
            raise ParameterError("cost must be a number or the name of a field, got ''.", "cost")
        return str(Formula("name", (), cost))
    return str(Formula("number", (), check_number("cost", cost, -1e300, 1e300, "Try 20.0.")))
