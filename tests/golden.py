"""The golden hashes of the core: the same for every instruction set, processor, compiler and system that this machine offers.

python -m tests.golden              # builds tests/golden.cpp for all of them, and compares what it prints with tests/golden.txt
python -m tests.golden PROGRAM      # compares what a program prints that was built elsewhere
python -m tests.golden --record     # writes tests/golden.txt, at a commit whose decisions are right
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
RECORDED = ROOT / "tests" / "golden.txt"
SETS = ("baseline", "avx2", "avx512")
NOT_HERE = "supported here"  # how the program ends if the processor lacks an instruction set


class Platform(NamedTuple):
    name: str
    compiler: str
    options: tuple[str, ...] = ()  # of CMake
    runner: tuple[str, ...] = ()  # an emulator
    sets: tuple[str, ...] = ("baseline",)

    def missing(self) -> list[str]:
        return [program for program in (self.compiler, *self.runner[:1]) if shutil.which(program) is None]


def for_target(system: str, processor: str) -> tuple[str, ...]:
    return (f"-DCMAKE_SYSTEM_NAME={system}", f"-DCMAKE_SYSTEM_PROCESSOR={processor}")


PLATFORMS = (
    Platform("gcc", "g++", sets=SETS),
    Platform("clang", "clang++", sets=SETS),
    Platform(
        "aarch64",
        "aarch64-linux-gnu-g++",
        for_target("Linux", "aarch64"),
        ("qemu-aarch64-static", "-L", "/usr/aarch64-linux-gnu"),
    ),
    # Without AVX: this compiler does not align the stack for it (GCC bug 54412).
    Platform(
        "windows",
        "x86_64-w64-mingw32-g++-posix",
        (*for_target("Windows", "x86_64"), "-DCMAKE_EXE_LINKER_FLAGS=-static"),
        ("wine",),
    ),
)


def build(platform: Platform) -> Path:
    """The program for a platform, built with CMake."""
    folder = ROOT / "build" / "golden" / platform.name
    settings = (
        "-DCMAKE_BUILD_TYPE=Release",
        "-DMANUL_MODULE=OFF",
        "-DMANUL_C_LIBRARY=OFF",
        "-DMANUL_GOLDEN=ON",
        "-DMANUL_WERROR=ON",
    )
    configure = ("cmake", "-S", ROOT, "-B", folder, *settings, f"-DCMAKE_CXX_COMPILER={platform.compiler}")
    for command in ((*configure, *platform.options), ("cmake", "--build", folder, "--parallel", "2")):
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return next(path for path in (folder / "golden", folder / "golden.exe") if path.exists())


def hashes(program: Path, instruction_set: str, runner: tuple[str, ...] = ()) -> str:
    """What the program prints, or `NOT_HERE`."""
    environment = {**os.environ, "MANUL_SIMD": instruction_set}
    ran = subprocess.run((*runner, program), env=environment, capture_output=True, text=True)
    if ran.returncode != 0 and NOT_HERE in ran.stderr:
        return NOT_HERE
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.replace("\r", "")


def compare(program: Path, sets: tuple[str, ...] = SETS, runner: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """The result of each instruction set, in words."""
    for instruction_set in sets:
        found = hashes(program, instruction_set, runner)
        differing = set(found.splitlines()) ^ set(RECORDED.read_text(encoding="utf-8").splitlines())
        result = "differs: " + ", ".join(sorted({line.split()[0] for line in differing})) if differing else "equal"
        yield instruction_set, "not tried: the processor lacks it" if found == NOT_HERE else result


def compare_all() -> Iterator[tuple[str, str]]:
    for platform in PLATFORMS:
        if platform.missing():
            yield platform.name, f"not tried: no {' and no '.join(platform.missing())}"
            continue
        for instruction_set, result in compare(build(platform), platform.sets, platform.runner):
            yield f"{platform.name} {instruction_set}", result


def main(*arguments: str) -> int:
    if arguments == ("--record",):
        RECORDED.write_text(hashes(build(PLATFORMS[0]), "baseline"), encoding="utf-8")
        return 0
    worst = 0
    for name, result in compare(Path(arguments[0])) if arguments else compare_all():
        print(f"{name}: {result}", flush=True)
        worst |= result.startswith("differs")
    return worst


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
