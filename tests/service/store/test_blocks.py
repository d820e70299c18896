"""Blocks of decisions hold exactly what was put in, and a damaged one is told from a whole one."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manul.service.store.blocks import DamagedBlock, DecisionRow, decode, encode, pack

NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
VALUES = NUMBERS | st.text() | st.booleans() | st.none() | st.integers(-(2**63), 2**63 - 1)
CONTEXTS = st.lists(NUMBERS, max_size=3) | st.dictionaries(st.text(), VALUES | st.lists(VALUES), max_size=3)


@given(st.lists(CONTEXTS, min_size=1, max_size=6))
def test_contexts_of_any_kinds_in_one_block_come_back_as_they_were(contexts):
    decided = [DecisionRow(7 + place, None, each, None, 0.5, 0.25, 1.5, 3) for place, each in enumerate(contexts)]
    assert decode(encode(pack(decided))).decisions() == decided


@given(st.lists(st.none() | st.floats(0, 0.25), min_size=1, max_size=6))
def test_floors_come_back_as_they_were(floors):
    decided = [
        DecisionRow(7 + place, None, [1.0], None, 0.5, 0.25, 1.5, 3, floor=floor) for place, floor in enumerate(floors)
    ]
    assert decode(encode(pack(decided))).decisions() == decided


def test_a_block_of_an_earlier_version_has_unknown_floors():
    *columns, floors = msgspec.msgpack.decode(whole([1.0]))
    earlier = decode(msgspec.msgpack.encode(columns))
    assert floors is None
    assert [each.floor for each in earlier.decisions()] == [None] * 3


def test_floors_of_another_length_are_damage():
    block = pack([DecisionRow(7, None, [1.0], None, 0.5, 0.25, 1.5, 3, floor=0.1)])
    with pytest.raises(DamagedBlock):
        decode(encode(msgspec.structs.replace(block, floors=bytes(7))))


def whole(context):
    return encode(pack([DecisionRow(7 + n, f"o{n}", context, (0.0, 1.0), 0.5, 0.25, 1.5, 3) for n in range(3)]))


@pytest.mark.parametrize("context", [[1.0, 2.0], {"sky": "grey"}, []], ids=str)
def test_a_block_that_is_cut_short_is_damaged(context):
    body = whole(context)
    for length in range(len(body)):
        with pytest.raises(DamagedBlock):
            decode(body[:length])


@given(place=st.integers(0), value=st.integers(0, 255), context=st.sampled_from([[1.0, 2.0], {"sky": "grey"}, []]))
def test_a_block_with_a_changed_byte_can_be_read_or_is_damaged(place, value, context):
    body = bytearray(whole(context))
    body[place % len(body)] = value
    try:
        decisions = decode(bytes(body)).decisions()
    except DamagedBlock:
        return
    assert len(decisions) == 3
