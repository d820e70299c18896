"""Rivals of other libraries learn in a market, or say what to install."""

import numpy as np
import pytest
from benchmarks import library_rivals
from benchmarks.markets import MARKETS


def test_the_thompson_notebook_learns_which_prices_are_too_high():
    market = MARKETS["pricing"](3, 400)
    regrets = market.regrets(library_rivals.play_thompson(market, 0))
    assert regrets[-100:].mean() < 0.6 * regrets[:100].mean()


def test_a_bid_is_worth_the_mean_value_of_won_auctions_minus_itself():
    margin = library_rivals.Margin(MARKETS["bidding"](3, 10), np.array([1.0, 2.0]))
    for parts in ({"won": True, "value": 4.0}, {"won": False}):
        margin.add(parts)
    assert margin().tolist() == [11.0, 10.0]  # the mean of 4 and of the first guess, 20


def test_a_library_that_is_missing_is_named_with_what_installs_it():
    with pytest.raises(
        ModuleNotFoundError, match=r"nowhere is not installed. Install it: pip install 'manul\[rivals\]'"
    ):
        library_rivals._library("nowhere")
