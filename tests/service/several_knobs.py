"""Loops with several knobs for the tests: three of an offer, and what it is worth."""

KNOBS = {"price": [10, 50], "discount": [0, 0.3], "template": {"options": ["plain", "bold", "long"]}}
OFFERS = {"name": "offers", "actions": KNOBS}


def loss_of(action, context):
    """The best price grows with the first number of a context; bold is best, and discounts cost a little."""
    wanted = 20 + 10 * context[0]
    wrong = 0.3 * (action["template"] != "bold")
    return min(1.0, abs(action["price"] - wanted) / 40 + wrong + action["discount"])
