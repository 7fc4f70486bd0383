"""Keys and times that stand before a record's value (LWP section 8.3)."""

import os
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final

from lance_sdk.cli.console.exit_codes import Failure
from lance_spec.enums import RecordType
from lance_spec.errors import DecodeError

if TYPE_CHECKING:
    from lance_sdk.values.keyed import KeyedParts

KEYED: Final = frozenset({RecordType.KEY_VALUE, RecordType.TIMESTAMPED, RecordType.KEY_TIMESTAMPED})


def parts(kind: int, value: bytes) -> "KeyedParts":
    """Take a value apart; one that is not laid out as its type says is all body.

    Args:
        kind: the record's type.
        value: its bytes.
    """
    from lance_sdk.values.keyed import KeyedParts, split  # noqa: PLC0415 - loaded when it is needed

    try:
        return split(kind, value)
    except DecodeError:
        return KeyedParts(value)


def keyed_type(*, key: bool, time: bool) -> RecordType:
    """Return the type of records with a key, a time, or both."""
    if key and time:
        return RecordType.KEY_TIMESTAMPED
    return RecordType.KEY_VALUE if key else RecordType.TIMESTAMPED


def keyed(
    batches: Iterable[list[bytes]],
    separator: str | None,
    clock_ns: Callable[[], int] | None,
    same_key: str | None = None,
) -> Iterator[list[bytes]]:
    """Turn lines into values with a key, a time, or both before them.

    Args:
        batches: lists of lines.
        separator: what stands between a line's key and its value, or None for no keys.
        clock_ns: returns the time of day in nanoseconds, or None for no times.
        same_key: the key of every line, where the lines bring none.

    Raises:
        Failure: naming the first line without the separator; those before it were yielded.
    """
    from lance_sdk.values.keyed import join  # noqa: PLC0415 - as above

    number = 0
    between = None if separator is None else os.fsencode(separator)  # the bytes that were typed
    common = None if same_key is None else os.fsencode(same_key)
    for batch in batches:
        now = None if clock_ns is None else clock_ns()
        done: list[bytes] = []
        for line in batch:
            number += 1
            key, value = common, line
            if between is not None:
                key, found, value = line.partition(between)
                if not found:
                    yield done
                    raise Failure(f"line {number} has no {separator!r} to end its key")
            done.append(join(value, key, now)[0])
        yield done
