"""What the text of an option means; each reader is told the option's name, for its error.

All raise `ConfigError`, with what was expected.
"""

import json
import logging
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

from lance_sdk._api.arguments.unit_parsing import parse_duration, parse_size, shorten
from lance_sdk.errors import ConfigError
from lance_sdk.spark.rows.column_names import check_names
from lance_sdk.url import parse_url

_log = logging.getLogger(__name__)
_KAFKA_PLACES: Final = {-2: "earliest", -1: "latest"}


def read_text(name: str, text: str) -> str:
    """Read a text that is not empty."""
    if not text:
        raise ConfigError(f"{name}='': expected a text")
    return text


def read_url(name: str, text: str) -> str:
    """Read where a server is; ``lance://`` may be left out."""
    url = read_text(name, text)
    url = url if "://" in url else f"lance://{url}"
    try:
        parse_url(url)
    except ConfigError as error:
        raise ConfigError(f"{name}={shorten(text)}: {error}") from None
    return url


def read_names(name: str, text: str) -> tuple[str, ...]:
    """Read names, separated by commas."""
    found = tuple(part.strip() for part in text.split(",") if part.strip())
    if not found:
        raise ConfigError(f"{name}={shorten(text)}: expected names, separated by commas")
    return found


def read_columns(name: str, text: str) -> tuple[str, ...]:
    """Read names of columns."""
    found = read_names(name, text)
    check_names(found)
    return found


def read_pattern(name: str, text: str) -> str:
    """Read a regular expression."""
    try:
        re.compile(text)
    except re.error as error:
        raise ConfigError(f"{name}={shorten(text)}: no regular expression: {error}") from None
    return text


def read_size(name: str, text: str) -> int:
    """Read bytes, also in units of 1024 as Spark writes them."""
    short = re.fullmatch(r"([0-9]+) *([kmgt])b?", text.lower()) if text.islower() else None
    if short is not None:  # as Spark writes it, in which k is 1024
        found = int(short[1]) << 10 * (1 + "kmgt".index(short[2]))
    else:
        found = parse_size(name, text)
    if found <= 0:
        raise ConfigError(f"{name}={shorten(text)}: expected more than 0 bytes")
    return found


def read_frame_size(name: str, text: str) -> int:
    """Read bytes that fit into a frame."""
    found = read_size(name, text)
    if not 64 <= found <= 16 << 20:
        raise ConfigError(f"{name}={shorten(text)}: expected 64 bytes to 16MiB")
    return found


def read_count(name: str, text: str) -> int:
    """Read a number of partitions."""
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= 100_000):
        raise ConfigError(f"{name}={shorten(text)}: expected a number from 1 to 100000")
    return int(text)


def read_duration(name: str, text: str) -> float:
    """Read a duration; a number alone is seconds, which may surprise who means milliseconds."""
    if re.fullmatch(r"[0-9.]+", text):
        _log.warning("%s=%s is taken as %s seconds; write %ss or %sms", name, *[text] * 4)
        return parse_duration(name, f"{text}s")
    long = re.fullmatch(r"([0-9.]+) +([a-z]+?)s?", text.lower())
    if long is not None and long[2] in _UNITS:  # as Spark writes it
        return parse_duration(name, f"{long[1]}{_UNITS[long[2]]}")
    return parse_duration(name, text)


_UNITS: Final = {
    "microsecond": "us",
    "millisecond": "ms",
    "second": "s",
    "minute": "m",
    "hour": "h",
    "day": "d",
}
"""Spark's words for units of time."""


def read_records(name: str, text: str) -> int:
    """Read a number of records."""
    if not re.fullmatch(r"[1-9][0-9]{0,17}", text):
        raise ConfigError(f"{name}={shorten(text)}: expected a number of records, at least 1")
    return int(text)


def read_moments(name: str, text: str) -> dict[str, datetime]:
    """Read a time for each topic, as JSON."""
    try:
        said = json.loads(text)
    except ValueError:
        said = None
    if not isinstance(said, dict) or not said:
        raise ConfigError(
            f'{name}={shorten(text)}: expected JSON such as {{"orders": 1767225600000}}'
        )
    return {
        topic: read_moment(f"{name}: {topic}", _kafkas(moment)) for topic, moment in said.items()
    }


def _kafkas(value: object) -> str:
    """Return a topic's value as a text; that of partition 0 where it is said as for Kafka."""
    return str(value["0"] if isinstance(value, dict) and list(value) == ["0"] else value)


def read_flag(name: str, text: str) -> bool:
    """Read true or false."""
    if text.lower() not in {"true", "false"}:
        raise ConfigError(f"{name}={shorten(text)}: expected true or false")
    return text.lower() == "true"


def one_of(choices: tuple[str, ...]) -> Callable[[str, str], str]:
    """Return what reads one of some words."""

    def read(name: str, text: str) -> str:
        if text.lower() not in choices:
            raise ConfigError(f"{name}={shorten(text)}: expected {' or '.join(choices)}")
        return text.lower()

    return read


def read_moment(name: str, text: str) -> datetime:
    """Read a time."""
    try:
        if re.fullmatch(r"-?[0-9]{1,18}", text):
            return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=int(text))
        moment = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        moment = None
    if moment is None or moment.tzinfo is None:
        raise ConfigError(
            f"{name}={shorten(text)}: expected ISO 8601 with a zone, such as "
            "2026-01-31T12:00:00Z, or milliseconds since 1970"
        )
    return moment


def read_offsets(name: str, text: str) -> "str | dict[str, int | str]":
    """Read earliest, latest, or a place for each topic as JSON."""
    lowered = text.strip().lower()
    if lowered == "earliest":
        return "earliest"
    if lowered == "latest":
        return "latest"
    try:
        said = json.loads(text)
    except ValueError:
        said = None
    if not isinstance(said, dict):
        raise ConfigError(
            f'{name}={shorten(text)}: expected earliest, latest or JSON such as {{"orders": 1024}}'
        )
    return {topic: _offset(name, topic, value) for topic, value in said.items()}


def _offset(name: str, topic: str, value: object) -> int | str:
    """Read one topic's place: a number, a word, or Kafka's ``{"0": number}``."""
    if isinstance(value, dict) and list(value) == ["0"]:
        value = value["0"]
    if isinstance(value, str) and value in {"earliest", "latest"}:
        return value
    if isinstance(value, bool) or not isinstance(value, int) or not -2 <= value < 2**63:
        raise ConfigError(
            f"{name}: topic {topic!r} has {shorten(value)}; expected a byte offset, earliest or "
            "latest"
        )
    return _KAFKA_PLACES.get(value, value)
