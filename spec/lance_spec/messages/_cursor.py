"""Reading and writing composed messages step by step.

Generated classes name message and field before each step, so that an error says where it
happened. Lengths are held against the bytes that are left before anything is sliced.
"""

from typing import Protocol, Self, TypeVar

from lance_spec.checksum import Buffer
from lance_spec.errors import DecodeError, EncodeError
from lance_spec.messages._layout import trailing

T = TypeVar("T")
C = TypeVar("C", bound="Composed")


class Composed(Protocol):
    """What every generated class of a composed family can do."""

    @classmethod
    def read(cls, source: "Source", /) -> Self:
        """Read one where ``source`` stands."""
        ...

    def write(self, sink: "Sink", /) -> None:
        """Write it to the end of ``sink``."""
        ...


class Source:
    """Bytes that are being read.

    Attributes:
        data: the bytes, up to where reading must end.
        place: offset of the next byte.
        version: version of the protocol that the bytes are written in.
        message: name of the message that is being read, for errors.
        field: name of the field that is being read, for errors.
        rows: rows of the table that is being read.
        present: rows that the column which is being read has values for.
    """

    __slots__ = ("data", "field", "message", "place", "present", "rows", "version")

    def __init__(self, data: Buffer, version: int = 0) -> None:
        self.data = memoryview(data).cast("B")
        self.place = 0
        self.rows = self.present = 0
        self.version = version
        self.message = ""
        self.field = ""

    def __repr__(self) -> str:
        return f"Source({self.message}.{self.field}; {self.place} of {len(self.data)} bytes)"

    @property
    def left(self) -> int:
        """Bytes that are still to be read."""
        return len(self.data) - self.place

    def take(self, message: str, field: str, codec: "Codec[T]") -> T:
        """Read one field."""
        self.message, self.field = message, field
        return codec.read(self)

    def require(self, message: str, version: int) -> None:
        """Check that the layout of a message is the one its version has.

        Raises:
            DecodeError: the layout came with a later version.
        """
        if self.version < version:
            expected = f"version {version} or later"
            raise DecodeError(message, "", self.place, expected, f"version {self.version}")

    def carve(self, size: int) -> memoryview:
        """Return the next ``size`` bytes and go behind them.

        Raises:
            DecodeError: they are not there, or the size is negative.
        """
        start = self.place
        if size < 0:
            raise self.fault("a length of 0 or more", str(size))
        if size > len(self.data) - start:
            raise self.short(size)
        self.place = start + size
        return self.data[start : self.place]

    def short(self, size: int) -> DecodeError:
        """Return the error for a field of ``size`` bytes that are not there."""
        return self.fault(f"{size} bytes", f"{self.left} before the end")

    def fault(self, expected: str, got: str, offset: int | None = None) -> DecodeError:
        """Return the error for the field that is being read."""
        where = self.place if offset is None else offset
        return DecodeError(self.message, self.field, where, expected, got)


class Sink:
    """Bytes that are being written.

    Attributes:
        data: what was written so far.
        version: version of the protocol to write.
        message: name of the message that is being written, for errors.
        field: name of the field that is being written, for errors.
        rows: rows of the table that is being written.
        present: rows that the column which is being written has values for.
    """

    __slots__ = ("data", "field", "message", "present", "rows", "version")

    def __init__(self, version: int = 0) -> None:
        self.data = bytearray()
        self.rows = self.present = 0
        self.version = version
        self.message = ""
        self.field = ""

    def __repr__(self) -> str:
        return f"Sink({self.message}.{self.field}; {len(self.data)} bytes)"

    def put(self, message: str, field: str, codec: "Codec[T]", value: T) -> None:
        """Write one field."""
        self.message, self.field = message, field
        codec.write(self, value)

    def require(self, message: str, version: int) -> None:
        """Check that the layout of a message is the one its version has.

        Raises:
            EncodeError: the layout came with a later version.
        """
        if self.version < version:
            expected = f"version {version} or later"
            raise EncodeError(message, "version", expected, f"version {self.version}")

    def omit(self, message: str, field: str, value: object, absent: object) -> None:
        """Check that a field which this version does not write has nothing to say.

        Raises:
            EncodeError: it has; dropping it in silence would change the message.
        """
        if value != absent:
            expected = f"{absent!r}, because version {self.version} does not write it"
            raise EncodeError(message, field, expected, repr(value))

    def misfit(self, expected: str, value: object) -> EncodeError:
        """Return the error for the field that is being written."""
        return EncodeError(self.message, self.field, expected, repr(value))


class Codec(Protocol[T]):
    """Reads and writes one shape."""

    def read(self, source: Source, /) -> T:
        """Read a value where ``source`` stands."""
        ...

    def write(self, sink: Sink, value: T, /) -> None:
        """Write a value to the end of ``sink``."""
        ...


def whole(cls: type[C], data: Buffer, version: int = 0) -> C:
    """Return the message that ``data`` is, all of it and nothing else.

    Raises:
        DecodeError: it is not that message.
    """
    source = Source(data, version)
    value = cls.read(source)
    if source.left:
        raise trailing(cls.__name__, source.data, source.place)
    return value


def written(message: Composed, version: int = 0) -> bytes:
    """Return a message as bytes.

    Raises:
        EncodeError: a value does not fit its field.
    """
    sink = Sink(version)
    message.write(sink)
    return bytes(sink.data)
