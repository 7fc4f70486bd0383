"""The JSON bodies of control answers, and the text forms deployed servers use instead.

LWP sections 5.3 to 5.11 (TopicResponse), 12.1 (ErrorResponse) and AMB-10, AMB-25, AMB-29.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Self

from lance_spec.checksum import Buffer
from lance_spec.dialect import Dialect
from lance_spec.enums import ErrorCode
from lance_spec.errors import DecodeError

_U32: Final = 2**32
_U64: Final = 2**64
_MAX_ERROR_BODY: Final = 64 * 1024
_MAX_TEXT: Final = 4096


def encode_json(body: Mapping[str, Any]) -> bytes:
    """Return a JSON object as the bytes of a control payload, keys sorted."""
    return json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def decode_json(payload: Buffer, message: str) -> dict[str, Any]:
    """Return the JSON object that a control payload holds.

    Args:
        payload: the payload's bytes.
        message: what they are, for the error.

    Raises:
        DecodeError: when they are not UTF-8, not JSON, or not an object.
    """
    try:
        body = json.loads(bytes(payload).decode())
    except UnicodeDecodeError as error:
        raise DecodeError(message, "body", error.start, "UTF-8", error.reason) from None
    except json.JSONDecodeError as error:
        raise DecodeError(message, "body", error.pos, "JSON", error.msg) from None
    except (RecursionError, ValueError) as error:
        raise DecodeError(message, "body", 0, "JSON of reasonable depth", str(error)) from None
    if not isinstance(body, dict):
        raise DecodeError(message, "body", 0, "a JSON object", type(body).__name__)
    return body


def take_int(body: Mapping[str, Any], name: str, message: str, below: int = _U64) -> int:
    """Return the unsigned integer ``name`` of a decoded body.

    Raises:
        DecodeError: when it is missing, no integer, or not below ``below``.
    """
    value = body.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < below:
        raise DecodeError(message, name, 0, f"an integer from 0 to {below - 1}", repr(value)[:80])
    return value


def take_str(body: Mapping[str, Any], name: str, message: str) -> str:
    """Return the string ``name`` of a decoded body.

    Raises:
        DecodeError: when it is missing or no string.
    """
    value = body.get(name)
    if not isinstance(value, str):
        raise DecodeError(message, name, 0, "a string", repr(value)[:80])
    return value


def _optional_int(body: Mapping[str, Any], name: str) -> int | None:
    return None if body.get(name) is None else take_int(body, name, "TopicResponse")


@dataclass(frozen=True, slots=True)
class PartitionInfo:
    """Which partition of which topic a topic is (AMB-59).

    Attributes:
        topic: name of the partitioned topic.
        index: which of its partitions this is, from 0 on.
        count: how many partitions it has.
        partitioner: how producers find the partition of a key: ``murmur2`` or ``siphash``.
    """

    topic: str
    index: int
    count: int
    partitioner: str

    @classmethod
    def from_body(cls, body: object) -> Self | None:
        """Read it out of a decoded TopicResponse; None where there is none.

        Raises:
            DecodeError: naming the field that is missing or of the wrong kind.
        """
        if body is None:
            return None
        message = "TopicResponse"
        if not isinstance(body, dict):
            raise DecodeError(message, "partition", 0, "an object", repr(body)[:80])
        count = take_int(body, "count", message, _U32)
        index = take_int(body, "index", message, max(count, 1))
        topic, partitioner = (take_str(body, name, message) for name in ("topic", "partitioner"))
        return cls(topic, index, count, partitioner)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicInfo:
    """What a server tells of a topic (LWP section 5.3, AMB-29, AMB-30).

    Attributes:
        id: the topic's number; 0 is the default topic.
        name: its name.
        created_at: seconds since the Unix epoch.
        topic_epoch: rises with each creation of the same name; 1 where a server has none.
        start_offset: the earliest offset that can be read, in bytes, where the server says.
        end_offset: the offset after the last durable byte, where the server says.
        record_count: records between the two, where the server says.
        max_age_secs: retention by age, in seconds, where the server says; 0 means no limit.
        max_bytes: retention by size, in bytes, where the server says; 0 means no limit.
        partition: which partition of which topic it is; None where it is not one (AMB-59).
    """

    id: int
    name: str
    created_at: int
    topic_epoch: int = 1
    start_offset: int | None = None
    end_offset: int | None = None
    record_count: int | None = None
    max_age_secs: int | None = None
    max_bytes: int | None = None
    partition: PartitionInfo | None = None

    @classmethod
    def from_body(cls, body: Mapping[str, Any]) -> Self:
        """Read one topic out of a decoded TopicResponse.

        Raises:
            DecodeError: naming the field that is missing or of the wrong kind.
        """
        return cls(
            id=take_int(body, "id", "TopicResponse", _U32),
            name=take_str(body, "name", "TopicResponse"),
            created_at=take_int(body, "created_at", "TopicResponse"),
            topic_epoch=1 if (epoch := _optional_int(body, "topic_epoch")) is None else epoch,
            start_offset=_optional_int(body, "start_offset"),
            end_offset=_optional_int(body, "end_offset"),
            record_count=_optional_int(body, "record_count"),
            max_age_secs=_optional_int(body, "max_age_secs"),
            max_bytes=_optional_int(body, "max_bytes"),
            partition=PartitionInfo.from_body(body.get("partition")),
        )

    def to_body(self) -> dict[str, Any]:
        """Return the JSON object, without what is not known."""
        names = self.__slots__
        body = {name: value for name in names if (value := getattr(self, name)) is not None}
        if self.partition is not None:
            body["partition"] = asdict(self.partition)
        return body


def decode_topic(payload: Buffer) -> TopicInfo:
    """Read a TopicResponse that describes one topic.

    Raises:
        DecodeError: naming what is wrong with it.
    """
    return TopicInfo.from_body(decode_json(payload, "TopicResponse"))


def is_complete(payload: Buffer) -> bool:
    """Whether a TopicResponse has all topics: a node that cannot read its cluster's log says no.

    Raises:
        DecodeError: naming what is wrong with it.
    """
    return decode_json(payload, "TopicResponse").get("complete") is not False


def decode_topics(payload: Buffer) -> list[TopicInfo]:
    """Read a TopicResponse that lists topics (LWP section 5.4).

    Raises:
        DecodeError: naming what is wrong with it.
    """
    topics = decode_json(payload, "TopicResponse").get("topics")
    if not isinstance(topics, list) or not all(isinstance(topic, dict) for topic in topics):
        raise DecodeError("TopicResponse", "topics", 0, "a list of objects", repr(topics)[:80])
    return [TopicInfo.from_body(topic) for topic in topics]


@dataclass(frozen=True, slots=True)
class ErrorBody:
    """An ErrorResponse, whichever form it came in.

    Attributes:
        code: the error code; a plain integer when LWP section 12.2 does not list it.
        message: the server's sentence.
        details: what JSON answers add: ``batch_id``, ``leader_addr``, ``earliest``, …
    """

    code: ErrorCode | int
    message: str
    details: Mapping[str, Any] = field(default_factory=dict)

    def encode(self, dialect: Dialect) -> bytes:
        """Return the payload in the dialect's form: JSON, or the bare message (AMB-10)."""
        if not dialect.json_errors:
            return self.message.encode()
        body: dict[str, Any] = {"code": int(self.code), "message": self.message}
        if self.details:
            body["details"] = dict(self.details)
        return encode_json(body)


