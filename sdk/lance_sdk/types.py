"""The values an application gets: records, batches of them, receipts and reports."""

from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from lance_spec.checksum import Buffer
from lance_spec.enums import RecordType
from lance_spec.limits import RECORD_HEADER_SIZE

if TYPE_CHECKING:
    from datetime import datetime

    from lance_sdk.values.contract import Codec
    from lance_sdk.values.keyed import Parts

__all__ = ["Buffer", "CloseReport", "OpaqueBytes", "Record", "RecordBatch", "RecordMetadata"]

KEYED: Final = frozenset({RecordType.KEY_VALUE, RecordType.TIMESTAMPED, RecordType.KEY_TIMESTAMPED})
"""Types whose value begins with a key or a time (LWP section 8.3)."""


class Record(NamedTuple):
    """One record of a topic.

    Attributes:
        offset: byte offset of the record in its topic; seek here to read it again.
        type: TLV type, see `lance_spec.enums.RecordType` (LWP section 8.2).
        value: the record's bytes.
        topic: name of the topic, or ``#id`` when it was addressed by number.
    """

    offset: int
    type: int
    value: bytes
    topic: str

    @property
    def next_offset(self) -> int:
        """Byte offset of the record behind this one; seek here to go on after it."""
        return self.offset + RECORD_HEADER_SIZE + len(self.value)

    @property
    def is_tombstone(self) -> bool:
        """Whether it is a NULL record (AMB-12)."""
        return self.type == RecordType.NULL

    @property
    def is_opaque(self) -> bool:
        """Whether these are bytes that are no record, see `OpaqueBytes`."""
        return self.type == OPAQUE

    @property
    def key(self) -> bytes | None:
        """The key, of a record that was sent with one (LWP section 8.3), else None."""
        return self._parts().key if self.type in KEYED else None

    @property
    def timestamp_ns(self) -> int | None:
        """Nanoseconds since the Unix epoch, of a record that was sent with a time, else None."""
        return self._parts().timestamp_ns if self.type in KEYED else None

    @property
    def timestamp(self) -> "datetime | None":
        """The same as a datetime in UTC, cut to microseconds.

        Raises:
            OverflowError: it lies beyond the year 9999.
        """
        when = self.timestamp_ns
        if when is None:
            return None
        from lance_sdk.values.keyed import as_datetime  # noqa: PLC0415 - see _parts

        return as_datetime(when)

    @property
    def body(self) -> bytes:
        """The value without the key and the time that may stand before it."""
        return self._parts().body if self.type in KEYED else self.value

    def decode(self, values: "Codec | str | None" = None) -> Any:
        """Return what the record says; None for a tombstone.

        Args:
            values: how to read the body: a codec, or ``raw``, ``text``, ``json``, ``msgpack``
                or ``avro``; by default what the record's type says, else bytes.

        Raises:
            UndecodableRecord: the body is something else.
            ConfigError: there is no such codec, or its package is missing.
        """
        from lance_sdk.values.reading import value_of  # noqa: PLC0415 - see _parts

        return value_of(self, values)

    def text(self) -> str:
        """Return the body as UTF-8 text; raises `UndecodableRecord` where it is none."""
        return str(self.decode("text"))

    def json(self) -> Any:
        """Return what the body says as JSON; raises `UndecodableRecord` where it is none."""
        return self.decode("json")

    def _parts(self) -> "Parts":
        # Loaded here: most programs read plain values, and need none of it.
        from lance_sdk.values.reading import parts_of  # noqa: PLC0415

        return parts_of(self)


class OpaqueBytes(Record):
    """Bytes of a log that are no records, with ``on_opaque="bytes"`` (AMB-27).

    Where several batches stand behind each other, or one is larger than ``max_fetch_bytes``,
    they come in pieces that say nothing about where the batches begin.

    Attributes:
        offset: byte offset of the first byte in its topic.
        type: `OPAQUE`, which is the type of no record.
        value: the bytes as they were stored.
        topic: name of the topic, or ``#id`` when it was addressed by number.
    """

    __slots__ = ()

    @property
    def next_offset(self) -> int:
        """Byte offset behind the last byte."""
        return self.offset + len(self.value)


OPAQUE: Final = -1
"""The ``type`` of `OpaqueBytes`."""

_read_header = Struct("<BL").unpack_from  # type and length (LWP section 8.1)
_make_record = tuple.__new__  # skips what NamedTuple does for keywords


@dataclass(frozen=True, slots=True)
class RecordBatch:
    """Whole records that arrived together; iterate it to decode them.

    Attributes:
        topic: name of the topic, or ``#id`` when it was addressed by number.
        offset: byte offset of the first record.
        count: number of records.
        data: the records as they stand in the log, whole ones only (LWP section 8.4).
        opaque: whether the data are no records but one `OpaqueBytes` (AMB-27).
    """

    topic: str
    offset: int
    count: int
    data: bytes
    opaque: bool = False

    def __repr__(self) -> str:
        held = "opaque" if self.opaque else f"records={self.count}"
        return f"<RecordBatch {self.topic} {self.offset}..{self.next_offset} {held}>"

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Record]:
        # The data was judged when it arrived and is whole records: nothing is checked here.
        data, base, topic = self.data, self.offset, self.topic
        if self.opaque:
            yield OpaqueBytes(base, OPAQUE, data, topic)
            return
        position, end = 0, len(data)
        while position < end:
            record_type, length = _read_header(data, position)
            value_at = position + RECORD_HEADER_SIZE
            following = value_at + length
            value = data[value_at:following]
            yield _make_record(Record, (base + position, record_type, value, topic))
            position = following

    @property
    def next_offset(self) -> int:
        """Byte offset behind the last record."""
        return self.offset + len(self.data)


@dataclass(frozen=True, slots=True)
class RecordMetadata:
    """The receipt of one delivered record.

    Attributes:
        topic_id: the topic it was stored in.
        batch_id: identifier of the frame that carried it.
        index: position of the record in that frame.
        attempts: how often the frame was sent.
    """

    topic_id: int
    batch_id: int
    index: int
    attempts: int


@dataclass(frozen=True, slots=True)
class CloseReport:
    """What ``close()`` found.

    Attributes:
        delivered: records acknowledged during the object's life.
        lost: records not acknowledged whose failure nobody had looked at yet.
        journaled: records that stay in the journal, to be sent by the next process.
        maybe_applied: of the lost ones, those the server may have stored all the same.
        error: why the first of them was lost, or None.
    """

    delivered: int = 0
    lost: int = 0
    maybe_applied: int = 0
    error: Exception | None = None
    journaled: int = 0

    @property
    def clean(self) -> bool:
        """Whether nothing was lost."""
        return self.lost == 0
