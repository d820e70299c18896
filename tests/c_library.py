"""The C library, through ctypes: the shared library of `src/core/c_api` that `make .venv/dev` builds."""

import ctypes as c
import json
import os
import sys
from functools import cache
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parent.parent


class Error(c.Structure):
    _fields_ = (("sentence", c.c_char * 512), ("field", c.c_char * 128))


class Context(c.Structure):
    _fields_ = (("json", c.c_char_p), ("row", c.POINTER(c.c_double)), ("size", c.c_size_t))


class Value(c.Structure):
    _fields_ = (("value", c.c_double), ("option", c.c_char_p), ("density", c.c_double))


class Drawn(c.Structure):
    _fields_ = (
        ("number", c.c_uint64),
        ("density", c.c_double),
        ("floor", c.c_double),
        ("low", c.c_double),
        ("high", c.c_double),
        ("size", c.c_size_t),
        ("values", Value * 16),
    )


class Failed(Exception):  # noqa: N818
    """What the library said."""

    def __init__(self, error):
        super().__init__(error.sentence.decode())
        self.field = error.field.decode()


def library_path():
    """The shared library: of this Python's build, or the one in the environment variable MANUL_C_LIBRARY."""
    if given := os.environ.get("MANUL_C_LIBRARY"):
        return Path(given)
    found = sorted(ROOT.glob(f"build/cp{sys.version_info.major}{sys.version_info.minor}-*/libmanul.*"))
    assert found, "no C library; build it with make .venv/dev"
    return found[0]


@cache
def library():
    loaded = c.CDLL(str(library_path()))
    loaded.manul_open.restype = c.c_void_p
    loaded.manul_open.argtypes = (c.c_char_p, c.c_size_t, c.POINTER(Error))
    loaded.manul_free.argtypes = (c.c_void_p,)
    loaded.manul_describe.restype = c.c_char_p
    loaded.manul_describe.argtypes = (c.c_void_p,)
    out = (c.POINTER(Drawn), c.POINTER(Error))
    loaded.manul_decide.argtypes = (c.c_void_p, Context, c.c_char_p, c.POINTER(c.c_uint64), *out)
    loaded.manul_best.argtypes = (c.c_void_p, Context, c.c_char_p, *out)
    loaded.manul_learn.argtypes = (c.c_void_p, Context, c.POINTER(Drawn), c.c_double, c.POINTER(Error))
    loaded.manul_read_decision.argtypes = (c.c_void_p, c.c_char_p, c.c_char_p, c.c_double, *out)
    loaded.manul_save.argtypes = (
        c.c_void_p,
        c.POINTER(c.POINTER(c.c_ubyte)),
        c.POINTER(c.c_size_t),
        c.POINTER(Error),
    )
    loaded.manul_free_bytes.argtypes = (c.POINTER(c.c_ubyte),)
    return loaded


class CAgent:
    """An agent of the C library; contexts are JSON values, or arrays of numbers."""

    def __init__(self, data):
        self.error = Error()
        self.handle = library().manul_open(data, len(data), self.error)
        if not self.handle:
            raise Failed(self.error)
        self.about = json.loads(library().manul_describe(self.handle))

    def __del__(self):
        library().manul_free(self.handle)

    def _call(self, function, *arguments):
        if getattr(library(), function)(self.handle, *arguments, self.error):
            raise Failed(self.error)

    def decide(self, context, within=None, seed=None):
        drawn = Drawn()
        number = None if seed is None else c.c_uint64(seed)
        self._call("manul_decide", context_of(context), text(within), number, drawn)
        return drawn

    def best(self, context, within=None):
        drawn = Drawn()
        self._call("manul_best", context_of(context), text(within), drawn)
        return self.action(drawn)

    def learn(self, context, drawn, outcome):
        self._call("manul_learn", context_of(context), drawn, outcome)

    def read_decision(self, action, density, within=None):
        drawn = Drawn()
        self._call("manul_read_decision", text(action), text(within), density, drawn)
        return drawn

    def save(self):
        data, size = c.POINTER(c.c_ubyte)(), c.c_size_t()
        self._call("manul_save", data, size)
        saved = c.string_at(data, size.value)
        library().manul_free_bytes(data)
        return saved

    def action(self, drawn):
        """The action of a decision, as Python has it."""
        values = [each.value if each.option is None else json.loads(each.option) for each in drawn.values[: drawn.size]]
        return dict(zip(self.about["knobs"], values, strict=True)) if self.about["knobs"] != [""] else values[0]


def text(value):
    return value if value is None or isinstance(value, bytes) else json.dumps(value).encode()


def context_of(context):
    if isinstance(context, np.ndarray):
        row = np.ascontiguousarray(context, dtype=np.float64)
        return Context(None, row.ctypes.data_as(c.POINTER(c.c_double)), len(row))
    data = context if isinstance(context, bytes) else json.dumps(context).encode()
    return Context(data, None, len(data))
