"""Requests of a client to a server, as steps: the same for both APIs.

Each procedure is a generator that yields calls and gets their results sent in, or their errors
thrown in, and pauses in between; the clients only wait.
"""

import re
from collections.abc import Callable, Generator, Sequence
from datetime import datetime
from struct import Struct
from typing import Any, Final, TypeAlias, TypeVar

from lance_sdk._errors.server import InvalidPayload
from lance_sdk._protocol.consume.consume_errors import no_times
from lance_sdk._protocol.handshake import (
    BETWEEN_LOOKS,
    LOOKS,
    Pause,
    find_partitioned,
    find_topic,
    missing_topic,
    near_topic,
    no_topic,
    partitioned_topic,
    partitioned_topics,
    uncertain_topic,
)
from lance_sdk._protocol.request_tracker import PendingRequest
from lance_sdk.errors import (
    ConfigError,
    LocalProtocolError,
    TopicAlreadyExists,
    TopicNotFound,
    Unsupported,
)
from lance_sdk.types import BatchTimes, PartitionedTopic
from lance_sdk.values.keyed import as_moment_ns
from lance_spec.bodies import (
    ClusterStatus,
    TopicInfo,
    decode_json,
    decode_topic,
    decode_topics,
    is_complete,
)
from lance_spec.checksum import Buffer
from lance_spec.dialect import Dialect
from lance_spec.enums import Command, PartitionerId
from lance_spec.errors import DecodeError, EncodeError
from lance_spec.messages import lwp
from lance_spec.messages.lwp import (
    AddPartitions,
    BatchTimesResponse,
    CreatePartitionedTopic,
    CreateTopic,
    CreateTopicWithRetention,
    DeleteTopic,
    GetTopic,
    OffsetForTime,
    OffsetForTimeResponse,
    SetRetention,
)
from lance_spec.names import check_topic_name

T = TypeVar("T")
Procedure: TypeAlias = Generator[PendingRequest | Pause, Any, T]

_TIME: Final = Struct("<QQ")
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
        created: TopicInfo = yield PendingRequest(
            command, payload, Command.TOPIC_RESPONSE, decode_topic, repeatable=False
        )
    except TopicAlreadyExists:
        if not exist_ok:
            raise TopicAlreadyExists(
                f"topic {name!r} exists already; pass exist_ok=True to take it as it is"
            ) from None
        for _ in range(LOOKS):  # a server may refuse the name before it lists the topic
            if (topic := find_topic((yield from list_topics()), name)) is not None:
                return (yield from get_topic(topic.id, ""))
            yield Pause(BETWEEN_LOOKS)
        raise
    return created


PARTITIONERS: Final = {each.name.lower(): each for each in PartitionerId}
"""The partitioners that a server can describe, by name (AMB-59)."""
MAX_PARTITIONS: Final = 4096


def create_partitioned(
    name: str,
    dialect: Dialect | None,
    *,
    partitions: int,
    partitioner: str,
    exist_ok: bool,
    max_age_secs: int,
    max_bytes: int,
) -> Procedure[PartitionedTopic]:
    """Create a partitioned topic (AMB-59)."""
    if partitioner not in PARTITIONERS:
        known = ", ".join(PARTITIONERS)
        raise ConfigError(f"partitioner={partitioner!r} is not valid; choose one of {known}")
    request = CreatePartitionedTopic(
        name=_checked(name, dialect).encode(),
        partitions=check_partitions(partitions),
        partitioner=PARTITIONERS[partitioner],
        max_age_secs=max_age_secs,
        max_bytes=max_bytes,
    )
    try:
        created = yield from _whole(Command.CREATE_PARTITIONED_TOPIC, request, repeatable=False)
    except TopicAlreadyExists:
        if not exist_ok:
            raise
        there = find_partitioned((yield from list_topics()), name)
        if there is None or (there.partitions, there.partitioner) != (partitions, partitioner):
            raise
        return there
    return created


def add_partitions(name: str, partitions: int) -> Procedure[PartitionedTopic]:
    """Give a partitioned topic more partitions (AMB-59)."""
    request = AddPartitions(name=name.encode(), partitions=check_partitions(partitions))
    return (yield from _whole(Command.ADD_PARTITIONS, request, repeatable=True))


def check_partitions(partitions: object) -> int:
    """Return a number of partitions.

    Raises:
        ConfigError: it is not a valid number of partitions.
    """
    if type(partitions) is not int or not 1 <= partitions <= MAX_PARTITIONS:
        raise ConfigError(f"partitions={partitions!r}: expected 1 to {MAX_PARTITIONS}")
    return partitions


def _whole(command: Command, request: Any, *, repeatable: bool) -> Procedure[PartitionedTopic]:
    try:
        topics = yield PendingRequest(
            command, _encode(request), Command.TOPIC_RESPONSE, decode_topics, repeatable=repeatable
        )
    except InvalidPayload as error:
        if "partition" in error.message:  # it knows the command, and did not like what it said
            raise
        raise Unsupported(
            "the server keeps no descriptions of partitioned topics; create the partitions as "
            "topics, and give their names to PartitionedProducer"
        ) from error
    whole = partitioned_topics(topics)
    if len(whole) != 1:
        raise DecodeError("TopicResponse", "topics", 0, "one partitioned topic", repr(whole)[:80])
    return whole[0]


