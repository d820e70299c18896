"""The printed table of candidates."""

from manul.offpolicy.optimization.results import Row, Table


def rows(count):
    return tuple(Row("Cats", 0.25, 4, 0.0, 0.0, float(n * 7 % count)) for n in range(count))


def test_the_ten_best_of_many_candidates_are_printed_best_first():
    head, *lines, last = str(Table(rows(40))).splitlines()
    assert head.split()[-1] == "objective"
    assert [float(line.split()[5]) for line in lines] == list(range(10))
    assert lines[0].endswith("<- lowest")
    assert last == "and 30 more candidates"


def test_the_chosen_candidate_is_always_printed():
    lines = str(Table(rows(40), chosen=3)).splitlines()
    assert [line for line in lines if line.endswith("<- chosen")] == [lines[11]]
    assert lines[-2] == "and 29 more candidates"
    assert lines[-1].startswith("Of candidates that this log cannot distinguish")


def test_few_candidates_are_printed_in_their_order():
    lines = str(Table(rows(10), (Row("logged", None, None, 0.5, 0.0, 0.5),))).splitlines()
    assert [float(line.split()[5]) for line in lines[1:11]] == [float(n * 7 % 10) for n in range(10)]
    assert lines[11].startswith("logged")
