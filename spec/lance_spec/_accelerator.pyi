from array import array
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from lance_spec.checksum import Buffer
from lance_spec.frames import Frame, FrameKind

class FrameFields:
    kind: FrameKind
    flags: int
    batch_id: int
    timestamp_ns: int
    record_count: int
    topic_id: int
    payload: memoryview
    payload_crc: int

class BatcherFields:
    last: Any
    values: list[bytes]
    used: int
    bound: int
    plain_type: int

class HandleFields:
    _batch: Any
    _index: int

_Handle = TypeVar("_Handle", bound=HandleFields)

def scan_records(data: Buffer, /) -> tuple[int, int]: ...
def record_bounds(data: Buffer, /) -> tuple[bytes, int]: ...
def part_records(data: Buffer, target: Buffer, /) -> tuple[bytes, bytes] | None: ...
def decode_records(data: Buffer, /) -> tuple[list[tuple[int, bytes]], int]: ...
def follow_ring(
    data: Buffer, offset: int, crc32c: Callable[[Buffer], int], /
) -> tuple[int, int]: ...
def split_frames(
    view: memoryview,
    position: int,
    known: dict[bytes, tuple[int, FrameKind, object]],
    limit: int,
    checksum: Callable[[Buffer], int],
    is_crc32c: bool,
    nothing: memoryview,
    frame_type: type[Frame],
    frames: list[Frame],
    /,
) -> int: ...
def add_to_batch(
    batcher: BatcherFields, value: object, record_type: int, handle_type: type[_Handle], /
) -> _Handle | None: ...
def join_records(values: object, record_type: int, /) -> bytes | None: ...
def unfilled(size: int, /) -> bytearray: ...
def give_back() -> bool: ...
def write_each(writes: Sequence[tuple[int, Buffer, int]], /) -> list[int]: ...
def keep_freed(size: int, largest: int, /) -> bool: ...
def whole_batches(
    starts: array[int],
    ends: array[int],
    counts: array[int],
    crcs: array[int],
    kinds: bytearray,
    checked: bytearray,
    holes: list[int],
    start: int,
    limit: int,
    /,
) -> tuple[int, int] | None: ...
def answer_fetch(
    descriptor: int,
    place: tuple[
        tuple[array[int], array[int], array[int], array[int], bytearray, bytearray, list[int]],
        int,
        int,
        int,
    ],
    form: tuple[bytes, int, bool, Callable[[Buffer], int], bool],
    start: int,
    most: int,
    /,
) -> bytearray | None: ...
def seal(
    frame: bytearray,
    prefix: bytes,
    batch_id: int,
    topic_id: int,
    checksum: Callable[[Buffer], int],
    is_crc32c: bool,
    /,
) -> None: ...
def fluvio_to_log(raw: Buffer, first_timestamp: int, limit: int, /) -> bytes | None: ...
