"""Consuming: a stream of a partition, and offsets that the cluster keeps."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from lance_sdk._api.other_systems import Address
from lance_sdk.errors import ConfigError, RemoteProtocolError, UsageError
from lance_sdk.fluvio._asks import Ask, Steps
from lance_sdk.fluvio._topics import leader, offsets
from lance_sdk.fluvio.errors import check
from lance_sdk.fluvio.types import FluvioSettings, ReceivedRecord, time_or_none
from lance_spec.errors import DecodeError
from lance_spec.fluvio.batches import DecompressionLimitError, open_batch, whole_batches
from lance_spec.messages.fluvio import (
    Batch,
    DeleteConsumerOffsetRequest,
    FetchConsumerOffsetsRequest,
    Isolation,
    OffsetsFilter,
    OffsetUpdate,
    ReplicaKey,
    StreamFetchRequest,
    UpdateConsumerOffsetRequest,
    UpdateOffsetsRequest,
)

_MAX_RECORDS: Final = 64 * 1024 * 1024
"""Most bytes that the records of a received batch may take, decompressed."""
_HEADER: Final = 12
"""Bytes of a batch up to the end of its length."""
_HEADROOM: Final = 40_000
"""Most bytes of a response beside its records: a topic's name, and some numbers."""
_OFFSETS: Final = "consumer-offset"
"""The topic whose leader keeps consumers' offsets."""


@dataclass(slots=True)
class PartitionStream:
    """A stream of one partition.

    Attributes:
        topic: name of the topic.
        partition: number of the partition.
        offset: of the next record.
        max_bytes: most bytes of records in a response; raised where one batch is larger.
        consumer_id: under which name the server keeps offsets, or None.
        id: what the server calls it, once it has answered.
        high_watermark: the offset after the last record that the server told of.
        at: the SPU that leads the partition, as far as is known.
    """

    topic: str
    partition: int
    offset: int
    max_bytes: int
    consumer_id: str | None = None
    id: int | None = None
    high_watermark: int = 0
    at: Address | None = None

    @property
    def what(self) -> str:
        """What is done, for errors."""
        return f"consume {self.topic!r} partition {self.partition} from offset {self.offset}"


def opening(stream: PartitionStream) -> Ask:
    """Return the request that opens a stream; its responses are `take`'s."""
    return Ask(
        1003,
        StreamFetchRequest(
            topic=stream.topic,
            partition=stream.partition,
            offset=stream.offset,
            max_bytes=stream.max_bytes,
            isolation=Isolation.READ_COMMITTED,
            smartmodules=[],
            consumer_id=stream.consumer_id,
        ),
        stream.what,
        stream.at,
    )


def take(
    stream: PartitionStream, response: Any, settings: FluvioSettings
) -> list[ReceivedRecord] | None:
    """Return the records of a response to a stream, none twice.

    Published SPUs cut a response at ``max_bytes``, in the middle of a batch if need be; the rest
    of that batch comes whole with the next response.

    Returns:
        The records; None when the stream must be opened again, with the `PartitionStream.max_bytes`
        that the batch at its offset takes.

    Raises:
        FluvioRefused: the stream has ended.
        RemoteProtocolError: a batch cannot be read, or is larger than the settings allow.
    """
    check(stream.what, response.outcome)
    stream.id = response.stream_id
    stream.high_watermark = response.high_watermark
    try:
        batches, needed = whole_batches(response.records)
        if response.records and not batches:
            _grow(stream, needed, settings)
            return None
        return _records(stream, batches, settings)
    except (DecodeError, DecompressionLimitError) as error:
        raise RemoteProtocolError(f"a batch cannot be read: {error}") from error


def _grow(stream: PartitionStream, needed: int, settings: FluvioSettings) -> None:
    """Note how large a response must be that holds the batch at a stream's offset."""
    wanted = max(needed, 2 * stream.max_bytes) if needed <= _HEADER else needed
    if wanted + _HEADROOM > settings.max_frame:
        raise RemoteProtocolError(
            f"the batch there takes {needed} bytes, and this client accepts responses of "
            f"{settings.max_frame} bytes (max_frame); raise max_frame"
        )
    stream.max_bytes = wanted


