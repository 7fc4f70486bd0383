"""Fluvio's primitive types; every number has its high byte first (FLV-01)."""

from collections.abc import Callable, Iterable
from typing import NoReturn, TypeVar

T = TypeVar("T")


class UnreadableError(Exception):
    """Bytes of a response that no published client could read.

    Args:
        reason: A machine reason code such as ``body:too-short`` or ``field:resolution``.
        message: What is wrong, and where.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Reader:
    """Reads fields one after the other.

    Args:
        data: The bytes.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def __repr__(self) -> str:
        return f"<Reader at byte {self._at} of {len(self._data)}>"

    @property
    def left(self) -> int:
        """Bytes that were not read yet."""
        return len(self._data) - self._at

    def peek(self, size: int) -> bytes:
        """The next bytes, which are there and stay there."""
        return self._data[self._at : self._at + size]

    def take(self, size: int, field: str) -> bytes:
        """The next bytes.

        Raises:
            UnreadableError: There are fewer, or `size` is negative.
        """
        if size < 0:
            self.fault(field, f"a length of {size}")
        if size > self.left:
            raise UnreadableError(
                "body:too-short",
                f"{field} needs {size} bytes at byte {self._at}, {self.left} are left",
            )
        self._at += size
        return self._data[self._at - size : self._at]

    def fault(self, field: str, problem: str) -> NoReturn:
        """Give up on a field.

        Raises:
            UnreadableError: Always.
        """
        raise UnreadableError(f"field:{field}", f"{field} before byte {self._at}: {problem}")

    def number(self, size: int, field: str) -> int:
        """A signed number."""
        return int.from_bytes(self.take(size, field), "big", signed=True)

    def natural(self, size: int, field: str) -> int:
        """A number without a sign."""
        return int.from_bytes(self.take(size, field), "big")

    def flag(self, field: str) -> bool:
        """A byte that is 0 or 1."""
        found = self.natural(1, field)
        if found > 1:
            self.fault(field, f"expected 0 or 1, got {found}")
        return bool(found)

    def text(self, field: str) -> str:
        """A text after its signed length of two bytes."""
        octets = self.take(self.number(2, field), field)
        try:
            return octets.decode()
        except UnicodeDecodeError as error:
            self.fault(field, f"no UTF-8: {error}")

    def option(self, read: Callable[[], T], field: str) -> T | None:
        """What follows a flag that says whether it does."""
        return read() if self.flag(field) else None

    def many(self, read: Callable[[], T], field: str, size: int = 4) -> list[T]:
        """Items after their count."""
        count = self.number(size, field)
        if not 0 <= count <= self.left:
            self.fault(field, f"{count} items in {self.left} bytes")
        return [read() for _ in range(count)]

    def sized(self, field: str) -> "Reader":
        """A reader of the bytes that stand after their length of four bytes."""
        return Reader(self.take(self.number(4, field), field))

    def varint(self, field: str) -> int:
        """A number in zigzag form, seven bits a byte, the lowest first."""
        number, shift, byte = 0, 0, 0x80
        while byte & 0x80:
            if shift == 70:
                self.fault(field, "a number of more than 10 bytes")
            byte = self.natural(1, field)
            number |= (byte & 0x7F) << shift
            shift += 7
        return (number >> 1) ^ -(number & 1)

    def end(self) -> None:
        """Make sure that nothing is left.

        Raises:
            UnreadableError: Something is.
        """
        if self.left:
            raise UnreadableError("body:trailing", f"{self.left} bytes after byte {self._at}")


def i8(number: int) -> bytes:
    """One byte."""
    return number.to_bytes(1, "big", signed=True)


def i16(number: int) -> bytes:
    """Two bytes."""
    return number.to_bytes(2, "big", signed=True)


def i32(number: int) -> bytes:
    """Four bytes."""
    return number.to_bytes(4, "big", signed=True)


def u32(number: int) -> bytes:
    """Four bytes without a sign."""
    return number.to_bytes(4, "big")


def i64(number: int) -> bytes:
    """Eight bytes."""
    return number.to_bytes(8, "big", signed=True)


def text(words: str) -> bytes:
    """A text after its length."""
    octets = words.encode()
    return i16(len(octets)) + octets


def option(data: bytes | None) -> bytes:
    """A flag, and what it announces."""
    return b"\0" if data is None else b"\1" + data


def many(items: Iterable[bytes]) -> bytes:
    """Items after their count."""
    found = list(items)
    return i32(len(found)) + b"".join(found)


def sized(data: bytes) -> bytes:
    """Bytes after their length."""
    return i32(len(data)) + data


def varint(number: int) -> bytes:
    """A number in zigzag form."""
    rest = (number << 1) ^ (number >> 63)
    found = bytearray()
    while rest > 0x7F:
        found.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes(found) + bytes([rest])
