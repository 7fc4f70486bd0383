"""How many tasks a machine runs at a time."""

import os
from typing import Final

_AFFINITY: Final = getattr(os, "sched_getaffinity", None)
"""What Linux has, and not every system."""


def usable_cores() -> int:
    """Return how many cores this process may use, which is what ``local[*]`` goes by as well."""
    return len(_AFFINITY(0)) if _AFFINITY else os.cpu_count() or 1
