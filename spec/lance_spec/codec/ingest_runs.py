"""Runs: Ingest frames of one producer that go the same way, judged and described together.

A producer sends batches of one topic with rising ids. What was decided for the first of them
holds for those that follow in the same read as long as nothing about them is out of order; where
something is, the run ends, and the frame is judged by itself.
"""

import sys
from array import array
from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter
from struct import Struct
from typing import Final, NamedTuple, Self, TypeAlias

from lance_spec._native import accelerator
from lance_spec.checksum import CRC32C
from lance_spec.enums import Flag
from lance_spec.frames import Frame, FrameKind
from lance_spec.records import scan_records

NONCE_SHIFT: Final = 40
"""The bits of a batch id from here on are the producer's nonce (AMB-25)."""

ANY_TOPIC: Final = 1 << 32
"""In place of a topic's number, which has 32 bits: frames may go to whichever."""

_ODD: Final = int(Flag.COMPRESSED | Flag.ENCRYPTED)
_DIGEST: Final = Struct("<LLQ")
_ROW: Final = Struct("<8xLLQQQ8xLL8x")  # of `SidecarEntry` what is known at once; a test compares
_BRIEF: Final = Struct("<8xLL32xLL8x")  # length, records, CRC and flags of a row
_WHOLE_ROW: Final = Struct("64s")
_U64: Final = Struct("<Q")
ROW_SIZE: Final = _ROW.size
"""Bytes that describe a batch in a `BatchTable`."""
_SERVER_TIME_AT: Final = 32
_DURABLE_END_AT: Final = 40
_CHECKSUM_AT: Final = ROW_SIZE - 4
_first: Final = itemgetter(0)


class BatchMeta(NamedTuple):
    """What is known of a batch when it is accepted, before it has an offset."""

    length: int
    record_count: int
    batch_id: int
    client_timestamp_ns: int
    server_time_ns: int
    stored_crc: int
    flags: int

    @property
    def digest(self) -> bytes:
        """What must be equal for two batches of one id to be the same batch (AMB-25)."""
        return digest_of(self.client_timestamp_ns, self.length, self.stored_crc)


def digest_of(client_timestamp_ns: int, length: int, crc: int) -> bytes:
    """Return stored CRC32C, stored length and timestamp as 16 bytes."""
    return _DIGEST.pack(crc, length, client_timestamp_ns)


def encode_row(batch: BatchMeta) -> bytes:
    """Return a row of a `BatchTable`.

    Raises:
        struct.error: a number does not fit its field.
    """
    return _ROW.pack(*batch)


