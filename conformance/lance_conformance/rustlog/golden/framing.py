"""The golden rules of frames and connections."""

from lance_conformance.rustlog.golden.state import Connection, Memory, Refused

LIMIT = 10_485_760


class Framing:
    """Rules about lengths, segments, and which form a payload is in.

    Every public method is a hook: a mutant replaces exactly one. Arguments are positional.
    """

    def __init__(self) -> None:
        self.memory = Memory()

    def length_ok(self, size: int, /) -> bool:
        """A frame has 1 byte to 10 MiB."""
        return 1 <= size <= LIMIT

    def frame_refusal(self, size: int, /) -> Refused:
        """What is said about another length."""
        if size == 0:
            return Refused(1, "Frame error: invalid protocol: zero-length frame")
        return Refused(1, f"Frame error: frame too large: {size} bytes (max: {LIMIT})")

    def closes(self, _size: int, /) -> bool:
        """The connection ends with it."""
        return True

    def spreads(self, _connection: Connection, /) -> bool:
        """Whether other connections end with it, too."""
        return False

    def holds_up(self, _connection: Connection, /) -> bool:
        """Whether others wait while this one has a frame that is not complete."""
        return False

    def kept(self, tail: bytearray, _whole: int, /) -> bytearray:
        """Bytes after the last whole frame wait for the rest."""
        return tail

    def served(self, frames: list[bytes], /) -> list[bytes]:
        """Every frame of a read is served."""
        return frames

    def arranged(self, answers: list[bytes], /) -> list[bytes]:
        """Answers leave in the order of their requests."""
        return answers

    def after_error(self, rest: list[bytes], /) -> list[bytes]:
        """What is still served behind a request that was refused."""
        return rest

    def gone(self, _tail: bytes, /) -> None:
        """A frame that its connection ends in the middle of comes to nothing."""

    def framed(self, payload: bytes, /) -> bytes:
        """An answer after its length."""
        return len(payload).to_bytes(4, "big") + payload

    def form(self, payload: bytes, /) -> str:
        """The first byte tells the form; a tab alone is binary."""
        opens = payload[:1] in (b"{", b" ", b"\r", b"\n")
        return "json" if opens or (payload[:1] == b"\t" and len(payload) > 1) else "binary"

    def form_of_frame_errors(self, /) -> str:
        """The form in which a bad length is refused."""
        return "binary"