def decode_error(payload: Buffer) -> ErrorBody:
    """Read an ErrorResponse in either form; never raises.

    JSON is taken where it has a numeric code; anything else is a deployed server's text, whose
    known forms are mapped to codes.
    """
    raw = bytes(payload[:_MAX_ERROR_BODY])
    if raw.lstrip()[:1] == b"{":
        try:
            return _from_json(decode_json(raw, "ErrorResponse"))
        except DecodeError:
            pass  # it only looked like JSON: the text is shown as it came
    return _from_text(raw[:_MAX_TEXT].decode(errors="replace"))


def _from_json(body: Mapping[str, Any]) -> ErrorBody:
    number = take_int(body, "code", "ErrorResponse", 0x100)
    message, details = body.get("message", ""), body.get("details")
    return ErrorBody(
        ErrorCode(number) if number in ErrorCode._value2member_map_ else number,
        str(message)[:_MAX_TEXT],
        details if isinstance(details, dict) else {},
    )


_TEXTS: Final = tuple(
    (re.compile(pattern), code)
    for pattern, code in (
        (r"NOT_LEADER: redirect to (?P<leader_addr>\S+)", ErrorCode.NOT_LEADER),
        (r"NOT_LEADER", ErrorCode.LEADER_UNKNOWN),
        (r"FORWARD_FAILED: Quorum not reached", ErrorCode.QUORUM_NOT_REACHED),
        (r"FORWARD_FAILED|Failed to replicate", ErrorCode.CLUSTER_NOT_READY),
        (r"Unknown topic|(.*: )?Topic (\d+ )?not found", ErrorCode.TOPIC_NOT_FOUND),
        (r"Topic '.*' already exists", ErrorCode.TOPIC_ALREADY_EXISTS),
        (r"Topic name required|.*contains invalid characters", ErrorCode.INVALID_TOPIC_NAME),
        (r"Rate limit exceeded", ErrorCode.RATE_LIMITED),
        (r"Authentication required", ErrorCode.AUTHENTICATION_REQUIRED),
        (r"Invalid token|No token provided", ErrorCode.AUTHENTICATION_FAILED),
        (r"Access denied", ErrorCode.ACCESS_DENIED),
        (r"Payload too large", ErrorCode.PAYLOAD_TOO_LARGE),
        (r"Invalid |Fetch request payload|Protocol error", ErrorCode.INVALID_PAYLOAD),
        (r"Storage error|I/O error", ErrorCode.STORAGE_ERROR),
    )
)
"""How the published server words its errors; the first form that fits decides."""


