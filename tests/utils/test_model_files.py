"""A .manul file is read whole and as written, or not at all."""

import json
import struct
import types

import numpy as np
import pytest

import manul
from manul.agents.base import file_pieces, file_views
from manul.errors import FileError
from manul.utils import model_files
from tests.saved_agents import AGENTS, NAMED, NATIVE_NAMES, ROWS
from tests.saved_agents import saved as saved_bytes


@pytest.fixture
def saved(tmp_path):
    agent = manul.Cats(leaves=8, bandwidth=0.125)
    manul.simulate(agent, manul.worlds.linear(rounds=50, width=3))
    path = tmp_path / "agent.manul"
    agent.save(path)
    return path


def test_every_truncation_is_refused(saved):
    whole = saved.read_bytes()
    for length in range(0, len(whole), 97):
        saved.write_bytes(whole[:length])
        with pytest.raises(FileError, match=r"agent\.manul is damaged"):
            manul.load(saved)


def test_every_flipped_byte_is_refused(saved):
    whole = bytearray(saved.read_bytes())
    for position in range(0, len(whole), 13):
        whole[position] ^= 0x15
        saved.write_bytes(whole)
        with pytest.raises(FileError):
            manul.load(saved)
        whole[position] ^= 0x15


def test_header_that_claims_too_much_is_refused(tmp_path):
    path = tmp_path / "huge.manul"
    header = json.dumps({"nodes": {"dtype": "F32", "shape": [2**50], "data_offsets": [0, 2**52]}}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header)
    with pytest.raises(FileError, match=r"damaged or not a \.manul file"):
        manul.load(path)


def test_foreign_safetensors_file_is_refused(tmp_path):
    from safetensors.numpy import save_file

    save_file({"weights": np.zeros(3)}, tmp_path / "other.manul")
    with pytest.raises(FileError, match="is a safetensors file of another program"):
        manul.load(tmp_path / "other.manul")


def test_text_and_missing_files_are_refused(tmp_path):
    (tmp_path / "text.manul").write_text("hello, this is no model" * 10)
    for name in ("text.manul", "missing.manul"):
        with pytest.raises(FileError, match=r"not a \.manul file|no such file"):
            manul.load(tmp_path / name)


def test_newer_format_says_what_reads_it(saved, monkeypatch):
    monkeypatch.setattr(model_files, "FORMAT", 0)
    with pytest.raises(FileError, match=r"has format 1, but this version reads format 0\. Update manul"):
        manul.load(saved)


def test_arrays_that_do_not_fit_the_settings_are_refused(saved):
    kind, parameters, arrays = model_files.read(saved)
    model_files.write(saved, kind, {**parameters, "leaves": 16}, arrays)
    with pytest.raises(FileError, match="the arrays do not match the settings"):
        manul.load(saved)


def test_unwritable_folder_is_one_sentence(tmp_path):
    with pytest.raises(FileError, match="Cannot write"):
        manul.Cats(leaves=8, bandwidth=0.125).save(tmp_path / "missing" / "agent.manul")


@pytest.mark.parametrize("learner", [manul.learners.CoinBetting("margin"), manul.learners.AdaGrad()])
def test_settings_come_back(tmp_path, learner):
    agent = manul.Cats.paper(leaves=8, bandwidth=2.5, actions=(0, 32), losses=(-1, 1), learner=learner, seed=9)
    agent.save(tmp_path / "agent.manul")
    assert repr(manul.load(tmp_path / "agent.manul")) == repr(agent)


def test_files_have_the_layout_of_safetensors():
    from safetensors.numpy import save

    rng = np.random.default_rng(0)
    for sizes in ((), (0, 3), (1, 0, 2, 5, 1, 1, 4, 2, 2, 3, 1, 1, 2)):
        types = rng.permutation([*model_files.DTYPES])
        arrays = {
            f"{'é' * (n % 3)}{n}": rng.integers(0, 2, (n % 3, size)).astype(types[n]) for n, size in enumerate(sizes)
        }
        data = model_files.encode("Kind", {"a": 1}, arrays)
        size = int.from_bytes(data[:8], "little")
        header = json.loads(data[8 : 8 + size])
        theirs = save(arrays, metadata=header["__metadata__"])
        their_size = int.from_bytes(theirs[:8], "little")
        assert header == json.loads(theirs[8 : 8 + their_size])
        assert data[8 + size :] == theirs[8 + their_size :]


