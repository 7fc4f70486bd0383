"""How many tasks a machine runs at a time."""

import os
import sys


def usable_cores() -> int:
    """Return how many cores this process may use, which is what ``local[*]`` goes by as well."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
