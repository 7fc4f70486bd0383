"""Produce: batches into the log, each entry of a request stored whole or not at all."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

from lance_server.listeners.fluvio.cluster import Cluster
from lance_server.listeners.fluvio.refusals import (
    DONE,
    FluvioRefusal,
    ProtocolError,
    from_log,
    told,
)
from lance_server.listeners.fluvio.values import Chain, to_log, too_large
from lance_server.log.log_manager import Topic
from lance_server.lwp.refusals import Refusal
from lance_server.runtime.completion import Completion, settled
from lance_server.security.access import Right
from lance_server.security.authorizer import Authorizer
from lance_spec.checksum import CRC32C
from lance_spec.codec.ingest_runs import BatchMeta
from lance_spec.errors import DecodeError
from lance_spec.fluvio.batches import DecompressionLimitError, counted
from lance_spec.fluvio.single_batch import appended, single_batch
from lance_spec.messages.fluvio import (
    Batch,
    ErrorCode,
    PartitionAppended,
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
    Request,
    RequestKind,
    RequestTimedOut,
    TopicAppended,
)
from lance_spec.messages.fluvio import Outcome as Told

_IN_PLACE: Final = 32 * 1024
"""Uncompressed batches up to this size are opened on the event loop, all others on a thread."""
_CROWD: Final = 16 * 1024
"""Most topics, partitions and batches in a request: reading each keeps the event loop busy."""
_LONGEST: Final = 60.0
"""Seconds after which nobody waits for the disk any more: clients give up then."""


@dataclass(slots=True)
class _Entry:
    """What one partition of a request comes to.

    Attributes:
        topic: name of the topic.
        partition: number of the partition.
        outcomes: what its batches wait for.
        number: tells which record its first batch begins with, once it is stored.
        refusal: why nothing of it is stored, or None.
    """

    topic: str
    partition: int
    outcomes: list[Completion[None]]
    number: Callable[[], int] = lambda: -1
    refusal: FluvioRefusal | None = None


class Producing:
    """Carries out the Produce requests of one connection.

    Args:
        cluster: where partitions are.
        authorizer: knows what the client may do.
    """

    def __init__(self, cluster: Cluster, authorizer: Authorizer) -> None:
        self._cluster = cluster
        self._options = cluster.options
        self._authorizer = authorizer

    def __repr__(self) -> str:
        return f"<Producing for {self._authorizer!r}>"

    async def produce(self, request: Request) -> Awaitable[bytes]:
        """Give batches to the log, in order; return what waits for the disk and answers."""
        _check_crowd(request.body)
        asked = ProduceRequest.decode(request.body, request.api_version)
        topics: list[tuple[str, list[_Entry]]] = []
        for topic in asked.topics:
            entries = [await self._entry(topic.name, each, asked) for each in topic.partitions]
            topics.append((topic.name, entries))
        return self._answer(topics, asked.isolation, asked.timeout_ms, request.api_version)

    def at_once(self, frame: bytes) -> tuple[int, bytes | Awaitable[bytes]] | None:
        """Give a batch that came alone to the log, and make it durable where that is quick.

        Args:
            frame: a request without its length.

        Returns:
            Its number, and what answers it; None where nothing was stored, and `produce` is to
            carry it out or to tell why not.
        """
        asked = single_batch(frame, check_crc=self._options.check_crc)
        if asked is None or len(asked.records) > _IN_PLACE:
            return None
        limit = self._options.max_batch
        try:
            topic = self._cluster.partition(
                asked.topic, asked.partition, self._authorizer, Right.WRITE
            )
            chain = to_log(asked.records, asked.record_count, asked.first_timestamp, limit)
        except (FluvioRefusal, DecodeError):
            return None
        entry = _Entry(asked.topic, asked.partition, [])
        self._append(entry, topic, [chain])
        self._cluster.engine.flusher.flush_lone()
        (outcome,) = entry.outcomes
        if outcome.done and outcome.error is None:
            return asked.correlation_id, appended(asked, entry.number())
        answer = self._answer(
            [(asked.topic, [entry])], asked.isolation, asked.timeout_ms, asked.version
        )
        return asked.correlation_id, answer

    async def _entry(self, topic: str, part: ProducePartition, asked: ProduceRequest) -> _Entry:
        entry = _Entry(topic, part.partition, [])
        try:
            if asked.smartmodules:
                raise told("SmartModules are not run here; produce without them")
            found = self._cluster.partition(topic, part.partition, self._authorizer, Right.WRITE)
            chains = [await self._opened(each) for each in part.records.batches]
            self._append(entry, found, chains)
        except FluvioRefusal as refusal:
            entry.refusal = refusal
        return entry

    async def _opened(self, batch: Batch) -> Chain:
        """Return a batch as records of the log.

        Raises:
            FluvioRefusal: it is not a valid batch, or too large.
        """
        if len(batch.records) <= _IN_PLACE and not batch.attributes:
            return self._open(batch)
        async with self._cluster.readers:
            return await asyncio.to_thread(self._open, batch)

    def _open(self, batch: Batch) -> Chain:
        limit = self._options.max_batch
        try:
            raw, count = counted(batch, limit=limit, check_crc=self._options.check_crc)
            return to_log(raw, count, batch.first_timestamp, limit)
        except DecompressionLimitError as error:
            raise too_large(str(error)) from None
        except DecodeError as error:
            raise told(f"nothing is stored: {error}") from None

    def _append(self, entry: _Entry, topic: Topic, chains: list[Chain]) -> None:
        now_ns = self._cluster.engine.now_ns(topic)
        partition = topic.partition
        entry.number = lambda: partition.end_record
        for index, (data, count) in enumerate(chain for chain in chains if chain.records):
            crc = CRC32C.compute(data)
            batch = BatchMeta(len(data), count, 0, 0, now_ns, crc, 0)
            entry.outcomes.append(partition.append(data, batch))
            if not index:
                entry.number = partition.number_of_last()

    # Answers -----------------------------------------------------------------------------------

    async def _answer(
        self,
        topics: list[tuple[str, list[_Entry]]],
        isolation: int,
        timeout_ms: int,
        version: int,
    ) -> bytes:
        wait = _LONGEST if isolation >= 0 else min(timeout_ms / 1000, _LONGEST)
        deadline = asyncio.get_running_loop().time() + wait
        answered = [
            TopicAppended(
                name=name,
                partitions=[await self._told(entry, deadline, wait) for entry in entries],
            )
            for name, entries in topics
        ]
        return ProduceResponse(topics=answered).encode(version)

    async def _told(self, entry: _Entry, deadline: float, wait: float) -> PartitionAppended:
        outcome, number = DONE, -1
        try:
            await self._stored(entry, deadline, wait)
            number = entry.number()
        except FluvioRefusal as refusal:
            outcome = refusal.outcome
        return PartitionAppended(
            partition=entry.partition, outcome=outcome, base_offset=number, log_append_time_ms=-1
        )

    async def _stored(self, entry: _Entry, deadline: float, wait: float) -> None:
        """Wait until an entry is durable.

        Raises:
            FluvioRefusal: it is not stored, or that is not known in time.
        """
        if entry.refusal is not None:
            raise entry.refusal
        try:
            async with asyncio.timeout_at(deadline):
                for each in dict.fromkeys(entry.outcomes):
                    await settled(each)
        except TimeoutError:
            milliseconds = int(wait * 1000)
            detail = RequestTimedOut(timeout_ms=milliseconds, kind=RequestKind.PRODUCE)
            raise FluvioRefusal(
                ErrorCode.REQUEST_TIMED_OUT, f"not stored in {milliseconds} ms", detail
            ) from None
        except (Refusal, OSError) as error:
            raise from_log(error) from error


def too_large_answer(request: Request, size: int) -> bytes:
    """Return the refusal of a Produce request that is too large, of one partition.

    Args:
        request: the begin of the request.
        size: bytes of the whole.

    Raises:
        ProtocolError: it begins with more partitions than one, or with none.
    """
    body = request.body
    place = 7 if body[:1] == b"\0" else 9 + _number(body, 1, 2)
    topics, place = _number(body, place, 4), place + 4
    following = place + 2 + _number(body, place, 2)
    name = body[place + 2 : following]
    if topics != 1 or _number(body, following, 4) != 1 or following + 8 > len(body):
        raise ProtocolError(f"a Produce request of {size} bytes, for several partitions")
    outcome = Told(code=ErrorCode.MESSAGE_TOO_LARGE, detail=None)
    entry = PartitionAppended(
        partition=_number(body, following + 4, 4),
        outcome=outcome,
        base_offset=-1,
        log_append_time_ms=-1,
    )
    topic = TopicAppended(name=name.decode(errors="replace"), partitions=[entry])
    return ProduceResponse(topics=[topic]).encode(request.api_version)


def _check_crowd(body: bytes) -> None:
    """Refuse a request of very many parts before it is read; what is broken is found then.

    Raises:
        ProtocolError: it has more parts than any client sends.
    """
    left = _CROWD - sum(1 for _ in islice(_parts(body), _CROWD))
    if not left:
        raise ProtocolError(f"a Produce request of {_CROWD} topics, partitions and batches or more")


def _parts(body: bytes) -> Iterator[None]:
    """Yield once for each topic, partition and batch of a request, as far as it makes sense."""
    place = 7 if body[:1] == b"\0" else 9 + _number(body, 1, 2)
    topics, place = _number(body, place, 4), place + 4
    for _ in range(topics):
        yield
        place += 2 + _number(body, place, 2)
        entries, place = _number(body, place, 4), place + 4
        for _ in range(entries):
            yield
            batch, place = place + 8, place + 8 + _number(body, place + 4, 4)
            while batch + 12 <= min(place, len(body)):
                yield
                batch += 12 + _number(body, batch + 8, 4)
            if place >= len(body):
                return


def _number(body: bytes, place: int, size: int) -> int:
    return int.from_bytes(body[place : place + size], "big")
