"""Numbers as people read them."""

from datetime import UTC, datetime
from typing import Final

_STEPS: Final = ((10**9, "GB"), (10**6, "MB"), (10**3, "kB"))


def count(number: int, noun: str) -> str:
    """Return for example ``1,234 records`` or ``1 record``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def size(number: float) -> str:
    """Return bytes in the largest decimal unit that fits, for example ``1.2 MB``."""
    for step, unit in _STEPS:
        if number >= step:
            return f"{number / step:.1f} {unit}"
    return f"{number:.0f} B"


def seconds(number: float) -> str:
    """Return a time in the unit that suits it, for example ``3.1 s`` or ``0.25 ms``."""
    if number >= 1:
        return f"{number:.1f} s"
    return f"{number * 1000:.0f} ms" if number >= 0.01 else f"{number * 1000:.2f} ms"


def rates(records: int, data: int, elapsed: float) -> str:
    """Return throughput, for example ``250,000 records/s, 75.1 MB/s``.

    Args:
        records: how many.
        data: their bytes.
        elapsed: seconds they took.
    """
    if elapsed <= 0:
        return "too fast to measure"
    return f"{records / elapsed:,.0f} records/s, {size(data / elapsed)}/s"


def moment(unix_seconds: float) -> str:
    """Return a time of day in UTC, or the number itself where no calendar reaches it."""
    try:
        return datetime.fromtimestamp(unix_seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError, OSError):
        return str(unix_seconds)


def span(whole_seconds: int) -> str:
    """Return a length of time in the largest unit that divides it, for example ``7 days``."""
    for step, unit in ((86_400, "day"), (3600, "hour"), (60, "minute")):
        if whole_seconds and whole_seconds % step == 0:
            return count(whole_seconds // step, unit)
    return count(whole_seconds, "second")