@pytest.mark.parametrize("entry", ["dtype", "shape", "data_offsets"])
@pytest.mark.parametrize(
    "value", [0, "I8", "F64", [], [-1], [True], [3.0], [2**64], [0, 2**63], [0, 24], [8, 32], [0, 16, 24]], ids=str
)
def test_a_forged_header_is_read_as_safetensors_reads_it(entry, value):
    from safetensors.numpy import load

    data = model_files.encode("Kind", {}, {"one": np.arange(3.0), "two": np.zeros((2, 0))})
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    header["one"][entry] = value
    text = json.dumps(header).encode()
    forged = struct.pack("<Q", len(text)) + text + data[8 + size :]
    try:
        refused = not load(forged)
    except Exception:
        refused = True
    with pytest.raises(FileError, match=r"not a \.manul file" if refused else "damaged|not match|unknown kind"):
        model_files.loads(forged)


PYTHON_PLAYERS = ("mapped", "smoothed-constant", "smoothed-tree", "pareto")
NATIVE = [
    name for name in (*AGENTS, *(f"{each}-named" for each in NATIVE_NAMES)) if not name.startswith(PYTHON_PLAYERS)
]


@pytest.mark.parametrize("name", NATIVE)
def test_the_pieces_of_an_agent_are_its_file_and_no_decision_changes_them(name, monkeypatch):
    monkeypatch.setattr(model_files, "PIECE", 1000)
    agent, contexts = manul.loads(saved_bytes(name)), NAMED if name.endswith("-named") else ROWS
    pieces = file_pieces(agent, file_views(agent))
    made = [next(pieces)]
    for number, context in enumerate(contexts):
        agent.decide_again(number, context)
        made += [piece for piece in [next(pieces, None)] if piece is not None]
    assert b"".join([*made, *pieces]) == saved_bytes(name)


def test_names_of_every_character_are_written_as_python_writes_them():
    agent = manul.Auto(seed=1)
    for text in ("é", "\N{GRINNING FACE}", '"\\/', "\x00\x1f\x7f\b\t\n\f\r", "\ud7ff\ue000\uffff"):
        agent.learn({text: text, "number": 1.0}, agent.decide({text: text}), loss=0.5)
    assert b"".join(file_pieces(agent, file_views(agent))) == manul.dumps(agent)


def test_texts_that_are_encoded_in_parts_are_those_of_one_part(monkeypatch):
    agent = manul.Auto(seed=1)
    agent.learn({'text "': "\N{GRINNING FACE}é\x1f\\" * 9}, agent.decide({"number": 1.0}), loss=0.5)
    whole = manul.dumps(agent)
    monkeypatch.setattr(model_files, "TEXT_PIECE", 7)
    assert manul.dumps(agent) == whole


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"hashes": "AAAA", "limit": "7", "repeated": 0, "contexts": true}',
        '{"hashes": "", "limit": "7", "repeated": 0, "contexts": true}',
        '{"hashes": "AQAAAAAAAAABAAAAAAAAAA==", "limit": "7", "repeated": 0, "contexts": true}',
        '{"hashes": "AQAAAAAAAAA=", "limit": "-1", "repeated": 0, "contexts": true}',
        '{"hashes": "AQAAAAAAAAA=", "limit": "7", "repeated": NaN, "contexts": true}',
    ],
)
def test_a_forged_sketch_of_the_training_is_refused(text):
    forged = model_files.encode(*model_files.contents(manul.Auto()), trained_on=types.SimpleNamespace(text=text))
    with pytest.raises(FileError, match="damaged"):
        manul.loads(forged)
