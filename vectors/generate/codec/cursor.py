"""Reading and writing messages that nest: the cursor, what is refused, and what can be spoilt."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

Record = dict[str, Any]


class RefusedError(Exception):
    """Bytes that are not what they should be.

    Attributes:
        reason: ``short``, ``trailing``, ``value`` or ``checksum``.
        field: the innermost field at fault, or ``""`` after the last one.
        offset: where the piece that cannot be read begins.
    """

    def __init__(self, reason: str, name: str, offset: int) -> None:
        super().__init__(f"{reason}: {name} at {offset}")
        self.reason, self.field, self.offset = reason, name, offset


@dataclass(slots=True)
class Reader:
    """Bytes that are being read.

    Attributes:
        data: all of them.
        end: where reading must stop.
        version: of the protocol.
        place: offset of the next byte.
        name: the field that is being read.
        rows: rows of the table that is being read.
        present: rows that the column at hand has values for.
        record: what was read of the innermost message.
    """

    data: bytes
    end: int
    version: int = 0
    place: int = 0
    name: str = ""
    rows: int = 0
    present: int = 0
    record: Record = field(default_factory=dict)

    @property
    def left(self) -> int:
        """Bytes up to where reading must stop."""
        return self.end - self.place

    def take(self, size: int) -> bytes:
        """Return the next bytes, or refuse when they are not there."""
        if size < 0:
            raise self.refused("value")
        if size > self.left:
            raise self.refused("short")
        self.place += size
        return self.data[self.place - size : self.place]

    def refused(self, reason: str, place: int | None = None) -> RefusedError:
        """Return the refusal of the field that is being read."""
        return RefusedError(reason, self.name, self.place if place is None else place)


@dataclass(slots=True)
class Writer:
    """How a message is written.

    Attributes:
        version: of the protocol.
        rows: rows of the table that is being written.
        record: the values of the innermost message.
    """

    version: int = 0
    rows: int = 0
    record: Record = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Mutation:
    """One way of getting a field wrong.

    Attributes:
        name: what an id calls it.
        flag: the note that explains it.
        comment: what is wrong, as a sentence.
        at: where in the field's bytes.
        remove: how many bytes go.
        insert: what comes instead.
        reason: why a reader must refuse, where it is the same in every place.
    """

    name: str
    flag: str
    comment: str
    at: int
    remove: int
    insert: bytes
    reason: str = ""


class Shape:
    """How one field is written.

    Attributes:
        least: fewest bytes that it takes.
        open_end: whether fewer bytes may be as good as more.
        given: whether somebody who writes has to give it.
    """

    least = 0
    open_end = False
    given = True

    def write(self, value: Any, writer: Writer) -> bytes:
        """Return the bytes of a value."""
        raise NotImplementedError

    def read(self, reader: Reader) -> Any:
        """Return the value that stands there."""
        raise NotImplementedError

    def show(self, value: Any, version: int) -> Any:
        """Return a value as JSON."""
        del version
        return value.hex() if isinstance(value, bytes) else value

    def locations(self, value: Any, writer: Writer) -> list[Any] | None:
        """Return where the fields inside stand, or None where it is one field."""
        del value, writer
        return None

    def mutations(self, raw: bytes) -> Iterator[Mutation]:
        """Return the ways of getting it wrong."""
        del raw
        yield from ()
