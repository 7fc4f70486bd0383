"""Frames: a length of four bytes, and so many bytes of payload."""

from dataclasses import dataclass

from lance_conformance.engine.expectations import Violation
from lance_conformance.rustlog.wire import binary, jsonform
from lance_conformance.rustlog.wire.layout import TYPES
from lance_conformance.rustlog.wire.message import Message, UnreadableError

LENGTH = 4
CHANGES = ("Produce", "OffsetCommit", "CreateTopic")
"""Requests that change something."""
MAX_FRAME = 10_485_760
"""Bytes of the largest payload (RustLog specification, Frame Structure)."""


def framed(payload: bytes) -> bytes:
    """A payload after its length."""
    return len(payload).to_bytes(LENGTH, "big") + payload


def write(request: Message) -> bytes:
    """A request as a frame."""
    form = jsonform if request.form == "json" else binary
    return framed(form.write(request))


def split(stream: bytes) -> list[bytes]:
    """Cut a stream where its lengths say that frames end; the rest stays in one piece."""
    found = []
    while len(stream) >= LENGTH:
        size = int.from_bytes(stream[:LENGTH], "big")
        if size > MAX_FRAME:
            break
        found.append(stream[: LENGTH + size])
        stream = stream[LENGTH + size :]
    return [*found, stream] if stream else found


def may_change(stream: bytes) -> str | None:
    """The first request of some bytes that changes something where it is carried out."""
    for frame in split(stream):
        payload = frame[LENGTH:]
        for name in CHANGES:
            if payload[:1] == bytes([TYPES[name]]) or f'"{name}"'.encode() in payload:
                return name
    return None


@dataclass(frozen=True, slots=True)
class Heard:
    """A frame that came.

    Attributes:
        payload: What it holds.
        message: That as an answer; `None` if it is none.
        reason: A machine reason code if not.
        problem: What is wrong, in words.
    """

    payload: bytes
    message: Message | None = None
    reason: str = ""
    problem: str = ""

    def __str__(self) -> str:
        return str(self.message) if self.message else f"not an answer: {self.problem}"


def heard(payload: bytes) -> Heard:
    """Read an answer in the form it is written in; a brace opens JSON."""
    try:
        return Heard(payload, (jsonform if payload[:1] == b"{" else binary).read(payload))
    except UnreadableError as problem:
        return Heard(payload, reason=problem.reason, problem=str(problem))


class Decoder:
    """Splits a stream into frames, and stops for good at the first length that no frame has."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._violation: Violation | None = None

    def __repr__(self) -> str:
        return f"<Decoder pending={self.pending} violation={self._violation}>"

    @property
    def pending(self) -> int:
        """Bytes of a frame that is not complete yet."""
        return len(self._buffer)

    def feed(self, data: bytes) -> None:
        """Take more bytes of the stream."""
        self._buffer += data

    def next(self) -> Heard | Violation | None:
        """The next frame, the violation that ended the stream, or ``None`` to ask for more."""
        if self._violation is not None or len(self._buffer) < LENGTH:
            return self._violation
        size = int.from_bytes(self._buffer[:LENGTH], "big")
        if not 1 <= size <= MAX_FRAME:
            self._violation = Violation(
                "field:length", f"the length at byte 0 is {size}, it must be 1 to {MAX_FRAME}"
            )
            return self._violation
        if len(self._buffer) < LENGTH + size:
            return None
        payload = bytes(self._buffer[LENGTH : LENGTH + size])
        del self._buffer[: LENGTH + size]
        return heard(payload)
