"""Everything in a `.manul` file is checked against its settings before it is used: any other file is refused in one sentence."""

import subprocess
import sys
from contextlib import suppress

import numpy as np
import pytest
from safetensors.numpy import save

import manul
from manul.errors import FileError, ManulError
from manul.utils import model_files
from tests.saved_agents import KINDS, saved


def parts(name):
    """The kind, parameters and arrays of a saved file, to be changed."""
    kind, parameters, arrays = model_files.decode(saved(name))
    return kind, parameters, {array: values.copy() for array, values in arrays.items()}


def refuse(kind, parameters, arrays):
    with pytest.raises(ManulError, match=r" (must|is|has) ") as refused:
        model_files.loads(model_files.encode(kind, parameters, arrays))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "name", [name for name in KINDS if name not in ("tree-policy", "mapped-transformer")]
)  # skops dates its bytes
def test_bytes_make_the_agent_that_its_file_makes(tmp_path, name):
    model_files.loads(saved(name)).save(tmp_path / "agent.manul")
    assert (tmp_path / "agent.manul").read_bytes() == saved(name)
    assert model_files.dumps(manul.load(tmp_path / "agent.manul")) == saved(name)


@pytest.mark.parametrize("name", ["auto-named", "adaptive-named", "cats-named", "mapped-crosses-named"])
@pytest.mark.parametrize(
    "columns",
    [{"5": 64}, {"5": 4_000_000_000}, {"5": -1}, {str(n): n % 64 for n in range(65)}, {"5": 1, "6": 1}, {"x": 1}, {"5": 0.5}, [7]],
)  # fmt: skip
def test_columns_outside_of_the_row_are_refused(name, columns):
    kind, parameters, arrays = parts(name)
    inside = parameters["agent"]["parameters"] if name.startswith("mapped") else parameters
    inside["names"]["columns"] = columns
    refuse(kind, parameters, arrays)


@pytest.mark.parametrize(
    "names",
    [7, [], {}, {"fields": {"a": "colour"}}, {"features": {"-1": "a"}}, {"features": {str(2**32): "a"}}, {"features": {"1": 2}},
     {"fields": {"\ud800": "text"}}, {"features": {"1": "\ud800"}}, {"fields": 7}, {"features": None}, {"columns": None}, {"more": 1}],
)  # fmt: skip
def test_names_that_no_agent_has_are_refused(names):
    kind, parameters, arrays = parts("auto-named")
    parameters["names"] = {**parameters["names"], **names} if isinstance(names, dict) and names else names
    refuse(kind, parameters, arrays)


# One that fades has the same arrays.
@pytest.mark.parametrize("name", [name for name in KINDS if name != "auto-fresh" and not name.endswith("-fading")])
def test_arrays_of_another_shape_type_or_name_are_refused(name):
    kind, parameters, arrays = parts(name)
    for array, values in arrays.items():
        if not values.size:
            continue
        with np.errstate(invalid="ignore"):
            others = [values.reshape(1, -1), values[:-1], values[:0], values.astype(np.int16)]
        others += [np.append(values, values[:1])] if values.dtype != np.uint8 else []  # a zip archive may have a rest
        others.append(values.view(f"i{values.itemsize}") if values.dtype.kind != "i" else values.astype("u1"))
        for other in others:
            refuse(kind, parameters, {**arrays, array: np.ascontiguousarray(other)})
        refuse(kind, parameters, {other: arrays[other] for other in arrays if other != array})
    refuse(kind, parameters, {**arrays, "more": np.zeros(1)})


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("value", [None, -1, 10**400, float("nan"), float("inf"), "text", [], {}, True, 1e300, 0.5])
def test_settings_that_cannot_be_are_refused_or_harmless(name, value):
    kind, parameters, arrays = parts(name)
    for setting in parameters:
        without = {other: parameters[other] for other in parameters if other != setting}
        for changed in ({**parameters, setting: value}, without):
            with suppress(ManulError):
                model_files.loads(model_files.encode(kind, changed, arrays))
    refuse(kind, {**parameters, "more": value}, arrays)


@pytest.mark.whole
@pytest.mark.parametrize("kind", ["Auto", "Cats", "AdaptiveCats", "DiscreteTree", "DiscreteLinear", "SmoothedGreedy"])
def test_a_width_beyond_the_file_takes_no_memory(tmp_path, kind):
    name = {"Auto": "auto", "Cats": "cats", "AdaptiveCats": "adaptive", "SmoothedGreedy": "smoothed-linear"}
    _, parameters, arrays = parts(name.get(kind, kind.replace("Discrete", "discrete-").lower()))
    for width in (10**6, 2**32 - 1, 2**32, 2**64):
        for kept in ({}, {"decisions": arrays["decisions"]}, arrays):
            path = tmp_path / f"{width}-{len(kept)}.manul"
            path.write_bytes(model_files.encode(kind, {**parameters, "width": width}, kept))
    grown = subprocess.run(
        [sys.executable, "-c", GROWTH, *map(str, tmp_path.iterdir())], capture_output=True, text=True
    )
    assert grown.returncode == 0, grown.stderr
    assert int(grown.stdout) < 50 * 2**20


GROWTH = """
import resource, sys, manul
manul.load  # and with it everything that loading imports
manul.Auto, manul.policies
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for path in sys.argv[1:]:
    try:
        manul.load(path)
    except manul.ManulError:
        pass
    else:
        raise SystemExit(path)
print(1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before))
"""


@pytest.mark.parametrize(
    ("name", "array", "value"),
    [
        ("auto", "units", np.nan), ("auto", "units", -1e300), ("auto", "units", np.inf), ("auto", "ensemble", 1e300),
        ("auto", "change", np.nan), ("auto", "monitor", np.inf), ("auto", "actions", 1e30),
        ("pareto-linear", "counts", 2**63), ("pareto-constant", "counts", 2),
        ("tree-policy", "sides", 7), ("tree-policy", "sides", -1), ("tree-policy", "sides", 2),
    ],
)  # fmt: skip
def test_counts_and_places_out_of_range_are_refused(name, array, value):
    kind, parameters, arrays = parts(name)
    arrays[array][:] = np.array(value).astype(arrays[array].dtype)
    refuse(kind, parameters, arrays)


@pytest.mark.parametrize(
    "text",
    ["", "7", "[]", "null", "{", '{"seed": 1}', "[" * 100_000, '{"a":' * 100_000, '{"seed": ' + "9" * 5000 + "}"],
    ids=range(9),
)
def test_settings_that_are_no_object_are_refused(text):
    header = {"format": "1", "kind": "Auto", "parameters": text}
    header["checksum"] = model_files._checksum(header, {})
    with pytest.raises(FileError, match=r"^file (is|has)"):
        model_files.loads(save({}, metadata=header))


@pytest.mark.parametrize("metadata", [{}, {"kind": "Auto"}, {"format": "1"}, {"format": "1", "kind": "Auto"}])
def test_files_without_a_whole_header_are_refused(metadata):
    with pytest.raises(FileError, match="model is"):
        model_files.loads(save({"weights": np.zeros(3)}, metadata=metadata), name="model")


@pytest.mark.parametrize("name", ["cats", "auto-fresh", "tree-policy"])
def test_bytes_are_cut_or_foreign(name):
    whole = saved(name)
    for data in (b"", b"\0" * 8, b"\xff" * 64, *(whole[:length] for length in range(0, len(whole), 97))):
        with pytest.raises(FileError, match=r"^file (is|has)"):
            model_files.loads(data)
