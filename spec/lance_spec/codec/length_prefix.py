"""Splitting streams of frames that begin with their length: Fluvio's and RustLog's.

LANCE's own frames have a header with checksums; `lance_spec.frames` splits those.
"""

from lance_spec.checksum import Buffer
from lance_spec.errors import DecodeError

_PREFIX = 4


class PrefixSplitter:
    """Cuts a stream into the payloads of frames that begin with their length in 32 bits.

    A length outside the limits ends the stream: nothing after it can be found again. It is
    judged as soon as its four bytes are there, so that nobody makes this class hold more than
    one frame of the largest size. Never raises for what the bytes are.

    Args:
        maximum: most bytes a payload may have; what Fluvio leaves open, its server must not.
        minimum: fewest bytes a payload may have.
    """

    __slots__ = ("_buffer", "_offset", "fault", "maximum", "minimum")

    def __init__(self, *, maximum: int, minimum: int = 0) -> None:
        self.maximum = maximum
        self.minimum = minimum
        self._buffer = bytearray()
        self._offset = 0
        self.fault: DecodeError | None = None

    def __repr__(self) -> str:
        state = f"fault: {self.fault}" if self.fault else f"{self.pending} bytes pending"
        return f"<PrefixSplitter at byte {self._offset}; {state}>"

    @property
    def pending(self) -> int:
        """Bytes of an unfinished frame."""
        return len(self._buffer)

    def receive_data(self, data: Buffer) -> list[bytes]:
        """Return the payloads that are whole now; after a fault, none ever again."""
        if self.fault is not None:
            return []
        self._buffer += data
        payloads: list[bytes] = []
        start = 0
        with memoryview(self._buffer) as view:
            while len(view) - start >= _PREFIX:
                length = self._length(view, start)
                if length is None or (end := start + _PREFIX + length) > len(view):
                    break
                payloads.append(bytes(view[start + _PREFIX : end]))
                start = end
        self._forget(start)
        return payloads

    def _length(self, view: memoryview, start: int) -> int | None:
        length = int.from_bytes(view[start : start + _PREFIX])
        if self.minimum <= length <= self.maximum:
            return length
        expected, place = f"{self.minimum} to {self.maximum}", self._offset + start
        self.fault = DecodeError("Frame", "length", place, expected, str(length))
        return None

    def _forget(self, size: int) -> None:
        self._offset += size
        if self.fault is not None:
            self._buffer.clear()
        else:
            del self._buffer[:size]
