"""Facts about the machine and the programs that figures depend on, without its name."""

import os
import platform
import re
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

_PACKAGES = ("lance-sdk", "lnc-client", "uvloop", "crc32c", "pyspark", "pyarrow", "fluvio")


def facts() -> dict[str, Any]:
    """Return what figures depend on: processor, memory, kernel, Python, packages."""
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
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
