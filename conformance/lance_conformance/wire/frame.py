"""One LWP frame: built leniently, read strictly (LWP section 3).

The builder can make any frame, right or wrong. Fields that depend on others (both checksums and
the payload length) are worked out unless they are given, so a frame with exactly one fault is a
right frame with exactly one field replaced; `faulty_field` checks that it is so.
"""

import struct
from dataclasses import dataclass, fields
from enum import Enum, IntEnum, IntFlag

from lance_conformance.engine.expectations import Violation
from lance_conformance.wire.crc import Checksum

MAGIC = b"LANC"
VERSION = 1
HEADER_SIZE = 44
MAX_PAYLOAD = 16 * 1024 * 1024 + 5
"""The largest Ingest payload: one record of 16 MiB and its TLV header (AMB-32)."""
MAX_ANSWER = MAX_PAYLOAD + 24
"""The largest payload a server may send: as much data, after a FetchResponse header."""

_HEADER = struct.Struct("<4sBBHIQQIIII")


class Flag(IntFlag):
    """Bits of the flags byte (LWP section 3.3)."""

    COMPRESSED = 0x01
    ENCRYPTED = 0x02
    BATCH_MODE = 0x04
    ACK = 0x08
    BACKPRESSURE = 0x10
    KEEPALIVE = 0x20
    CONTROL = 0x40
    RESERVED = 0x80


class Command(IntEnum):
    """Control commands, carried in the Batch ID field (LWP section 5.2, AMB-11)."""

    CREATE_TOPIC = 0x01
    DELETE_TOPIC = 0x02
    LIST_TOPICS = 0x03
    GET_TOPIC = 0x04
    SET_RETENTION = 0x05
    CREATE_TOPIC_WITH_RETENTION = 0x06
    GET_CLUSTER_STATUS = 0x07
    AUTHENTICATE = 0x08
    AUTHENTICATE_RESPONSE = 0x09
    FETCH = 0x10
    FETCH_RESPONSE = 0x11
    CATCHING_UP = 0x12
    SUBSCRIBE = 0x20
    UNSUBSCRIBE = 0x21
    COMMIT_OFFSET = 0x22
    SUBSCRIBE_ACK = 0x23
    COMMIT_ACK = 0x24
    GET_CLUSTER_STATUS_ALIAS = 0x30
    OFFSET_FOR_TIME = 0x70
    OFFSET_FOR_TIME_RESPONSE = 0x71
    CREATE_PARTITIONED_TOPIC = 0x72
    ADD_PARTITIONS = 0x73
    DELETE_PARTITIONED_TOPIC = 0x74
    BATCH_TIMES = 0x75
    BATCH_TIMES_RESPONSE = 0x76
    TOPIC_RESPONSE = 0x80
    CLUSTER_STATUS_RESPONSE = 0x81
    ERROR_RESPONSE = 0xFF


class FrameKind(Enum):
    """What a frame from a server is: exactly one kind flag makes it one of these."""

    ACK = "Ack"
    BACKPRESSURE = "Backpressure"
    KEEPALIVE = "Keepalive"
    CONTROL = "Control"
    OTHER = "frame of no known kind"


_KINDS = {
    int(Flag.ACK): FrameKind.ACK,
    int(Flag.BACKPRESSURE): FrameKind.BACKPRESSURE,
    int(Flag.KEEPALIVE): FrameKind.KEEPALIVE,
    int(Flag.CONTROL): FrameKind.CONTROL,
}
_RESERVED = int(Flag.RESERVED)  # plain numbers, for enum arithmetic is slow


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """A frame with its header fields as they are on the wire.

    Attributes:
        flags: The flags byte (section 3.3).
        batch_id: Batch ID; in a control frame, the command.
        timestamp_ns: Nanoseconds since the Unix epoch.
        record_count: Number of records in the payload.
        topic_id: The topic; 0 is the default topic.
        payload: The bytes after the header.
        magic: Four bytes, ``LANC`` when right.
        version: 1 when right.
        reserved: 0 when right.
        header_crc: Checksum of bytes 0-7; ``None`` stands for the right one.
        payload_length: ``None`` stands for the right one.
        payload_crc: ``None`` stands for the right one (0 without a payload).
    """

    flags: int
    batch_id: int = 0
    timestamp_ns: int = 0
    record_count: int = 0
    topic_id: int = 0
    payload: bytes = b""
    magic: bytes = MAGIC
    version: int = VERSION
    reserved: int = 0
    header_crc: int | None = None
    payload_length: int | None = None
    payload_crc: int | None = None

    @property
    def kind(self) -> FrameKind:
        """What the flags byte makes of this frame."""
        return _KINDS.get(int(self.flags), FrameKind.OTHER)

    @property
    def prefix(self) -> bytes:
        """Bytes 0-7, which the header checksum covers (section 9.3)."""
        return struct.pack("<4sBBH", self.magic, self.version, self.flags, self.reserved)

    def right_payload_crc(self, checksum: Checksum) -> int:
        """The checksum of the payload, 0 when there is none (section 3.2)."""
        return checksum(self.payload) if self.payload else 0

    def encode(self, checksum: Checksum) -> bytes:
        """The frame as bytes.

        Args:
            checksum: Works out the checksums that are not given.
        """
        header_crc = checksum(self.prefix) if self.header_crc is None else self.header_crc
        length = len(self.payload) if self.payload_length is None else self.payload_length
        crc = self.right_payload_crc(checksum) if self.payload_crc is None else self.payload_crc
        header = _HEADER.pack(
            self.magic,
            self.version,
            self.flags,
            self.reserved,
            header_crc,
            self.batch_id,
            self.timestamp_ns,
            self.record_count,
            length,
            crc,
            self.topic_id,
        )
        return header + self.payload

    def __str__(self) -> str:
        return f"{describe(self)} ({len(self.payload)} bytes of payload)"


