"""How sizes, durations and switches are written in connect strings (SF-26, SF-27)."""

import re
from collections.abc import Callable
from typing import Any, Final

from lance_sdk._units import shorten
from lance_sdk.errors import ConfigError

_SIZES: Final = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}
_SIZE: Final = re.compile(r"([0-9]{1,18})(?:([kmgt])i?)?b?", re.IGNORECASE)
_MILLIS: Final = {"": 1.0, "us": 1e-3, "ms": 1.0, "s": 1e3, "m": 60e3, "h": 3600e3, "d": 86400e3}
_DURATION: Final = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)([a-z]*)", re.IGNORECASE)
_BOOLS: Final = {
    **dict.fromkeys(("on", "true", "yes", "1"), True),
    **dict.fromkeys(("off", "false", "no", "0"), False),
}


def parse_size(key: str, text: str) -> int:
    """Return the bytes that ``text`` names; units are powers of 1024 (SF-27).

    Raises:
        ConfigError: it is no size.
    """
    found = _SIZE.fullmatch(text)
    if found is None:
        raise ConfigError(f"{key}={shorten(text)}: expected a size such as 4194304, 4M or 4MiB")
    return int(found[1]) << _SIZES[(found[2] or "").lower()]


def parse_millis(key: str, text: str) -> float:
    """Return the seconds that ``text`` names: milliseconds, or a number with a unit.

    Raises:
        ConfigError: it is no duration.
    """
    found = _DURATION.fullmatch(text)
    unit = found and _MILLIS.get(found[2].lower())
    if found is None or unit is None:
        raise ConfigError(f"{key}={shorten(text)}: expected milliseconds, or 500ms, 5s, 2m")
    return float(found[1]) * unit / 1000


def parse_signed_millis(key: str, text: str) -> float:
    """Return seconds, negative ones where ``text`` begins with a minus sign.

    Raises:
        ConfigError: it is no duration.
    """
    seconds = parse_millis(key, text.removeprefix("-"))
    return -seconds if text.startswith("-") else seconds


def parse_bool(key: str, text: str) -> bool:
    """Return whether ``text`` says yes (SF-26).

    Raises:
        ConfigError: it says neither.
    """
    if text.lower() not in _BOOLS:
        raise ConfigError(f"{key}={shorten(text)}: expected on or off")
    return _BOOLS[text.lower()]


def parse_number(key: str, text: str) -> int:
    """Return a whole number.

    Raises:
        ConfigError: it is none.
    """
    if not re.fullmatch(r"-?[0-9]{1,18}", text):
        raise ConfigError(f"{key}={shorten(text)}: expected a whole number")
    return int(text)


def parse_text(key: str, text: str) -> str:
    """Return the text as it is; it must not be empty.

    Raises:
        ConfigError: it is.
    """
    if not text:
        raise ConfigError(f"{key}: expected a value behind '='")
    return text


def or_off(parse: Callable[[str, str], Any], of: str) -> Callable[[str, str], Any]:
    """Return a parser that also takes ``off``, which reads as None.

    Args:
        parse: reads everything else.
        of: what that is, for the error.
    """

    def parse_or_off(key: str, text: str) -> Any:
        try:
            return None if text.lower() == "off" else parse(key, text)
        except ConfigError:
            raise ConfigError(f"{key}={shorten(text)}: expected {of}, or off") from None

    return parse_or_off
