"""The printed table of optimization."""

from manul.offpolicy.optimization.results import Row, Table


def rows(count):
    return tuple(Row("Cats", 0.25, 4, 0.1 * number, 0.0, 0.1 * number) for number in range(count, 0, -1))


def test_of_a_long_table_the_ten_best_rows_are_printed_lowest_first():
    lines = str(Table(rows(30))).splitlines()
    assert len(lines) == 12
    assert lines[1].endswith("0.10000  <- lowest")
    assert lines[10].endswith("1.00000")
    assert lines[11] == "and 20 more candidates with higher objectives"


def test_the_chosen_row_is_printed_even_if_it_is_not_among_the_best():
    lines = str(Table(rows(30), chosen=0)).splitlines()
    assert lines[11].endswith("3.00000  <- chosen")
    assert lines[12] == "and 19 more candidates with higher objectives"


def test_a_short_table_keeps_its_order():
    assert str(Table(rows(3))).splitlines()[3].endswith("<- lowest")
