"""Frames as a client sent them, right or wrong: read leniently, so that every fault is seen."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from lance_conformance.client.scripted.compression import (
    CompressedPayloadError,
    opened,
    opened_block,
)
from lance_conformance.wire.crc import Checksum
from lance_conformance.wire.frame import HEADER_SIZE, MAGIC, MAX_PAYLOAD, Flag, Frame, describe

_HEADER = struct.Struct("<4sBBHIQQIIII")
_COMPRESSED = int(Flag.BATCH_MODE | Flag.COMPRESSED)
_NAMES = (
    "magic", "version", "flags", "reserved", "header_crc", "batch_id", "timestamp_ns",
    "record_count", "payload_length", "payload_crc", "topic_id",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ReceivedFrame:
    """One frame of a client.

    Attributes:
        connection: The number of its connection within the case.
        frame: What it says.
        data: Its bytes.
        history: All frames of its connection.
        place: Which of them it is.
        opened: The same with its records as they were before the client compressed them.
        closed: Why a compressed payload is not what it must be; empty for any other one.
    """

    connection: int
    frame: Frame
    data: bytes
    history: Sequence["ReceivedFrame"] = field(repr=False)
    place: int
    opened: Frame
    closed: str = ""

    @property
    def before(self) -> Sequence["ReceivedFrame"]:
        """The frames that its connection had brought before it."""
        return self.history[: self.place]

    def __str__(self) -> str:
        return f"{describe(self.frame)} on connection {self.connection}"


class FrameReader:
    """Splits what one connection brings into frames.

    Args:
        connection: Its number.
    """

    def __init__(self, connection: int) -> None:
        self._connection = connection
        self._buffer = bytearray()
        self._seen: list[ReceivedFrame] = []
        self.lost = ""
        """Why frames can no longer be told apart; empty as long as they can."""

    def __repr__(self) -> str:
        return f"<FrameReader {self._connection} pending={len(self._buffer)} lost={self.lost!r}>"

    @property
    def count(self) -> int:
        """How many frames were read."""
        return len(self._seen)

    def feed(self, data: bytes) -> list[ReceivedFrame]:
        """Take bytes and return the frames that are whole now."""
        self._buffer += data
        found: list[ReceivedFrame] = []
        while not self.lost and len(self._buffer) >= HEADER_SIZE:
            received = self._next()
            if received is None:
                break
            self._seen.append(received)
            found.append(received)
        return found

    def _next(self) -> ReceivedFrame | None:
        values = dict(zip(_NAMES, _HEADER.unpack_from(self._buffer), strict=True))
        if values["magic"] != MAGIC:
            self.lost = f"magic at byte 0 is {values['magic']!r}, must be {MAGIC!r}"
            return None
        end = HEADER_SIZE + values["payload_length"]
        if values["payload_length"] > MAX_PAYLOAD:
            self.lost = f"payload length {values['payload_length']} is over {MAX_PAYLOAD}"
            return None
        if len(self._buffer) < end:
            return None
        data = bytes(self._buffer[:end])
        del self._buffer[:end]
        frame = Frame(**values, payload=data[HEADER_SIZE:])
        return ReceivedFrame(
            self._connection, frame, data, self._seen, len(self._seen), *_opened(frame)
        )


def _opened(frame: Frame) -> tuple[Frame, str]:
    """A frame with its records as they were, and what is wrong with a compressed payload."""
    if frame.flags & _COMPRESSED != _COMPRESSED:
        return frame, ""
    try:
        return replace(frame, payload=opened(frame.payload)), ""
    except CompressedPayloadError as problem:
        content = opened_block(frame.payload)
        found = frame if content is None else replace(frame, payload=content)
        return found, str(problem)


def speaks(data: bytes, checksum: Checksum) -> bool:
    """Whether a header's checksum is one of this polynomial."""
    return checksum(data[:8]) == int.from_bytes(data[8:12], "little")