def _records(
    stream: PartitionStream, batches: Sequence[Batch], settings: FluvioSettings
) -> list[ReceivedRecord]:
    found: list[ReceivedRecord] = []
    following = stream.offset
    for batch in batches:
        records = open_batch(batch, limit=_MAX_RECORDS, check_crc=settings.check_crc, exact=False)
        for value, key, time, delta in records:
            offset = batch.base_offset + delta
            if offset >= following:
                place = (time_or_none(time), stream.topic, stream.partition)
                found.append(ReceivedRecord(offset, value, key, *place))
        following = max(following, batch.base_offset + batch.last_offset_delta + 1)
    stream.offset = following
    return found


def acknowledge(stream: PartitionStream) -> Steps[None]:
    """Let a stream go on after what was received."""
    if stream.id is None:
        return
    update = OffsetUpdate(offset=stream.offset, stream_id=stream.id)
    response = yield Ask(1005, UpdateOffsetsRequest(offsets=[update]), stream.what, stream.at)
    for each in response.status:
        check(stream.what, each.outcome)


def commit(stream: PartitionStream, offset: int) -> Steps[None]:
    """Have the server keep the offset of the last record that was consumed.

    Raises:
        ConfigError: the stream has no consumer id.
        UsageError: the server has not told the stream's number yet.
        FluvioRefused: the server does not.
    """
    if stream.consumer_id is None:
        raise ConfigError("commit: the consumer has no consumer_id=")
    if stream.id is None:
        raise UsageError(
            "commit: no records were received on this connection yet; commit after the next ones"
        )
    asked = UpdateConsumerOffsetRequest(offset=offset, stream_id=stream.id)
    place = f"{stream.topic!r} partition {stream.partition}"
    what = f"commit offset {offset} of {place} for consumer {stream.consumer_id!r}"
    response = yield Ask(1006, asked, what, stream.at, changes=True)
    check(what, response.outcome)


def committed(topic: str, partition: int, consumer_id: str) -> Steps[int | None]:
    """Return the offset of the last record that a consumer committed, or None."""
    at = yield from leader(_OFFSETS, 0)
    replica = ReplicaKey(topic=topic, partition=partition)
    asked = FetchConsumerOffsetsRequest(
        filter=OffsetsFilter(replica=replica, consumer_id=consumer_id)
    )
    what = f"committed offset of {topic!r} partition {partition} for consumer {consumer_id!r}"
    response = yield Ask(1008, asked, what, at)
    check(what, response.outcome)
    for each in response.consumers:
        if (each.consumer_id, each.topic, each.partition) == (consumer_id, topic, partition):
            offset: int = each.offset
            return offset
    return None


def forget(topic: str, partition: int, consumer_id: str) -> Steps[None]:
    """Have the server forget what a consumer committed."""
    asked = DeleteConsumerOffsetRequest(topic=topic, partition=partition, consumer_id=consumer_id)
    at = yield from leader(_OFFSETS, 0)
    what = f"forget consumer {consumer_id!r} of {topic!r} partition {partition}"
    response = yield Ask(1007, asked, what, at, changes=True)
    check(what, response.outcome)


def first_offset(
    start: int | str, topic: str, partition: int, consumer_id: str | None
) -> Steps[int]:
    """Return the offset at which a consumer begins.

    Raises:
        ConfigError: ``start`` is neither an offset nor a known word.
    """
    if isinstance(start, int):
        return start
    if start not in {"beginning", "end"}:
        raise ConfigError(f"start={start!r}: expected 'beginning', 'end' or an offset")
    if consumer_id is not None:
        last = yield from committed(topic, partition, consumer_id)
        if last is not None:
            return last + 1
    found = yield from offsets(topic, partition)
    return found.start if start == "beginning" else found.end
