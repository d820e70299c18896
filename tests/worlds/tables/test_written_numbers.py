"""Numbers as people write them are found in columns of text, and codes are not taken for numbers."""

from collections import Counter

import pytest

from manul.worlds.tables.written_numbers import find_numbers

QUANTITIES = [
    ["€ 9.50", "€ -0.28", "€ 3"],
    ["EUR 9.50", "EUR 1"],
    ["US$ 5", "US$ 12.50"],
    ["CHF 1'200.00", "CHF 30"],
    ["$(3.00)", "-$5.00", "$1"],
    ["1.234,50 €", "3,99 €"],
    ["12,-", "5,50"],
    ["19.5 km", "3 km"],
    ["16GB", "8GB"],
    ["100W", "60W"],
    ["120 m²", "85 m2"],
    ["21 °C", "\u22123 °C"],
    ["500 g", "1.5 kg"],
    ["1.2M", "300K", "45K"],
    ["12%", "3 %"],
    ["(1,200.00)", "300.00"],
    ["12.50-", "3.00"],
    ["1 234 567", "12 000"],
    ["1\u00a0234,5", "3"],
    ["12,34,567", "5,00,000"],
    ["3 rooms", "1 room", "2 rooms"],
    ["£12.50 per person", "£3 per person", "£9 per person"],
    ["0,1", "0,25"],
]
CODES = [
    ["A12", "B7", "C9"],
    ["5-10", "11-20"],
    ["5\u201310", "11\u201320"],
    ["12:30", "1:45"],
    ["10 am", "9 am", "8 am"],
    ["1.2.3", "10.0.1"],
    ["192.168.1.10", "10.0.0.1"],
    ["2XL", "3XL", "4XL"],
    ["4th", "5th", "6th"],
    ["555 123 456", "555 987 654"],
    ["+49 30 577221", "+49 40 1234"],
    ["030 123 456", "040 222 333"],
    ["1234 AB", "9999 CD"],
    ["SW1A 1AA", "E1 6AN"],
    ["12A", "12B", "14C", "3D"],
    ["12", "7", "3a", "5d"],
    ["007", "012"],
    ["Q1", "Q2", "Q3"],
    ["42 EU", "43 EU", "44 EU"],
    ["1/2", "3/4"],
    ["12 angry men", "7 samurai", "5 friends"],
    ["<5", ">10"],
    ["1080p", "720p"],
    ["1", "X", "2"],
    ["2024 Q1", "2024 Q2"],
    ["DE123", "DE456"],
]


@pytest.mark.parametrize("texts", QUANTITIES, ids=lambda texts: texts[0])
def test_numbers_are_found(texts):
    found = find_numbers(Counter(texts))
    assert (found.rows, found.others) == (len(texts), ())


@pytest.mark.parametrize("texts", CODES, ids=lambda texts: texts[0])
def test_codes_are_no_numbers(texts):
    assert find_numbers(Counter(texts)) is None


@pytest.mark.parametrize("odd", ["free", "on request", "3a", "5-10"])
def test_a_few_other_texts_do_not_hide_the_numbers(odd):
    found = find_numbers(Counter([odd, *(f"{n}.5" for n in range(20))]))
    assert (found.rows, found.others) == (20, (odd,))


def test_units_of_different_sizes_are_counted():
    assert find_numbers(Counter(["90 min", "2 h", "3 h"])).units == 2
    assert find_numbers(Counter(["1 room", "2 rooms", "3 rooms"])).units == 1