def get_partitioned(name: str, server_url: str) -> Procedure[PartitionedTopic]:
    """Look a partitioned topic up (AMB-59)."""
    topics = yield from list_topics()
    if (whole := find_partitioned(topics, name)) is None:
        if find_topic(topics, name) is not None:
            raise TopicNotFound(f"topic {name!r} at {server_url} is not a partitioned topic")
        raise _absent(name, topics, server_url)
    return whole


def find_topics(
    wanted: Sequence[str | int], pattern: re.Pattern[str] | None, server_url: str
) -> Procedure[list[TopicInfo]]:
    """Return topics by name, number or pattern; all partitions for a partitioned topic's name.

    Raises:
        TopicNotFound: there is no topic of a name or number.
    """
    found: dict[int, TopicInfo] = {}
    names = pattern is not None or any(isinstance(each, str) for each in wanted)
    topics = (yield from list_topics()) if names else []
    for each in wanted:
        if isinstance(each, int):
            one = yield from get_topic(each, server_url)
            found[one.id] = one
        else:
            found |= {topic.id: topic for topic in _named(topics, each, server_url)}
    if pattern is not None:
        found |= {topic.id: topic for topic in topics if matches(topic, pattern)}
    return list(found.values())


def _named(topics: list[TopicInfo], name: str, server_url: str) -> Sequence[TopicInfo]:
    if (topic := find_topic(topics, name)) is not None:
        return [topic]
    if (whole := find_partitioned(topics, name)) is not None:
        return whole.topics
    raise _absent(name, topics, server_url)


def matches(topic: TopicInfo, pattern: re.Pattern[str]) -> bool:
    """Whether a pattern fits the whole name of a topic, or of the one that it is a partition of."""
    return bool(
        pattern.fullmatch(topic.name)
        or (topic.partition is not None and pattern.fullmatch(topic.partition.topic))
    )


def list_partitioned() -> Procedure[list[PartitionedTopic]]:
    """List the partitioned topics by name (AMB-59)."""
    return partitioned_topics((yield from list_topics()))


def list_topics() -> Procedure[list[TopicInfo]]:
    """List the topics by name (LWP section 5.4)."""
    topics: list[TopicInfo] = yield topics_call()
    return topics


def topics_call() -> PendingRequest:
    """Return a call whose value is the topics by name."""
    expects = Command.TOPIC_RESPONSE
    return PendingRequest(Command.LIST_TOPICS, b"", expects, _by_name, repeatable=True)


def _by_name(payload: Buffer) -> list[TopicInfo]:
    return sorted(decode_topics(payload), key=lambda topic: (topic.name, topic.id))


