from collections.abc import Callable

from lance_spec.checksum import Buffer
from lance_spec.frames import Frame, FrameKind

def scan_records(data: Buffer, /) -> tuple[int, int]: ...
def record_bounds(data: Buffer, /) -> tuple[bytes, int]: ...
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
def unfilled(size: int, /) -> bytearray: ...
