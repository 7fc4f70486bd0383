"""Cuts a byte stream into records at a separator, holding one unfinished record at most."""

from collections.abc import Callable, Iterator
from typing import Final

from lance_sdk.cli.console.exit_codes import Failure

_CHUNK: Final = 256 * 1024


class _Line:
    """The record that is still growing, across chunks."""

    def __init__(self, limit: int) -> None:
        self._parts: list[bytes] = []
        self._limit = limit
        self._size = 0
        self.number = 1

    def grow(self, part: bytes) -> None:
        """Append to the record.

        Raises:
            Failure: when it is over the limit; naming its number.
        """
        self._size += len(part)
        if self._size > self._limit:
            raise Failure(
                f"line {self.number} is longer than the {self._limit} bytes a record may have; "
                f"split it, or use --null if records contain newlines"
            )
        self._parts.append(part)

    def finish(self) -> bytes:
        """Return the record and begin the next one."""
        record = b"".join(self._parts)
        self._parts.clear()
        self._size = 0
        self.number += 1
        return record

    @property
    def begun(self) -> bool:
        """Whether there is anything after the last separator."""
        return self._size > 0


def read_records(
    read: Callable[[int], bytes], *, separator: bytes, limit: int
) -> Iterator[list[bytes]]:
    r"""Yield the records of a stream, as many at a time as one read brings.

    The separator ends a record and is not a part of it; nothing else is changed. Two in a row
    enclose an empty record. The last record need not be ended.

    Args:
        read: returns up to that many bytes as soon as there are some, and ``b""`` at the end;
            for example ``stream.read1``.
        separator: one byte, for example a newline.
        limit: bytes a record may have.

    Raises:
        Failure: for a record over the limit, after those before it were yielded.
    """
    line = _Line(limit)
    while chunk := read(_CHUNK):
        yield from _cut(line, chunk.split(separator))
    if line.begun:
        yield [line.finish()]


def _cut(line: _Line, parts: list[bytes]) -> Iterator[list[bytes]]:
    records: list[bytes] = []
    try:
        for part in parts[:-1]:
            line.grow(part)
            records.append(line.finish())
        line.grow(parts[-1])
    except Failure:
        yield records
        raise
    if records:
        yield records
