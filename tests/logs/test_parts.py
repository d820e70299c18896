"""Parts of outcomes in logs: what is refused, what older logs mean, and how a log is priced again."""

import numpy as np
import pandas
import pytest

import manul
from manul.errors import FileError, InputError, ManulError, ParameterError

ROWS = {"age": [3.0, 4.0], "action": [20.0, 30.0], "density": [0.1, 0.1], "reward": [0.0, 10.0]}
SALE = manul.Sale(cost=20.0)


def log_of(bought=(False, True), **given):
    given = {"outcome": SALE, "action_range": (10, 50)} | given
    return manul.Log({"age": [3.0, 4.0]}, [20.0, 30.0], [0.1, 0.1], parts={"bought": bought}, **given)


@pytest.mark.parametrize("text", ["1", "true", "True", "1.0"])
def test_a_table_of_others_has_parts_by_the_names_of_columns(text, tmp_path):
    (tmp_path / "log.csv").write_text(f"age,action,density,reward,part.bought\n3,20,.1,0,\n4,30,.1,10,{text}\n")
    frame = pandas.DataFrame(ROWS | {"part.bought": [None, True]})
    for log in (
        manul.Log.read(tmp_path / "log.csv"),
        manul.Log.from_pandas(frame),
        manul.Log.from_table(frame.to_dict("records")),
    ):
        np.testing.assert_array_equal(log.parts["bought"], [np.nan, 1.0])
        assert (log.outcome.formula, [*log.schema.fields]) == (None, ["age"])


@pytest.mark.parametrize("value", [2.0, -1.0, 0.5])
def test_a_value_that_a_part_cannot_have_is_refused(value, tmp_path):
    log_of().write(tmp_path / "log.csv")
    lines = (tmp_path / "log.csv").read_text().replace(",1,", f",{value},", 1)
    (tmp_path / "log.csv").write_text(lines)
    with pytest.raises(FileError, match=r"row 3: part.bought must be True or False, or missing, got"):
        manul.Log.read(tmp_path / "log.csv", like=log_of())
    with pytest.raises(InputError, match=r"the part 'bought' must be True or False, got .* in row 1"):
        log_of([True, value])


def test_a_log_with_a_field_of_that_name_is_as_it_was(tmp_path):
    """In logs without parts, a column of this name is a field of contexts."""
    log = manul.Log({"part.size": [3.0, 4.0]}, [20.0, 30.0], [0.1, 0.1], [0.0, 0.5])
    log.write(tmp_path / "log.parquet")
    assert [*manul.Log.read(tmp_path / "log.parquet").schema.fields] == ["part.size"]
    for suffix in (".csv", ".jsonl"):
        with pytest.raises(FileError, match=r"'part.size' has the name of a part's column. Rename it, or use .parquet"):
            log.write(tmp_path / f"log{suffix}")


def test_logs_of_different_formulas_are_not_joined(tmp_path):
    other = log_of().with_outcome(manul.Sale(cost=12.0))
    with pytest.raises(
        InputError, match=r"the same formula and parts, got '\(action - 20\) \* bought' and '\(action - 12\) \* bought'"
    ):
        manul.Log.concat([log_of(), other])
    joined = manul.Log.concat([log_of(), other.with_outcome(SALE)])
    assert joined.rewards.tolist() == [0.0, 10.0] * 2
    log_of().write(tmp_path / "log.csv")
    with manul.LogWriter(tmp_path / "log.csv", append=True) as writer:
        writer.write(log_of())
    assert manul.Log.read(tmp_path / "log.csv").parts["bought"].tolist() == [0, 1] * 2


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (
            lambda: log_of().with_outcome(manul.Bid()),
            "log has no part 'won', which the formula needs; it has only bought",
        ),
        (lambda: log_of().with_outcome(manul.Sale(cost="cost")), "The formula needs the number 'cost' in the context"),
        (lambda: log_of().with_outcome(manul.Outcome()), "outcome must have rewards, like the log, or a formula"),
        (lambda: log_of().with_outcome(manul.Sale(range=(0, 1))), r"reward must be in \[0, 1\], got 30 in row 1"),
        (lambda: log_of([None, True]), "parts must say 'bought', as in .* in row 0"),
        (lambda: log_of(outcome=None), "losses must be given, because no outcome with a formula"),
        (lambda: log_of([True]), "got 1 for 2|one length"),
        (lambda: manul.Log.from_table(ROWS).with_outcome(SALE), "it has no parts at all"),
        (lambda: manul.evaluate(lambda _: 20.0, log_of(), outcome=SALE, rewards=(0, 1)), "rewards and outcome exclude"),
    ],
)
def test_what_cannot_be_priced_is_refused_in_one_sentence(ask, message):
    with pytest.raises(ManulError, match=message):
        ask()


def test_an_outcome_without_a_formula_declares_the_range():
    plain = manul.Outcome("profit", better="high", range=(0, 10))
    log = log_of().with_outcome(plain)
    assert (log.reward_range, log.outcome, log.rewards.tolist()) == ((0, 10), plain, [0.0, 10.0])
    assert log.parts["bought"].tolist() == [0.0, 1.0]


def test_a_reward_that_was_reported_beside_the_parts_stays():
    log = log_of(losses=np.array([1.0, -7.5]))
    assert (log.rewards.tolist(), log.outcome) == ([-1.0, 7.5], SALE)
    assert log.with_outcome(SALE).rewards.tolist() == [0.0, 10.0]


def test_an_iterator_of_batches_is_priced_again():
    one = manul.evaluate(
        lambda _: 25.0, iter([log_of(), log_of()]), "ips", "normal", bandwidth=10.0, outcome=manul.Sale(range=(0, 50))
    )
    two = manul.evaluate(
        lambda _: 25.0, [log_of(), log_of()], "ips", "normal", bandwidth=10.0, outcome=manul.Sale(range=(0, 50))
    )
    assert one == two


def test_losses_without_parts_are_still_required():
    with pytest.raises(ParameterError, match="losses must be one number per row"):
        manul.Log([[1.0]], [1.0], [1.0])
