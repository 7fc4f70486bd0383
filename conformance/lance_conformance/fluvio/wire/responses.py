"""Responses: strictly read, so that a field too many or too few does not go unnoticed."""

from dataclasses import dataclass

from lance_conformance.fluvio.wire.errors import Outcome, read_outcome
from lance_conformance.fluvio.wire.objects import READERS, Object, ObjectKind
from lance_conformance.fluvio.wire.primitives import Reader
from lance_conformance.fluvio.wire.records import Batch, StoredRecord, read_batches


@dataclass(frozen=True, slots=True)
class Versions:
    """Which requests a server knows.

    Attributes:
        error: 0 unless it refused to say.
        ranges: Key, lowest and highest version of each.
        platform: The server's own version.
    """

    error: int
    ranges: tuple[tuple[int, int, int], ...]
    platform: str


def read_versions(reader: Reader) -> Versions:
    """The answer to ApiVersions."""
    error = reader.number(2, "error_code")
    ranges = reader.many(
        lambda: (
            reader.number(2, "api_key"),
            reader.number(2, "min_version"),
            reader.number(2, "max_version"),
        ),
        "api_keys",
    )
    return Versions(error, tuple(ranges), reader.text("platform_version"))


# The SC ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Watched:
    """One piece of a watch.

    Attributes:
        epoch: The state that it leads to.
        updated: Objects that are new or different.
        deleted: Objects that are gone.
        all: All objects, in the first piece.
    """

    epoch: int
    updated: tuple[Object, ...]
    deleted: tuple[Object, ...]
    all: tuple[Object, ...]


def read_watched(reader: Reader, *, kind: ObjectKind, version: int) -> Watched:
    """A piece of a watch of one kind."""
    body = _of_kind(reader, kind)
    read = READERS[kind]
    epoch = body.number(8, "epoch")
    changes = body.many(lambda: (body.flag("change"), read(body, version)), "changes")
    found = body.many(lambda: read(body, version), "all")
    body.end()
    return Watched(
        epoch,
        tuple(each for gone, each in changes if not gone),
        tuple(each for gone, each in changes if gone),
        tuple(found),
    )


@dataclass(frozen=True, slots=True)
class Listed:
    """The answer to List."""

    objects: tuple[Object, ...]


def read_listed(reader: Reader, *, kind: ObjectKind, version: int) -> Listed:
    """The answer to List of one kind."""
    body = _of_kind(reader, kind)
    found = body.many(lambda: READERS[kind](body, version), "objects")
    body.end()
    return Listed(tuple(found))


def _of_kind(reader: Reader, kind: ObjectKind) -> Reader:
    found = reader.text("object_type")
    if found != kind:
        reader.fault("object_type", f"expected {kind}, got {found!r}")
    return reader.sized("objects")


@dataclass(frozen=True, slots=True)
class Status:
    """The answer to Create and Delete.

    Attributes:
        name: The topic.
        outcome: Whether it succeeded.
        message: Why not, for people.
    """

    name: str
    outcome: Outcome
    message: str | None


def read_status(reader: Reader) -> Status:
    """The answer to Create and Delete."""
    name, outcome = reader.text("name"), read_outcome(reader)
    return Status(name, outcome, reader.option(lambda: reader.text("message"), "message"))


# The SPU -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Appended:
    """What became of one entry of a Produce request.

    Attributes:
        partition: The partition.
        outcome: Whether its batches were appended.
        base_offset: Offset of the first record.
    """

    partition: int
    outcome: Outcome
    base_offset: int


@dataclass(frozen=True, slots=True)
class Produced:
    """The answer to Produce.

    Attributes:
        topics: By topic, one for each entry of the request.
    """

    topics: tuple[tuple[str, tuple[Appended, ...]], ...]


def read_produced(reader: Reader, *, version: int) -> Produced:
    """The answer to Produce: throttle time from version 1 on, append time 2, start offset 5."""
    topics = reader.many(
        lambda: (
            reader.text("name"),
            tuple(reader.many(lambda: _appended(reader, version), "partitions")),
        ),
        "topics",
    )
    if version >= 1:
        reader.number(4, "throttle_time_ms")
    return Produced(tuple(topics))


def _appended(reader: Reader, version: int) -> Appended:
    partition, outcome = reader.natural(4, "partition"), read_outcome(reader)
    base = reader.number(8, "base_offset")
    if version >= 2:
        reader.number(8, "log_append_time_ms")
    if version >= 5:
        reader.number(8, "log_start_offset")
    return Appended(partition, outcome, base)


