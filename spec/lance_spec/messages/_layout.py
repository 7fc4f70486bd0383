"""What generated codecs share: a run of fixed fields, and the errors that name a field."""

import struct
from collections.abc import Sequence
from typing import Final, Protocol, Self

from lance_spec.checksum import Buffer
from lance_spec.errors import DecodeError, EncodeError

_BITS: Final = {"B": 8, "H": 16, "I": 32, "Q": 64}


class Message(Protocol):
    """What every generated message can do."""

    @classmethod
    def decode(cls, data: Buffer, /) -> Self:
        """Return the message that ``data`` holds, all of it and nothing else."""
        ...

    def encode(self) -> bytes:
        """Return the message as it stands on the wire or on disk."""
        ...


class Layout:
    """Neighbouring fixed-size fields of a message, packed and unpacked as one.

    Attributes:
        message: name of the message, for errors.
        names: names of the fields, in wire order.
        size: bytes of all fields together.
        unpack: reads the fields from a buffer of exactly ``size`` bytes.
        unpack_from: reads the fields from a buffer at an offset.
    """

    __slots__ = ("_codes", "_struct", "message", "names", "size", "unpack", "unpack_from")

    def __init__(self, message: str, codes: str, *names: str) -> None:
        self._struct = struct.Struct("<" + codes)
        self._codes = codes.split()
        self.message = message
        self.names = names
        self.size = self._struct.size
        self.unpack = self._struct.unpack
        self.unpack_from = self._struct.unpack_from

    def __repr__(self) -> str:
        return f"Layout({self.message}: {', '.join(self.names)}; {self.size} bytes)"

    def pack(self, *values: int | bytes) -> bytes:
        """Return the fields as bytes.

        Raises:
            EncodeError: a value is no number or does not fit its field.
        """
        try:
            return self._struct.pack(*values)
        except struct.error:
            raise self._misfit(values) from None

    def short(self, data: Buffer, start: int = 0) -> DecodeError:
        """Return the error for a buffer that does not hold all fields from ``start`` on."""
        available = memoryview(data).nbytes
        position = start
        for name, code in zip(self.names, self._codes, strict=True):
            size = struct.Struct("<" + code).size
            if position + size > available:
                left = available - position
                return _short(self.message, name, position, f"{size} bytes", left)
            position += size
        return trailing(self.message, data, position)

    def _misfit(self, values: Sequence[int | bytes]) -> EncodeError:
        for name, code, value in zip(self.names, self._codes, values, strict=True):
            try:
                struct.Struct("<" + code).pack(value)
            except struct.error:
                expected = f"an integer from 0 to 2^{_BITS[code]}-1"
                return EncodeError(self.message, name, expected, repr(value))
        raise AssertionError(f"{self!r} rejected values that each of its fields accepts")


def short_bytes(
    message: str, field: str, data: Buffer, end: int, length: int, *, hint: str = ""
) -> DecodeError:
    """Return the error for a field of ``length`` bytes whose ``end`` its buffer does not reach."""
    start = end - length
    if length < 0:
        return DecodeError(message, field, start, _hinted("0 bytes or more", hint), str(length))
    return _short(message, field, start, _hinted(f"{length} bytes", hint), len(data) - start)


def trailing(message: str, data: Buffer, end: int, *, hint: str = "") -> DecodeError:
    """Return the error for a buffer that goes on after the message."""
    extra = memoryview(data).nbytes - end
    return DecodeError(message, "", end, _hinted("the end", hint), f"{extra} more bytes")


def unexpected(message: str, field: str, offset: int, expected: str, got: object) -> DecodeError:
    """Return the error for a field with a value that it must not have."""
    return DecodeError(message, field, offset, expected, repr(got))


def within(message: str, field: str, value: int, smallest: int, largest: int) -> int:
    """Return ``value`` when it lies within its field's limits.

    Raises:
        EncodeError: it does not.
    """
    if smallest <= value <= largest:
        return value
    raise EncodeError(message, field, f"an integer from {smallest} to {largest}", repr(value))


def exactly(message: str, field: str, value: Buffer, size: int) -> bytes:
    """Return ``value`` as bytes when it is exactly ``size`` bytes long.

    Raises:
        EncodeError: it is longer, shorter or no bytes at all.
    """
    given = bytes(octets(message, field, value))
    if len(given) == size:
        return given
    raise EncodeError(message, field, f"{size} bytes", f"{len(given)} bytes")


def agree(message: str, field: str, stated: int, actual: int) -> None:
    """Check that a length which the caller states is the length there is.

    Raises:
        EncodeError: it is not.
    """
    if stated != actual:
        expected = f"the {actual} bytes there are"
        raise EncodeError(message, field, expected, f"a length of {stated}")


def octets(message: str, field: str, value: Buffer) -> Buffer:
    """Return ``value`` when it is a buffer of bytes.

    Raises:
        EncodeError: it is something else; text, for example, must be encoded by the caller.
    """
    if isinstance(value, bytes | bytearray | memoryview):
        return value
    raise EncodeError(message, field, "bytes", f"a {type(value).__name__}")


def _short(message: str, field: str, offset: int, expected: str, left: int) -> DecodeError:
    return DecodeError(message, field, offset, expected, f"{max(left, 0)} before the end")


def _hinted(expected: str, hint: str) -> str:
    return f"{expected} ({hint})" if hint else expected
