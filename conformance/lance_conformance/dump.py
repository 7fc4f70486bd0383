"""Bytes for a reader: offset, hex, field, meaning, and where the fault sits."""

from collections.abc import Iterator
from dataclasses import dataclass

ELIDE_AFTER = 64
"""Bytes of a payload that are shown; the run file keeps them all."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of an annotated dump.

    Attributes:
        offset: Where the bytes start, counted from the first byte of the dump.
        data: The bytes themselves.
        field: The name of the field, empty in lines that go on with one.
        meaning: What the bytes say.
        fault: The stimulus is wrong here, on purpose.
    """

    offset: int
    data: bytes
    field: str
    meaning: str
    fault: bool = False

    def __str__(self) -> str:
        mark = "  <- FAULT, on purpose" if self.fault else ""
        line = f"{self.offset:04x}  {self.data.hex(' '):<24}  {self.field:<14}  {self.meaning}"
        return line.rstrip() + mark


def hexdump(data: bytes, base: int, field: str = "payload", *, fault: bool) -> Iterator[Row]:
    """Rows of bytes that have no fields of their own, the first of them named.

    Args:
        data: The bytes.
        base: Where they start.
        field: How they are called.
        fault: They are wrong on purpose.
    """
    shown = data[:ELIDE_AFTER]
    for start in range(0, len(shown), 8):
        piece = shown[start : start + 8]
        text = "".join(chr(b) if 32 <= b < 127 else "." for b in piece)
        yield Row(base + start, piece, field if start == 0 else "", f"|{text}|", fault)
    if len(data) > ELIDE_AFTER:
        yield Row(base + ELIDE_AFTER, b"", "", f"... {len(data) - ELIDE_AFTER} more bytes")