@dataclass(frozen=True, slots=True)
class PartitionOffsets:
    """Where a partition begins and ends."""

    outcome: Outcome
    partition: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Offsets:
    """The answer to FetchOffsets.

    Attributes:
        topics: By topic, one for each partition that was asked about.
    """

    topics: tuple[tuple[str, tuple[PartitionOffsets, ...]], ...]


def read_offsets(reader: Reader) -> Offsets:
    """The answer to FetchOffsets; each error stands before its partition."""
    topics = reader.many(
        lambda: (
            reader.text("topic"),
            tuple(reader.many(lambda: _partition_offsets(reader), "partitions")),
        ),
        "topics",
    )
    return Offsets(tuple(topics))


def _partition_offsets(reader: Reader) -> PartitionOffsets:
    outcome, partition = read_outcome(reader), reader.natural(4, "partition")
    start = reader.number(8, "start_offset")
    return PartitionOffsets(outcome, partition, start, reader.number(8, "last_stable_offset"))


@dataclass(frozen=True, slots=True)
class StreamPiece:
    """One piece of a stream.

    Attributes:
        topic: Name of the topic.
        stream: Number that the server gave the stream.
        partition: Number of the partition.
        outcome: Whether there are records.
        high_watermark: End of what can be read.
        log_start: Lowest offset there is.
        batches: Whole batches; the first may begin before the wanted offset.
        cut: Bytes that the batch takes which follows them and was cut; 0 where none was.
    """

    topic: str
    stream: int
    partition: int
    outcome: Outcome
    high_watermark: int
    log_start: int
    batches: tuple[Batch, ...]
    cut: int = 0

    @property
    def records(self) -> list[StoredRecord]:
        """The records of all batches."""
        return [each for batch in self.batches for each in batch.records]


def read_piece(reader: Reader, *, version: int) -> StreamPiece:
    """A piece of a stream; from version 11 on it tells where a SmartModule goes on."""
    topic, stream = reader.text("topic"), reader.natural(4, "stream_id")
    partition, outcome = reader.natural(4, "partition"), read_outcome(reader)
    high_watermark = reader.number(8, "high_watermark")
    if version >= 11:
        reader.number(8, "next_filter_offset")
    log_start = reader.number(8, "log_start_offset")
    reader.option(lambda: reader.many(lambda: reader.take(16, "aborted"), "aborted"), "aborted")
    batches, cut = read_batches(reader.sized("records"))
    return StreamPiece(
        topic, stream, partition, outcome, high_watermark, log_start, tuple(batches), cut
    )


@dataclass(frozen=True, slots=True)
class StreamOutcome:
    """Whether an acknowledgement reached its stream."""

    stream: int
    outcome: Outcome


def read_stream_outcomes(reader: Reader) -> list[StreamOutcome]:
    """The answer to UpdateOffsets."""
    return reader.many(
        lambda: StreamOutcome(reader.natural(4, "stream_id"), read_outcome(reader)), "status"
    )


@dataclass(frozen=True, slots=True)
class Committed:
    """The answer to UpdateConsumerOffset."""

    offset: int
    outcome: Outcome


def read_committed(reader: Reader) -> Committed:
    """The answer to UpdateConsumerOffset."""
    return Committed(reader.number(8, "offset"), read_outcome(reader))


def read_forgotten(reader: Reader) -> Outcome:
    """The answer to DeleteConsumerOffset."""
    return read_outcome(reader)


@dataclass(frozen=True, slots=True)
class ConsumerOffset:
    """What a consumer has stored.

    Attributes:
        consumer: Who.
        topic: Of which topic.
        partition: Of which partition.
        offset: The last record it has read.
    """

    consumer: str
    topic: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class ConsumerOffsets:
    """The answer to FetchConsumerOffsets."""

    outcome: Outcome
    consumers: tuple[ConsumerOffset, ...]


def read_consumer_offsets(reader: Reader) -> ConsumerOffsets:
    """The answer to FetchConsumerOffsets."""
    outcome = read_outcome(reader)
    return ConsumerOffsets(
        outcome, tuple(reader.many(lambda: _consumer_offset(reader), "consumers"))
    )


def _consumer_offset(reader: Reader) -> ConsumerOffset:
    consumer, topic = reader.text("consumer_id"), reader.text("topic")
    partition, offset = reader.natural(4, "partition"), reader.number(8, "offset")
    reader.natural(8, "modified_time")
    return ConsumerOffset(consumer, topic, partition, offset)
