"""Runs: Ingest frames of one producer that go the same way, judged and described together.

A producer sends batches of one topic with rising ids. What was decided for the first of them
holds for those that follow in the same read as long as nothing about them is out of order; where
something is, the run ends, and the frame is judged by itself.
"""

from collections.abc import Callable, Sequence
from struct import Struct
from typing import Final, NamedTuple

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
_ENTRY: Final = Struct("<QLLQQQQLL4x")  # `SidecarEntry` without its checksum; a test compares


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


class PrecedingBatch(NamedTuple):
    """A batch that others may go with.

    Attributes:
        topic_id: its topic; `ANY_TOPIC` where others may go with it whatever theirs is.
        batch_id: its id.
    """

    topic_id: int
    batch_id: int


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
        frames, first, most, *preceding, FrameKind.INGEST, _ODD, validates, Frame
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
    frames: list[Frame], server_time_ns: int, flags: int, data: bytearray
) -> tuple[list[BatchMeta], list[bytes]]:
    """Append the payloads of a run to ``data``; return their descriptions and contents.

    Args:
        frames: as `count_run` counted them.
        server_time_ns: when they arrived, in nanoseconds since the Unix epoch.
        flags: of each batch's entry.
        data: where the bytes are collected.
    """
    if accelerator is None:
        return _gather_in_python(frames, server_time_ns, flags, data)
    run: tuple[list[BatchMeta], list[bytes]] = accelerator.gather_run(
        frames, server_time_ns, flags, BatchMeta, Frame, data
    )
    return run


def _gather_in_python(
    frames: list[Frame], server_time_ns: int, flags: int, data: bytearray
) -> tuple[list[BatchMeta], list[bytes]]:
    metas = [
        BatchMeta(
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
    data += b"".join([frame.payload for frame in frames])
    return metas, [meta.digest for meta in metas]


def encode_entries(batches: Sequence[BatchMeta], start: int, durable_end: int) -> bytes:
    """Return the sidecar entries of batches that are stored back to back (AMB-14).

    Args:
        batches: in log order.
        start: relative offset of the first.
        durable_end: absolute offset up to which the topic is durable by now.
    """
    metas = batches if type(batches) is list else list(batches)
    return _join(metas, start, durable_end, CRC32C.compute)


def _join_in_python(
    batches: Sequence[BatchMeta], start: int, durable_end: int, checksum: Callable[[bytes], int]
) -> bytes:
    parts: list[bytes] = []
    pack = _ENTRY.pack
    for length, count, batch_id, client_ns, server_ns, crc, flags in batches:
        guarded = pack(
            start, length, count, batch_id, client_ns, server_ns, durable_end, crc, flags
        )
        parts.append(guarded)
        parts.append(checksum(guarded).to_bytes(4, "little"))
        start += length
    return b"".join(parts)


_join: Final = accelerator.join_entries if accelerator else _join_in_python
