"""The values an application gets: records, batches of them, receipts and reports."""

from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct
from typing import NamedTuple

from lance_spec.checksum import Buffer
from lance_spec.limits import RECORD_HEADER_SIZE

__all__ = ["Buffer", "CloseReport", "Record", "RecordBatch", "RecordMetadata"]


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
    """

    topic: str
    offset: int
    count: int
    data: bytes

    def __repr__(self) -> str:
        return f"<RecordBatch {self.topic} {self.offset}..{self.next_offset} records={self.count}>"

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Record]:
        # The data was judged when it arrived and is whole records: nothing is checked here.
        data, base, topic = self.data, self.offset, self.topic
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
        maybe_applied: of the lost ones, those the server may have stored all the same.
        error: why the first of them was lost, or None.
    """

    delivered: int = 0
    lost: int = 0
    maybe_applied: int = 0
    error: Exception | None = None

    @property
    def clean(self) -> bool:
        """Whether nothing was lost."""
        return self.lost == 0
