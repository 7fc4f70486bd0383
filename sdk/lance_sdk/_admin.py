"""What a client can ask of a server, as steps: the same for both faces.

Each procedure is a generator that yields calls and gets their results sent in, or their errors
thrown in, and pauses in between; the faces only wait.
"""

from collections.abc import Callable, Generator
from typing import Any, Final, TypeAlias, TypeVar

from lance_sdk._core.calls import Call
from lance_sdk._core.handshake import (
    BETWEEN_LOOKS,
    LOOKS,
    Pause,
    find_topic,
    missing_topic,
)
from lance_sdk.errors import LocalProtocolError, TopicAlreadyExists, TopicNotFound
from lance_spec.bodies import ClusterStatus, TopicInfo, decode_json, decode_topic, decode_topics
from lance_spec.checksum import Buffer
from lance_spec.dialect import Dialect
from lance_spec.enums import Command
from lance_spec.errors import DecodeError, EncodeError
from lance_spec.messages.lwp import (
    CreateTopic,
    CreateTopicWithRetention,
    DeleteTopic,
    GetTopic,
    SetRetention,
)
from lance_spec.names import check_topic_name

T = TypeVar("T")
Procedure: TypeAlias = Generator[Call | Pause, Any, T]

_FOREVER_SECS: Final = 18_446_744_073
"""The largest age the deployed server does not overflow on; about 584 years (AMB-08)."""
_UNBOUNDED_BYTES: Final = 2**63 - 1
"""Larger than any log, where 0 would delete it (AMB-08)."""


def create_topic(
    name: str,
    dialect: Dialect | None,
    *,
    exist_ok: bool = False,
    max_age_secs: int = 0,
    max_bytes: int = 0,
) -> Procedure[TopicInfo]:
    """Create a topic (LWP sections 5.3 and 5.11)."""
    raw = _checked(name, dialect).encode()
    if max_age_secs or max_bytes:
        age, size = _limits(dialect, max_age_secs, max_bytes)
        command = Command.CREATE_TOPIC_WITH_RETENTION
        payload = _encode(CreateTopicWithRetention(name=raw, max_age_secs=age, max_bytes=size))
    else:
        command, payload = Command.CREATE_TOPIC, _encode(CreateTopic(name=raw))
    try:
        created: TopicInfo = yield Call(
            command, payload, Command.TOPIC_RESPONSE, decode_topic, repeatable=False
        )
    except TopicAlreadyExists:
        if not exist_ok:
            raise
        for _ in range(LOOKS):  # a server may refuse the name before it lists the topic
            if (topic := find_topic((yield from list_topics()), name)) is not None:
                return (yield from get_topic(topic.id, ""))
            yield Pause(BETWEEN_LOOKS)
        raise
    return created


def list_topics() -> Procedure[list[TopicInfo]]:
    """List the topics by name (LWP section 5.4)."""
    topics = yield Call(
        Command.LIST_TOPICS, b"", Command.TOPIC_RESPONSE, decode_topics, repeatable=True
    )
    return sorted(topics, key=lambda topic: (topic.name, topic.id))


def get_topic(topic: str | int, server_url: str) -> Procedure[TopicInfo]:
    """Look a topic up by name or number (LWP section 5.5)."""
    number = topic if isinstance(topic, int) else (yield from _number(topic, server_url))
    payload = _encode(GetTopic(topic_id=number))
    found: TopicInfo = yield Call(
        Command.GET_TOPIC, payload, Command.TOPIC_RESPONSE, _numbered(number), repeatable=True
    )
    return found


def _numbered(number: int) -> Callable[[Buffer], TopicInfo]:
    """Return what reads an answer about one topic, and refuses one about another."""

    def decode(payload: Buffer) -> TopicInfo:
        found = decode_topic(payload)
        if found.id != number:
            raise DecodeError("TopicResponse", "id", 0, str(number), str(found.id))
        return found

    return decode


def _number(name: str, server_url: str) -> Procedure[int]:
    found = find_topic((yield from list_topics()), name)
    if found is None:
        raise TopicNotFound(missing_topic(name, server_url))
    return found.id


def delete_topic(topic: str | int, server_url: str) -> Procedure[None]:
    """Delete a topic and its records (LWP section 5.6)."""
    number = topic if isinstance(topic, int) else (yield from _number(topic, server_url))
    payload = _encode(DeleteTopic(topic_id=number))
    yield Call(Command.DELETE_TOPIC, payload, Command.TOPIC_RESPONSE, _any_object, repeatable=False)


def set_retention(
    topic: str | int,
    dialect: Dialect | None,
    server_url: str,
    *,
    max_age_secs: int,
    max_bytes: int,
) -> Procedure[None]:
    """Set how long a topic keeps its records (LWP section 5.10)."""
    number = topic if isinstance(topic, int) else (yield from _number(topic, server_url))
    age, size = _limits(dialect, max_age_secs, max_bytes)
    payload = _encode(SetRetention(topic_id=number, max_age_secs=age, max_bytes=size))
    yield Call(Command.SET_RETENTION, payload, Command.TOPIC_RESPONSE, _any_object, repeatable=True)


def cluster_status() -> Procedure[ClusterStatus]:
    """Ask for the cluster's state (AMB-11)."""
    status: ClusterStatus = yield Call(
        Command.GET_CLUSTER_STATUS,
        b"",
        Command.CLUSTER_STATUS_RESPONSE,
        ClusterStatus.decode,
        repeatable=True,
    )
    return status


def _any_object(payload: Any) -> dict[str, Any]:
    return decode_json(payload, "TopicResponse")


def _limits(dialect: Dialect | None, age: int, size: int) -> tuple[int, int]:
    """Say "no limit" in the server's words: 0 deletes everything at a deployed one (AMB-08)."""
    if dialect is None or dialect.zero_retention_is_unlimited:
        return age, size
    return age or _FOREVER_SECS, size or _UNBOUNDED_BYTES


def _checked(name: object, dialect: Dialect | None) -> str:
    if not isinstance(name, str):
        raise TypeError(f"a topic's name must be text, not {type(name).__name__}")
    try:
        return check_topic_name(name, dialect)
    except EncodeError as error:
        raise LocalProtocolError(
            f"topic name {name!r}: expected {error.expected}, got {error.got}"
        ) from None


def _encode(message: Any) -> bytes:
    try:
        return bytes(message.encode())
    except EncodeError as error:
        raise LocalProtocolError(str(error)) from None
