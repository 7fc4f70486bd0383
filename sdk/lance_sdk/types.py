"""The values an application gets: records, batches of them, receipts and reports."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeAlias

from lance_spec.checksum import Buffer
from lance_spec.enums import RecordType
from lance_spec.limits import RECORD_HEADER_SIZE

if TYPE_CHECKING:
    from datetime import datetime

    from lance_sdk.values.contract import Codec
    from lance_sdk.values.keyed_parts import KeyedParts
    from lance_spec.bodies import TopicInfo

__all__ = [
    "BatchTimes",
    "Buffer",
    "CloseReport",
    "OpaqueBytes",
    "PartitionedTopic",
    "PartitionerName",
    "Record",
    "RecordBatch",
    "RecordMetadata",
]

PartitionerName: TypeAlias = Literal["murmur2", "siphash"]
"""How producers find the partition of a key, as a server describes it (AMB-59)."""
KEYED: Final = frozenset({RecordType.KEY_VALUE, RecordType.TIMESTAMPED, RecordType.KEY_TIMESTAMPED})
"""Types whose stored bytes begin with a key or a time (LWP section 8.3)."""
_NOT_PLAIN: Final = KEYED | {RecordType.NULL}


def _deprecated(old: str, new: str) -> None:
    warnings.warn(
        f"{old} is deprecated since 0.2: a Record is not a tuple any more; use {new}",
        DeprecationWarning,
        stacklevel=3,
    )


class Record:
    """One record of a topic.

    Two records are equal when they are the same bytes at the same place.

    Args:
        offset: see below.
        type: see below.
        raw: see below.
        topic: see below.
        codec: how `value` reads the payload, as the consumer's ``values=`` says; None leaves it
            as bytes.
        value: the former name of ``raw``, for one release.

    Attributes:
        offset: byte offset of the record in its topic; seek here to read it again.
        type: TLV type, see `lance_spec.enums.RecordType` (LWP section 8.2).
        raw: the bytes as they are stored: with the key and the time that may stand before the
            payload (LWP section 8.3). `Producer.send_raw` stores them once more.
        topic: name of the topic, or ``#id`` when it was addressed by number.
    """

    __slots__ = ("_codec", "offset", "raw", "topic", "type")
    offset: int
    type: int
    raw: bytes
    topic: str
    _codec: "Codec | None"

    def __new__(
        cls,
        offset: int,
        type: int,  # noqa: A002 - the field's public name
        raw: bytes | None = None,
        topic: str = "",
        codec: "Codec | None" = None,
        *,
        value: bytes | None = None,
    ) -> Self:
        """Make one; ``__new__`` and not ``__init__``, so that pickles of 0.1 can be loaded."""
        if value is not None:
            _deprecated("Record(value=…)", "Record(raw=…)")
            raw = value
        if raw is None:
            raise TypeError("Record() needs raw: the record's bytes as they are stored")
        record = object.__new__(cls)
        record.offset, record.type, record.raw = offset, type, raw
        record.topic, record._codec = topic, codec
        return record

    def __repr__(self) -> str:
        kind = self.__class__.__name__
        return (
            f"{kind}(offset={self.offset!r}, type={self.type!r}, raw={self.raw!r}, "
            f"topic={self.topic!r})"
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Record):
            return NotImplemented
        return self._fields_of() == other._fields_of()

    def __hash__(self) -> int:
        return hash(self._fields_of())

    def __reduce__(self) -> tuple[Any, ...]:
        return self.__class__, (*self._fields_of(), self._codec)

    def __iter__(self) -> Iterator[Any]:
        _deprecated("unpacking a Record", "its attributes")
        return iter(self._fields_of())

    def __getitem__(self, index: Any) -> Any:
        _deprecated("indexing a Record", "its attributes")
        return self._fields_of()[index]

    def _replace(self, **changes: Any) -> Self:
        _deprecated("Record._replace", "Record(offset, type, raw, topic)")
        if "value" in changes:
            changes["raw"] = changes.pop("value")
        names = ("offset", "type", "raw", "topic")
        return self.__class__(
            **{**dict(zip(names, self._fields_of(), strict=True)), **changes}, codec=self._codec
        )

    def _fields_of(self) -> tuple[int, int, bytes, str]:
        return self.offset, self.type, self.raw, self.topic

    @property
    def value(self) -> Any:
        """What was sent: the payload without key and time; None for a tombstone (AMB-56).

        Bytes, unless the consumer's ``values=`` says how to decode them. The stored bytes are
        `raw`; of `OpaqueBytes` both are the same.

        Raises:
            UndecodableRecord: the record is not laid out as its type says (LWP section 8.3), or
                the payload is not what ``values=`` reads.
        """
        if self._codec is None and self.type not in _NOT_PLAIN:
            return self.raw
        return self._value()

    def _value(self) -> Any:
        if self.is_tombstone:
            return None
        return self.body if self._codec is None else self.decode(self._codec)

    @property
    def next_offset(self) -> int:
        """Byte offset after this record; seek here to go on with the next one."""
        return self.offset + RECORD_HEADER_SIZE + len(self.raw)

    @property
    def is_tombstone(self) -> bool:
        """Whether it is a NULL record, or has a key or a time and an empty payload (AMB-56).

        Raises:
            UndecodableRecord: the record is not laid out as its type says (LWP section 8.3).
        """
        return self.type == RecordType.NULL or (self.type in KEYED and not self.body)

    @property
    def is_opaque(self) -> bool:
        """Whether these are bytes that are not a record, see `OpaqueBytes`."""
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
        """The bytes of the payload, never decoded, without the key and the time before them.

        Raises:
            UndecodableRecord: the record is not laid out as its type says (LWP section 8.3).
        """
        return self._parts().body if self.type in KEYED else self.raw

    def decode(self, values: Any = None) -> Any:
        """Return what the record says; None for a tombstone.

        Args:
            values: how to read the body: a codec, or ``raw``, ``text``, ``json``, ``msgpack``
                or ``avro``, or the class of the object; by default what the record's type says,
                else bytes.

        Raises:
            UndecodableRecord: the body is something else.
            ConfigError: there is no such codec, or its package is missing.
        """
        from lance_sdk.values.reading import value_of  # noqa: PLC0415 - see _parts

        return value_of(self, values)

    def text(self) -> str:
        """Return the body as UTF-8 text; raises `UndecodableRecord` if it is not valid."""
        return str(self.decode("text"))

    def json(self) -> Any:
        """Return what the body says as JSON; raises `UndecodableRecord` if it is not valid."""
        return self.decode("json")

    def _parts(self) -> "KeyedParts":
        # Loaded here: most programs read plain values, and need none of it.
        from lance_sdk.values.reading import parts_of  # noqa: PLC0415

        return parts_of(self)


class OpaqueBytes(Record):
    """Bytes of a log that are not records, with ``on_opaque="bytes"`` (AMB-27).

    Where several batches stand after each other, or one is larger than ``max_fetch_bytes``,
    they come in pieces that say nothing about where the batches begin.

    Attributes:
        offset: byte offset of the first byte in its topic.
        type: `OPAQUE`, which is the type of no record.
        raw: the bytes as they were stored; `value` is the same.
        topic: name of the topic, or ``#id`` when it was addressed by number.
    """

    __slots__ = ()

    @property
    def value(self) -> bytes:
        """The bytes as they were stored; ``values=`` decodes none of them."""
        return self.raw

    @property
    def next_offset(self) -> int:
        """Byte offset after the last byte."""
        return self.offset + len(self.raw)


OPAQUE: Final = -1
"""The ``type`` of `OpaqueBytes`."""

_read_header = Struct("<BL").unpack_from  # type and length (LWP section 8.1)
_make_record = object.__new__  # skips the constructor's checks


@dataclass(frozen=True, slots=True)
class RecordBatch:
    """Whole records that arrived together; iterate it to decode them.

    Attributes:
        topic: name of the topic, or ``#id`` when it was addressed by number.
        offset: byte offset of the first record.
        count: number of records.
        data: the records as they stand in the log, whole ones only (LWP section 8.4).
        opaque: whether the data are not records but one `OpaqueBytes` (AMB-27).
        codec: how ``value`` of the records reads their payloads; None leaves them as bytes.
    """

    topic: str
    offset: int
    count: int
    data: bytes
    opaque: bool = False
    codec: "Codec | None" = field(default=None, compare=False, repr=False)

    def __repr__(self) -> str:
        held = "opaque" if self.opaque else f"records={self.count}"
        return f"<RecordBatch {self.topic} {self.offset}..{self.next_offset} {held}>"

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Record]:
        # The data was judged when it arrived and is whole records: nothing is checked here.
        data, base, topic, codec = self.data, self.offset, self.topic, self.codec
        if self.opaque:
            yield OpaqueBytes(base, OPAQUE, data, topic)
            return
        position, end = 0, len(data)
        while position < end:
            record_type, length = _read_header(data, position)
            raw_at = position + RECORD_HEADER_SIZE
            following = raw_at + length
            record = _make_record(Record)
            record.offset = base + position
            record.type = record_type
            record.raw = data[raw_at:following]
            record.topic = topic
            record._codec = codec  # noqa: SLF001 - the constructor, without its checks
            yield record
            position = following

    @property
    def next_offset(self) -> int:
        """Byte offset after the last record."""
        return self.offset + len(self.data)


@dataclass(frozen=True, slots=True)
class BatchTimes:
    """When the batches of a range of a topic were stored (AMB-61).

    Attributes:
        offsets: byte offset at which each batch begins, rising.
        times_ns: when the server stored each of them, in nanoseconds since the Unix epoch.
        next_offset: byte offset up to which the range was told; the end of the range, or of the
            topic, when nothing is left to ask for.
    """

    offsets: tuple[int, ...]
    times_ns: tuple[int, ...]
    next_offset: int


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


@dataclass(frozen=True, slots=True)
class PartitionedTopic:
    """A topic of several partitions, as its server describes it (AMB-59).

    Attributes:
        name: its name.
        partitions: how many it has.
        partitioner: how producers find the partition of a key: ``murmur2``, as Kafka's clients
            do, or ``siphash``, as Fluvio's do.
        topics: the topic of each partition, ``NAME-0`` and so on, in their order. One that the
            server cannot serve at the moment is not among them.
    """

    name: str
    partitions: int
    partitioner: str
    topics: "tuple[TopicInfo, ...]" = field(repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all partitions, in their order."""
        return tuple(f"{self.name}-{index}" for index in range(self.partitions))
