"""How arguments with a unit or a meaning are read: times, sizes, start offsets."""

import click

from lance_sdk._units import parse_duration, parse_size
from lance_sdk.errors import ConfigError
from lance_spec.limits import END_OFFSET


def time(text: str) -> float:
    """Return seconds, from ``500ms``, ``5s`` or a bare number of seconds.

    Raises:
        click.BadParameter: when it is no time.
    """
    bare = text.replace(".", "", 1).isdecimal()
    try:
        return parse_duration("time", f"{text}s" if bare else text)
    except ConfigError:
        raise click.BadParameter(f"{text!r} is no time such as 500ms, 5s or 2m") from None


def size(text: str) -> int:
    """Return bytes, from ``64KiB``, ``1MB`` or a bare number of bytes.

    Raises:
        click.BadParameter: when it is no size.
    """
    try:
        return parse_size("size", text)
    except ConfigError:
        raise click.BadParameter(f"{text!r} is no size such as 65536, 64KiB or 1MB") from None


def start(text: str) -> str | int:
    """Return ``beginning``, ``end`` or a byte offset.

    Raises:
        click.BadParameter: when it is none of them.
    """
    if text in {"beginning", "end"}:
        return text
    short = len(text) <= len(str(END_OFFSET))  # Python refuses to read thousands of digits
    if not (short and text.isascii() and text.isdecimal() and int(text) < END_OFFSET):
        raise click.BadParameter(f"{text!r} is neither 'beginning', 'end' nor a byte offset")
    return int(text)
