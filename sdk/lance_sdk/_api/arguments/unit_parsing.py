"""Durations and sizes as people write them in URLs: ``5ms``, ``64KiB``."""

import re
from datetime import datetime, timedelta
from typing import Final, TypeAlias

from lance_sdk.errors import ConfigError

Duration: TypeAlias = float | timedelta
"""Seconds, or a `datetime.timedelta`."""

_SECONDS: Final = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_BYTES: Final = {
    "": 1,
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
}
_LONGEST: Final = 1e9
"""Seconds, about 31 years: what every clock and every system call can still count."""
_SHOWN: Final = 80
_QUANTITY: Final = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,9})?)([A-Za-z]*)")


def parse_duration(name: str, text: str) -> float:
    """Return the seconds that ``text`` names, for example ``5ms`` or ``1.5s``.

    Args:
        name: the option, for the error.
        text: a number and one of us, ms, s, m, h, d.

    Raises:
        ConfigError: when it is neither.
    """
    found = _QUANTITY.fullmatch(text)
    unit = found and _SECONDS.get(found[2])
    if found is None or unit is None:
        raise ConfigError(f"{name}={shorten(text)}: expected a duration such as 5ms, 1.5s or 2m")
    return float(found[1]) * unit


def parse_size(name: str, text: str) -> int:
    """Return the bytes that ``text`` names, for example ``64KiB``.

    Args:
        name: the option, for the error.
        text: a number, with B, KB, MB, GB, KiB, MiB or GiB or without a unit.

    Raises:
        ConfigError: when it is neither.
    """
    found = _QUANTITY.fullmatch(text)
    unit = found and _BYTES.get(found[2])
    if found is None or unit is None:
        raise ConfigError(f"{name}={shorten(text)}: expected a size such as 65536, 64KiB or 1MB")
    return int(float(found[1]) * unit)


def shorten(value: object) -> str:
    """Return the value as it is written in Python, a time as people write it; cut where long."""
    if isinstance(value, int) and abs(value) >= 10**_SHOWN:
        return "a huge int"  # to write one out takes time, or is refused by Python
    if isinstance(value, datetime):
        return str(value)
    text = value.__qualname__ if isinstance(value, type) else repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def seconds(name: str, value: Duration) -> float:
    """Return a duration option as seconds.

    Raises:
        ConfigError: when it is not a number from 0 to 1e9.
    """
    number = value.total_seconds() if isinstance(value, timedelta) else value
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise ConfigError(f"{name}={shorten(value)}: expected seconds, such as 0.5, or a timedelta")
    if not 0 <= number <= _LONGEST:
        raise ConfigError(f"{name}={shorten(value)}: expected 0 to {_LONGEST:,.0f} s")
    return float(number)


def positive(name: str, value: Duration) -> float:
    """Return a duration option that must not be 0, as seconds.

    Raises:
        ConfigError: when it is not a number above 0, up to 1e9.
    """
    number = seconds(name, value)
    if not number > 0:
        raise ConfigError(f"{name}={value!r} must be more than 0")
    return number
