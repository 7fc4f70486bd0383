"""The golden rules of the `specified` dialect; every method is a hook that a mutant may replace."""

import itertools
import json
import ssl
import struct
from collections.abc import Sequence
from typing import TypeVar

from lance_conformance.client.golden.values import (
    ACK,
    BACKPRESSURE,
    CONTROL,
    INGEST,
    KEEPALIVE,
    Batch,
    Body,
    Fetched,
    ProblemError,
    Record,
)
from lance_conformance.server.golden.codec import Wire, castagnoli, prefix, walk

T = TypeVar("T")
LARGEST_BATCH = 16 * 1024 * 1024 + 5
LARGEST = LARGEST_BATCH + 24
RETRIABLE = frozenset({0x20, 0x21, 0x22, 0x23, 0x30, 0x31, 0x62})
AUTH = frozenset({0x40, 0x41, 0x42})


class Specified:
    """How a right client reads, writes and decides."""

    # -- frames out --------------------------------------------------------------------------------

    def checksum(self, data: bytes, /) -> int:
        """CRC32C."""
        return castagnoli(data)

    def head(self, flags: int, /) -> bytes:
        """Bytes 0 to 7 of a frame."""
        return prefix(flags)

    def encode(self, frame: Wire, /) -> bytes:
        """A frame as bytes; checksums and length are worked out."""
        head = self.head(frame.flags)
        payload_crc = self.checksum(frame.payload) if frame.payload else 0
        rest = struct.pack(
            "<IQQIIII", self.checksum(head), frame.batch_id, frame.timestamp, frame.records,
            len(frame.payload), payload_crc, frame.topic,
        )  # fmt: skip
        return head + rest + frame.payload

    def keepalive(self) -> bytes:
        """A Keepalive."""
        return self.encode(_wire(KEEPALIVE))

    def control(self, command: int, payload: bytes, /) -> bytes:
        """A control frame."""
        return self.encode(_wire(CONTROL, batch_id=command, payload=payload))

    def next_batch_id(self, last: int, /) -> int:
        """Ids count up from a number that is not 0."""
        return last + 1

    def ingest(self, batch_id: int, now: int, topic: int, records: Sequence[Record], /) -> bytes:
        """An Ingest."""
        payload, count = self.chain(records), self.count(records)
        return self.encode(
            _wire(INGEST, batch_id=batch_id, timestamp=now, records=count, payload=payload,
                  topic=topic)
        )  # fmt: skip

    def chain(self, records: Sequence[Record], /) -> bytes:
        """Records one after the other."""
        return b"".join(struct.pack("<BI", r.type, len(r.value)) + r.value for r in records)

    def count(self, records: Sequence[Record], /) -> int:
        """The number of records."""
        return len(records)

    def may_send(self, record: Record, /) -> bool:
        """Type 0x00 is reserved, and a Null has no value."""
        return record.type != 0 and not (record.type == 0xFF and record.value)

    def fits(self, records: Sequence[Record], /) -> bool:
        """A batch is no larger than the largest payload."""
        return sum(len(r.value) + 5 for r in records) <= LARGEST_BATCH

    # -- payloads out ------------------------------------------------------------------------------

    def name(self, name: str, /) -> bytes:
        """The payload of CreateTopic."""
        return name.encode()

    def limited(self, name: str, age: int, size: int, /) -> bytes:
        """The payload of CreateTopicWithRetention."""
        raw = name.encode()
        return struct.pack("<H", len(raw)) + raw + struct.pack("<QQ", age, size)

    def topic(self, topic: int, /) -> bytes:
        """The payload of GetTopic and DeleteTopic."""
        return struct.pack("<I", topic)

    def retention(self, topic: int, age: int, size: int, /) -> bytes:
        """The payload of SetRetention."""
        return struct.pack("<IQQ", topic, age, size)

    def fetch(self, topic: int, offset: int, max_bytes: int, /) -> bytes:
        """The payload of Fetch."""
        return struct.pack("<IQI", topic, offset, max_bytes)

    def subscribe(self, topic: int, offset: int, max_bytes: int, consumer: int, /) -> bytes:
        """The payload of Subscribe."""
        return struct.pack("<IQIQ", topic, offset, max_bytes, consumer)

    def unsubscribe(self, topic: int, consumer: int, /) -> bytes:
        """The payload of Unsubscribe."""
        return struct.pack("<IQ", topic, consumer)

    def commit(self, topic: int, consumer: int, offset: int, /) -> bytes:
        """The payload of CommitOffset."""
        return struct.pack("<IQQ", topic, consumer, offset)

    def consumer(self, name: str, /) -> int:
        """A number for the name of a consumer, never 0."""
        return int.from_bytes(name.encode().ljust(8, b"\1")[-8:], "little")

    def resumed(self, _begun: int, position: int, /) -> int:
        """A subscription goes on where it stopped."""
        return position

    def pushes(self) -> bool:
        """The server pushes to a subscription (AMB-21)."""
        return True

    # -- frames in ---------------------------------------------------------------------------------

    def magic_ok(self, magic: bytes, /) -> bool:
        """The magic bytes are LANC."""
        return magic == b"LANC"

    def version_ok(self, version: int, /) -> bool:
        """The version is 1."""
        return version == 1

    def header_crc_ok(self, header: Wire, /) -> bool:
        """The header checksum is right."""
        head = prefix(header.flags, header.magic, header.version, header.reserved)
        return header.header_crc == self.checksum(head)

    def reserved_ok(self, reserved: int, /) -> bool:
        """The reserved bytes are 0."""
        return reserved == 0

    def bit_7_ok(self, flags: int, /) -> bool:
        """Flag bit 7 is 0."""
        return flags < 0x80

    def length_ok(self, length: int, /) -> bool:
        """No answer is larger than the largest."""
        return length <= LARGEST

    def payload_crc_ok(self, header: Wire, payload: bytes, /) -> bool:
        """The payload checksum is right."""
        return header.payload_crc == self.checksum(payload)

    def kept(self, tail: bytes, _whole: int, /) -> bytes:
        """What is not a whole frame yet waits for the rest."""
        return tail

    def served(self, frames: Sequence[Wire], /) -> Sequence[Wire]:
        """Every frame of one read is looked at."""
        return frames

    def has_room(self, _unread: Sequence[Wire], _frame: Wire, /) -> bool:
        """Every frame waits until it is looked at, however many do."""
        return True

    def kind(self, flags: int, /) -> int:
        """The kind flag of a frame."""
        return flags & (ACK | BACKPRESSURE | KEEPALIVE | CONTROL)

    def gives_up(self) -> bool:
        """A connection on which something was wrong is closed."""
        return True

    # -- keepalives, acks, backpressure ------------------------------------------------------------

    def answers_keepalive(self, received: int, sent: int, since_last: float, /) -> bool:
        """A Keepalive that answers none of ours is answered, once a second at most (AMB-23)."""
        return received > sent and since_last >= 1.0

    def keepalive_due(self, quiet: float, interval: float, /) -> bool:
        """A Keepalive is due after some quiet."""
        return 0 < interval <= quiet

    def kept_alive(self, connections: Sequence[T], /) -> Sequence[T]:
        """Every connection is kept alive."""
        return connections

    def acknowledged(self, waiting: Sequence[Batch], frame: Wire, /) -> Sequence[Batch]:
        """An Ack, and nothing else, is for the batch whose id it carries."""
        if not frame.flags & ACK:
            return []
        return [batch for batch in waiting if batch.batch_id == frame.batch_id]

    def courtesy(self, _frame: Wire, /) -> bytes:
        """What is said to an answer: nothing."""
        return b""

    def pace(self, window: int, /) -> int:
        """A Backpressure frame halves what may be on its way."""
        return max(1, window // 2)

    def refused(self, waiting: Sequence[Batch], problem: ProblemError, /) -> Sequence[Batch]:
        """An error is about the batch that its details name, or the only one there is."""
        named = [b for b in waiting if b.batch_id == problem.details.get("batch_id")]
        return named or (waiting if len(waiting) == 1 else [])

    # -- answers -----------------------------------------------------------------------------------

    def answers(self, wanted: int, command: int, /) -> bool:
        """An answer has the command that answers the request."""
        return command == wanted

    def body(self, payload: bytes, /) -> Body:
        """The JSON object of an answer."""
        try:
            body = json.loads(payload.decode())
        except (ValueError, RecursionError) as problem:
            raise ProblemError("protocol", f"the answer is not JSON: {problem}") from None
        if not isinstance(body, dict):
            raise ProblemError("protocol", f"the answer is not a JSON object: {body!r:.80}")
        return body

    def topic_of(self, body: Body, /) -> Body:
        """A topic in an answer."""
        topic_id, name = body.get("id"), body.get("name")
        if type(topic_id) is not int or not 0 <= topic_id < 2**32:
            raise ProblemError("protocol", f"the topic's id is {topic_id!r:.80}")
        if not isinstance(name, str):
            raise ProblemError("protocol", f"the topic's name is {name!r:.80}")
        return {"id": topic_id, "name": name}

    def topics_of(self, body: Body, /) -> list[Body]:
        """The topics of an answer."""
        topics = body.get("topics")
        if not isinstance(topics, list) or not all(isinstance(each, dict) for each in topics):
            raise ProblemError("protocol", f"the topics are {topics!r:.80}")
        return [self.topic_of(each) for each in topics]

    def found(self, topic: Body, topic_id: int, /) -> Body:
        """The answer to GetTopic is about the topic that was asked for."""
        if topic["id"] != topic_id:
            raise ProblemError("protocol", f"asked for topic {topic_id}, told of {topic['id']}")
        return topic

    def about(self, body: Body, field: str, topic_id: int, /) -> None:
        """The answer to DeleteTopic or SetRetention is about the topic that was named."""
        if body.get(field, topic_id) != topic_id:
            raise ProblemError("protocol", f"asked about topic {topic_id}, told of {body[field]}")

    def error(self, payload: bytes, /) -> tuple[int, str, Body]:
        """Code, sentence and details of an ErrorResponse."""
        try:
            body = json.loads(payload.decode())
        except (ValueError, RecursionError):
            return 0x01, payload.decode(errors="replace"), {}
        if not isinstance(body, dict) or type(body.get("code")) is not int:
            return 0x01, payload.decode(errors="replace"), {}
        details = body.get("details")
        return (
            body["code"],
            str(body.get("message", "")),
            details if isinstance(details, dict) else {},
        )

    def kind_of(self, code: int, /) -> str:
        """The kind of an error code (section 12.4)."""
        if code in RETRIABLE:
            return "redirect" if code == 0x20 else "retriable"
        return "auth" if code in AUTH else "fatal"

    def shown(self, text: str, token: str | None, /) -> str:
        """A token never stands in a text for people."""
        return text.replace(token, "***") if token else text

    # -- records in --------------------------------------------------------------------------------

    def fetched(self, payload: bytes, offset: int, /) -> Fetched:
        """The records of a FetchResponse, and where the next one begins."""
        if len(payload) < 16:
            raise ProblemError("protocol", f"a FetchResponse of {len(payload)} bytes")
        next_offset, size, count = struct.unpack_from("<QII", payload)
        data = payload[16:]
        self.check_size(size, len(data))
        self.check_next(offset, len(data), next_offset)
        self.check_aligned(data, count)
        records, whole = self.records(data)
        if data and not whole:
            return Fetched([], offset, more=True)
        return Fetched(records, self.position(offset, whole, next_offset))

    def check_size(self, announced: int, size: int, /) -> None:
        """The announced size is that of the data (AMB-05)."""
        if announced != size:
            raise ProblemError("protocol", f"{announced} bytes announced, {size} came")

    def check_next(self, offset: int, size: int, next_offset: int, /) -> None:
        """The next offset lies after the data."""
        if next_offset < offset + size:
            raise ProblemError(
                "protocol", f"next offset {next_offset} after {size} bytes from {offset} on"
            )

    def check_aligned(self, data: bytes, count: int, /) -> None:
        """Data without a whole record does not begin at a record (AMB-19)."""
        if data and count == 0 and len(walk(data)[0]) > 1:
            raise ProblemError("fatal", "the offset is not that of a record")

    def records(self, data: bytes, /) -> tuple[list[Record], int]:
        """The whole records in some data, and where they end."""
        ends, _ = walk(data)
        found = [Record(data[a], data[a + 5 : b]) for a, b in itertools.pairwise(ends)]
        return [self.readable(record) for record in found], ends[-1]

    def readable(self, record: Record, /) -> Record:
        """A record of the reserved type is damage."""
        if record.type == 0:
            raise ProblemError("fatal", "a record of type 0x00")
        return record

    def position(self, offset: int, whole: int, next_offset: int, /) -> int:
        """Where reading goes on: after the last whole record."""
        return offset + whole if whole else next_offset

    def carried(self, part: bytes, /) -> bytes:
        """A part of a record waits for the rest, which the next push begins with."""
        return part

    def catching_up(self, payload: bytes, offset: int, /) -> Fetched:
        """An offset that is not there yet: nothing has come, and nothing moves."""
        if len(payload) != 8:
            raise ProblemError("protocol", f"CatchingUp of {len(payload)} bytes")
        return Fetched([], offset)

    def subscribed(self, payload: bytes, consumer: int, /) -> int:
        """Where a subscription begins."""
        if len(payload) != 16:
            raise ProblemError("protocol", f"a SubscribeAck of {len(payload)} bytes")
        owner, start = struct.unpack("<QQ", payload)
        if owner != consumer:
            raise ProblemError("protocol", f"a SubscribeAck for consumer {owner}, not {consumer}")
        return int(start)

    def is_ours(self, topic: int, frame: Wire, /) -> bool:
        """A push is for the topic that its header names (AMB-21)."""
        return frame.topic == topic

    def committed(self, payload: bytes, consumer: int, offset: int, /) -> None:
        """A CommitAck repeats consumer and offset."""
        if len(payload) != 16 or struct.unpack("<QQ", payload) != (consumer, offset):
            raise ProblemError("protocol", f"a CommitAck of other things: {payload.hex()}")

    # -- connections -------------------------------------------------------------------------------

    def to_send(self, batches: Sequence[Batch], /) -> Sequence[Batch]:
        """Everything that is neither acknowledged nor refused is sent, in order."""
        return [batch for batch in batches if not batch.settled]

    def flushed(self, since: Sequence[Batch], _ever: Sequence[Batch], /) -> Sequence[Batch]:
        """A flush tells of the batches since the one before."""
        return since

    def notices_the_end(self) -> bool:
        """The end of a connection is noticed."""
        return True

    def gives_up_late(self) -> bool:
        """A connection on which an answer is overdue is closed: the answer may still come."""
        return True

    def again(self, batch: Batch, /) -> bytes:
        """A retry is the same frame."""
        return batch.data

    def worth_another_try(self, problem: ProblemError, /) -> bool:
        """Which refusals of a batch may help to wait for."""
        return problem.kind in ("retriable", "redirect")

    def retry_delay(self, timeout: float, /) -> float:
        """Seconds before a batch that was refused for now is sent again."""
        return timeout / 20

    def reconnects(self) -> bool:
        """A lost connection is made again."""
        return True

    def delay(self, attempt: int, timeout: float, /) -> float:
        """Seconds before an attempt to connect: each waits twice as long as the one before."""
        return min(timeout, timeout / 20 * 2.0 ** (attempt - 1)) if attempt else 0.0

    def leader(self, problem: ProblemError, /) -> tuple[str, int] | None:
        """Where a redirect points."""
        address = problem.details.get("leader_addr")
        host, _, port = str(address).rpartition(":")
        return (host, int(port)) if host and port.isdecimal() and 0 < int(port) < 65536 else None

    def operation_timeout(self, timeout: float, /) -> float:
        """Seconds that an operation may take."""
        return timeout

    def hello(self, token: str | None, /) -> bytes | None:
        """What is presented before anything else."""
        return None if token is None else token.encode()

    def admitted(self, payload: bytes, /) -> None:
        """An AuthenticateResponse begins with 1."""
        if payload[:1] != b"\x01":
            raise ProblemError("auth", payload[1:].decode(errors="replace") or "not admitted")

    def tls(self, ca: str, /) -> ssl.SSLContext:
        """Only servers with a certificate of these authorities, and of the right name."""
        return ssl.create_default_context(cadata=ca)


def _wire(
    flags: int,
    *,
    batch_id: int = 0,
    timestamp: int = 0,
    records: int = 0,
    topic: int = 0,
    payload: bytes = b"",
) -> Wire:
    return Wire(
        b"LANC", 1, flags, 0, 0, batch_id, timestamp, records, len(payload), 0, topic, payload
    )
