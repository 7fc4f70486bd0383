"""The two dialects: how requests and answers are written, and where the rules differ (RL-01)."""

from collections.abc import Mapping
from typing import Any, Final, Protocol

from lance_server.listeners.rustlog.options import Speech
from lance_server.listeners.rustlog.refusals import RustlogRefusal
from lance_spec.errors import DecodeError
from lance_spec.messages.rustlog import (
    CreateTopicRequest,
    DescribePartitionRequest,
    DescribeTopicRequest,
    ErrorCode,
    FetchRequest,
    ListTopicsRequest,
    MetricsRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    Ping,
    ProduceRequest,
)
from lance_spec.rustlog import json_messages

MAX_FRAME: Final = 10_485_760
"""Most bytes of a frame's payload (RustLog specification, Frame Structure)."""
_REQUESTS: Final[Mapping[int, Any]] = {
    each.TYPE: each
    for each in (
        ProduceRequest,
        FetchRequest,
        OffsetCommitRequest,
        OffsetFetchRequest,
        CreateTopicRequest,
        ListTopicsRequest,
        DescribeTopicRequest,
        DescribePartitionRequest,
        MetricsRequest,
        Ping,
    )
}
_TEXTS: Final = frozenset({"topic", "group", "group_id"})
"""Fields whose bytes come after a length of two bytes."""
_MOST_LOOKED_AT: Final = 10_000
"""Records of a request that is cut short which are looked at, to say where it ends."""


class Form(Protocol):
    """A dialect.

    Attributes:
        overhead: what each record of a Fetch counts against ``max_bytes`` beside its own bytes.
        takes_none: whether a Fetch with ``max_bytes`` 0 returns no record, instead of one.
        commits_anywhere: whether offsets are kept for topics that do not exist.
        expansion: most bytes that one byte of a record takes in an answer.
        record_size: most bytes that a record takes in an answer beside its own.
        parsed: how many bytes of memory a byte of a request may come to.
    """

    overhead: int
    takes_none: bool
    commits_anywhere: bool
    expansion: int
    record_size: int
    parsed: int

    def read(self, payload: bytes) -> Any:
        """Return a request.

        Raises:
            RustlogRefusal: the payload is not a request.
        """
        ...

    def write(self, answer: Any) -> bytes:
        """Return an answer as the payload of a frame."""
        ...

    def no_frame(self, size: int) -> RustlogRefusal:
        """Return the answer to a length that no frame has."""
        ...

    def no_partition(self, topic: str, partition: int) -> RustlogRefusal:
        """Return the answer to a request for a partition that is not there."""
        ...

    def start(self, request: FetchRequest, committed: int | None) -> int | None:
        """Return where to read for a group; None means that nothing is read."""
        ...

    def beyond(self, offset: int, start: int, end: int) -> int:
        """Return the next offset of an empty answer to a Fetch outside the log.

        Raises:
            RustlogRefusal: it is an error.
        """
        ...


class Binary:
    """What RustLog's programs speak."""

    overhead = 12
    takes_none = True
    commits_anywhere = True
    expansion = 1
    record_size = 4
    parsed = 8

    def read(self, payload: bytes) -> Any:
        """Return a request; bytes after it are ignored."""
        if not payload:
            raise _undecodable("empty buffer")
        cls = _REQUESTS.get(payload[0])
        if cls is None:
            code = ErrorCode.DECODE_ERROR
            raise RustlogRefusal(code, f"Decode error: unknown request type: {payload[0]}")
        try:
            return _leniently(cls, payload)
        except DecodeError as error:
            raise _undecodable(_words(error, payload)) from None

    def write(self, answer: Any) -> bytes:
        """Return an answer as the payload of a frame."""
        return bytes(answer.encode())

    def no_frame(self, size: int) -> RustlogRefusal:
        """Return the answer to a length that no frame has."""
        text = f"frame too large: {size} bytes (max: {MAX_FRAME})"
        text = text if size else "invalid protocol: zero-length frame"
        return RustlogRefusal(ErrorCode.FRAME_ERROR, f"Frame error: {text}", closes=True)

    def no_partition(self, topic: str, partition: int) -> RustlogRefusal:
        """Return the answer to a request for a partition that is not there."""
        return RustlogRefusal(
            ErrorCode.TOPIC_OR_PARTITION_NOT_FOUND,
            f"Topic or partition does not exist: topic={topic}, partition={partition}",
        )

    def start(self, request: FetchRequest, committed: int | None) -> int | None:
        """Return the committed offset: the broker does not look at the requested one."""
        del request
        return committed

    def beyond(self, offset: int, start: int, end: int) -> int:
        """Return the requested offset."""
        del start, end
        return offset


