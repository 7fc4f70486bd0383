"""Messages, and shapes that hold others: options, lists, choices, messages after a length."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from generate.codec.cursor import Mutation, Reader, Record, RefusedError, Shape, Writer
from generate.codec.shapes import Flag, Num, Varint
from generate.codec.wire import crc


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a message.

    Attributes:
        name: its name.
        shape: how it is written.
        since: first version that has it, or 0.
        until: last version that has it.
    """

    name: str
    shape: Shape
    since: int = 0
    until: int = 2**15

    def there(self, version: int) -> bool:
        """Whether a version has it."""
        return self.since <= version <= self.until

    @property
    def least(self) -> int:
        """Fewest bytes that it takes in any version."""
        return 0 if self.since or self.until < 2**15 else self.shape.least


@dataclass(frozen=True, slots=True)
class Location:
    """Where a field stands in the bytes of a message.

    Attributes:
        name: the field's name.
        place: where it begins.
        raw: its bytes.
        shape: how it is written.
    """

    name: str
    place: int
    raw: bytes
    shape: Shape


@dataclass(frozen=True, slots=True)
class Seal:
    """A checksum over a part of a message.

    Attributes:
        name: the field that holds it.
        start: first byte that it covers.
        end: byte after the last, None for the end of the message, or -4 for the checksum itself.
        order: which of its bytes comes first.
    """

    name: str
    start: int
    end: int | None
    order: Literal["little", "big"]

    def of(self, data: bytes) -> bytes:
        """Return the right checksum as bytes."""
        return crc("crc32c", data[self.start : self.end]).to_bytes(4, self.order)


@dataclass(frozen=True, slots=True)
class Struct:
    """A message: its fields, one after another.

    Attributes:
        name: what it is called.
        fields: the fields.
        seal: its checksum, if it has one.
    """

    name: str
    fields: tuple[Field, ...]
    seal: Seal | None = None
    least: int = field(init=False)

    def __post_init__(self) -> None:
        """Add up the fewest bytes."""
        object.__setattr__(self, "least", sum(each.least for each in self.fields))

    def encode(self, value: Record, version: int = 0, rows: int = 0) -> bytes:
        """Return the bytes of a message."""
        return b"".join(raw for _, raw in self.parts(value, Writer(version, rows)))

    def parts(self, value: Record, writer: Writer) -> list[tuple[Field, bytes]]:
        """Return each field that the version has, and its bytes."""
        inner = Writer(writer.version, writer.rows, value)
        given = value | ({self.seal.name: 0} if self.seal else {})
        written = [
            (each, each.shape.write(given.get(each.name), inner))
            for each in self.fields
            if each.there(writer.version)
        ]
        unknown = set(value) - {each.name for each in self.fields}
        assert not unknown, f"{self.name} has no {unknown}"
        return self._sealed(written) if self.seal else written

    def locations(self, value: Record, writer: Writer) -> list[Location]:
        """Return where each field stands; fields of columns stand for themselves."""
        found, place, inner = [], 0, Writer(writer.version, writer.rows, value)
        for each, raw in self.parts(value, writer):
            within = each.shape.locations(value.get(each.name), inner)
            if within is None:
                found.append(Location(each.name, place, raw, each.shape))
            else:
                found += [replace(one, place=place + one.place) for one in within]
            place += len(raw)
        return found

    def _sealed(self, written: list[tuple[Field, bytes]]) -> list[tuple[Field, bytes]]:
        assert self.seal
        right = self.seal.of(b"".join(raw for _, raw in written))
        return [(each, right if each.name == self.seal.name else raw) for each, raw in written]

    def read(self, reader: Reader) -> Record:
        """Return the values of the message that stands there."""
        outer, reader.record = reader.record, {}
        for each in self.fields:
            if each.there(reader.version):
                reader.name = each.name
                reader.record[each.name] = each.shape.read(reader)
        found, reader.record = reader.record, outer
        return found

    def decode(self, data: bytes, version: int = 0) -> Record:
        """Return the message that the bytes are, all of them and nothing else.

        Raises:
            RefusedError: they are not that message.
        """
        reader = Reader(data, len(data), version)
        found = self.read(reader)
        if reader.left:
            raise RefusedError("trailing", "", reader.place)
        if self.seal:
            place = self.place(self.seal.name, found, version)
            if data[place : place + 4] != self.seal.of(data):
                raise RefusedError("checksum", self.seal.name, place)
        return found

    def place(self, name: str, value: Record, version: int) -> int:
        """Return where a field of a message begins."""
        return next(
            location.place
            for location in self.locations(value, Writer(version))
            if location.name == name
        )

    def show(self, value: Record, version: int) -> Record:
        """Return what a reader finds, as JSON."""
        return {
            each.name: each.shape.show(value[each.name], version)
            for each in self.fields
            if each.shape.given and each.there(version)
        }


class Nested(Shape):
    """A message inside another."""

    def __init__(self, struct: Struct) -> None:
        self.struct = struct
        self.least = struct.least

    def write(self, value: Any, writer: Writer) -> bytes:
        """Return the message's bytes."""
        return b"".join(raw for _, raw in self.struct.parts(value, writer))

    def show(self, value: Any, version: int) -> Any:
        """Return the message as JSON."""
        return self.struct.show(value, version)

    def read(self, reader: Reader) -> Record:
        """Return the message."""
        return self.struct.read(reader)


