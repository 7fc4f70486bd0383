"""Records of the log as RustLog's, which have neither key nor time.

What other protocols wrote is served without both; anything else is served as it stands.
"""

from typing import Final

from lance_spec.enums import RecordType

_TIME: Final = 8
_LENGTH: Final = 2


def plain(kind: int, value: bytes) -> bytes:
    """Return what a record of the log holds, by its type (LWP section 8.3)."""
    start = _start(kind, value)
    return value[start:] if start <= len(value) else value


def _start(kind: int, value: bytes) -> int:
    """Return where the value begins after key and time."""
    if kind == RecordType.TIMESTAMPED:
        return _TIME
    if kind == RecordType.KEY_VALUE:
        return _LENGTH + int.from_bytes(value[:_LENGTH], "little")
    if kind == RecordType.KEY_TIMESTAMPED:
        key_length = int.from_bytes(value[_TIME : _TIME + _LENGTH], "little")
        return _TIME + _LENGTH + key_length
    return 0
