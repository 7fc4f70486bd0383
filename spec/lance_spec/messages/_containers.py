"""Codecs for bytes, options, lists, unions and nested messages; see `lance_spec.ir.shapes`.

A count is held against the bytes that are left before anything is read or allocated.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Generic, TypeVar

from lance_spec.checksum import Buffer
from lance_spec.messages._cursor import Codec, Composed, Sink, Source
from lance_spec.messages._numbers import BOOL

T = TypeVar("T")
C = TypeVar("C", bound=Composed)


class Raw:
    """Bytes of a size that is known."""

    __slots__ = ("size",)

    def __init__(self, size: int) -> None:
        self.size = size

    def read(self, source: Source) -> bytes:
        """Read the bytes."""
        return bytes(source.carve(self.size))

    def write(self, sink: Sink, value: Buffer) -> None:
        """Write the bytes, when there are as many."""
        raw = _octets(sink, value)
        if len(raw) != self.size:
            raise sink.misfit(f"{self.size} bytes", value)
        sink.data += raw


class Remainder:
    """All bytes to the end."""

    def read(self, source: Source) -> bytes:
        """Read the bytes."""
        return bytes(source.carve(source.left))

    def write(self, sink: Sink, value: Buffer) -> None:
        """Write the bytes."""
        sink.data += _octets(sink, value)


REST = Remainder()


class Octets:
    """Bytes behind their length."""

    __slots__ = ("prefix",)

    def __init__(self, prefix: Codec[int]) -> None:
        self.prefix = prefix

    def read(self, source: Source) -> bytes:
        """Read length and bytes."""
        return bytes(source.carve(self.prefix.read(source)))

    def write(self, sink: Sink, value: Buffer) -> None:
        """Write length and bytes."""
        raw = _octets(sink, value)
        self.prefix.write(sink, len(raw))
        sink.data += raw


class Text:
    """UTF-8 behind its length in bytes."""

    __slots__ = ("prefix",)

    def __init__(self, prefix: Codec[int]) -> None:
        self.prefix = prefix

    def read(self, source: Source) -> str:
        """Read length and text."""
        raw = source.carve(self.prefix.read(source))
        try:
            return str(raw, "utf-8")
        except UnicodeDecodeError as error:
            wrong = source.place - len(raw) + error.start
            raise source.fault("UTF-8", f"byte 0x{raw[error.start]:02x}", wrong) from None

    def write(self, sink: Sink, value: str) -> None:
        """Write length and text."""
        if not isinstance(value, str):
            raise sink.misfit("text", value)
        try:
            raw = value.encode()
        except UnicodeEncodeError:
            raise sink.misfit("text without lone surrogates", value) from None
        self.prefix.write(sink, len(raw))
        sink.data += raw


class Nullable(Generic[T]):
    """Bytes or text behind a length of which -1 says that there is no value."""

    __slots__ = ("item", "prefix")

    def __init__(self, prefix: Codec[int], item: Codec[T]) -> None:
        self.prefix, self.item = prefix, item

    def read(self, source: Source) -> T | None:
        """Read the value, or None."""
        start = source.place
        if self.prefix.read(source) == -1:
            return None
        source.place = start
        return self.item.read(source)

    def write(self, sink: Sink, value: T | None) -> None:
        """Write the value, or that there is none."""
        if value is None:
            self.prefix.write(sink, -1)
        else:
            self.item.write(sink, value)


class Maybe(Generic[T]):
    """A byte that says whether a value follows, and the value if so."""

    __slots__ = ("item",)

    def __init__(self, item: Codec[T]) -> None:
        self.item = item

    def read(self, source: Source) -> T | None:
        """Read the value, or None."""
        return self.item.read(source) if BOOL.read(source) else None

    def write(self, sink: Sink, value: T | None) -> None:
        """Write the value, or that there is none."""
        sink.data.append(value is not None)
        if value is not None:
            self.item.write(sink, value)


class Many(Generic[T]):
    """A count and as many values.

    Attributes:
        count: how the count is written.
        item: how one value is written.
        least: fewest bytes that one value takes; it bounds the count.
    """

    __slots__ = ("count", "item", "least")

    def __init__(self, count: Codec[int], item: Codec[T], least: int) -> None:
        self.count, self.item, self.least = count, item, least

    def read(self, source: Source) -> list[T]:
        """Read the values; a count that cannot be true is refused before anything is read."""
        start, count = source.place, self.count.read(source)
        if not 0 <= count * self.least <= source.left:
            expected = f"a count of 0 to {source.left // self.least}"
            raise source.fault(expected, str(count), start)
        message, field = source.message, source.field
        return [source.take(message, field, self.item) for _ in range(count)]

    def write(self, sink: Sink, value: Sequence[T]) -> None:
        """Write count and values."""
        values = _sequence(sink, value)
        self.count.write(sink, len(values))
        message, field = sink.message, sink.field
        for each in values:
            sink.put(message, field, self.item, each)


class Filled(Generic[T]):
    """Values up to the end."""

    __slots__ = ("item",)

    def __init__(self, item: Codec[T]) -> None:
        self.item = item

    def read(self, source: Source) -> list[T]:
        """Read values until no byte is left."""
        message, field = source.message, source.field
        found: list[T] = []
        while source.left:
            found.append(source.take(message, field, self.item))
        return found

    def write(self, sink: Sink, value: Sequence[T]) -> None:
        """Write the values."""
        message, field = sink.message, sink.field
        for each in _sequence(sink, value):
            sink.put(message, field, self.item, each)


class Sized(Generic[T]):
    """A length in bytes and one value that takes exactly those."""

    __slots__ = ("item", "prefix")

    def __init__(self, prefix: Codec[int], item: Codec[T]) -> None:
        self.prefix, self.item = prefix, item

    def read(self, source: Source) -> T:
        """Read the value; bytes that it leaves over are an error."""
        message, field, outer = source.message, source.field, source.data
        size = len(source.carve(self.prefix.read(source)))
        source.data = outer[: source.place]
        source.place -= size
        value = self.item.read(source)
        if source.left:
            source.message, source.field = message, field
            raise source.fault("the end", f"{source.left} more bytes")
        source.data = outer
        return value

    def write(self, sink: Sink, value: T) -> None:
        """Write length and value."""
        message, field, outer = sink.message, sink.field, sink.data
        sink.data = bytearray()
        try:
            self.item.write(sink, value)
        finally:
            inner, sink.data = sink.data, outer
        sink.message, sink.field = message, field
        self.prefix.write(sink, len(inner))
        sink.data += inner


class Part(Generic[C]):
    """Another message of the family."""

    __slots__ = ("cls",)

    def __init__(self, cls: type[C]) -> None:
        self.cls = cls

    def read(self, source: Source) -> C:
        """Read the message."""
        return self.cls.read(source)

    def write(self, sink: Sink, value: C) -> None:
        """Write the message."""
        if not isinstance(value, self.cls):
            raise sink.misfit(f"a {self.cls.__name__}", value)
        value.write(sink)


class Nothing:
    """No bytes at all."""

    def read(self, source: Source) -> None:
        """Read nothing."""

    def write(self, sink: Sink, value: None) -> None:
        """Write nothing.

        Raises:
            EncodeError: there is a value.
        """
        if value is not None:
            raise sink.misfit("None with this tag", value)


_NOTHING: Final = Nothing()


class Choice:
    """A message that depends on a tag; tags without a message carry nothing."""

    __slots__ = ("_cases",)

    def __init__(self, cases: Mapping[int, Codec[Any]]) -> None:
        self._cases = dict(cases)

    def of(self, tag: int) -> Codec[Any]:
        """Return the codec for a tag, which is known to be one that there is."""
        return self._cases.get(tag, _NOTHING)


def _octets(sink: Sink, value: Buffer) -> Buffer:
    if isinstance(value, bytes | bytearray | memoryview):
        return value
    raise sink.misfit("bytes", value)


def _sequence(sink: Sink, value: Sequence[T]) -> Sequence[T]:
    if isinstance(value, list | tuple):
        return value
    raise sink.misfit("a list", value)
