"""The golden rules of frames: what is refused as it comes in, and what goes out."""

from collections.abc import Sequence

from lance_conformance.server.golden.codec import LAYOUT, Reply, Wire, castagnoli, prefix
from lance_conformance.server.golden.state import Connection, Replies

LIMIT = 16 * 1024 * 1024 + 5


class Framing:
    """Rules about headers, segments and the order of what is sent.

    Every public method is a hook: a mutant replaces exactly one. Arguments are positional.
    """

    def checksum(self, data: bytes, /) -> int:
        """The polynomial of the dialect."""
        return castagnoli(data)

    def magic_ok(self, magic: bytes, /) -> bool:
        """Only LANC opens a frame."""
        return magic == b"LANC"

    def version_ok(self, version: int, /) -> bool:
        """Only version 1 is served."""
        return version == 1

    def reserved_ok(self, reserved: int, /) -> bool:
        """Reserved bytes are zero."""
        return reserved == 0

    def bit_7_ok(self, flags: int, /) -> bool:
        """The highest flag is not set."""
        return flags < 0x80

    def header_crc_ok(self, header: Wire, /) -> bool:
        """The header checksum fits bytes 0-7."""
        head = prefix(header.flags, header.magic, header.version, header.reserved)
        return header.header_crc == self.checksum(head)

    def length_ok(self, length: int, /) -> bool:
        """The payload is within the limit."""
        return length <= LIMIT

    def announced_ok(self, header: Wire, /) -> bool:
        """The limit is the same for frames of every kind."""
        return self.length_ok(header.length)

    def payload_crc_ok(self, header: Wire, payload: bytes, /) -> bool:
        """The payload checksum fits the payload; without a payload it does not matter."""
        return not payload or header.payload_crc == self.checksum(payload)

    def last_words(self, _header: Wire, /) -> Replies:
        """What is sent before a connection with a bad header is closed: nothing."""
        return []

    def oversize_words(self, _header: Wire, /) -> Replies:
        """What is sent before a connection with an oversize frame is closed."""
        return [self.error(0x03, f"the payload limit is {LIMIT} bytes", {})]

    def error(self, _code: int, words: str, _details: dict[str, object], /) -> Reply:
        """An ErrorResponse; the dialects write it differently."""
        return Reply(0x40, 0xFF, words.encode())

    def complete(self, there: int, needed: int, /) -> bool:
        """A frame is served when all of it is there."""
        return there >= needed

    def kept(self, tail: bytes, _whole: int, /) -> bytes:
        """Bytes after the last whole frame wait for the rest."""
        return tail

    def served(self, frames: Sequence[Wire], /) -> Sequence[Wire]:
        """Every frame of a read is served."""
        return frames

    def kind(self, header: Wire, /) -> str:
        """What a frame is: one kind flag, or the payload without one, decides."""
        kinds = [name for bit, name in KINDS.items() if header.flags & bit]
        if len(kinds) > 1 or header.flags & 0x02:
            return "ambiguous"
        if kinds:
            return kinds[0]
        return "ambiguous" if header.length else "nothing"

    def asked(self, frame: Wire, /) -> bytes:
        """The payload of a control frame says what is asked, and its header nothing of it."""
        return frame.payload

    def arranged(self, replies: Replies, /) -> Replies:
        """Answers leave in the order of receipt."""
        return replies

    def encode(self, reply: Reply, /) -> bytes:
        """A reply as bytes."""
        crc = self.checksum(reply.payload) if reply.payload else 0
        head = prefix(reply.flags)
        fields = (reply.batch_id, reply.timestamp, reply.records, len(reply.payload), crc)
        header = LAYOUT.pack(b"LANC", 1, reply.flags, 0, self.checksum(head), *fields, reply.topic)
        return header + reply.payload

    def ambient(self, _connection: Connection, _frame: Wire, /) -> Replies:
        """What a frame that only servers send brings when a client sends it: nothing."""
        return []

    def keepalives(self, _frame: Wire, /) -> Replies:
        """A Keepalive is answered by one, all zero."""
        return [Reply(0x20)]


KINDS = {
    0x40: "control",
    0x20: "keepalive",
    0x08: "ack",
    0x10: "backpressure",
    0x04: "ingest",
}