def describe(frame: Frame) -> str:
    """A frame in a few words: its kind, and its command or batch."""
    if frame.kind is FrameKind.CONTROL:
        return f"Control {command_name(frame.batch_id)}"
    if frame.kind is FrameKind.ACK:
        return f"Ack of batch {frame.batch_id:#x}"
    name: str = frame.kind.value
    return f"{name} (flags {frame.flags:#04x})" if frame.kind is FrameKind.OTHER else name


def command_name(code: int) -> str:
    """The name of a control command, or its number."""
    try:
        return f"{Command(code).name} ({code:#x})"
    except ValueError:
        return f"command {code:#x}"


def faulty_field(right: Frame, wrong: Frame) -> str:
    """The one field in which two frames differ.

    Raises:
        ValueError: They differ in none or in several, so a refusal would prove nothing.
    """
    names = [f.name for f in fields(Frame) if getattr(right, f.name) != getattr(wrong, f.name)]
    if len(names) != 1:
        raise ValueError(f"a stimulus must differ from its twin in one field, not in {names}")
    return names[0]


class Decoder:
    """Splits a byte stream into frames, and stops for good at the first violation.

    Args:
        checksum: The checksum of the dialect in force.
        max_payload: Larger announcements are a violation, not a reason to wait.
    """

    def __init__(self, checksum: Checksum, max_payload: int = MAX_ANSWER) -> None:
        self._checksum = checksum
        self._max_payload = max_payload
        self._buffer = bytearray()
        self._violation: Violation | None = None

    def __repr__(self) -> str:
        return f"<Decoder pending={len(self._buffer)} violation={self._violation}>"

    @property
    def pending(self) -> int:
        """Bytes of a frame that is not complete yet."""
        return len(self._buffer)

    def feed(self, data: bytes) -> None:
        """Take more bytes of the stream."""
        self._buffer += data

    def next(self) -> Frame | Violation | None:
        """The next frame, the violation that ended the stream, or ``None`` to ask for more."""
        if self._violation is None and len(self._buffer) >= HEADER_SIZE:
            header = self._header()
            self._violation = self._judge_header(header)
            if self._violation is None:
                return self._whole(header)
        return self._violation

    def _header(self, payload: bytes = b"") -> Frame:
        (magic, version, flags, reserved, header_crc, batch, stamp, count, length, crc, topic) = (
            _HEADER.unpack_from(self._buffer)
        )
        return Frame(
            magic=magic,
            version=version,
            flags=flags,
            reserved=reserved,
            header_crc=header_crc,
            batch_id=batch,
            timestamp_ns=stamp,
            record_count=count,
            payload_length=length,
            payload_crc=crc,
            topic_id=topic,
            payload=payload,
        )

    def _judge_header(self, header: Frame) -> Violation | None:
        for judge in (_judge_prefix, self._judge_crc, self._judge_length):
            violation = judge(header)
            if violation is not None:
                return violation
        return None

    def _judge_crc(self, header: Frame) -> Violation | None:
        right = self._checksum(header.prefix)
        if header.header_crc == right:
            return None
        return Violation(
            "bad-crc:header",
            f"header checksum at byte 8 is {header.header_crc:#010x}, must be {right:#010x}",
        )

    def _judge_length(self, header: Frame) -> Violation | None:
        length = header.payload_length or 0
        if length > self._max_payload:
            return Violation(
                "oversize-frame",
                f"payload length at byte 32 is {length}, the largest is {self._max_payload}",
            )
        if not length and header.payload_crc:
            return Violation(
                "field:payload_crc",
                f"payload checksum at byte 36 is {header.payload_crc:#x} without a payload",
            )
        return None

    def _whole(self, header: Frame) -> Frame | Violation | None:
        end = HEADER_SIZE + (header.payload_length or 0)
        if len(self._buffer) < end:
            return None
        payload = bytes(self._buffer[HEADER_SIZE:end])
        if payload and self._checksum(payload) != header.payload_crc:
            self._violation = Violation(
                "bad-crc:payload",
                f"payload checksum at byte 36 is {header.payload_crc:#010x}, "
                f"must be {self._checksum(payload):#010x}",
            )
            return self._violation
        frame = self._header(payload) if payload else header
        del self._buffer[:end]
        return frame


def _judge_prefix(header: Frame) -> Violation | None:
    if header.magic != MAGIC:
        return Violation("bad-magic", f"magic at byte 0 is {header.magic!r}, must be {MAGIC!r}")
    if header.version != VERSION:
        return Violation("bad-version", f"version at byte 4 is {header.version}, must be 1")
    if header.flags & _RESERVED:
        return Violation("flag-bit-7", f"flags at byte 5 are {header.flags:#04x}, bit 7 must be 0")
    if header.reserved:
        return Violation("reserved-not-zero", f"reserved at byte 6 is {header.reserved:#x}, not 0")
    return None