class Maybe(Shape):
    """A byte that says whether a value follows, and the value if so."""

    least = 1

    def __init__(self, item: Shape) -> None:
        self.item = item

    def write(self, value: Any, writer: Writer) -> bytes:
        """Return the byte, and the value's bytes."""
        return b"\0" if value is None else b"\1" + self.item.write(value, writer)

    def read(self, reader: Reader) -> Any:
        """Return the value, or None."""
        return self.item.read(reader) if Flag().read(reader) else None

    def show(self, value: Any, version: int) -> Any:
        """Return the value as JSON, or null."""
        return None if value is None else self.item.show(value, version)

    def mutations(self, raw: bytes) -> Iterator[Mutation]:
        """A byte that is neither 0 nor 1, and what can be wrong with the value."""
        yield from Flag().mutations(raw[:1])
        if raw[0]:
            for each in self.item.mutations(raw[1:]):
                name = "value-is-2" if each.name == "is-2" else each.name
                yield replace(each, name=name, at=each.at + 1)


class Many(Shape):
    """A count and as many values."""

    def __init__(self, count: Num | Varint, item: Shape) -> None:
        self.count, self.item = count, item
        self.least = count.least

    def write(self, value: Any, writer: Writer) -> bytes:
        """Return the count, and the bytes of each value."""
        return self.count.raw(len(value)) + b"".join(
            self.item.write(each, writer) for each in value
        )

    def show(self, value: Any, version: int) -> Any:
        """Return the values as JSON."""
        return [self.item.show(each, version) for each in value]

    def read(self, reader: Reader) -> list[Any]:
        """Return the values; a count that the bytes left cannot hold is refused at once."""
        start, name, count = reader.place, reader.name, self.count.read(reader)
        if count < 0:
            raise reader.refused("value", start)
        if count * self.item.least > reader.left:
            raise reader.refused("short", start)
        found = []
        for _ in range(count):
            reader.name = name
            found.append(self.item.read(reader))
        return found

    def mutations(self, raw: bytes) -> Iterator[Mutation]:
        """Counts that cannot be."""
        reader = Reader(raw, len(raw))
        count = self.count.read(reader)
        most = 2**31 if isinstance(self.count, Varint) else self.count.most
        for wrong in dict.fromkeys((count + 1, most)):
            comment = f"The count says {wrong}, there are {count}."
            insert = self.count.raw(wrong)
            yield Mutation(f"counts-{wrong}", "Count", comment, 0, reader.place, insert)
        if getattr(self.count, "signed", False):
            comment = "The count says -1."
            yield Mutation(
                "counts-minus-1", "Count", comment, 0, reader.place, self.count.raw(-1), "value"
            )


class Filled(Shape):
    """Values up to the end."""

    open_end = True

    def __init__(self, item: Shape) -> None:
        self.item = item

    def write(self, value: Any, writer: Writer) -> bytes:
        """Return the bytes of each value."""
        return b"".join(self.item.write(each, writer) for each in value)

    def show(self, value: Any, version: int) -> Any:
        """Return the values as JSON."""
        return [self.item.show(each, version) for each in value]

    def read(self, reader: Reader) -> list[Any]:
        """Return the values."""
        name, found = reader.name, []
        while reader.left:
            reader.name = name
            found.append(self.item.read(reader))
        return found


class Sized(Shape):
    """A length in bytes, and one value that takes exactly those."""

    def __init__(self, prefix: Num | Varint, item: Shape) -> None:
        self.prefix, self.item = prefix, item
        self.least = prefix.least + item.least

    def write(self, value: Any, writer: Writer) -> bytes:
        """Return length and value."""
        raw = self.item.write(value, writer)
        return self.prefix.raw(len(raw)) + raw

    def read(self, reader: Reader) -> Any:
        """Return the value; what it leaves over is refused."""
        name, outer = reader.name, reader.end
        size = len(reader.take(self.prefix.read(reader)))
        reader.end, reader.place = reader.place, reader.place - size
        found = self.item.read(reader)
        if reader.left:
            reader.name = name
            raise reader.refused("trailing")
        reader.end = outer
        return found

    def show(self, value: Any, version: int) -> Any:
        """Return the value as JSON."""
        return self.item.show(value, version)

    def mutations(self, raw: bytes) -> Iterator[Mutation]:
        """Lengths that are not the value's."""
        reader = Reader(raw, len(raw))
        size = self.prefix.read(reader)
        most = 2**31 if isinstance(self.prefix, Varint) else self.prefix.most
        wrong = [size + 1, most, *([size - 1] if size and not self.item.open_end else [])]
        if getattr(self.prefix, "signed", False):
            wrong.append(-1)
        for value in wrong:
            comment = f"The length says {value}, it should be {size}."
            name = f"length-{'minus-1' if value < 0 else value}"
            yield Mutation(name, "Length", comment, 0, reader.place, self.prefix.raw(value))


class Choice(Shape):
    """A message that depends on an earlier field; values without one carry nothing."""

    def __init__(self, tag: str, cases: Mapping[int, Struct]) -> None:
        self.tag, self.cases = tag, dict(cases)

    def write(self, value: Any, writer: Writer) -> bytes:
        """Return the message's bytes."""
        case = self.cases.get(writer.record[self.tag])
        return Nested(case).write(value, writer) if case else b""

    def show(self, value: Any, version: int) -> Any:
        """Return the message as JSON, or null."""
        if value is None:
            return None
        case = next(each for each in self.cases.values() if _names(each) == set(value))
        return case.show(value, version)

    def read(self, reader: Reader) -> Any:
        """Return the message, or None."""
        case = self.cases.get(reader.record[self.tag])
        return case.read(reader) if case else None


def _names(struct: Struct) -> set[str]:
    return {each.name for each in struct.fields}
