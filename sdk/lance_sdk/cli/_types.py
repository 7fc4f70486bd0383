"""How arguments with a unit or a meaning are read: times, sizes, start offsets."""

import time as clock
from datetime import UTC, datetime
from pathlib import Path

import click

from lance_sdk._api.arguments.unit_parsing import parse_duration, parse_size
from lance_sdk.errors import ConfigError
from lance_spec.limits import END_OFFSET


def time(text: str) -> float:
    """Return seconds, from ``500ms``, ``5s`` or a bare number of seconds.

    Raises:
        click.BadParameter: when it is not a time.
    """
    bare = text.replace(".", "", 1).isdecimal()
    try:
        return parse_duration("time", f"{text}s" if bare else text)
    except ConfigError:
        raise click.BadParameter(f"{text!r} is not a time such as 500ms, 5s or 2m") from None


def size(text: str) -> int:
    """Return bytes, from ``64KiB``, ``1MB`` or a bare number of bytes.

    Raises:
        click.BadParameter: when it is not a size.
    """
    try:
        return parse_size("size", text)
    except ConfigError:
        raise click.BadParameter(f"{text!r} is not a size such as 65536, 64KiB or 1MB") from None


def token(text: str) -> str:
    """Return a token, which ``@FILE`` takes from a file, without the line's end.

    Raises:
        click.BadParameter: when there is no such file, or nothing in it.
    """
    if not text.startswith("@"):
        return text
    try:
        found = Path(text[1:]).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise click.BadParameter(f"cannot read the token from {text[1:]}: {reason}") from None
    if not found:
        raise click.BadParameter(f"there is no token in {text[1:]}")
    return found


def start(text: str) -> str | int | datetime:
    """Return ``beginning``, ``end``, a byte offset, or a time: ``-15m``, or ISO 8601 with a zone.

    Raises:
        click.BadParameter: when it is none of them.
    """
    if text in {"beginning", "end"}:
        return text
    short = len(text) <= len(str(END_OFFSET))  # Python refuses to read thousands of digits
    if short and text.isascii() and text.isdecimal() and int(text) < END_OFFSET:
        return int(text)
    if text.startswith("-") and text[-1:].isalpha():
        return ago(time(text[1:]))
    return _moment(text)


def ago(seconds: float) -> datetime:
    """Return a time so long ago; the Unix epoch where that is later."""
    return datetime.fromtimestamp(max(0.0, clock.time() - seconds), UTC)


def _moment(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is neither 'beginning', 'end', a byte offset, nor a time such as -15m "
            f"or 2026-01-31T12:00:00Z"
        ) from None
    if found.tzinfo is None:
        raise click.BadParameter(f"{text!r} says no time zone; append Z, or +01:00")
    return found
