"""The golden rules of the `deployed` dialect: what the published server was read to do."""

import re
import struct
from typing import Literal

from lance_conformance.server.golden.codec import Reply, Wire, ieee
from lance_conformance.server.golden.rules.consumers import SIZES
from lance_conformance.server.golden.specified import Specified
from lance_conformance.server.golden.state import Body, Connection, Refused, Replies, Topic

ACK = 0x08


class Deployed(Specified):
    """The hooks in which the published server differs from the document."""

    def checksum(self, data: bytes, /) -> int:
        """IEEE CRC-32."""
        return ieee(data)

    def reserved_ok(self, _reserved: int, /) -> bool:
        """Reserved bytes are not looked at."""
        return True

    def bit_7_ok(self, _flags: int, /) -> bool:
        """Bit 7 is not looked at."""
        return True

    def length_ok(self, length: int, /) -> bool:
        """The limit is 16 MiB without a record header."""
        return length <= 16 * 1024 * 1024

    def oversize_words(self, _header: Wire, /) -> Replies:
        """Nothing is said."""
        return []

    def error(self, _code: int, words: str, _details: dict[str, object], /) -> Reply:
        """An ErrorResponse is plain text."""
        return Reply(0x40, 0xFF, words.encode())

    def kind(self, header: Wire, /) -> str:
        """Kind flags have an order of precedence; a payload alone makes an Ingest."""
        for bit, name in ((0x40, "control"), (0x20, "keepalive"), (0x08, "ack")):
            if header.flags & bit:
                return name
        if header.flags & 0x10:
            return "backpressure"
        return "ingest" if header.flags & 0x04 or header.length else "nothing"

    def arranged(self, replies: Replies, /) -> Replies:
        """Acks leave when everything else of the same read has left."""
        acks = [reply for reply in replies if reply.flags == ACK]
        return [reply for reply in replies if reply.flags != ACK] + acks

    def opened(self, frame: Wire, /) -> bytes:
        """Compressed payloads are stored as they are."""
        return frame.payload

    def empty(self, _frame: Wire, /) -> Replies:
        """An Ingest without a payload is not answered."""
        return []

    def batch_id_ok(self, _batch_id: int, /) -> bool:
        """Batch id 0 is as good as any."""
        return True

    def chain_ok(self, _payload: bytes, /) -> bool:
        """Payloads are opaque."""
        return True

    def count_ok(self, _announced: int, _payload: bytes, /) -> bool:
        """The record count is not looked at."""
        return True

    def seen(self, _connection: Connection, _frame: Wire, /) -> Literal["new", "again", "other"]:
        """Every batch is new."""
        return "new"

    def name_of(self, raw: bytes, /) -> str:
        """Bytes that are not UTF-8 become replacement characters."""
        return raw.decode(errors="replace")

    def name_characters_ok(self, name: str, /) -> bool:
        """Letters, digits and dashes."""
        return re.fullmatch(r"[A-Za-z0-9-]+", name) is not None

    def default_topic(self) -> Topic:
        """Topic 0 has no metadata."""
        raise Refused(0x10, "Topic not found")

    def epoch_of(self, _name: str, /) -> int:
        """A topic has an epoch, which is always 1."""
        return 1

    def log_body(self, _topic: Topic, /) -> Body:
        """Nothing is said of the log."""
        return {}

    def get_size_ok(self, _size: int, /) -> bool:
        """A short id is filled with zeros, a long one cut."""
        return True

    def set_size_ok(self, size: int, /) -> bool:
        """Trailing bytes are tolerated."""
        return size >= 20

    def limits_ok(self, payload: bytes, name_end: int, /) -> bool:
        """Trailing bytes are tolerated."""
        return len(payload) >= name_end + 16

    def command_of(self, batch_id: int, /) -> int:
        """Only the lowest byte is looked at."""
        return batch_id & 0xFF

    def fetch_size_ok(self, size: int, /) -> bool:
        """Trailing bytes are tolerated."""
        return size >= 16

    def cut(self, log: bytes, start: int, limit: int, /) -> bytes:
        """Data ends at Max Bytes exactly."""
        return log[start : start + limit]

    def counted(self, _log: bytes, _start: int, data: bytes, /) -> int:
        """1 whenever there is data."""
        return 1 if data else 0

    def beyond_end(self, log: bytes, _start: int, /) -> Reply:
        """CatchingUp with the end."""
        return Reply(0x40, 0x12, struct.pack("<Q", len(log)))

    def size_ok(self, command: int, size: int, /) -> bool:
        """Trailing bytes are tolerated; a short DeleteTopic is one of topic 0."""
        return command == 0x02 or size >= SIZES[command]

    def pushing(self) -> bool:
        """A subscription is noted, and nothing is pushed."""
        return False

    def consumer_topic(self, topic_id: int, /) -> Topic:
        """Topic 0 can be subscribed to, like any other."""
        return super().consumer_topic(topic_id) if topic_id else Topic(0, "default")

    def topic_to_commit(self, topic_id: int, /) -> Topic:
        """Nobody looks whether the topic exists."""
        return Topic(topic_id, "")

    def offset_to_commit(self, _topic: Topic, offset: int, /) -> int:
        """Any offset is taken, also one beyond the end."""
        return offset

    def status_alias_ok(self) -> bool:
        """0x30 is not a command."""
        return False
