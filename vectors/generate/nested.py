"""Messages, and shapes that hold others: options, lists, choices, messages behind a length."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from generate.cursor import Eye, Pen, Record, RefusedError, Shape, Slip
from generate.shapes import Flag, Num, Varint
from generate.wire import crc


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
class Spot:
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
        end: byte behind the last, None for the end of the message, or -4 for the checksum itself.
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
        return b"".join(raw for _, raw in self.parts(value, Pen(version, rows)))

    def parts(self, value: Record, pen: Pen) -> list[tuple[Field, bytes]]:
        """Return each field that the version has, and its bytes."""
        inner = Pen(pen.version, pen.rows, value)
        given = value | ({self.seal.name: 0} if self.seal else {})
        written = [
            (each, each.shape.write(given.get(each.name), inner))
            for each in self.fields
            if each.there(pen.version)
        ]
        unknown = set(value) - {each.name for each in self.fields}
        assert not unknown, f"{self.name} has no {unknown}"
        return self._sealed(written) if self.seal else written

    def spots(self, value: Record, pen: Pen) -> list[Spot]:
        """Return where each field stands; fields of columns stand for themselves."""
        found, place, inner = [], 0, Pen(pen.version, pen.rows, value)
        for each, raw in self.parts(value, pen):
            within = each.shape.spots(value.get(each.name), inner)
            if within is None:
                found.append(Spot(each.name, place, raw, each.shape))
            else:
                found += [replace(one, place=place + one.place) for one in within]
            place += len(raw)
        return found

    def _sealed(self, written: list[tuple[Field, bytes]]) -> list[tuple[Field, bytes]]:
        assert self.seal
        right = self.seal.of(b"".join(raw for _, raw in written))
        return [(each, right if each.name == self.seal.name else raw) for each, raw in written]

    def read(self, eye: Eye) -> Record:
        """Return the values of the message that stands there."""
        outer, eye.record = eye.record, {}
        for each in self.fields:
            if each.there(eye.version):
                eye.name = each.name
                eye.record[each.name] = each.shape.read(eye)
        found, eye.record = eye.record, outer
        return found

    def decode(self, data: bytes, version: int = 0) -> Record:
        """Return the message that the bytes are, all of them and nothing else.

        Raises:
            RefusedError: they are not that message.
        """
        eye = Eye(data, len(data), version)
        found = self.read(eye)
        if eye.left:
            raise RefusedError("trailing", "", eye.place)
        if self.seal:
            place = self.place(self.seal.name, found, version)
            if data[place : place + 4] != self.seal.of(data):
                raise RefusedError("checksum", self.seal.name, place)
        return found

    def place(self, name: str, value: Record, version: int) -> int:
        """Return where a field of a message begins."""
        return next(spot.place for spot in self.spots(value, Pen(version)) if spot.name == name)

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

    def write(self, value: Any, pen: Pen) -> bytes:
        """Return the message's bytes."""
        return b"".join(raw for _, raw in self.struct.parts(value, pen))

    def show(self, value: Any, version: int) -> Any:
        """Return the message as JSON."""
        return self.struct.show(value, version)

    def read(self, eye: Eye) -> Record:
        """Return the message."""
        return self.struct.read(eye)


class Maybe(Shape):
    """A byte that says whether a value follows, and the value if so."""

    least = 1

    def __init__(self, item: Shape) -> None:
        self.item = item

    def write(self, value: Any, pen: Pen) -> bytes:
        """Return the byte, and the value's bytes."""
        return b"\0" if value is None else b"\1" + self.item.write(value, pen)

    def read(self, eye: Eye) -> Any:
        """Return the value, or None."""
        return self.item.read(eye) if Flag().read(eye) else None

    def show(self, value: Any, version: int) -> Any:
        """Return the value as JSON, or null."""
        return None if value is None else self.item.show(value, version)

    def slips(self, raw: bytes) -> Iterator[Slip]:
        """A byte that is neither 0 nor 1, and what can be wrong with the value."""
        yield from Flag().slips(raw[:1])
        if raw[0]:
            for each in self.item.slips(raw[1:]):
                name = "value-is-2" if each.name == "is-2" else each.name
                yield replace(each, name=name, at=each.at + 1)