class BatchTable:
    """What is known of batches, in order: for each 64 bytes, which become its sidecar entry.

    Args:
        rows: of the batches that it begins with; they are copied.

    Attributes:
        rows: all of them, back to back.
    """

    __slots__ = ("rows",)

    def __init__(self, rows: bytes | bytearray = b"") -> None:
        self.rows = bytearray(rows)

    @classmethod
    def of(cls, batches: Iterable[BatchMeta]) -> Self:
        """Return a table of batches."""
        return cls(b"".join(map(encode_row, batches)))

    def __len__(self) -> int:
        return len(self.rows) // ROW_SIZE

    def __repr__(self) -> str:
        return f"<BatchTable of {len(self)} batches>"

    def __iter__(self) -> Iterator[BatchMeta]:
        return map(BatchMeta._make, _ROW.iter_unpack(self.rows))

    def __getitem__(self, number: int) -> BatchMeta:
        """Return a batch; a negative number counts from the end.

        Raises:
            IndexError: there is none.
        """
        count = len(self)
        if not -count <= number < count:
            raise IndexError(number)
        return BatchMeta._make(_ROW.unpack_from(self.rows, number % count * ROW_SIZE))

    def since(self, first: int) -> Iterator[BatchMeta]:
        """Yield the batches from a number on."""
        rows = memoryview(self.rows)[first * ROW_SIZE :]
        return map(BatchMeta._make, _ROW.iter_unpack(rows))

    def briefly(self) -> Iterator[tuple[int, int, int, int]]:
        """Yield length, record count, CRC32C and flags of each batch."""
        return _BRIEF.iter_unpack(self.rows)

    @property
    def last_ns(self) -> int:
        """The server's time of the last one; there is one."""
        last_ns: int
        (last_ns,) = _U64.unpack_from(self.rows, len(self.rows) - ROW_SIZE + _SERVER_TIME_AT)
        return last_ns

    @property
    def lengths(self) -> "array[int]":
        """The stored bytes of each."""
        return _column("I", self.rows, 8)

    @property
    def counts(self) -> "array[int]":
        """The records of each."""
        return _column("I", self.rows, 12)

    @property
    def ids(self) -> "array[int]":
        """The id of each."""
        return _column("Q", self.rows, 16)

    @property
    def crcs(self) -> "array[int]":
        """The stored CRC32C of each."""
        return _column("I", self.rows, 48)

    @property
    def low_flags(self) -> bytearray:
        """The lowest eight flags of each."""
        return self.rows[52::ROW_SIZE]

    @property
    def digests(self) -> bytes:
        """`BatchMeta.digest` of each, back to back."""
        rows = self.rows
        if len(rows) == ROW_SIZE:
            return bytes(rows[48:52] + rows[8:12] + rows[24:32])
        halves = array("I", bytes(len(rows) // 4))
        halves[0::4] = _column("I", rows, 48)
        halves[1::4] = _column("I", rows, 8)
        halves[2::4] = _column("I", rows, 24)
        halves[3::4] = _column("I", rows, 28)
        return _swapped(halves).tobytes()

    def seal(self, start: int, durable_end: int) -> None:
        """Make the rows the sidecar entries of batches that are stored back to back (AMB-14).

        Args:
            start: relative offset of the first.
            durable_end: absolute offset up to which the topic is durable by now.

        Raises:
            OverflowError: an offset has no 64 bits.
        """
        _seal(self.rows, start, durable_end, CRC32C.compute)


def _column(code: str, rows: bytearray, place: int) -> "array[int]":
    """Return a field of each row, as numbers of the size that a type code of `array` says."""
    numbers = array(code, rows)
    return _swapped(numbers[place // numbers.itemsize :: ROW_SIZE // numbers.itemsize])


def little_endian(numbers: "array[int]") -> bytes:
    """Return numbers as they are stored."""
    return _swapped(numbers[:]).tobytes()


def _swapped(numbers: "array[int]") -> "array[int]":
    """Return numbers of this machine's byte order as little-endian ones, or the reverse."""
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


PrecedingBatch: TypeAlias = tuple[int, int]
"""A batch that others may go with: its topic's number and its own id. With `ANY_TOPIC` the others
may be for any topic."""


def count_run(
    frames: list[Frame], first: int, most: int, preceding: PrecedingBatch, *, validates: bool
) -> int:
    """Return how many frames from ``first`` on go with a batch that was accepted before them.

    They are Ingest frames of the same topic and nonce with rising ids and a timestamp, neither
    compressed nor encrypted, and hold something.

    Args:
        frames: of a dialect whose payload CRC is CRC32C, as the splitter returned them.
        first: where to begin.
        most: how many are enough.
        preceding: the batch.
        validates: whether each must also hold exactly the records its header states.
    """
    if accelerator is None:
        return _count_in_python(frames, first, most, preceding, validates=validates)
    count: int = accelerator.count_run(
        frames, first, most, *preceding, FrameKind.INGEST, _ODD, validates
    )
    return count


def _count_in_python(
    frames: list[Frame], first: int, most: int, preceding: PrecedingBatch, *, validates: bool
) -> int:
    count, (topic_id, above) = 0, preceding
    for frame in frames[first : first + most]:
        is_other = frame.topic_id != topic_id != ANY_TOPIC
        if is_other or not _follows(frame, above, validates=validates):
            break
        above = frame.batch_id
        count += 1
    return count


def _follows(frame: Frame, above: int, *, validates: bool) -> bool:
    return (
        frame.kind is FrameKind.INGEST
        and not frame.flags & _ODD
        and frame.batch_id > above
        and frame.batch_id >> NONCE_SHIFT == above >> NONCE_SHIFT
        and frame.timestamp_ns != 0
        and len(frame.payload) > 0
        and (not validates or _is_whole(frame))
    )


def _is_whole(frame: Frame) -> bool:
    scan = scan_records(frame.payload)
    return scan.fault is None and scan.count == frame.record_count


def gather_run(
    frames: list[Frame], server_time_ns: int, flags: int, data: bytearray, table: BatchTable
) -> None:
    """Append the payloads of a run to ``data``, and what describes them to ``table``.

    Args:
        frames: as `count_run` counted them.
        server_time_ns: when they arrived, in nanoseconds since the Unix epoch.
        flags: of each batch's entry.
        data: where the bytes are collected.
        table: where the batches are.
    """
    if accelerator is None:
        _gather_in_python(frames, server_time_ns, flags, data, table)
    else:
        accelerator.gather_run(frames, server_time_ns, flags, data, table.rows)


def _gather_in_python(
    frames: list[Frame], server_time_ns: int, flags: int, data: bytearray, table: BatchTable
) -> None:
    payloads = b"".join([frame.payload for frame in frames])
    _describe_in_python(frames, server_time_ns, flags, table)
    data += payloads


def describe_run(
    frames: list[Frame], server_time_ns: int, flags: int, table: BatchTable
) -> Iterator[bytes]:
    """Append what describes a run to ``table``, and yield the row of each frame.

    Args:
        frames: as `count_run` counted them.
        server_time_ns: when they arrived, in nanoseconds since the Unix epoch.
        flags: of each batch's entry.
        table: where the batches are.
    """
    before = len(table.rows)
    if accelerator is None:
        _describe_in_python(frames, server_time_ns, flags, table)
    else:
        accelerator.gather_run(frames, server_time_ns, flags, None, table.rows)
    return map(_first, _WHOLE_ROW.iter_unpack(memoryview(table.rows)[before:]))


def with_server_time(row: bytes, server_time_ns: int) -> bytes:
    """Return a row of a batch that arrived at another time."""
    return row[:_SERVER_TIME_AT] + _U64.pack(server_time_ns) + row[_SERVER_TIME_AT + _U64.size :]


def _describe_in_python(
    frames: list[Frame], server_time_ns: int, flags: int, table: BatchTable
) -> None:
    table.rows += b"".join(
        [
            _ROW.pack(
                len(frame.payload),
                frame.record_count,
                frame.batch_id,
                frame.timestamp_ns,
                server_time_ns,
                frame.payload_crc,
                flags,
            )
            for frame in frames
        ]
    )


def encode_entries(batches: Iterable[BatchMeta], start: int, durable_end: int) -> bytes:
    """Return the sidecar entries of batches that are stored back to back (AMB-14).

    Args:
        batches: in log order.
        start: relative offset of the first.
        durable_end: absolute offset up to which the topic is durable by now.
    """
    table = BatchTable.of(batches)
    table.seal(start, durable_end)
    return bytes(table.rows)


def _seal_in_python(
    rows: bytearray, start: int, durable_end: int, checksum: Callable[[memoryview], int]
) -> None:
    with memoryview(rows) as view:
        for place in range(0, len(rows), ROW_SIZE):
            _U64.pack_into(view, place, start)
            _U64.pack_into(view, place + _DURABLE_END_AT, durable_end)
            crc = checksum(view[place : place + _CHECKSUM_AT])
            view[place + _CHECKSUM_AT : place + ROW_SIZE] = crc.to_bytes(4, "little")
            start += int.from_bytes(view[place + 8 : place + 12], "little")


_seal: Final = accelerator.seal_entries if accelerator else _seal_in_python
