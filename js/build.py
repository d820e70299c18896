"""Builds js/dist/manul.wasm, and with `golden` also js/dist/golden.wasm, by the Clang of Zig: `python js/build.py`.

One translation unit each, without threads and exceptions, and with the vector instructions of WebAssembly. The compiler's
cache is in build/zig, so that what has not changed is not compiled again.
"""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OPTIONS = "-target wasm32-wasi -std=c++20 -O2 -msimd128 -mno-relaxed-simd -DNDEBUG -DMANUL_SIMD=baseline -DMANUL_STATIC"
# As in CMakeLists.txt: the same sums on every machine.
EXACT = "-ffp-contract=off -fno-math-errno -fno-trapping-math -Wall -Wextra -Werror -Wno-psabi"
# Both modules alike, so that they share one build of the C++ library, which takes most of the time.
STRIPPED = "-Wl,--strip-all"
# A library without main; JavaScript resets the stack after a call that failed.
LIBRARY = "-mexec-model=reactor -Wl,--export=__stack_pointer"
FUNCTIONS = ("open", "describe", "decide", "best", "learn", "read_decision", "save", "free_bytes")


def compile_wasm(name: str, *options: str) -> None:
    target = ROOT / "js" / "dist" / f"{name}.wasm"
    target.parent.mkdir(exist_ok=True)
    flags = [*OPTIONS.split(), *EXACT.split(), STRIPPED, *options, f"-I{ROOT / 'src' / 'core'}"]
    source = ROOT / "js" / "native" / f"{name}.cpp"
    cache = str(ROOT / "build" / "zig")
    environment = {"ZIG_GLOBAL_CACHE_DIR": cache, "ZIG_LOCAL_CACHE_DIR": cache, **os.environ}
    command = [sys.executable, "-m", "ziglang", "c++", *flags, str(source), "-o", str(target)]
    subprocess.run(command, check=True, cwd=ROOT, env=environment)


if __name__ == "__main__":
    exports = [f"-Wl,--export=manul_{name}" for name in FUNCTIONS] + ["-Wl,--export=malloc", "-Wl,--export=free"]
    compile_wasm("manul", *LIBRARY.split(), *exports)
    if "golden" in sys.argv:
        compile_wasm("golden")