def get_topic(topic: str | int, server_url: str) -> Procedure[TopicInfo]:
    """Look a topic up by name or number (LWP section 5.5)."""
    number = topic if isinstance(topic, int) else (yield from _number(topic, server_url))
    payload = _encode(GetTopic(topic_id=number))
    found: TopicInfo = yield PendingRequest(
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
    topics = yield from list_topics()
    found = find_topic(topics, name)
    if found is None:
        yield from _check_complete(name, server_url)
        raise _absent(name, topics, server_url, create=True)
    return found.id


def _check_complete(name: str, server_url: str) -> Procedure[None]:
    """Refuse to call a topic missing where the node that was asked may not know it yet."""
    whole: bool = yield PendingRequest(
        Command.LIST_TOPICS, b"", Command.TOPIC_RESPONSE, is_complete, repeatable=True
    )
    if not whole:
        raise uncertain_topic(name, server_url)


def _absent(
    name: str, topics: list[TopicInfo], server_url: str, *, create: bool = False
) -> TopicNotFound:
    """Return the error for a topic that is not there, or is several.

    Args:
        name: the topic's name.
        topics: those that are there.
        server_url: where.
        create: whether to say how it is created; who deletes does not want that.
    """
    if (whole := find_partitioned(topics, name)) is not None:
        return TopicNotFound(partitioned_topic(whole, server_url))
    if create:
        return TopicNotFound(missing_topic(name, topics, server_url))
    near = near_topic(name, topics)
    listing = f"see `lwp topics list --url {server_url}`"
    advice = listing if near is None else f"did you mean {near!r}?"
    return TopicNotFound(f"{no_topic(name, server_url)}; {advice}")


def _found(name: str, server_url: str) -> Procedure[TopicInfo | PartitionedTopic]:
    _check_text(name)
    topics = yield from list_topics()
    found = find_topic(topics, name) or find_partitioned(topics, name)
    if found is None:
        yield from _check_complete(name, server_url)
        raise _absent(name, topics, server_url)
    return found


def delete_topic(topic: str | int, server_url: str) -> Procedure[None]:
    """Delete a topic and its records (LWP section 5.6), or all of a partitioned one (AMB-59)."""
    found = topic if isinstance(topic, int) else (yield from _found(topic, server_url))
    if isinstance(found, PartitionedTopic):
        command, request = Command.DELETE_PARTITIONED_TOPIC, found.name.encode()
        check: Callable[[Any], dict[str, Any]] = _any_object
    else:
        number = found if isinstance(found, int) else found.id
        command, request = Command.DELETE_TOPIC, _encode(DeleteTopic(topic_id=number))
        check = _object_about("deleted", number)
    yield PendingRequest(command, request, Command.TOPIC_RESPONSE, check, repeatable=False)


def set_retention(
    topic: str | int,
    dialect: Dialect | None,
    server_url: str,
    *,
    max_age_secs: int,
    max_bytes: int,
) -> Procedure[None]:
    """Set how long a topic keeps its records (LWP section 5.10)."""
    found = topic if isinstance(topic, int) else (yield from _found(topic, server_url))
    if isinstance(found, PartitionedTopic):
        found = found.topics[0]  # one is for all (AMB-59)
    number = found if isinstance(found, int) else found.id
    age, size = _limits(dialect, max_age_secs, max_bytes)
    payload = _encode(SetRetention(topic_id=number, max_age_secs=age, max_bytes=size))
    check = _object_about("topic_id", number)
    yield PendingRequest(
        Command.SET_RETENTION, payload, Command.TOPIC_RESPONSE, check, repeatable=True
    )


def offset_for_time(topic: str | int, moment: datetime | int, server_url: str) -> Procedure[int]:
    """Ask where the records of a time begin (AMB-37)."""
    time_ns = as_moment_ns("moment", moment) if isinstance(moment, datetime) else moment
    number = topic if isinstance(topic, int) else (yield from _number(topic, server_url))
    payload = _encode(OffsetForTime(topic_id=number, time_ns=time_ns))
    try:
        found: int = yield PendingRequest(
            Command.OFFSET_FOR_TIME,
            payload,
            Command.OFFSET_FOR_TIME_RESPONSE,
            _offset,
            repeatable=True,
        )
    except InvalidPayload as error:
        raise no_times(error) from error
    return found


def _offset(payload: Buffer) -> int:
    return OffsetForTimeResponse.decode(payload).offset


def batch_times(topic: str | int, start: int, end: int, server_url: str) -> Procedure[BatchTimes]:
    """Ask when the batches of a range were stored (AMB-61)."""
    number = topic if isinstance(topic, int) else (yield from _number(topic, server_url))
    payload = _encode(lwp.BatchTimes(topic_id=number, start_offset=start, end_offset=end))
    try:
        found: BatchTimes = yield PendingRequest(
            Command.BATCH_TIMES,
            payload,
            Command.BATCH_TIMES_RESPONSE,
            _times,
            repeatable=True,
        )
    except InvalidPayload as error:
        raise Unsupported(
            f"the server cannot tell when batches were stored: {error.message}; read its files, "
            "or send records with a time of their own"
        ) from error
    return found


def _times(payload: Buffer) -> BatchTimes:
    answer = BatchTimesResponse.decode(payload)
    size = len(answer.times)
    if size % _TIME.size:
        expected = f"a multiple of {_TIME.size} bytes"
        raise DecodeError("BatchTimesResponse", "times", 12, expected, f"{size} bytes")
    pairs = list(_TIME.iter_unpack(answer.times))
    return BatchTimes(
        tuple(offset for offset, _ in pairs),
        tuple(time_ns for _, time_ns in pairs),
        answer.next_offset,
    )


def cluster_status() -> Procedure[ClusterStatus]:
    """Ask for the cluster's state (AMB-11)."""
    status: ClusterStatus = yield PendingRequest(
        Command.GET_CLUSTER_STATUS,
        b"",
        Command.CLUSTER_STATUS_RESPONSE,
        ClusterStatus.decode,
        repeatable=True,
    )
    return status


def _any_object(payload: Any) -> dict[str, Any]:
    return decode_json(payload, "TopicResponse")


def _object_about(field: str, topic_id: int) -> Callable[[Any], dict[str, Any]]:
    """Return what reads an answer that may name a topic, and refuses one about another."""

    def read(payload: Any) -> dict[str, Any]:
        body = _any_object(payload)
        if body.get(field, topic_id) != topic_id:
            raise DecodeError("TopicResponse", field, 0, str(topic_id), f"{body[field]!r:.80}")
        return body

    return read


def _limits(dialect: Dialect | None, age: int, size: int) -> tuple[int, int]:
    """Say "no limit" in the server's words: 0 deletes everything at a deployed one (AMB-08)."""
    if dialect is None or dialect.zero_retention_is_unlimited:
        return age, size
    return age or _FOREVER_SECS, size or _UNBOUNDED_BYTES


def _check_text(name: object) -> str:
    if not isinstance(name, str):
        raise TypeError(f"a topic's name must be text, not {type(name).__name__}")
    return name


def _checked(name: object, dialect: Dialect | None) -> str:
    name = _check_text(name)
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
