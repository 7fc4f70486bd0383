"""Facts about the machine and the programs that figures depend on, without its name."""

import os
import platform
import re
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

CORES = 2
"""Cores that all sides share unless LANCE_BENCH_CORES says otherwise: those of the bars."""

_PACKAGES = ("lance-sdk", "lnc-client", "uvloop", "crc32c", "pyspark", "pyarrow", "fluvio")


def confine() -> None:
    """Keep this process and those that it starts to a few cores, so that figures compare.

    Raises:
        SystemExit: LANCE_BENCH_CORES is not a number of cores that there are.
    """
    there = sorted(os.sched_getaffinity(0))
    wanted = os.environ.get("LANCE_BENCH_CORES", str(min(CORES, len(there))))
    if not wanted.isdecimal() or not 0 < int(wanted) <= len(there):
        raise SystemExit(f"LANCE_BENCH_CORES={wanted!r}: give a number from 1 to {len(there)}")
    os.sched_setaffinity(0, there[: int(wanted)])


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0))


def facts() -> dict[str, Any]:
    """Return what figures depend on: processor, memory, kernel, Python, packages."""
    return {
        "cpu": _cpu(),
        "cores": cores(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "kernel": f"{platform.system()} {re.sub(r'-.*', '', platform.release())}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "packages": {name: found for name in _PACKAGES if (found := _version(name))},
    }


def _cpu() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.machine()


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
