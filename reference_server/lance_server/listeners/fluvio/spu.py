"""The SPU: records in and out, and how far consumers are."""

from collections.abc import Awaitable
from typing import Final

from lance_server.listeners.fluvio.apis import Apis
from lance_server.listeners.fluvio.cluster import OFFSETS_TOPIC, Cluster, FluvioTopic
from lance_server.listeners.fluvio.connection import Answer, Connection
from lance_server.listeners.fluvio.produce import Producing, too_large_answer
from lance_server.listeners.fluvio.refusals import (
    DONE,
    FluvioRefusal,
    ProtocolError,
    from_log,
    told,
)
from lance_server.listeners.fluvio.streams import Stream
from lance_server.log.log_manager import Topic
from lance_server.lwp.refusals import Refusal
from lance_server.runtime.completion import settled
from lance_server.security.access import Right
from lance_spec.messages.fluvio import (
    ConsumerOffset,
    DeleteConsumerOffsetRequest,
    DeleteConsumerOffsetResponse,
    ErrorCode,
    FetchConsumerOffsetsRequest,
    FetchConsumerOffsetsResponse,
    FetchOffsetsRequest,
    FetchOffsetsResponse,
    OffsetsFilter,
    PartitionOffsets,
    RecordSet,
    Request,
    StreamFetchRequest,
    StreamFetchResponse,
    StreamOutcome,
    TopicOffsets,
    UpdateConsumerOffsetRequest,
    UpdateConsumerOffsetResponse,
    UpdateOffsetsRequest,
    UpdateOffsetsResponse,
)
from lance_spec.messages.fluvio import Outcome as Told

_PRODUCE: Final = 0


