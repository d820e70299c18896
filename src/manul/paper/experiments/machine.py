"""The machine that an experiment ran on."""

from __future__ import annotations

import os
import platform
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def describe() -> dict[str, str]:
    """Describe the processor, cores, memory, system and versions.

    >>> "processor" in describe()
    True
    """
    versions = {"manul": version("manul"), "Python": platform.python_version(), "NumPy": version("numpy")}
    with suppress(PackageNotFoundError):
        versions["Vowpal Wabbit"] = version("vowpalwabbit")
    return {
        "processor": _processor(),
        "cores": str(os.cpu_count() or 1),
        "memory": _memory(),
        "system": f"{platform.system()} {platform.machine()}",
        "versions": ", ".join(f"{name} {number}" for name, number in versions.items()),
    }


def _processor() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _memory() -> str:
    try:
        return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB"
    except (ValueError, OSError, AttributeError):
        return "unknown"
