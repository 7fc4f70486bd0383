"""The parts of a keyed record's value."""

from typing import NamedTuple


class KeyedParts(NamedTuple):
    """What a record's value consists of.

    Attributes:
        body: the application's bytes.
        key: the key's bytes, or None.
        timestamp_ns: nanoseconds since the Unix epoch, or None.
    """

    body: bytes
    key: bytes | None = None
    timestamp_ns: int | None = None
