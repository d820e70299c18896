"""The recorded hashes of the core in WebAssembly: in Node, in wasmtime and in Chromium."""

import pytest
import wasmtime

from tests.golden import RECORDED
from tests.js.node import JS, node, serving
from tests.service import browser

pytestmark = pytest.mark.whole
GOLDEN = JS / "dist" / "golden.wasm"


@pytest.fixture(scope="module")
def recorded():
    assert GOLDEN.exists(), "no js/dist/golden.wasm; build it with make js"
    return RECORDED.read_text(encoding="utf-8")


def test_the_hashes_are_equal_in_node(recorded):
    assert node("test/golden.js") == recorded


def test_the_hashes_are_equal_in_wasmtime(recorded, tmp_path):
    engine = wasmtime.Engine()
    store, linker, wasi = wasmtime.Store(engine), wasmtime.Linker(engine), wasmtime.WasiConfig()
    linker.define_wasi()
    wasi.stdout_file = str(tmp_path / "printed")
    store.set_wasi(wasi)
    instance = linker.instantiate(store, wasmtime.Module.from_file(engine, str(GOLDEN)))
    instance.exports(store)["_start"](store)
    assert (tmp_path / "printed").read_text() == recorded


def test_the_hashes_are_equal_in_chromium(recorded):
    assert not browser.missing(), browser.missing()
    with serving(JS) as (address, _), browser.browsing() as page:
        page.open(f"{address}/test/golden.html")
        assert page.until(lambda: page.text("pre"), 300).strip() == recorded.strip()