class Many(Shape):
    """A count and as many values."""

    def __init__(self, count: Num | Varint, item: Shape) -> None:
        self.count, self.item = count, item
        self.least = count.least

    def write(self, value: Any, pen: Pen) -> bytes:
        """Return the count, and the bytes of each value."""
        return self.count.raw(len(value)) + b"".join(self.item.write(each, pen) for each in value)

    def show(self, value: Any, version: int) -> Any:
        """Return the values as JSON."""
        return [self.item.show(each, version) for each in value]

    def read(self, eye: Eye) -> list[Any]:
        """Return the values; a count that the bytes left cannot hold is refused at once."""
        start, name, count = eye.place, eye.name, self.count.read(eye)
        if count < 0:
            raise eye.refused("value", start)
        if count * self.item.least > eye.left:
            raise eye.refused("short", start)
        found = []
        for _ in range(count):
            eye.name = name
            found.append(self.item.read(eye))
        return found

    def slips(self, raw: bytes) -> Iterator[Slip]:
        """Counts that cannot be."""
        eye = Eye(raw, len(raw))
        count = self.count.read(eye)
        most = 2**31 if isinstance(self.count, Varint) else self.count.most
        for wrong in dict.fromkeys((count + 1, most)):
            comment = f"The count says {wrong}, there are {count}."
            insert = self.count.raw(wrong)
            yield Slip(f"counts-{wrong}", "Count", comment, 0, eye.place, insert)
        if getattr(self.count, "signed", False):
            comment = "The count says -1."
            yield Slip(
                "counts-minus-1", "Count", comment, 0, eye.place, self.count.raw(-1), "value"
            )


class Filled(Shape):
    """Values up to the end."""

    open_end = True

    def __init__(self, item: Shape) -> None:
        self.item = item

    def write(self, value: Any, pen: Pen) -> bytes:
        """Return the bytes of each value."""
        return b"".join(self.item.write(each, pen) for each in value)

    def show(self, value: Any, version: int) -> Any:
        """Return the values as JSON."""
        return [self.item.show(each, version) for each in value]

    def read(self, eye: Eye) -> list[Any]:
        """Return the values."""
        name, found = eye.name, []
        while eye.left:
            eye.name = name
            found.append(self.item.read(eye))
        return found


class Sized(Shape):
    """A length in bytes, and one value that takes exactly those."""

    def __init__(self, prefix: Num | Varint, item: Shape) -> None:
        self.prefix, self.item = prefix, item
        self.least = prefix.least + item.least

    def write(self, value: Any, pen: Pen) -> bytes:
        """Return length and value."""
        raw = self.item.write(value, pen)
        return self.prefix.raw(len(raw)) + raw

    def read(self, eye: Eye) -> Any:
        """Return the value; what it leaves over is refused."""
        name, outer = eye.name, eye.end
        size = len(eye.take(self.prefix.read(eye)))
        eye.end, eye.place = eye.place, eye.place - size
        found = self.item.read(eye)
        if eye.left:
            eye.name = name
            raise eye.refused("trailing")
        eye.end = outer
        return found

    def show(self, value: Any, version: int) -> Any:
        """Return the value as JSON."""
        return self.item.show(value, version)

    def slips(self, raw: bytes) -> Iterator[Slip]:
        """Lengths that are not the value's."""
        eye = Eye(raw, len(raw))
        size = self.prefix.read(eye)
        most = 2**31 if isinstance(self.prefix, Varint) else self.prefix.most
        wrong = [size + 1, most, *([size - 1] if size and not self.item.open_end else [])]
        if getattr(self.prefix, "signed", False):
            wrong.append(-1)
        for value in wrong:
            comment = f"The length says {value}, it should be {size}."
            name = f"length-{'minus-1' if value < 0 else value}"
            yield Slip(name, "Length", comment, 0, eye.place, self.prefix.raw(value))


class Choice(Shape):
    """A message that depends on an earlier field; values without one carry nothing."""

    def __init__(self, tag: str, cases: Mapping[int, Struct]) -> None:
        self.tag, self.cases = tag, dict(cases)

    def write(self, value: Any, pen: Pen) -> bytes:
        """Return the message's bytes."""
        case = self.cases.get(pen.record[self.tag])
        return Nested(case).write(value, pen) if case else b""

    def show(self, value: Any, version: int) -> Any:
        """Return the message as JSON, or null."""
        if value is None:
            return None
        case = next(each for each in self.cases.values() if _names(each) == set(value))
        return case.show(value, version)

    def read(self, eye: Eye) -> Any:
        """Return the message, or None."""
        case = self.cases.get(eye.record[self.tag])
        return case.read(eye) if case else None


def _names(struct: Struct) -> set[str]:
    return {each.name for each in struct.fields}
