"""Carries out requests."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from lance_server.listeners.rustlog.codecs import Form
from lance_server.listeners.rustlog.groups import Groups
from lance_server.listeners.rustlog.metrics import Counts
from lance_server.listeners.rustlog.options import RustlogOptions
from lance_server.listeners.rustlog.reading import Basket, RecordReading
from lance_server.listeners.rustlog.refusals import RustlogRefusal, reason
from lance_server.listeners.rustlog.topics import Topics
from lance_server.log.log_manager import LogManager, Topic
from lance_server.log.reading.record_index import RecordIndex
from lance_server.lwp.refusals import Refusal
from lance_server.runtime.completion import settled
from lance_server.runtime.memory_quota import Quota
from lance_server.security.access import Right
from lance_server.security.authorizer import Authorizer
from lance_spec.checksum import CRC32C
from lance_spec.codec.ingest_runs import BatchMeta
from lance_spec.messages.rustlog import (
    CreateTopicRequest,
    CreateTopicResponse,
    DescribedPartition,
    DescribePartitionRequest,
    DescribePartitionResponse,
    DescribeTopicRequest,
    DescribeTopicResponse,
    ErrorCode,
    FetchRequest,
    FetchResponse,
    ListedTopic,
    ListTopicsRequest,
    ListTopicsResponse,
    MetricsRequest,
    MetricsResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    Ping,
    ProduceRequest,
    ProduceResponse,
)
from lance_spec.records import encode_records

_READERS: Final = 2
Handler: TypeAlias = Callable[[Any, Form], Awaitable[Any]]
"""Carries out requests of one type."""


@dataclass(frozen=True, slots=True)
class Shared:
    """What all connections of a listener share.

    Attributes:
        engine: the log.
        options: limits.
        record_index: where records stand.
        groups: what groups have committed.
        counts: what is counted.
        memory: what requests and answers use of it.
        readers: who takes apart much data holds it.
    """

    engine: LogManager
    options: RustlogOptions
    record_index: RecordIndex
    groups: Groups
    counts: Counts
    memory: Quota
    readers: asyncio.Semaphore

    @classmethod
    def over(cls, engine: LogManager, options: RustlogOptions) -> "Shared":
        """Return what serves a log."""
        return cls(
            engine,
            options,
            RecordIndex(engine.storage, engine.scheduler),
            Groups(engine, options.max_groups),
            Counts(),
            Quota(options.max_memory),
            asyncio.Semaphore(_READERS),
        )


class Service:
    """Carries out the requests of one connection.

    Args:
        shared: what all connections share.
        authorizer: knows what the client may do.
    """

    def __init__(self, shared: Shared, authorizer: Authorizer) -> None:
        self._shared = shared
        self._topics = Topics(shared.engine, authorizer, shared.options.max_partitions)
        self._reading = RecordReading(shared.engine, shared.record_index, shared.readers)
        self._handlers: dict[type, Handler] = {
            ProduceRequest: self._produce,
            FetchRequest: self._fetch,
            OffsetCommitRequest: self._commit,
            OffsetFetchRequest: self._committed,
            CreateTopicRequest: self._create,
            ListTopicsRequest: self._list,
            DescribeTopicRequest: self._describe_topic,
            DescribePartitionRequest: self._describe_partition,
            MetricsRequest: self._metrics,
            Ping: self._ping,
        }

    def __repr__(self) -> str:
        return f"<Service {self._topics!r}>"

    async def handle(self, request: Any, form: Form) -> Any:
        """Carry a request out and return its answer.

        Raises:
            RustlogRefusal: it is answered with an error.
        """
        return await self._handlers[type(request)](request, form)

    def _existing(self, request: Any, right: Right, form: Form) -> Topic:
        found = self._topics.find(request.topic, request.partition, right)
        if found is None:
            raise form.no_partition(request.topic, request.partition)
        return found

    # Records -----------------------------------------------------------------------------------

    async def _produce(self, request: ProduceRequest, form: Form) -> ProduceResponse:
        topic = self._existing(request, Right.WRITE, form)
        count = len(request.records)
        if not count:
            return ProduceResponse(base_offset=0, record_count=0)
        data = encode_records(request.records)
        now_ns = self._shared.engine.now_ns(topic)
        batch = BatchMeta(len(data), count, 0, 0, now_ns, CRC32C.compute(data), 0)
        outcome = topic.partition.append(data, batch)
        number = topic.partition.number_of_last()
        try:
            await settled(outcome)
        except (Refusal, OSError) as error:
            text = f"Failed to write record: {reason(error)}"
            raise RustlogRefusal(ErrorCode.INTERNAL, text) from error
        self._shared.counts.produced.inc(count)
        return ProduceResponse(base_offset=number(), record_count=count)

    async def _fetch(self, request: FetchRequest, form: Form) -> FetchResponse:
        found = self._topics.find(request.topic, request.partition, Right.READ)
        start: int | None = request.offset
        if request.group:
            place = (request.topic, request.partition)
            committed = self._shared.groups.committed(found, place, request.group)
            start = form.start(request, committed)
        if start is None:
            return FetchResponse(records=[], next_offset=0)
        if found is None:
            raise form.no_partition(request.topic, request.partition)
        return await self._read(found, start, Basket(form, request.max_bytes))

    async def _read(self, topic: Topic, start: int, basket: Basket) -> FetchResponse:
        first, end = topic.partition.log_start.record, topic.partition.end_record
        if not first <= start < end:
            following = basket.form.beyond(start, first, end)
            return FetchResponse(records=[], next_offset=following)
        if basket.max_bytes or not basket.form.takes_none:
            await self._reading.read(topic, start, basket)
        self._shared.counts.fetched.inc(len(basket.records))
        return FetchResponse(records=basket.records, next_offset=start + len(basket.records))

    # Groups ------------------------------------------------------------------------------------

    async def _commit(self, request: OffsetCommitRequest, form: Form) -> OffsetCommitResponse:
        found = self._topics.find(request.topic, request.partition, Right.READ)
        if found is None and not form.commits_anywhere:
            return OffsetCommitResponse(success=False)
        place = (request.topic, request.partition)
        try:
            await settled(self._shared.groups.commit(found, place, request.group, request.offset))
        except (Refusal, OSError) as error:
            text = f"Offset commit failed: {reason(error)}"
            raise RustlogRefusal(ErrorCode.COMMIT_FAILED, text) from error
        return OffsetCommitResponse(success=True)

    async def _committed(self, request: OffsetFetchRequest, form: Form) -> OffsetFetchResponse:
        del form
        found = self._topics.find(request.topic, request.partition, Right.READ)
        place = (request.topic, request.partition)
        committed = self._shared.groups.committed(found, place, request.group)
        return OffsetFetchResponse(offset=committed)

    # Topics ------------------------------------------------------------------------------------

    async def _create(self, request: CreateTopicRequest, form: Form) -> CreateTopicResponse:
        del form
        await self._topics.create(request.topic, request.partitions)
        return CreateTopicResponse(success=True)

    async def _list(self, request: ListTopicsRequest, form: Form) -> ListTopicsResponse:
        del request, form
        topics = [
            ListedTopic(topic=each.name, partitions=len(each.parts))
            for each in self._topics.listed()
        ]
        return ListTopicsResponse(topics=topics)

    async def _describe_topic(
        self, request: DescribeTopicRequest, form: Form
    ) -> DescribeTopicResponse:
        del form
        found = self._topics.named(request.topic)
        if found is None:
            text = f"DescribeTopic failed: Topic '{request.topic}' not found"
            raise RustlogRefusal(ErrorCode.DESCRIBE_TOPIC_FAILED, text)
        parts = [
            DescribedPartition(partition=index, high_watermark=each.partition.end_record)
            for index, each in enumerate(found.parts)
        ]
        return DescribeTopicResponse(
            topic=request.topic, partition_count=len(parts), partitions=parts
        )

    async def _describe_partition(
        self, request: DescribePartitionRequest, form: Form
    ) -> DescribePartitionResponse:
        del form
        found = self._topics.named(request.topic)
        if found is None or request.partition >= len(found.parts):
            raise RustlogRefusal(
                ErrorCode.DESCRIBE_PARTITION_FAILED,
                f"DescribePartition failed: Partition {request.partition} not found in topic "
                f"'{request.topic}'",
            )
        return DescribePartitionResponse(
            topic=request.topic,
            partition=request.partition,
            high_watermark=found.parts[request.partition].partition.end_record,
        )

    # The broker --------------------------------------------------------------------------------

    async def _metrics(self, request: MetricsRequest, form: Form) -> MetricsResponse:
        del request, form
        return MetricsResponse(text=self._shared.counts.text())

    async def _ping(self, request: Ping, form: Form) -> Ping:
        del form
        return request