def _from_text(text: str) -> ErrorBody:
    for pattern, code in _TEXTS:
        if found := pattern.match(text):
            details = {name: value for name, value in found.groupdict().items() if value}
            return ErrorBody(code, text, details)
    return ErrorBody(ErrorCode.UNKNOWN_ERROR, text)


@dataclass(frozen=True, slots=True)
class DedupWindow:
    """How far back a server recognises a repeated batch (AMB-25).

    Attributes:
        entries: number of batches remembered per topic; 0 means off.
        max_age_secs: seconds for which a batch is remembered.
    """

    entries: int
    max_age_secs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterStatus:
    """The answer to GetClusterStatus (AMB-11, AMB-25).

    Attributes:
        is_leader: whether the node takes writes.
        node_count: nodes in the cluster; 1 where the server does not tell.
        healthy_nodes: of which healthy; 1 where the server does not tell.
        dedup_window: the duplicate window, or None where the server states none.
        body: the whole JSON object, with whatever else the server tells.
    """

    is_leader: bool
    node_count: int
    healthy_nodes: int
    dedup_window: DedupWindow | None
    body: Mapping[str, Any] = field(repr=False)

    @classmethod
    def decode(cls, payload: Buffer) -> Self:
        """Read a ClusterStatusResponse.

        Raises:
            DecodeError: naming what is wrong with it.
        """
        message = "ClusterStatusResponse"
        body = decode_json(payload, message)
        window = body.get("dedup_window")
        return cls(
            is_leader=body.get("is_leader") is True,
            node_count=take_int({"node_count": 1, **body}, "node_count", message),
            healthy_nodes=take_int({"healthy_nodes": 1, **body}, "healthy_nodes", message),
            dedup_window=DedupWindow(
                take_int(window, "entries", message), take_int(window, "max_age_secs", message)
            )
            if isinstance(window, dict)
            else None,
            body=body,
        )