class Spu:
    """Serves one connection to the SPU.

    Args:
        cluster: where partitions are.
        connection: where requests come from.
    """

    def __init__(self, cluster: Cluster, connection: Connection) -> None:
        self._cluster = cluster
        self._connection = connection
        self._authorizer = connection.authorizer
        self._streams: dict[int, Stream] = {}
        self._producing = Producing(cluster, connection.authorizer)
        self._apis = Apis(
            "spu",
            {
                0: self._producing.produce,
                1002: self._fetch_offsets,
                1003: self._stream_fetch,
                1005: self._update_offsets,
                1006: self._update_consumer_offset,
                1007: self._delete_consumer_offset,
                1008: self._fetch_consumer_offsets,
            },
        )

    def __repr__(self) -> str:
        return f"<Spu {len(self._streams)} streams, {self._connection!r}>"

    async def handle(self, request: Request) -> Answer:
        """Carry a request out."""
        return await self._apis.handle(request)

    def at_once(self, frame: bytes) -> tuple[int, bytes | Awaitable[bytes]] | None:
        """Carry out a Produce request with one batch; leave any other to `handle`."""
        return self._producing.at_once(frame)

    def oversize(self, request: Request, size: int) -> bytes:
        """Return the answer to a request that is too large to be read, of which this is the begin.

        Raises:
            ProtocolError: no answer would be understood.
        """
        if request.api_key != _PRODUCE:
            raise ProtocolError(f"a request of key {request.api_key} of {size} bytes")
        return too_large_answer(request, size)

    # Reading -----------------------------------------------------------------------------------

    async def _fetch_offsets(self, request: Request) -> bytes:
        asked = FetchOffsetsRequest.decode(request.body, request.api_version)
        topics = [
            TopicOffsets(
                topic=each.topic,
                partitions=[self._offsets(each.topic, index) for index in each.partitions],
            )
            for each in asked.topics
        ]
        return FetchOffsetsResponse(topics=topics).encode()

    def _offsets(self, topic: str, partition: int) -> PartitionOffsets:
        outcome, start, end = DONE, 0, 0
        try:
            found = self._cluster.partition(topic, partition, self._authorizer, Right.READ)
            start, end = found.partition.log_start.record, found.partition.end_record
        except FluvioRefusal as refusal:
            if (topic, partition) != (OFFSETS_TOPIC, 0):  # clients look at it, and never read it
                outcome, start, end = _as_offsets_tell(refusal.outcome), -1, -1
        return PartitionOffsets(
            outcome=outcome, partition=partition, start_offset=start, last_stable_offset=end
        )

    async def _stream_fetch(self, request: Request) -> bytes | None:
        asked = StreamFetchRequest.decode(request.body, request.api_version)
        try:
            if asked.smartmodules:
                raise told("SmartModules are not run here; consume without them")
            topic = self._cluster.partition(
                asked.topic, asked.partition, self._authorizer, Right.READ
            )
        except FluvioRefusal as refusal:
            return _no_stream(asked, refusal.outcome).encode(request.api_version)
        self._cluster.streams = number = self._cluster.streams % 0xFFFFFFFF + 1
        stream = Stream(self._cluster, self._connection, topic, asked, number)
        self._connection.stream(lambda: self._run(stream, request))
        return None

    async def _run(self, stream: Stream, request: Request) -> None:
        self._streams[stream.number] = stream
        try:
            await stream.run(request.correlation_id, request.api_version)
        finally:
            del self._streams[stream.number]

    async def _update_offsets(self, request: Request) -> bytes:
        asked = UpdateOffsetsRequest.decode(request.body)
        status = []
        for each in asked.offsets:
            stream = self._streams.get(each.stream_id)
            if stream is not None:
                stream.acknowledge(each.offset)
            outcome = _NO_STREAM if stream is None else DONE
            status.append(StreamOutcome(stream_id=each.stream_id, outcome=outcome))
        return UpdateOffsetsResponse(status=status).encode()

    # How far consumers are ---------------------------------------------------------------------

    async def _update_consumer_offset(self, request: Request) -> bytes:
        asked = UpdateConsumerOffsetRequest.decode(request.body)
        stream = self._streams.get(asked.stream_id)
        outcome = DONE
        if stream is None:
            outcome = _NO_STREAM
        elif not stream.asked.consumer_id:
            outcome = Told(code=ErrorCode.OFFSET_MANAGEMENT_DISABLED, detail=None)
        else:
            outcome = await self._commit(stream, stream.asked.consumer_id, asked.offset)
        return UpdateConsumerOffsetResponse(offset=asked.offset, outcome=outcome).encode()

    async def _commit(self, stream: Stream, consumer: str, offset: int) -> Told:
        if not -1 <= offset < stream.topic.partition.end_record:
            return Told(code=ErrorCode.OFFSET_OUT_OF_RANGE, detail=None)
        try:
            await settled(self._cluster.committed.of(stream.topic).commit(consumer, offset))
        except (FluvioRefusal, Refusal, OSError) as error:
            return from_log(error).outcome
        return DONE

    async def _delete_consumer_offset(self, request: Request) -> bytes:
        asked = DeleteConsumerOffsetRequest.decode(request.body)
        outcome = DONE
        try:
            topic = self._cluster.partition(
                asked.topic, asked.partition, self._authorizer, Right.READ
            )
            deleted = self._cluster.committed.of(topic).delete(asked.consumer_id)
            if deleted is not None:
                await settled(deleted)
        except (FluvioRefusal, Refusal, OSError) as error:
            outcome = from_log(error).outcome
        return DeleteConsumerOffsetResponse(outcome=outcome).encode()

    async def _fetch_consumer_offsets(self, request: Request) -> bytes:
        asked = FetchConsumerOffsetsRequest.decode(request.body, request.api_version)
        outcome, found = DONE, []
        try:
            found = [
                each
                for topic in self._cluster.topics(self._authorizer)
                for index, part in enumerate(topic.partitions)
                for each in self._committed(topic, index, part, asked.filter)
            ]
        except FluvioRefusal as refusal:
            outcome = refusal.outcome
        return FetchConsumerOffsetsResponse(outcome=outcome, consumers=found).encode()

    def _committed(
        self, topic: FluvioTopic, index: int, part: Topic, wanted: OffsetsFilter | None
    ) -> list[ConsumerOffset]:
        replica = wanted.replica if wanted else None
        consumer = wanted.consumer_id if wanted else None
        if replica is not None and (replica.topic, replica.partition) != (topic.name, index):
            return []
        return [
            ConsumerOffset(
                consumer_id=name,
                topic=topic.name,
                partition=index,
                offset=each.offset,
                modified_time=each.modified,
            )
            for name, each in self._cluster.committed.of(part).found(consumer).items()
        ]


def _as_offsets_tell(outcome: Told) -> Told:
    """Return an outcome as FetchOffsets tells it: 3001 for a partition that is not there."""
    if outcome.code is ErrorCode.NOT_LEADER_FOR_PARTITION:
        return Told(code=ErrorCode.PARTITION_NOT_LEADER, detail=None)
    return outcome


_NO_STREAM = Told(code=ErrorCode.FETCH_SESSION_NOT_FOUND, detail=None)


def _no_stream(asked: StreamFetchRequest, outcome: Told) -> StreamFetchResponse:
    return StreamFetchResponse(
        topic=asked.topic,
        stream_id=0,
        partition=asked.partition,
        outcome=outcome,
        high_watermark=-1,
        log_start_offset=-1,
        aborted=None,
        records=RecordSet(batches=[]),
    )
