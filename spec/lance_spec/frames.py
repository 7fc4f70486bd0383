"""Frames on a byte stream: splitting what arrives, encoding what leaves (LWP section 3).

The first twelve bytes of a valid header (magic, version, flags, reserved, header CRC) take
so few values that one table lookup checks them all; only a miss is taken apart to say which
rule it breaks. Payloads are views into the caller's buffer and are never copied, except for
a frame that arrives in pieces.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import repeat
from struct import Struct, pack
from typing import TYPE_CHECKING, Any, Final

from lance_spec._native import accelerator
from lance_spec.checksum import CRC32_IEEE, CRC32C, Buffer
from lance_spec.codec.buffers import unfilled
from lance_spec.codec.header_prefix import (
    FrameKind,
    KnownPrefix,
    classify,
    known_prefixes,
    plain_prefixes,
    prefixes,
)
from lance_spec.dialect import Dialect
from lance_spec.enums import Command, Flag
from lance_spec.limits import HEADER_SIZE, MAGIC, PREFIX_SIZE, VERSION

__all__ = [
    "FaultKind",
    "Frame",
    "FrameFault",
    "FrameKind",
    "FrameSplitter",
    "encode_ack",
    "encode_acks",
    "encode_backpressure",
    "encode_control",
    "encode_header",
    "encode_keepalive",
    "seal_control",
]

_HEADER: Final = Struct("<12sQQLLLL")
_ACK: Final = Struct("<12sQ24x")
_SEALED: Final = Struct("<12sQ12xLLL")  # `_HEADER` without the fields that a Control frame lacks
_PREFIXES: Final = {each.name: prefixes(each) for each in (CRC32C, CRC32_IEEE)}
_CONTROL_PREFIXES: Final = {name: known[Flag.CONTROL] for name, known in _PREFIXES.items()}
_ACK_PREFIXES: Final = {name: known[Flag.ACK] for name, known in _PREFIXES.items()}
_FEW: Final = 16
"""Acknowledgements up to which each is made by itself."""
_ID_SIZE: Final = 8
_NO_PAYLOAD: Final = memoryview(b"")
_GROWTH: Final = 4
"""How many times what has arrived of a frame is set aside for it: a header proves little."""
_FIELD_OFFSETS: Final = {
    "magic": 0,
    "version": 4,
    "flags": 5,
    "reserved": 6,
    "header_crc": 8,
    "payload_length": 32,
    "payload_crc": 36,
}


class FaultKind(StrEnum):
    """Why a byte stream cannot be read any further; each one closes the connection."""

    BAD_MAGIC = "bad_magic"
    BAD_VERSION = "bad_version"
    BAD_HEADER_CRC = "bad_header_crc"
    RESERVED_BITS = "reserved_bits"
    OVERSIZE = "oversize"
    BAD_PAYLOAD_CRC = "bad_payload_crc"


if TYPE_CHECKING or accelerator is None:

    class _FrameFields:
        """Where the fields of a frame are."""

        __slots__ = (
            "batch_id",
            "flags",
            "kind",
            "payload",
            "payload_crc",
            "record_count",
            "timestamp_ns",
            "topic_id",
        )
else:
    _FrameFields = accelerator.FrameFields


@dataclass
class Frame(_FrameFields):
    """One frame.

    ``payload`` is a view into the buffer that was given to `FrameSplitter.receive_data`: copy
    what must outlive that buffer's next use.
    """

    __slots__ = ()

    kind: FrameKind
    flags: int
    batch_id: int
    timestamp_ns: int
    record_count: int
    topic_id: int
    payload: memoryview
    payload_crc: int

    @property
    def command(self) -> Command | int:
        """The command code of a Control frame; a plain integer when it is unknown."""
        try:
            return Command(self.batch_id)
        except ValueError:
            return self.batch_id

    def __reduce__(self) -> tuple[type["Frame"], tuple[object, ...]]:
        """Let a frame be copied, also where its fields lie in a compiled type."""
        return type(self), tuple(getattr(self, each.name) for each in dataclasses.fields(self))


@dataclass(frozen=True, slots=True)
class FrameFault:
    """The rule that a byte stream broke.

    Attributes:
        kind: the rule.
        field: name of the header field at fault.
        offset: position of that field in the stream, in bytes from its start.
        expected: what the rule asks for, in words.
        got: what stood there, in words.
        header: the frame's header (with an empty payload) when the fault is its size.
    """

    kind: FaultKind
    field: str
    offset: int
    expected: str
    got: str
    header: Frame | None = dataclasses.field(default=None, repr=False)

    def __str__(self) -> str:
        return (
            f"{self.field} at stream byte {self.offset}: expected {self.expected}, got {self.got}"
        )


class FrameSplitter:
    """Cuts a byte stream into frames and judges every header and payload CRC.

    Remote bytes never make it raise: what cannot be read ends up in `fault`, after the frames
    that came before it were returned, and everything later is ignored.

    Args:
        dialects: the dialects a peer may speak; the first valid header decides for good.
        max_payload: largest payload to accept, in bytes; by default the dialect's.

    Attributes:
        pending: bytes held of a frame that has not arrived whole.
        dialect: the dialect that the first header proved; with a single candidate, that one.
        proven: whether a header with a valid CRC has been seen.
        fault: the rule the stream broke, once it did.
    """

    __slots__ = (
        "_candidates",
        "_fast",
        "_known",
        "_limit",
        "_max_payload",
        "_need",
        "_offset",
        "_tail",
        "dialect",
        "fault",
        "pending",
        "proven",
    )

    def __init__(self, dialects: tuple[Dialect, ...], *, max_payload: int | None = None) -> None:
        if not dialects:
            raise ValueError("a FrameSplitter needs at least one dialect")
        self._candidates = dialects
        self._known = known_prefixes(dialects)
        self._fast: tuple[Any, ...] = ()  # what the compiled loop is told, once it may run
        self._max_payload = max_payload
        self._limit = 0
        self._tail = bytearray()
        self.pending = 0
        self._need = HEADER_SIZE
        self._offset = 0
        self.dialect: Dialect | None = dialects[0] if len(dialects) == 1 else None
        self.proven = False
        self.fault: FrameFault | None = None

    def __repr__(self) -> str:
        return (
            f"<FrameSplitter dialect={self.dialect} offset={self._offset} "
            f"pending={self.pending} fault={self.fault}>"
        )

    def room(self) -> memoryview:
        """Return memory for the next bytes of a frame that has begun; they need not be copied then.

        Returns:
            Where to receive them, from its beginning on; nothing else may be given to
            `receive_data` before. Empty where no frame has begun.
        """
        if self.pending < HEADER_SIZE:
            return _NO_PAYLOAD
        if self.pending == len(self._tail):
            self._make_room(self.pending + 1)
        return memoryview(self._tail)[self.pending :]

    def receive_data(self, data: Buffer) -> list[Frame]:
        """Take bytes from the stream and return the frames they complete.

        Args:
            data: the next bytes of the stream, in any portions. Payloads of the returned
                frames point into it.

        Returns:
            The frames, in order; look at `fault` afterwards.
        """
        frames: list[Frame] = []
        view = memoryview(data)
        taken = self._finish_tail(view, frames) if self.pending else 0
        if self.fault is None:
            taken = self._split(view, taken, frames)
        if self.fault is None and taken < len(view):
            self._hold(view[taken:])
            self._expect_rest()
        return frames

    def _finish_tail(self, view: memoryview, frames: list[Frame]) -> int:
        """Complete the frame begun earlier; return how many bytes of `view` it took."""
        taken = 0
        while self.pending and self.fault is None:
            piece = view[taken : taken + self._need - self.pending]
            self._hold(piece)
            taken += len(piece)
            if self.pending < self._need:
                self._expect_rest()
                break
            whole = memoryview(self._tail)[: self.pending]
            if self._split(whole, 0, frames) and self.fault is None:
                self._forget_tail()  # the frame's payload keeps the memory alive
            else:
                self._expect_rest()
        return taken

    def _hold(self, piece: memoryview) -> None:
        """Put bytes after those that are held of a frame, unless they were received there."""
        have = self.pending + len(piece)
        if piece.obj is not self._tail:
            if have > len(self._tail):
                self._make_room(have)
            self._tail[self.pending : have] = piece
        self.pending = have

    def _make_room(self, least: int) -> None:
        """Move what is held of a frame to where there is room for more of it."""
        made = unfilled(max(least, min(self._need, _GROWTH * least)))
        made[: self.pending] = memoryview(self._tail)[: self.pending]
        self._tail = made

    def _forget_tail(self) -> None:
        self._tail = bytearray()
        self.pending = 0
        self._need = HEADER_SIZE

    def _expect_rest(self) -> None:
        """Judge the begun header as far as it goes, and note how long its frame will be."""
        have = self.pending
        head = bytes(self._tail[: min(have, PREFIX_SIZE)])
        whole = have >= PREFIX_SIZE and head not in self._known
        if whole or not MAGIC.startswith(head[:4]):
            self._judge_prefix(head)
        if have >= HEADER_SIZE:
            self._need = HEADER_SIZE + _HEADER.unpack_from(self._tail)[4]

    def _split(self, view: memoryview, position: int, frames: list[Frame]) -> int:
        """Append the whole frames found from `position`; return where the rest begins."""
        if self._fast:
            position = self._split_fast(view, position, frames)
        end = len(view)
        unpack_from, known = _HEADER.unpack_from, self._known
        while end - position >= HEADER_SIZE:
            prefix, batch_id, timestamp_ns, count, length, crc, topic_id = unpack_from(
                view, position
            )
            entry = known.get(prefix) or self._judge_prefix(prefix)
            if entry is None:
                return position
            flags, kind, dialect = entry
            if not self.proven:
                known = self._prove(dialect)
            frame = Frame(kind, flags, batch_id, timestamp_ns, count, topic_id, _NO_PAYLOAD, crc)
            size = HEADER_SIZE + length
            if length:
                if length > self._limit:
                    self._reject_oversize(length, frame)
                    return position
                if position + size > end:
                    return position
                frame.payload = view[position + HEADER_SIZE : position + size]
                if (actual := dialect.checksum.compute(frame.payload)) != crc:
                    self._reject_payload_crc(crc, actual)
                    return position
                if kind is FrameKind.NONE and not dialect.strict:
                    frame.kind = FrameKind.INGEST
            frames.append(frame)
            position += size
            self._offset += size
        return position

    def _split_fast(self, view: memoryview, position: int, frames: list[Frame]) -> int:
        """Append frames as long as everything is in order; return where something is not."""
        assert accelerator is not None
        end: int = accelerator.split_frames(view, position, *self._fast, frames)
        self._offset += end - position
        return end

    def _prove(self, dialect: Dialect) -> dict[bytes, KnownPrefix]:
        self.proven = True
        self.dialect = dialect
        self._limit = dialect.max_payload if self._max_payload is None else self._max_payload
        self._candidates = (dialect,)
        self._known = known_prefixes(self._candidates)
        if accelerator:
            plain, checksum = plain_prefixes(dialect), dialect.checksum
            is_crc32c = checksum is CRC32C
            self._fast = (plain, self._limit, checksum.compute, is_crc32c, _NO_PAYLOAD, Frame)
        return self._known

    def _judge_prefix(self, prefix: bytes) -> KnownPrefix | None:
        """Name the rule that an unknown prefix breaks, or accept it where a dialect does."""
        magic = prefix[:4]
        if magic != MAGIC:
            self._reject(FaultKind.BAD_MAGIC, "magic", MAGIC.hex(" "), magic.hex(" "))
            return None
        if prefix[4] != VERSION:
            self._reject(FaultKind.BAD_VERSION, "version", str(VERSION), str(prefix[4]))
            return None
        guarded, stated = prefix[:8], int.from_bytes(prefix[8:], "little")
        sums = {dialect: dialect.checksum(guarded) for dialect in self._candidates}
        dialect = next((each for each, value in sums.items() if value == stated), None)
        if dialect is None:
            wanted = " or ".join(f"{v:08x} ({d.checksum.name})" for d, v in sums.items())
            self._reject(FaultKind.BAD_HEADER_CRC, "header_crc", wanted, f"{stated:08x}")
            return None
        if dialect.strict:
            self._reject_reserved(prefix)
            return None
        return KnownPrefix(prefix[5], classify(prefix[5], strict=False), dialect)

    def _reject_reserved(self, prefix: bytes) -> None:
        if prefix[5] & Flag.RESERVED:
            self._reject(FaultKind.RESERVED_BITS, "flags", "bit 7 clear", f"{prefix[5]:#04x}")
        else:
            self._reject(FaultKind.RESERVED_BITS, "reserved", "00 00", prefix[6:8].hex(" "))

    def _reject_oversize(self, length: int, header: Frame) -> None:
        limit = f"at most {self._limit} bytes"
        self._reject(FaultKind.OVERSIZE, "payload_length", limit, f"{length} bytes", header)

    def _reject_payload_crc(self, stated: int, actual: int) -> None:
        self._reject(FaultKind.BAD_PAYLOAD_CRC, "payload_crc", f"{actual:08x}", f"{stated:08x}")

    def _reject(
        self, kind: FaultKind, name: str, expected: str, got: str, header: Frame | None = None
    ) -> None:
        place = self._offset + _FIELD_OFFSETS[name]
        self.fault = FrameFault(kind, name, place, expected, got, header)
        self._forget_tail()


def encode_header(
    dialect: Dialect,
    flags: int,
    *,
    batch_id: int = 0,
    timestamp_ns: int = 0,
    record_count: int = 0,
    topic_id: int = 0,
    payload: Buffer = b"",
) -> bytes:
    """Return the 44 bytes that precede ``payload`` (LWP section 3.1).

    Args:
        dialect: whose checksum to use.
        flags: the `Flag` bits.
        batch_id: batch identifier, or the command code of a Control frame.
        timestamp_ns: nanoseconds since the Unix epoch.
        record_count: number of records in the payload.
        topic_id: the topic an Ingest frame writes to.
        payload: the bytes that will follow; their length and CRC go into the header.

    Raises:
        struct.error: when a number does not fit its field.
    """
    return _HEADER.pack(
        _PREFIXES[dialect.checksum.name][flags],
        batch_id,
        timestamp_ns,
        record_count,
        len(payload),
        dialect.checksum.compute(payload) if payload else 0,
        topic_id,
    )


def encode_control(dialect: Dialect, command: int, payload: Buffer = b"") -> bytes:
    """Return a whole Control frame (LWP section 5.1)."""
    return b"".join(
        (encode_header(dialect, Flag.CONTROL, batch_id=command, payload=payload), payload)
    )


def seal_control(dialect: Dialect, command: int, frame: bytearray, topic_id: int = 0) -> None:
    """Write the header of a Control frame before a payload that stands where it is sent from.

    Args:
        dialect: whose checksum to use.
        command: the command code.
        frame: `HEADER_SIZE` bytes that are overwritten, then the payload.
        topic_id: set in the header of a push (AMB-21).
    """
    checksum = dialect.checksum
    prefix = _CONTROL_PREFIXES[checksum.name]
    payload = memoryview(frame)[HEADER_SIZE:]
    crc = checksum.compute(payload) if payload else 0
    _SEALED.pack_into(frame, 0, prefix, command, len(payload), crc, topic_id)


def encode_ack(dialect: Dialect, batch_id: int) -> bytes:
    """Return the frame that acknowledges ``batch_id`` (LWP section 4.2)."""
    return _ACK.pack(_ACK_PREFIXES[dialect.checksum.name], batch_id)


def encode_acks(dialect: Dialect, batch_ids: Sequence[int]) -> bytes:
    """Return the frames that acknowledge batches, back to back (LWP section 4.2)."""
    prefix, count = _ACK_PREFIXES[dialect.checksum.name], len(batch_ids)
    if count < _FEW:
        return b"".join(map(_ACK.pack, repeat(prefix), batch_ids))
    ids = pack(f"<{count}Q", *batch_ids)
    frames = bytearray(_ACK.pack(prefix, 0) * count)
    for place in range(_ID_SIZE):  # the first byte of each id, then the second, and so on
        frames[PREFIX_SIZE + place :: HEADER_SIZE] = ids[place::_ID_SIZE]
    return bytes(frames)


def encode_keepalive(dialect: Dialect) -> bytes:
    """Return a Keepalive frame (LWP section 4.3)."""
    return _ACK.pack(_PREFIXES[dialect.checksum.name][Flag.KEEPALIVE], 0)


def encode_backpressure(dialect: Dialect) -> bytes:
    """Return a Backpressure frame (LWP section 4.4)."""
    return _ACK.pack(_PREFIXES[dialect.checksum.name][Flag.BACKPRESSURE], 0)
