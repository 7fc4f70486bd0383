"""Checks of settings; each names the setting and its allowed values."""

import os
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from lance_sdk._api.arguments.unit_parsing import shorten
from lance_sdk.errors import ConfigError
from lance_sdk.hooks import Hooks
from lance_spec.limits import END_OFFSET

_SIZES: Final = range(2**63)
"""What a number of bytes, records or batches can be."""


def check_start(start: object, shown: str = "start={}") -> None:
    """Refuse what is not a place in a log.

    Args:
        start: the place.
        shown: how it was given, for the error.

    Raises:
        ConfigError: unless it is ``beginning``, ``end``, an offset or a time.
    """
    if isinstance(start, str) and start in {"beginning", "end"}:
        return
    if isinstance(start, datetime):
        if start.tzinfo is None:
            raise ConfigError(
                f"{shown.format(shorten(start))} says no time zone; use datetime.now(timezone.utc)"
            )
        return
    if not _is_offset(start):
        raise ConfigError(
            f"{shown.format(shorten(start))}: expected 'beginning' (elsewhere earliest), 'end' "
            f"(latest), a byte offset or a datetime"
        )


def check_offset(name: str, value: object) -> None:
    """Refuse what is not a byte offset.

    Raises:
        ConfigError: naming the setting.
    """
    if not _is_offset(value):
        raise ConfigError(f"{name}={shorten(value)}: expected a byte offset")


def _is_offset(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < END_OFFSET


def check_plain(name: str, value: object, kind: object) -> None:
    if type(value) is not kind:
        expected = "True or False" if kind is bool else "a whole number"
        raise ConfigError(f"{name}={shorten(value)}: expected {expected}")
    if value not in _SIZES:
        raise ConfigError(f"{name}={shorten(value)}: expected 0 to {_SIZES[-1]}")


def check_one_of(name: str, value: object, allowed: Sequence[object]) -> None:
    if value not in allowed:
        names = " or ".join(map(repr, allowed))
        raise ConfigError(f"{name}={shorten(value)}: expected {names}")


def check_path(name: str, value: object) -> None:
    """Refuse what is not a path."""
    if value is not None and not (isinstance(value, str | os.PathLike) and os.fspath(value)):
        raise ConfigError(f"{name}={shorten(value)}: expected a path")


def check_text(name: str, value: object, *, secret: bool = False) -> None:
    """Refuse what is not text, without showing a secret."""
    if value is not None and (not isinstance(value, str) or not value):
        shown = type(value).__name__ if secret else shorten(value)
        raise ConfigError(f"{name}: expected text, got {shown}")


def check_token(token: object) -> None:
    """Refuse what is neither a token nor returns one."""
    if token is not None and not isinstance(token, str) and not callable(token):
        raise ConfigError(f"token: expected text or a function, got {type(token).__name__}")


def check_hooks(hooks: object) -> None:
    """Refuse what cannot be told of events."""
    given = hooks if isinstance(hooks, list | tuple) else [hooks]
    for each in given:
        if not isinstance(each, Hooks):
            name = getattr(each, "__name__", type(each).__name__)
            raise ConfigError(
                f"hooks={name}: expected an object of a class derived from Hooks; write one with "
                "on_batch_acked or another method"
            )


def check_codes(name: str, codes: Iterable[object]) -> frozenset[int]:
    """Return error codes as a set; refuse values that are not error codes."""
    checked = set()
    for code in codes:
        if isinstance(code, bool) or not isinstance(code, int) or not 0 < code < 0xFF:
            raise ConfigError(
                f"{name}: {shorten(code)} is not an error code; expected 0x01 to 0xfe"
            )
        checked.add(int(code))
    return frozenset(checked)


def check_context(tls: object) -> None:
    import ssl  # noqa: PLC0415 - costs 10 ms, and whoever brings a context has it already

    if not isinstance(tls, ssl.SSLContext):
        raise ConfigError(
            f"tls={shorten(tls)}: expected an ssl.SSLContext; for TLS with the system's "
            "authorities write lances:// in the URL"
        )


def check_positive(config: object, name: str) -> None:
    if not getattr(config, name) > 0:
        raise ConfigError(f"{name}={getattr(config, name)!r} must be more than 0")


def check_order(config: object, less: str, more: str) -> None:
    if getattr(config, more) < getattr(config, less):
        raise ConfigError(
            f"{more}={getattr(config, more)!r} must be at least {less}={getattr(config, less)!r}"
        )