class Json:
    """What RustLog's specification describes."""

    overhead = 0
    takes_none = False
    commits_anywhere = False
    expansion = 4
    record_size = 50
    parsed = 16

    def read(self, payload: bytes) -> Any:
        """Return a request."""
        try:
            return json_messages.decode_request(payload)
        except DecodeError as error:
            text = f"failed to parse request: {error}"
            raise RustlogRefusal(ErrorCode.DECODE_ERROR, text) from None

    def write(self, answer: Any) -> bytes:
        """Return an answer as the payload of a frame."""
        return json_messages.encode_answer(answer)

    def no_frame(self, size: int) -> RustlogRefusal:
        """Return the answer to a length that no frame has."""
        text = f"max frame size exceeded: {size} bytes, over {MAX_FRAME}"
        text = text if size else "failed to parse request: an empty frame"
        return RustlogRefusal(ErrorCode.FRAME_ERROR, text, closes=True)

    def no_partition(self, topic: str, partition: int) -> RustlogRefusal:
        """Return the answer to a request for a partition that is not there."""
        return RustlogRefusal(
            ErrorCode.TOPIC_OR_PARTITION_NOT_FOUND,
            f"partition not found: topic={topic}, partition={partition}",
        )

    def start(self, request: FetchRequest, committed: int | None) -> int | None:
        """Return the higher of the committed and the requested offset."""
        return max(request.offset, committed or 0)

    def beyond(self, offset: int, start: int, end: int) -> int:
        """Return the end of the log; what is gone from it is an error."""
        if offset < start:
            text = f"offset out of range: {offset} is gone; go on from offset {start}"
            raise RustlogRefusal(ErrorCode.FETCH_FAILED, text)
        return end


BINARY: Final[Form] = Binary()
JSON: Final[Form] = Json()


def form_of(payload: bytes, dialect: Speech) -> Form:
    """Return the dialect of a request (RL-01).

    A tab opens JSON as well as a request for metrics; the latter is one byte long.
    """
    if dialect == "auto":
        first = payload[:1]
        opens = first == b"{" or (first in json_messages.WHITE_SPACE and len(payload) > 1)
        return JSON if first and opens else BINARY
    return JSON if dialect == "json" else BINARY


def _leniently(cls: Any, payload: bytes) -> Any:
    try:
        return cls.decode(payload)
    except DecodeError as error:
        if error.field:
            raise
        return cls.decode(payload[: error.offset])  # the broker ignores what is behind


def _undecodable(words: str) -> RustlogRefusal:
    return RustlogRefusal(ErrorCode.DECODE_ERROR, f"Decode error: decode error: {words}")


def _words(error: DecodeError, payload: bytes) -> str:
    """Return the broker's words for what is wrong with a request."""
    name = "group_id" if (error.message, error.field) == ("FetchRequest", "group") else error.field
    if error.expected == "UTF-8":
        return f"invalid utf8 {name}: {_of_text(payload)}"
    if name == "records":
        return _of_records(payload)
    if name not in _TEXTS:
        return f"missing {'partition count' if name == 'partitions' else name}"
    length = int.from_bytes(payload[max(error.offset - 2, 1) : error.offset], "big")
    return f"truncated {name}" if error.expected == f"{length} bytes" else f"missing {name} length"


def _of_text(payload: bytes) -> str:
    """Return them for the first name that is not UTF-8, of those that a request begins with."""
    place = 1
    while True:
        begin = place + 2
        place = begin + int.from_bytes(payload[place:begin], "big")
        try:
            payload[begin:place].decode()
        except UnicodeDecodeError as error:
            if error.reason == "unexpected end of data":
                return f"incomplete utf-8 byte sequence from index {error.start}"
            size = error.end - error.start
            return f"invalid utf-8 sequence of {size} bytes from index {error.start}"


def _of_records(payload: bytes) -> str:
    """Return them for a list of records, which stands after the topic and its partition."""
    place = 7 + int.from_bytes(payload[1:3], "big")
    if len(payload) < place + 4:
        return "missing record count"
    place += 4
    for _ in range(_MOST_LOOKED_AT):
        begin = place + 4
        if len(payload) < begin:
            break
        place = begin + int.from_bytes(payload[place:begin], "big")
        if len(payload) < place:
            return "truncated record"
    return "truncated record length"
